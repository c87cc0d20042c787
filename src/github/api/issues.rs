//! Issues.

use super::call::Call;
use super::client::Repo;
use super::error::Error;
use super::facts::Author;
use super::policy::Kind;
use hyper::Method;
use serde::Deserialize;
use serde_json::json;

/// An issue, or a pull request in its role as an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "GitHub's own words")]
pub struct IssueFacts {
    pub number: u64,
    pub title: String,
    /// Its text, or empty if there is none.
    pub body: String,
    /// `open` or `closed`.
    pub state: String,
    /// The names of its labels.
    pub labels: Vec<String>,
    pub author: Option<Author>,
    /// Whether it is a pull request.
    pub is_pull: bool,
    /// The URL of its page.
    pub html_url: String,
    /// How its author belongs to the repository, in GitHub's words.
    pub association: String,
    /// The time of its last change, in GitHub's format.
    pub updated_at: String,
}

#[derive(Deserialize)]
struct RawIssue {
    number: u64,
    #[serde(default)]
    title: String,
    body: Option<String>,
    #[serde(default)]
    state: String,
    #[serde(default)]
    labels: Vec<Label>,
    user: Option<Author>,
    pull_request: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    html_url: String,
    #[serde(default)]
    author_association: String,
    #[serde(default)]
    updated_at: String,
}

/// GitHub's schema also allows a plain name.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Label {
    Named { name: Option<String> },
    Plain(String),
}

/// The names of labels.
pub(super) fn names(labels: Vec<Label>) -> Vec<String> {
    let name = |label| match label {
        Label::Named { name } => name,
        Label::Plain(name) => Some(name),
    };
    labels.into_iter().filter_map(name).collect()
}

impl Repo {
    /// Replaces the text of an issue.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn set_issue_body(&self, number: u64, body: &str) -> Result<(), Error> {
        let path = self.path(&format!("/issues/{number}"));
        let change = json!({ "body": body });
        let call = Call::with_body(Method::PATCH, path, Kind::Change, &change)?;
        self.client.answer(&call).await.map(drop)
    }

    /// An issue or pull request by its number.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn issue(&self, number: u64) -> Result<IssueFacts, Error> {
        let call = Call::get(self.path(&format!("/issues/{number}")));
        let raw: RawIssue = self.client.call(&call).await?;
        Ok(IssueFacts {
            number: raw.number,
            title: raw.title,
            body: raw.body.unwrap_or_default(),
            state: raw.state,
            labels: names(raw.labels),
            author: raw.user,
            is_pull: raw.pull_request.is_some(),
            html_url: raw.html_url,
            association: raw.author_association,
            updated_at: raw.updated_at,
        })
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
