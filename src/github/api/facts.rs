//! Properties of a repository: itself, people's permissions, branches, refs and commits.

use super::call::Call;
use super::client::Repo;
use super::error::Error;
use super::policy::Kind;
use crate::domain::branch_rules::{Protection, Rule};
pub use crate::domain::trigger::authorise::Access;
use hyper::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

/// The characters that are percent-encoded in one segment of a path or in a query value.
const PART: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// The same without `/`, for names that contain it.
const NAME: &AsciiSet = &PART.remove(b'/');

/// Encodes one segment of a path, or a query value.
pub(super) fn part(text: &str) -> String {
    utf8_percent_encode(text, PART).to_string()
}

/// Encodes the name of a ref in a path.
pub(super) fn name(text: &str) -> String {
    utf8_percent_encode(text, NAME).to_string()
}

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Facts {
    /// `owner/name` as GitHub spells it.
    pub full_name: String,
    /// The default branch.
    #[serde(default)]
    pub default_branch: String,
    /// Whether it is private.
    #[serde(default)]
    pub private: bool,
    /// Whether it is archived, which makes it read-only.
    #[serde(default)]
    pub archived: bool,
    /// The permissions of the token. GitHub often leaves them out for a job's token.
    pub permissions: Option<Permissions>,
}

/// Permissions in a repository.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Permissions {
    /// Write.
    pub push: bool,
}

/// The author of something. GitHub has none for deleted accounts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Author {
    /// The login.
    pub login: String,
    /// `User`, `Bot` or `Organization`.
    #[serde(rename = "type", default)]
    pub kind: String,
}

/// A commit as GitHub returns it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CommitFacts {
    /// Its tree.
    pub tree: Sha,
    /// Its parents.
    #[serde(default)]
    pub parents: Vec<Sha>,
    /// The whole message.
    #[serde(default)]
    pub message: String,
    /// Whether its signature is verified. `None` if GitHub does not say.
    pub verification: Option<Verification>,
}

/// A reference to an object.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Sha {
    /// The id of the object.
    pub sha: String,
}

/// A ruleset.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Ruleset {
    /// Its name.
    pub name: String,
    /// Whether the token bypasses it: `always`, `exempt`, `pull_requests_only` or `never`. `None` if GitHub does not
    /// say.
    pub current_user_can_bypass: Option<String>,
}

/// Whether a signature is verified.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Verification {
    /// Whether it is.
    pub verified: bool,
    /// GitHub's reason.
    #[serde(default)]
    pub reason: String,
}

#[derive(Deserialize)]
struct RawBranch {
    commit: Sha,
}

#[derive(Deserialize)]
struct RawProtected {
    #[serde(default)]
    protection: Protection,
}

#[derive(Deserialize)]
struct RawRef {
    #[serde(rename = "ref", default)]
    name: String,
    object: Sha,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawAccess {
    permission: String,
    role_name: String,
}

impl Repo {
    /// The properties of the repository.
    ///
    /// # Errors
    /// See [`Error`]; `NotFound` also if the token may not read it.
    pub async fn facts(&self) -> Result<Facts, Error> {
        self.get("").await
    }

    /// The name of the default branch.
    ///
    /// # Errors
    /// As for [`Repo::facts`].
    pub async fn default_branch(&self) -> Result<String, Error> {
        Ok(self.facts().await?.default_branch)
    }

    /// The access of a user to the repository. For a custom role, the highest permission that GitHub reports
    /// counts.
    ///
    /// # Errors
    /// See [`Error`]. A job's token needs `metadata: read` and is refused in some organisations.
    pub async fn access_of(&self, login: &str) -> Result<Access, Error> {
        let path = format!("/collaborators/{}/permission", part(login));
        match self.get::<RawAccess>(&path).await {
            Ok(raw) => Ok(Access::from_word(&raw.role_name)
                .or_else(|| Access::from_word(&raw.permission))
                .unwrap_or(Access::None)),
            Err(Error::NotFound { .. }) => Ok(Access::None),
            Err(error) => Err(error),
        }
    }

    /// The commit of a branch by its name without `refs/heads/`, or `None` if it does not exist.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn branch(&self, branch: &str) -> Result<Option<String>, Error> {
        let answer = self.get(&format!("/branches/{}", part(branch))).await;
        let raw: Option<RawBranch> = found(answer)?;
        Ok(raw.map(|raw| raw.commit.sha))
    }

    /// The classic protection of a branch; none for a branch that does not exist.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn protection(&self, branch: &str) -> Result<Protection, Error> {
        let answer = self.get(&format!("/branches/{}", part(branch))).await;
        let raw: Option<RawProtected> = found(answer)?;
        Ok(raw.map(|raw| raw.protection).unwrap_or_default())
    }

    /// The object id that a ref points to, or `None` if it does not exist. `full` starts with `refs/`.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn git_ref(&self, full: &str) -> Result<Option<String>, Error> {
        let short = full.strip_prefix("refs/").unwrap_or(full);
        let answer = self.get(&format!("/git/ref/{}", name(short))).await;
        let raw: Option<RawRef> = found(answer)?;
        Ok(raw.map(|raw| raw.object.sha))
    }

    /// The refs whose full names start with `prefix`, which starts with `refs/`, and their object ids.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn refs_below(&self, prefix: &str) -> Result<Vec<(String, String)>, Error> {
        let short = prefix.strip_prefix("refs/").unwrap_or(prefix);
        let path = format!("/git/matching-refs/{}", name(short));
        let all: Vec<RawRef> = self.get(&path).await?;
        Ok(all
            .into_iter()
            .map(|one| (one.name, one.object.sha))
            .collect())
    }

    /// The active rules of a branch, which need not exist. Rulesets that the token bypasses count, too.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn rules_of_branch(&self, branch: &str) -> Result<Vec<Rule>, Error> {
        self.list(&format!("/rules/branches/{}", part(branch)))
            .await
    }

    /// A ruleset of the repository or of its organization.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn ruleset(&self, id: u64) -> Result<Ruleset, Error> {
        self.get(&format!("/rulesets/{id}")).await
    }

    /// Creates a ref; `full` starts with `refs/`. If it already exists, the error is [`Error::Invalid`].
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn create_ref(&self, full: &str, oid: &str) -> Result<(), Error> {
        let body = serde_json::json!({ "ref": full, "sha": oid });
        self.send(Method::POST, "/git/refs", Kind::Create, &body)
            .await
    }

    /// Deletes a ref; `full` starts with `refs/`.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn delete_ref(&self, full: &str) -> Result<(), Error> {
        let short = full.strip_prefix("refs/").unwrap_or(full);
        let path = self.path(&format!("/git/refs/{}", name(short)));
        let call = Call::new(Method::DELETE, path, Kind::Change);
        self.client.answer(&call).await.map(drop)
    }

    /// A commit by its id.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn git_commit(&self, oid: &str) -> Result<CommitFacts, Error> {
        self.get(&format!("/git/commits/{}", part(oid))).await
    }
}

/// Turns "not found" into `None`.
pub(super) fn found<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
