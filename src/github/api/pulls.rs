//! Pull requests, their reviews and line comments.

use super::call::{Call, read};
use super::client::Repo;
use super::error::Error;
use super::error::GraphqlError;
use super::facts::{Author, part};
use super::identity::Identity;
use super::issues::{Label, names};
use super::policy::Kind;
use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "GitHub's own words")]
pub struct PullFacts {
    pub number: u64,
    pub title: String,
    /// Its text, or empty if there is none.
    pub body: String,
    /// `open` or `closed`.
    pub state: String,
    /// Whether it was merged, which also closes it.
    pub merged: bool,
    /// Whether it is a draft.
    pub draft: bool,
    /// The branch with its commits.
    pub head: PullBranch,
    /// The branch that it is merged into.
    pub base: PullBranch,
    pub author: Option<Author>,
    /// The names of its labels.
    pub labels: Vec<String>,
    /// Whether people who may push to the base may also push to a head in a fork.
    pub maintainer_can_modify: bool,
    /// The URL of its page.
    pub html_url: String,
    /// Its id for GraphQL.
    pub node_id: String,
}

/// One end of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullBranch {
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// The commit.
    pub sha: String,
    /// `owner/name`, or `None` if the fork was deleted.
    pub repo: Option<String>,
}

/// A pull request to open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewPull {
    /// The title.
    pub title: String,
    /// The text.
    pub body: String,
    /// The branch with the commits.
    pub head: String,
    /// The branch that they are merged into.
    pub base: String,
    /// Whether it is a draft.
    pub draft: bool,
}

/// A pull request that was opened or was already open.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Pull {
    /// Its number.
    pub number: u64,
    /// The URL of its page.
    #[serde(default)]
    pub html_url: String,
}

/// Changes to a pull request. `None` keeps the present value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PullChange {
    /// The title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Whether it is a draft.
    #[serde(skip)]
    pub draft: Option<bool>,
}

/// A review.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "GitHub's own words")]
pub struct Review {
    pub id: u64,
    #[serde(default)]
    pub body: Option<String>,
    /// `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED` or `DISMISSED`.
    #[serde(default)]
    pub state: String,
    #[serde(rename = "user")]
    pub author: Option<Author>,
    /// The commit that was reviewed.
    #[serde(default)]
    pub commit_id: Option<String>,
}

/// A review to post: a text, and comments on lines of the new files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewReview {
    /// The reviewed commit.
    pub commit_id: String,
    /// The text.
    pub body: String,
    /// `COMMENT`: neither approves nor requests changes.
    pub event: &'static str,
    /// The comments on lines that the diff shows.
    pub comments: Vec<NewLineComment>,
}

/// A comment to post on lines of a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewLineComment {
    /// The file.
    pub path: String,
    /// The last line.
    pub line: u32,
    /// `RIGHT`: the line is in the new file.
    pub side: &'static str,
    /// The first line of a range, or `None` for a single line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_line: Option<u32>,
    /// Like `side`, for the first line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_side: Option<&'static str>,
    /// The text.
    pub body: String,
}

/// A line comment of a review.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "GitHub's own words")]
pub struct ReviewComment {
    pub id: u64,
    /// Its GraphQL id.
    #[serde(default)]
    pub node_id: String,
    #[serde(default)]
    pub body: String,
    #[serde(default)]
    pub path: String,
    /// The line, if it still exists.
    #[serde(default)]
    pub line: Option<u32>,
    /// The diff hunk that the comment is about.
    #[serde(default)]
    pub diff_hunk: String,
    /// The head of the pull request when the comment was written.
    #[serde(default)]
    pub original_commit_id: Option<String>,
    /// The comment that it replies to.
    #[serde(default)]
    pub in_reply_to_id: Option<u64>,
    #[serde(rename = "user")]
    pub author: Option<Author>,
}

#[derive(Deserialize)]
struct RawPull {
    number: u64,
    #[serde(default)]
    title: String,
    body: Option<String>,
    #[serde(default)]
    state: String,
    #[serde(default)]
    merged: bool,
    #[serde(default)]
    draft: bool,
    head: RawBranchOfPull,
    base: RawBranchOfPull,
    user: Option<Author>,
    #[serde(default)]
    labels: Vec<Label>,
    #[serde(default)]
    maintainer_can_modify: bool,
    #[serde(default)]
    html_url: String,
    #[serde(default)]
    node_id: String,
}

#[derive(Deserialize)]
struct RawBranchOfPull {
    #[serde(rename = "ref", default)]
    branch: String,
    #[serde(default)]
    sha: String,
    repo: Option<RawRepo>,
}

#[derive(Deserialize)]
struct RawRepo {
    full_name: String,
}

impl From<RawBranchOfPull> for PullBranch {
    fn from(raw: RawBranchOfPull) -> Self {
        Self {
            branch: raw.branch,
            sha: raw.sha,
            repo: raw.repo.map(|repo| repo.full_name),
        }
    }
}

