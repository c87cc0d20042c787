//! Pull requests, their reviews and line comments.

use super::client::Repo;
use super::error::{Error, ErrorKind};
use super::facts::{Author, Identity, part};
use super::policy::Kind;
use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::HashMap;

/// A pull request.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
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
    /// The branch with its commits.
    pub head: PullBranch,
    /// The branch that it is merged into.
    pub base: PullBranch,
    /// The URL of its page.
    pub html_url: String,
}

/// One end of a pull request.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PullBranch {
    /// The branch, without `refs/heads/`.
    #[serde(rename = "ref")]
    pub branch: String,
    /// The commit.
    pub sha: String,
    /// The repository, or `None` if the fork was deleted.
    pub repo: Option<PullRepo>,
}

/// The repository of a branch.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PullRepo {
    /// `owner/name`.
    pub full_name: String,
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

/// A review.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "GitHub's own words")]
pub struct Review {
    pub id: u64,
    pub body: Option<String>,
    #[serde(rename = "user")]
    pub author: Option<Author>,
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
    pub start_line: Option<u32>,
    /// Like `side`, for the first line.
    pub start_side: Option<&'static str>,
    /// The text.
    pub body: String,
}

/// A file that a pull request changes.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "GitHub's own words")]
pub struct ChangedFile {
    pub filename: String,
    pub status: String,
    /// The hunks, or `None` for a binary or a very large file.
    pub patch: Option<String>,
}

/// A line comment of a review.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "GitHub's own words")]
pub struct ReviewComment {
    pub id: u64,
    /// Its GraphQL id.
    pub node_id: String,
    pub body: String,
    pub path: String,
    /// The line, if it still exists.
    pub line: Option<u32>,
    /// The diff hunk that the comment is about.
    pub diff_hunk: String,
    /// The head of the pull request when the comment was written.
    pub original_commit_id: Option<String>,
    /// The comment that it replies to.
    pub in_reply_to_id: Option<u64>,
    #[serde(rename = "user")]
    pub author: Option<Author>,
}

impl Repo {
    /// A pull request by its number.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn pull(&self, number: u64) -> Result<PullFacts, Error> {
        self.get(&format!("/pulls/{number}")).await
    }

    /// The first hundred files that a pull request changes.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn changed_files(&self, number: u64) -> Result<Vec<ChangedFile>, Error> {
        self.get(&format!("/pulls/{number}/files?per_page=100"))
            .await
    }

    /// The open pull requests from a branch (`branch`, or `owner:branch` of a fork) into another.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn open_pulls_of(&self, head: &str, base: &str) -> Result<Vec<PullFacts>, Error> {
        let (owner, head) = head.split_once(':').unwrap_or((&self.owner, head));
        let (head, base) = (part(&format!("{owner}:{head}")), part(base));
        self.list(&format!("/pulls?state=open&head={head}&base={base}"))
            .await
    }

    /// Opens a pull request, or returns the one that is already open for these branches.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn create_pull(&self, new: &NewPull) -> Result<PullFacts, Error> {
        let look = async || {
            let open = self.open_pulls_of(&new.head, &new.base).await?;
            Ok(open.into_iter().next())
        };
        let refused = match self.create("/pulls", new, look).await {
            Err(error) if error.kind == ErrorKind::Invalid(422) => error,
            other => return other,
        };
        look().await?.ok_or(refused)
    }

    /// Sets the labels and assignees of a pull request.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn set_marks(
        &self,
        number: u64,
        labels: &[String],
        assignees: &[String],
    ) -> Result<(), Error> {
        let body = json!({ "labels": labels, "assignees": assignees });
        self.patch(&format!("/issues/{number}"), &body).await
    }

    /// Requests a review of a pull request from people, by login, and from teams, by name.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn request_review(
        &self,
        number: u64,
        people: &[&str],
        teams: &[&str],
    ) -> Result<(), Error> {
        let path = format!("/pulls/{number}/requested_reviewers");
        let body = json!({ "reviewers": people, "team_reviewers": teams });
        self.send(Method::POST, &path, Kind::Change, &body).await
    }

    /// Replaces the text of a pull request.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn set_pull_body(&self, number: u64, body: &str) -> Result<(), Error> {
        let body = json!({ "body": body });
        self.patch(&format!("/pulls/{number}"), &body).await
    }

    /// All reviews of a pull request, oldest first.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn reviews(&self, number: u64) -> Result<Vec<Review>, Error> {
        self.list(&format!("/pulls/{number}/reviews")).await
    }

    /// Posts a review. Its text starts with `marker`, by which it is found if the response is lost.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn create_review(
        &self,
        number: u64,
        marker: &str,
        new: &NewReview,
        identity: &Identity,
    ) -> Result<Review, Error> {
        let look = async || {
            let own = |review: &Review| {
                let body = review.body.as_deref().unwrap_or_default();
                body.starts_with(marker) && identity.is(review.author.as_ref())
            };
            Ok(self.reviews(number).await?.into_iter().find(own))
        };
        self.create(&format!("/pulls/{number}/reviews"), new, look)
            .await
    }

    /// The comments of a review.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn review_comments(&self, number: u64, id: u64) -> Result<Vec<ReviewComment>, Error> {
        self.list(&format!("/pulls/{number}/reviews/{id}/comments"))
            .await
    }
}

