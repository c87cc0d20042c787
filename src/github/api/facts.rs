//! Properties of a repository: itself, people's permissions, branches, refs and commits.

use super::call::GraphqlAnswer;
use super::client::Repo;
use super::error::{Error, ErrorKind};
use super::policy::Kind;
use super::transport::Call;
use crate::domain::branch_rules::Rule;
pub use crate::domain::trigger::authorise::Access;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Value, json};

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

/// Encodes the name of a ref in a path, without `refs/`.
pub(super) fn name(full: &str) -> String {
    let short = full.strip_prefix("refs/").unwrap_or(full);
    utf8_percent_encode(short, NAME).to_string()
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
        let raw: RawAccess = self.find(&path).await?.unwrap_or_default();
        let role: Option<Access> = raw.role_name.parse().ok();
        let access = role.or_else(|| raw.permission.parse().ok());
        Ok(access.unwrap_or(Access::None))
    }

    /// The commit of a branch by its name without `refs/heads/`, or `None` if it does not exist.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn branch(&self, branch: &str) -> Result<Option<String>, Error> {
        self.git_ref(&format!("refs/heads/{branch}")).await
    }

    /// The classic protection of a branch; none for a branch that does not exist.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn protection(&self, branch: &str) -> Result<Value, Error> {
        let raw: Option<Value> = self.find(&format!("/branches/{}", part(branch))).await?;
        Ok(raw.unwrap_or_default()["protection"].take())
    }

    /// The object id that a ref points to, or `None` if it does not exist. `full` starts with `refs/`.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn git_ref(&self, full: &str) -> Result<Option<String>, Error> {
        let raw: Option<RawRef> = self.find(&format!("/git/ref/{}", name(full))).await?;
        Ok(raw.map(|raw| raw.object.sha))
    }

    /// The refs whose full names start with `prefix`, which starts with `refs/`, and their object ids.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn refs_below(&self, prefix: &str) -> Result<Vec<(String, String)>, Error> {
        let path = format!("/git/matching-refs/{}", name(prefix));
        let all: Vec<RawRef> = self.get(&path).await?;
        let all = all.into_iter().map(|one| (one.name, one.object.sha));
        Ok(all.collect())
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

    /// Creates a ref; `full` starts with `refs/`. If it already exists, the error is [`ErrorKind::Invalid`].
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn create_ref(&self, full: &str, oid: &str) -> Result<(), Error> {
        let body = json!({ "ref": full, "sha": oid });
        self.send(Method::POST, "/git/refs", Kind::Create, &body)
            .await
    }

    /// Deletes a ref; `full` starts with `refs/`.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn delete_ref(&self, full: &str) -> Result<(), Error> {
        self.delete(&format!("/git/refs/{}", name(full))).await
    }

    /// A commit by its id.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn git_commit(&self, oid: &str) -> Result<CommitFacts, Error> {
        self.get(&format!("/git/commits/{}", part(oid))).await
    }
}

/// Maximum size in bytes of the content of one such commit: GitHub's limit for a request, less its encoding.
pub const MAX_COMMIT_BYTES: usize = 30 << 20;

const MUTATION: &str = "mutation($input: CreateCommitOnBranchInput!) { \
    createCommitOnBranch(input: $input) { commit { oid } } }";

/// A commit to create. Its author is the owner of the token. File modes and merges cannot be expressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitOnBranch {
    /// The branch, without `refs/heads/`.
    pub branch: String,
    /// The expected head of the branch. If the branch is elsewhere, no commit is created.
    pub expected_head: String,
    /// The first line of the message.
    pub headline: String,
    /// The rest of the message.
    pub body: String,
    /// Complete contents of new and changed files.
    pub additions: Vec<(String, Vec<u8>)>,
    /// Files to remove.
    pub deletions: Vec<String>,
}

impl Repo {
    /// Creates a commit on a branch and returns its id. The commit is read back: it has the expected parent
    /// and was at the head of the branch. Without a clear response, the branch shows whether it was created.
    ///
    /// # Errors
    /// `Stale` if the branch is not at the expected commit, otherwise see [`Error`].
    pub async fn commit_on_branch(&self, commit: &CommitOnBranch) -> Result<String, Error> {
        let content: usize = commit.additions.iter().map(|(_, bytes)| bytes.len()).sum();
        let variables = json!({ "input": self.input(commit) });
        let call = Call::graphql(MUTATION, &variables, Kind::Create)?;
        let branch = &commit.branch;
        let what = format!("{} (createCommitOnBranch on {branch})", call.what());
        if content > MAX_COMMIT_BYTES {
            let most = MAX_COMMIT_BYTES >> 20;
            let why = format!("the files are larger than {most} MiB");
            return Err(Error::protocol(&what, why));
        }
        let data = |oid| json!({ "createCommitOnBranch": { "commit": { "oid": oid } } });
        let look = async || {
            let landed = self.landed(commit).await?;
            Ok(landed.map(|oid| GraphqlAnswer::with(data(oid))))
        };
        let answer: GraphqlAnswer = self.client.create(&call, look).await?;
        let data = answer.data(&what)?;
        let Some(oid) = data["createCommitOnBranch"]["commit"]["oid"].as_str() else {
            return Err(Error::protocol(&what, "the response names no commit"));
        };
        self.read_back(&what, commit, oid).await?;
        Ok(oid.to_owned())
    }

