//! The input and the results of making a commit.

use crate::domain::snapshot::RevId;
use crate::git::bytes::display_paths;
use crate::git::entries::{Digest, MAX_READ_BYTES};
use crate::git::error::GitError;
use crate::git::preflight::Operation;
use crate::git::snapshot::change::RawSnapshot;
use crate::git::snapshot::listing::ChangedPath;
use crate::git::snapshot::listing::NewObjects;
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
    /// The complete content of the file in the work tree.
    pub content: Vec<u8>,
}

/// The content and the parents of a commit.
#[derive(Debug)]
pub struct CommitRequest<'a> {
    /// The verified state. Exactly its changes are committed.
    pub snapshot: &'a RawSnapshot,
    /// The plan file, written to the commit, and to the work tree after the commit has landed.
    pub plan: Option<PlanContent>,
    /// The parent: usually HEAD, or the base if the agent's own commits are to be squashed.
    pub parent: Option<RevId>,
    /// The second parent of a merge. A merge is committed even if its tree equals the parent's.
    pub merged: Option<RevId>,
}

/// Why nothing was committed. The repository is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The permit was made for another tree than the snapshot's.
    #[error("the tree to be committed is not the one that was verified")]
    NotVerified,
    /// A git operation such as a merge is in progress.
    #[error("{0} is in progress; finish or abort it before committing")]
    InProgress(Operation),
    /// There are conflicts.
    #[error("unresolved conflicts in {}", display_paths(.0))]
    Conflicts(Vec<Vec<u8>>),
    /// Files to be committed cannot be read.
    #[error("cannot read {}; make it readable for its owner, or remove it", display_paths(.0))]
    Unreadable(Vec<Vec<u8>>),
    /// Files to be committed were not read, because the changes are too large.
    #[error(
        "the changed files have more than {} GiB together, of which Sprag does not read {}; files that are not to be committed belong into .gitignore",
        MAX_READ_BYTES >> 30,
        display_paths(.0)
    )]
    TooLarge(Vec<Vec<u8>>),
    /// git does not accept files with these names, for example `.GIT/config`.
    #[error("git does not accept files with these names: {}", display_paths(.0))]
    Impossible(Vec<Vec<u8>>),
    /// Files changed between verification and commit.
    #[error("changed while committing: {}", display_paths(.0))]
    ChangedMeanwhile(Vec<Vec<u8>>),
    /// The configuration (`core.symlinks`) says that links are files, so git commits files as links.
    #[error("git would commit files as symbolic links: {}; set core.symlinks to true, or remove the setting", display_paths(.0))]
    FilesAsLinks(Vec<Vec<u8>>),
    /// The repository has other content under the ids of these new objects.
    #[error("the repository's object store holds something else under the ids {}; run `git fsck`", .0.join(", "))]
    Unsound(Vec<String>),
    /// With the changed attributes, a fresh checkout would give other files than those that the checks saw.
    #[error("changed attributes give a fresh checkout other content than the checks saw: {}", display_paths(.0))]
    ConvertedOtherwise(Vec<Vec<u8>>),
    /// git cannot tell what changed attributes do.
    #[error(
        "git is too old to tell whether changed attributes give a fresh checkout other content; install git 2.41 or later"
    )]
    OldGit,
    /// Another process holds the lock of the repository's index.
    #[error("{} is held by another git process; wait for it, or remove the file if none is running", .0.display())]
    Locked(PathBuf),
    /// HEAD is not at the expected parent of the commit.
    #[error("HEAD moved while committing: expected {expected}, found {found}")]
    HeadMoved {
        /// The expected position.
        expected: String,
        /// The actual position.
        found: String,
    },
}

/// The result of staging.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, for a short while"
)]
pub enum Stage {
    /// The parent already has this tree. There is nothing to commit, which is a success.
    Nothing,
    /// A tree that can be committed.
    Ready(Staged),
}

/// A tree that may be committed because it was verified.
#[derive(Debug)]
pub struct Staged {
    pub(crate) content: StagedTree,
    pub(crate) parents: Vec<String>,
    pub(crate) old: Option<RevId>,
    pub(crate) branch: Option<String>,
    pub(crate) plan: Option<PlanLanding>,
    /// Corrections that were made on the way, for warnings.
    pub(crate) warnings: Vec<String>,
}

/// The tree in the staging index.
#[derive(Debug, Clone)]
pub(crate) struct StagedTree {
    pub(crate) tree: String,
    /// The paths that it changes compared with the base.
    pub(crate) changed: Vec<ChangedPath>,
    /// The objects that it adds to the base.
    pub(crate) objects: NewObjects,
    /// The plan file's content in the work tree. `None` if there is no plan or git may convert it.
    pub(crate) plan: Option<Vec<u8>>,
}

impl Staged {
    /// The paths that the tree changes compared with the base, including the plan.
    pub fn changed(&self) -> &[ChangedPath] {
        &self.content.changed
    }
}

/// A commit that is made and about to become HEAD. It is stored on disk, so that a restart can find out
/// whether the commit has landed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LandingIntent {
    /// The commit.
    pub commit: RevId,
    /// Its tree, if it was stored.
    #[serde(default)]
    pub(crate) tree: Option<String>,
    /// The expected position of HEAD, or `None` for a first commit.
    pub old: Option<RevId>,
    /// The branch to move, or `None` when HEAD is detached.
    pub branch: Option<String>,
    /// First line of the message.
    pub subject: String,
    pub(crate) identity: Identity,
    pub(crate) plan: Option<PlanLanding>,
    /// Corrections made before the commit was created. They are reported when it lands.
    #[serde(skip)]
    pub(crate) warnings: Vec<String>,
}

/// The plan file, whose new content is in the commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlanLanding {
    pub(crate) path: Vec<u8>,
    /// Digest of the content that it replaces in the work tree.
    pub(crate) before: Option<String>,
}

pub(crate) fn hex(digest: &Digest) -> String {
    blake3::Hash::from_bytes(*digest).to_hex().to_string()
}
