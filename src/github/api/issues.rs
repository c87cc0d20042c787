//! Issues.

use super::call::{Call, or_default};
use super::client::Repo;
use super::error::Error;
use super::facts::{Author, part};
use super::identity::Identity;
use super::policy::Kind;
use super::transport::Keep;
use hyper::Method;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

/// An issue, or a pull request in its role as an issue.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "GitHub's own words")]
pub struct IssueFacts {
    pub title: String,
    /// Its text, or empty if there is none.
    #[serde(deserialize_with = "or_default")]
    pub body: String,
    /// `open` or `closed`.
    pub state: String,
    /// Present if it is a pull request.
    pub pull_request: Option<IgnoredAny>,
    /// How its author belongs to the repository, in GitHub's words.
    #[serde(rename = "author_association")]
    pub association: String,
    /// The time of its last change, in GitHub's format.
    pub updated_at: String,
}

/// An issue of a list.
#[derive(Debug, Deserialize)]
struct Listed {
    number: u64,
    #[serde(default)]
    title: String,
    #[serde(rename = "user")]
    author: Option<Author>,
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
            let issues: Vec<Listed> = self.list(&list).await?;
            let is_own =
                |issue: &Listed| issue.title == title && identity.is(issue.author.as_ref());
            Ok(issues.into_iter().find(is_own))
        };
        if let Some(issue) = look().await? {
            return Ok(issue.number);
        }
        let body = json!({ "title": title, "body": text });
        let call = Call::with_body(Method::POST, self.path("/issues"), Kind::Create, &body)?;
        Ok(self.client.create(&call, look).await?.number)
    }

    /// Replaces the text of an issue.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn set_issue_body(&self, number: u64, body: &str) -> Result<(), Error> {
        let body = json!({ "body": body });
        self.send(
            Method::PATCH,
            &format!("/issues/{number}"),
            Kind::Change,
            &body,
        )
        .await
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