/// Maximum number of pages of threads that are read. GitHub returns a hundred threads per page.
const PAGES: usize = 10;

const THREADS: &str = "query($owner: String!, $name: String!, $number: Int!, $after: String) { \
    repository(owner: $owner, name: $name) { pullRequest(number: $number) { \
    reviewThreads(first: 100, after: $after) { pageInfo { hasNextPage endCursor } \
    nodes { id isResolved comments(first: 1) { nodes { id } } } } } } }";

const RESOLVE: &str = "mutation($thread: ID!) { resolveReviewThread(input: {threadId: $thread}) { \
    thread { isResolved } } }";

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewThread {
    /// Its GraphQL id.
    pub id: String,
    /// The id of its first comment.
    pub first: u64,
    /// Whether it is resolved.
    pub is_resolved: bool,
}

impl Repo {
    /// All line comments of a pull request, oldest first.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn line_comments(&self, number: u64) -> Result<Vec<ReviewComment>, Error> {
        self.list(&format!("/pulls/{number}/comments")).await
    }

    /// The threads of a pull request. This needs GraphQL, because REST does not have them.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn review_threads(&self, number: u64) -> Result<Vec<ReviewThread>, Error> {
        let comments = self.line_comments(number).await?;
        let by_node = comments.iter().map(|it| (it.node_id.as_str(), it.id));
        let by_node: HashMap<&str, u64> = by_node.collect();
        let mut threads = Vec::new();
        let mut variables = json!({ "owner": self.owner, "name": self.name, "number": number });
        for _ in 0..PAGES {
            let asked = self
                .client
                .graphql(THREADS, &variables, Kind::Read, "reviewThreads");
            let data = asked.await?;
            let page = &data["repository"]["pullRequest"]["reviewThreads"];
            let nodes = page["nodes"].as_array().into_iter().flatten();
            threads.extend(nodes.filter_map(|node| {
                let first = node["comments"]["nodes"][0]["id"].as_str()?;
                Some(ReviewThread {
                    id: node["id"].as_str()?.to_owned(),
                    first: *by_node.get(first)?,
                    is_resolved: node["isResolved"] == true,
                })
            }));
            if page["pageInfo"]["hasNextPage"] != true {
                break;
            }
            variables["after"] = page["pageInfo"]["endCursor"].clone();
        }
        Ok(threads)
    }

    /// Resolves a thread.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn resolve_thread(&self, thread: &ReviewThread) -> Result<(), Error> {
        let variables = json!({ "thread": thread.id });
        let what = "resolveReviewThread";
        let resolved = self.client.graphql(RESOLVE, &variables, Kind::Change, what);
        resolved.await.map(drop)
    }

    /// Replies to the thread that starts with this comment. The text starts with `marker`. A reply by
    /// `identity` that starts with it is replaced, so that there are never two.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn answer_thread(
        &self,
        number: u64,
        first: u64,
        marker: &str,
        text: &str,
        identity: &Identity,
    ) -> Result<(), Error> {
        let body = json!({ "body": format!("{marker}\n{text}") });
        let own = async || {
            let comments = self.line_comments(number).await?;
            let is_own = |comment: &ReviewComment| {
                comment.in_reply_to_id == Some(first)
                    && comment.body.starts_with(marker)
                    && identity.is(comment.author.as_ref())
            };
            Ok(comments.into_iter().find(is_own))
        };
        if let Some(there) = own().await? {
            return self
                .patch(&format!("/pulls/comments/{}", there.id), &body)
                .await;
        }
        let rest = format!("/pulls/{number}/comments/{first}/replies");
        self.create(&rest, &body, own).await.map(drop)
    }
}