impl From<RawPull> for PullFacts {
    fn from(raw: RawPull) -> Self {
        Self {
            number: raw.number,
            title: raw.title,
            body: raw.body.unwrap_or_default(),
            state: raw.state,
            merged: raw.merged,
            draft: raw.draft,
            head: raw.head.into(),
            base: raw.base.into(),
            author: raw.user,
            labels: names(raw.labels),
            maintainer_can_modify: raw.maintainer_can_modify,
            html_url: raw.html_url,
            node_id: raw.node_id,
        }
    }
}

#[derive(Deserialize)]
struct GraphqlErrors {
    #[serde(default)]
    errors: Vec<GraphqlError>,
}

impl Repo {
    /// A pull request by its number.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn pull(&self, number: u64) -> Result<PullFacts, Error> {
        let call = Call::get(self.path(&format!("/pulls/{number}")));
        let raw: RawPull = self.client.call(&call).await?;
        Ok(raw.into())
    }

    /// The open pull requests from a branch (`branch`, or `owner:branch` of a fork) into another.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn open_pulls_of(&self, head: &str, base: &str) -> Result<Vec<Pull>, Error> {
        let head = if head.contains(':') {
            head.to_owned()
        } else {
            format!("{}:{head}", self.owner)
        };
        let query = format!("state=open&head={}&base={}", part(&head), part(base));
        let path = self.path(&format!("/pulls?{query}"));
        self.client
            .pages(&path, |page: Vec<Pull>| page, |_| false)
            .await
    }

    /// Opens a pull request, or returns the one that is already open for these branches.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn create_pull(&self, new: &NewPull) -> Result<Pull, Error> {
        let call = Call::with_body(Method::POST, self.path("/pulls"), Kind::Create, new)?;
        let look = async || {
            Ok(self
                .open_pulls_of(&new.head, &new.base)
                .await?
                .into_iter()
                .next())
        };
        let refused = match self.client.create(&call, look).await {
            Err(error @ Error::Invalid { status: 422, .. }) => error,
            other => return other,
        };
        look().await?.ok_or(refused)
    }

    /// Changes a pull request.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn update_pull(&self, number: u64, change: &PullChange) -> Result<(), Error> {
        if change.title.is_some() || change.body.is_some() {
            let path = self.path(&format!("/pulls/{number}"));
            let call = Call::with_body(Method::PATCH, path, Kind::Change, change)?;
            self.client.answer(&call).await?;
        }
        match change.draft {
            Some(draft) => self.set_draft(number, draft).await,
            None => Ok(()),
        }
    }

    /// Changes the draft state with GraphQL, because REST cannot.
    async fn set_draft(&self, number: u64, draft: bool) -> Result<(), Error> {
        let pull = self.pull(number).await?;
        if pull.draft == draft {
            return Ok(());
        }
        let mutation = if draft {
            "convertPullRequestToDraft"
        } else {
            "markPullRequestReadyForReview"
        };
        let query = format!(
            "mutation($id: ID!) {{ {mutation}(input: {{pullRequestId: $id}}) {{ pullRequest {{ isDraft }} }} }}"
        );
        let body = json!({ "query": query, "variables": { "id": pull.node_id } });
        let call = Call::with_body(Method::POST, "/graphql".to_owned(), Kind::Change, &body)?;
        let what = format!("{} ({mutation} of #{number})", call.what());
        let answer = self.client.answer(&call).await?;
        let answer: GraphqlErrors = read(&what, &answer.body)?;
        match answer.errors.as_slice() {
            [] => Ok(()),
            errors => Err(Error::of_graphql(&what, errors)),
        }
    }

    /// All reviews of a pull request, oldest first.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn reviews(&self, number: u64) -> Result<Vec<Review>, Error> {
        let path = self.path(&format!("/pulls/{number}/reviews"));
        self.client
            .pages(&path, |page: Vec<Review>| page, |_| false)
            .await
    }

    /// A review by its id.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn review(&self, number: u64, id: u64) -> Result<Review, Error> {
        let path = self.path(&format!("/pulls/{number}/reviews/{id}"));
        self.client.call(&Call::get(path)).await
    }

    /// Posts a review. Its text starts with `marker`, by which it is found if the response is lost.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn create_review(
        &self,
        number: u64,
        (marker, new): (&str, &NewReview),
        identity: &Identity,
    ) -> Result<Review, Error> {
        let path = self.path(&format!("/pulls/{number}/reviews"));
        let call = Call::with_body(Method::POST, path, Kind::Create, new)?;
        let look = async || {
            let own = |review: &Review| {
                let body = review.body.as_deref().unwrap_or_default();
                body.starts_with(marker) && identity.is(review.author.as_ref())
            };
            Ok(self.reviews(number).await?.into_iter().find(own))
        };
        self.client.create(&call, look).await
    }

    /// The comments of a review.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn review_comments(&self, number: u64, id: u64) -> Result<Vec<ReviewComment>, Error> {
        let path = self.path(&format!("/pulls/{number}/reviews/{id}/comments"));
        self.client
            .pages(&path, |page: Vec<ReviewComment>| page, |_| false)
            .await
    }
}
