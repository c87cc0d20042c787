//! Issues.

use super::client::Repo;
use super::error::Error;
use super::facts::{Author, Identity, part};
use super::policy::Kind;
use super::transport::{Call, Keep};
use crate::domain::trigger::triage::CommentRef;
use hyper::Method;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// An issue, or a pull request in its role as an issue.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "GitHub's own words")]
pub struct IssueFacts {
    pub number: u64,
    pub title: String,
    /// Its text, or empty if there is none.
    pub body: String,
    /// `open` or `closed`.
    pub state: String,
    /// Present if it is a pull request.
    pub pull_request: Option<IgnoredAny>,
    #[serde(rename = "user")]
    pub author: Option<Author>,
    /// How its author belongs to the repository, in GitHub's words.
    #[serde(rename = "author_association")]
    pub association: String,
    /// The time of its last change, in GitHub's format.
    pub updated_at: String,
}

impl Repo {
    /// The open issue with this title that the token's account has written, or a new one with this text.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn own_issue(
        &self,
        title: &str,
        text: &str,
        identity: &Identity,
    ) -> Result<u64, Error> {
        let list = format!("/issues?state=open&creator={}", part(&identity.login));
        let look = async || {
            let issues: Vec<IssueFacts> = self.list(&list).await?;
            let is_own = |it: &IssueFacts| it.title == title && identity.is(it.author.as_ref());
            Ok(issues.into_iter().find(is_own))
        };
        if let Some(issue) = look().await? {
            return Ok(issue.number);
        }
        let body = json!({ "title": title, "body": text });
        Ok(self.create("/issues", &body, look).await?.number)
    }

    /// Replaces the text of an issue.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn set_issue_body(&self, number: u64, body: &str) -> Result<(), Error> {
        let body = json!({ "body": body });
        self.patch(&format!("/issues/{number}"), &body).await
    }

    /// The file at an address that is on a host of GitHub. Only the API's and the pages' own hosts get the token, also
    /// after a redirection.
    ///
    /// # Errors
    /// See [`Error`]; also for more than `most` bytes.
    pub async fn file(&self, address: &str, most: usize) -> Result<Vec<u8>, Error> {
        let call = Call::keeping(address.to_owned(), Keep::AtMost(most));
        Ok(self.client.answer(&call).await?.body)
    }

    /// An issue or pull request by its number.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn issue(&self, number: u64) -> Result<IssueFacts, Error> {
        self.get(&format!("/issues/{number}")).await
    }

    /// An issue by its number, possibly of another repository on the same server.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn issue_of(
        &self,
        repository: Option<&str>,
        number: u64,
    ) -> Result<IssueFacts, Error> {
        match repository {
            Some(name) => self.client.repo(name)?.issue(number).await,
            None => self.issue(number).await,
        }
    }
}

/// A comment on an issue or pull request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "GitHub's own words")]
pub struct Comment {
    pub id: u64,
    /// Its URL.
    pub html_url: String,
    pub body: String,
    #[serde(rename = "user")]
    pub author: Option<Author>,
    /// When it was created, as GitHub formats it.
    pub created_at: String,
    /// When it was last edited. Equal to `created_at` if never.
    pub updated_at: String,
}

/// What a reaction is added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReactTo {
    /// A comment on an issue or pull request, by id.
    Comment(u64),
    /// A comment on a line of a pull request, by id.
    ReviewComment(u64),
    /// An issue or pull request, by number.
    Issue(u64),
}

impl ReactTo {
    /// The comment or, without one, the issue or pull request.
    pub fn of(comment: Option<CommentRef>, number: Option<u64>) -> Option<Self> {
        match comment {
            Some(CommentRef::Issue(id)) => Some(Self::Comment(id)),
            Some(CommentRef::Review(id)) => Some(Self::ReviewComment(id)),
            None => number.map(Self::Issue),
        }
    }
}

/// A reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reaction {
    /// 👀
    Eyes,
    /// 🚀
    Rocket,
    /// 😕
    Confused,
}

impl Repo {
    /// A comment on an issue or pull request, by id.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn comment(&self, id: u64) -> Result<Comment, Error> {
        self.get(&format!("/issues/comments/{id}")).await
    }

    /// The comments of an issue or pull request, oldest first.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn comments(&self, issue: u64) -> Result<Vec<Comment>, Error> {
        self.list(&format!("/issues/{issue}/comments")).await
    }

    /// The oldest comment of an issue or pull request that `identity` has written and whose first line starts
    /// with `marker`. Other people's comments with the marker are ignored.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn own_comment(
        &self,
        issue: u64,
        marker: &str,
        identity: &Identity,
    ) -> Result<Option<Comment>, Error> {
        let path = self.path(&format!("/issues/{issue}/comments"));
        let ours = |comment: &Comment| {
            let marked = !marker.is_empty() && comment.body.starts_with(marker);
            marked && identity.is(comment.author.as_ref())
        };
        let all = self.client.pages::<Vec<Comment>>(&path, ours).await?;
        Ok(all.into_iter().find(ours))
    }

    /// Posts a comment whose first line starts with `marker`. Without a clear response, looks for it before
    /// posting again, so that there are never two.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn create_comment(
        &self,
        issue: u64,
        body: &str,
        marker: &str,
        identity: &Identity,
    ) -> Result<Comment, Error> {
        let rest = format!("/issues/{issue}/comments");
        let existing = async || self.own_comment(issue, marker, identity).await;
        self.create(&rest, &json!({ "body": body }), existing).await
    }

    /// Replaces the text of a comment.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn update_comment(&self, id: u64, body: &str) -> Result<Comment, Error> {
        let path = self.path(&format!("/issues/comments/{id}"));
        let call = Call::with_body(Method::PATCH, path, Kind::Change, &json!({ "body": body }))?;
        self.client.call(&call).await
    }

    /// Deletes a comment.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn delete_comment(&self, id: u64) -> Result<(), Error> {
        self.delete(&format!("/issues/comments/{id}")).await
    }

    /// Adds a reaction. The request is sent once, because a reaction is not worth a check.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn react(&self, target: ReactTo, reaction: Reaction) -> Result<(), Error> {
        let path = match target {
            ReactTo::Comment(id) => format!("/issues/comments/{id}/reactions"),
            ReactTo::ReviewComment(id) => format!("/pulls/comments/{id}/reactions"),
            ReactTo::Issue(number) => format!("/issues/{number}/reactions"),
        };
        let content = json!({ "content": reaction });
        self.send(Method::POST, &path, Kind::Create, &content).await
    }
}
