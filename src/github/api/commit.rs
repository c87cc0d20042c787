//! Commits that GitHub creates and signs, with GraphQL's `createCommitOnBranch`.

use super::call::{Call, GraphqlAnswer};
use super::client::Repo;
use super::error::Error;
use super::facts::CommitFacts;
use super::policy::Kind;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

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
        let what = format!(
            "{} (createCommitOnBranch on {})",
            call.what(),
            commit.branch
        );
        if content > MAX_COMMIT_BYTES {
            let most = MAX_COMMIT_BYTES >> 20;
            let why = format!("the files are larger than {most} MiB");
            return Err(Error::protocol(&what, why));
        }
        let look = async || {
            let found = self.landed(commit).await?;
            Ok(found.map(|oid| {
                let data = json!({ "createCommitOnBranch": { "commit": { "oid": oid } } });
                GraphqlAnswer::with(data)
            }))
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
        let additions = commit.additions.iter().map(
            |(path, bytes)| json!({ "path": path, "contents": BASE64_STANDARD.encode(bytes) }),
        );
        let deletions = commit.deletions.iter().map(|path| json!({ "path": path }));
        json!({
            "branch": {
                "repositoryNameWithOwner": self.full_name(),
                "branchName": commit.branch,
            },
            "message": { "headline": commit.headline, "body": commit.body },
            "expectedHeadOid": commit.expected_head,
            "fileChanges": {
                "additions": additions.collect::<Vec<Value>>(),
                "deletions": deletions.collect::<Vec<Value>>(),
            },
        })
    }

    /// The commit at the head of the branch, if it is the requested one.
    async fn landed(&self, commit: &CommitOnBranch) -> Result<Option<String>, Error> {
        let head = self
            .git_ref(&format!("refs/heads/{}", commit.branch))
            .await?;
        let Some(head) = head.filter(|head| *head != commit.expected_head) else {
            return Ok(None);
        };
        let facts = self.git_commit(&head).await?;
        Ok(is_child(&facts, commit).then_some(head))
    }

    async fn read_back(&self, what: &str, commit: &CommitOnBranch, oid: &str) -> Result<(), Error> {
        let facts = self.git_commit(oid).await?;
        if !is_child(&facts, commit) {
            let why = format!("{oid} is not the expected commit");
            return Err(Error::protocol(what, why));
        }
        let head = self
            .git_ref(&format!("refs/heads/{}", commit.branch))
            .await?;
        if head.as_deref() != Some(oid) {
            let place = head.unwrap_or_else(|| "gone".to_owned());
            self.client.note(&format!(
                "{what}: after {oid} the branch has moved on: {place}"
            ));
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
