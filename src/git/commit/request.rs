//! What is asked of a commit, and what comes of it.

use crate::domain::snapshot::RevId;
use crate::git::bytes::display_paths;
use crate::git::entries::Digest;
use crate::git::error::GitError;
use crate::git::objects::new_objects::NewObjects;
use crate::git::preflight::Operation;
use crate::git::snapshot::change::RawSnapshot;
use crate::git::snapshot::listing::ChangedPath;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Author and committer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Display name.
    pub name: String,
    /// Address.
    pub email: String,
}

/// The plan file with the status that is true once the commit is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanContent {
    /// Relative to the top of the work tree.
    pub path: Vec<u8>,
    /// The whole file, as it will lie in the work tree.
    pub content: Vec<u8>,
}

/// What is to be committed on top of what.
#[derive(Debug)]
pub struct CommitRequest<'a> {
    /// The verified state: its changes, and only they, are committed.
    pub snapshot: &'a RawSnapshot,
    /// Put into the commit, and into the work tree once the commit has landed.
    pub plan: Option<PlanContent>,
    /// Usually where HEAD is; the base, when the agent's own commits are to be squashed.
    pub parent: Option<RevId>,
    /// The other parent of a merge, which is committed whatever its tree is.
    pub merged: Option<RevId>,
}

/// Why nothing was committed. The repository is as it was.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The token was minted for another tree than the snapshot's.
    #[error("the tree to be committed is not the one that was verified")]
    NotVerified,
    /// The repository is in the middle of something.
    #[error("{0} is in progress; finish or abort it before committing")]
    InProgress(Operation),
    /// There are conflicts.
    #[error("unresolved conflicts in {}", display_paths(.0))]
    Conflicts(Vec<Vec<u8>>),
    /// Files to be committed cannot be read.
    #[error("cannot read {}", display_paths(.0))]
    Unreadable(Vec<Vec<u8>>),
    /// git takes no files of these names, `.GIT/config` for one.
    #[error("git does not take files of these names: {}", display_paths(.0))]
    Impossible(Vec<Vec<u8>>),
    /// Files changed between verification and commit.
    #[error("changed while committing: {}", display_paths(.0))]
    ChangedMeanwhile(Vec<Vec<u8>>),
    /// The repository holds something else under the ids of these new objects.
    #[error("the repository's object store holds something else under the ids {}; run `git fsck`", .0.join(", "))]
    Unsound(Vec<String>),
    /// Changed attributes make a fresh checkout differ from what the checks saw.
    #[error("changed attributes give a fresh checkout other content than the checks saw: {}", display_paths(.0))]
    ConvertedOtherwise(Vec<Vec<u8>>),
    /// Somebody else is at work on the repository's index.
    #[error("{} is held by another git process; wait for it, or remove the file if none is running", .0.display())]
    Locked(PathBuf),
    /// HEAD is not where the commit was to go.
    #[error("HEAD moved while committing: expected {expected}, found {found}")]
    HeadMoved {
        /// Where it should be.
        expected: String,
        /// Where it is.
        found: String,
    },
}

/// What staging came to.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, which is taken apart at once"
)]
pub enum Stage {
    /// The parent has this tree already: nothing to commit, which is a success.
    Nothing,
    /// A tree to be committed.
    Ready(Staged),
}

/// A tree that may be committed: proof that it is the one verified.
#[derive(Debug)]
pub struct Staged {
    pub(in crate::git) tree: String,
    pub(in crate::git) changed: Vec<ChangedPath>,
    pub(in crate::git) parents: Vec<String>,
    pub(in crate::git) old: Option<String>,
    pub(in crate::git) branch: Option<String>,
    pub(in crate::git) plan: Option<PlanLanding>,
    pub(in crate::git) objects: NewObjects,
    /// What was put right on the way.
    pub(in crate::git) warnings: Vec<String>,
}

/// The tree that the index of staging holds.
#[derive(Debug, Clone)]
pub(in crate::git) struct StagedTree {
    pub(in crate::git) tree: String,
    /// What it changes of the base.
    pub(in crate::git) changed: Vec<ChangedPath>,
    /// What it adds to the base.
    pub(in crate::git) objects: NewObjects,
    /// The plan as it will lie in the work tree; `None` where there is none, or git may convert it.
    pub(in crate::git) plan: Option<Vec<u8>>,
}

impl Staged {
    /// The tree's id.
    pub fn tree(&self) -> &str {
        &self.tree
    }

    /// What the tree changes of the base, the plan included.
    pub fn changed(&self) -> &[ChangedPath] {
        &self.changed
    }
}

/// A commit that is made and about to become HEAD. Kept on disk, it lets a restart find out
/// whether that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandingIntent {
    /// The commit.
    pub commit: RevId,
    /// Its tree, where it was kept.
    #[serde(default)]
    pub(in crate::git) tree: Option<String>,
    /// Where HEAD is expected to be; `None` for a first commit.
    pub old: Option<RevId>,
    /// The branch to be moved; `None` when HEAD is detached.
    pub branch: Option<String>,
    /// First line of the message.
    pub subject: String,
    pub(in crate::git) identity: Identity,
    pub(in crate::git) plan: Option<PlanLanding>,
    /// What was put right until it was made; told when it lands.
    #[serde(skip)]
    pub(in crate::git) warnings: Vec<String>,
}

/// The plan file, whose new content is in the commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::git) struct PlanLanding {
    pub(in crate::git) path: Vec<u8>,
    /// Digest of the content in the work tree that it replaces.
    pub(in crate::git) before: Option<String>,
}

pub(in crate::git) fn hex(digest: &Digest) -> String {
    blake3::Hash::from_bytes(*digest).to_hex().to_string()
}