    fn input(&self, commit: &CommitOnBranch) -> Value {
        let encoded = |bytes: &Vec<u8>| BASE64_STANDARD.encode(bytes);
        let additions = commit.additions.iter();
        let additions =
            additions.map(|(path, bytes)| json!({ "path": path, "contents": encoded(bytes) }));
        let deletions = commit.deletions.iter().map(|path| json!({ "path": path }));
        let (additions, deletions) = (Value::from_iter(additions), Value::from_iter(deletions));
        json!({
            "branch": { "repositoryNameWithOwner": self.full_name(), "branchName": commit.branch },
            "message": { "headline": commit.headline, "body": commit.body },
            "expectedHeadOid": commit.expected_head,
            "fileChanges": { "additions": additions, "deletions": deletions },
        })
    }

    /// The commit at the head of the branch, if it is the requested one.
    async fn landed(&self, commit: &CommitOnBranch) -> Result<Option<String>, Error> {
        let head = self.branch(&commit.branch).await?;
        let Some(head) = head.filter(|head| *head != commit.expected_head) else {
            return Ok(None);
        };
        let facts = self.git_commit(&head).await?;
        Ok(is_child(&facts, commit).then_some(head))
    }

    async fn read_back(&self, what: &str, commit: &CommitOnBranch, oid: &str) -> Result<(), Error> {
        if !is_child(&self.git_commit(oid).await?, commit) {
            let why = format!("{oid} is not the expected commit");
            return Err(Error::protocol(what, why));
        }
        let head = self.branch(&commit.branch).await?;
        if head.as_deref() != Some(oid) {
            let place = head.unwrap_or_else(|| "gone".to_owned());
            let note = format!("{what}: after {oid} the branch has moved on: {place}");
            self.client.note(&note);
        }
        Ok(())
    }
}

/// Whether a commit has the requested parent and headline.
fn is_child(facts: &CommitFacts, commit: &CommitOnBranch) -> bool {
    let headline = facts.message.lines().next().unwrap_or_default().trim();
    matches!(facts.parents.as_slice(), [parent] if parent.sha == commit.expected_head)
        && headline == commit.headline.trim()
}

/// The login of a job's own token.
const JOB: &str = "github-actions[bot]";

/// Sprag's account on GitHub.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The login. That of an app ends with `[bot]`.
    pub login: String,
    /// Whether GitHub did not say, so that the token counts as a job's own.
    pub assumed: bool,
}

impl Identity {
    /// Whether `author` is this account. A person cannot have `[bot]` in a login, so an app is unambiguous.
    pub fn is(&self, author: Option<&Author>) -> bool {
        author.is_some_and(|author| author.login.eq_ignore_ascii_case(&self.login))
    }
}

impl Repo {
    /// Determines the account of the token. `GET /user` works for people. It refuses tokens of app
    /// installations, including a job's, so these are asked for their `viewer`. If neither works, the token
    /// counts as a job's own.
    ///
    /// # Errors
    /// The token is not accepted, or GitHub cannot be reached.
    pub async fn identity(&self) -> Result<Identity, Error> {
        if !self.client.inner.transport.is_installation_token() {
            match self
                .client
                .call::<Author>(&Call::get("/user".to_owned()))
                .await
            {
                Ok(Author { login, .. }) => {
                    let assumed = false;
                    return Ok(Identity { login, assumed });
                }
                Err(error) if matches!(error.kind, ErrorKind::Forbidden | ErrorKind::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        let query = "query { viewer { login } }";
        let viewer = match self
            .client
            .graphql(query, &json!({}), Kind::Read, "viewer")
            .await
        {
            Ok(data) => data["viewer"]["login"].as_str().map(with_bot),
            Err(error) if error.is_temporary() || error.kind == ErrorKind::Unauthorised => {
                return Err(error);
            }
            Err(_) => None,
        };
        Ok(Identity {
            assumed: viewer.is_none(),
            login: viewer.unwrap_or_else(|| JOB.to_owned()),
        })
    }
}

/// Adds `[bot]` to app names, which GraphQL sometimes leaves out but REST has in comments.
fn with_bot(login: &str) -> String {
    let plain = login.strip_suffix("[bot]").unwrap_or(login);
    format!("{plain}[bot]")
}
