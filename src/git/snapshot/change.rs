//! Differences from the base, and the snapshot that holds them.

use crate::domain::snapshot::{Fingerprint, KnownSnapshot};
use crate::git::bytes::display_path;
use crate::git::entries::{Digest, MAX_READ_BYTES};
use crate::git::snapshot::listing::{ChangedPath, Recorded};
use globset::GlobSet;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Removes Sprag's own parts from the content of a plan file. `None` if it is not a plan file.
pub type StripOwned = Box<dyn Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync>;

/// The changes that a snapshot ignores or does not count.
#[derive(Debug, Default)]
pub struct Exempt {
    /// Paths that do not count as progress according to the configuration.
    pub progress_ignore: GlobSet,
    /// Untracked files that the verification created.
    pub check_artifacts: BTreeSet<Vec<u8>>,
    /// The plan file, whose status is Sprag's own.
    pub plan: Option<PlanExempt>,
}

/// A plan file inside the work tree.
pub struct PlanExempt {
    /// Relative to the top of the work tree.
    pub path: Vec<u8>,
    /// Removes everything except what an agent may change.
    pub strip: StripOwned,
}

impl fmt::Debug for PlanExempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanExempt")
            .field("path", &display_path(&self.path))
            .finish_non_exhaustive()
    }
}

/// How a path differs from the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// It is not in the base.
    Added,
    /// Its content differs.
    Modified,
    /// It was deleted.
    Deleted,
    /// A file became a link, or a link became a file.
    TypeChanged,
    /// Only its executable bit differs.
    ModeChanged,
    /// A submodule has another checked-out commit.
    Submodule,
}

/// One path that differs from the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Relative to the top of the work tree.
    pub path: Vec<u8>,
    /// How it differs.
    pub kind: ChangeKind,
    /// Whether git does not track it yet.
    pub untracked: bool,
    /// Whether a rule ignores it that the base does not have. It counts as a change but is not committed.
    pub newly_ignored: bool,
    /// Why it was not read. Only its size and time were compared.
    pub unreadable: Option<Unread>,
}

/// Why a changed file was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// Its permissions do not allow it.
    Refused,
    /// There is no room for it in what is read of all changes.
    TooLarge,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("cannot be read"),
            Self::TooLarge => {
                let most = MAX_READ_BYTES >> 30;
                write!(
                    f,
                    "was not read: the changed files have more than {most} GiB together"
                )
            }
        }
    }
}

/// A snapshot with the data it was computed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawSnapshot {
    /// The fingerprint and the other parts that are compared.
    pub known: KnownSnapshot,
    /// The changes that count, by path.
    pub changes: Vec<Change>,
    /// The changes that `progress.ignore` excludes from the fingerprint. They are committed all the same.
    pub uncounted: Vec<Change>,
    /// Check artifacts that are present.
    pub check_artifacts: Vec<Vec<u8>>,
    /// Untracked repositories inside the work tree. They are never committed.
    pub nested: Vec<Vec<u8>>,
    /// Ignored files, and directories that are ignored as a whole.
    pub ignored: Vec<Vec<u8>>,
    /// Paths with conflicts in the repository's own index.
    pub unmerged: Vec<Vec<u8>>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    pub(crate) entries: BTreeMap<Vec<u8>, Entry>,
}

impl RawSnapshot {
    /// The paths whose content differs from the earlier snapshot, in order.
    pub fn changed_since(&self, earlier: &Self) -> Vec<Vec<u8>> {
        let all: BTreeSet<&Vec<u8>> = self.entries.keys().chain(earlier.entries.keys()).collect();
        let differs = |path: &&Vec<u8>| self.entries.get(*path) != earlier.entries.get(*path);
        all.into_iter().filter(differs).cloned().collect()
    }

    /// All changes, including those that do not count as progress.
    pub fn all_changes(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().chain(&self.uncounted)
    }

    /// All changes that are committed: not those that only a new rule ignores.
    pub(crate) fn committed(&self) -> impl Iterator<Item = &Change> {
        self.all_changes().filter(|change| !change.newly_ignored)
    }

    /// The changes that are committed and that can be read.
    pub(crate) fn readable(&self) -> Vec<&Change> {
        let committed = self.committed();
        committed
            .filter(|change| change.unreadable.is_none())
            .collect()
    }
}

/// The content of a changed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) mode: u32,
    pub(crate) digest: Digest,
}

/// A path to inspect.
#[derive(Clone)]
pub(crate) struct Candidate {
    pub(crate) path: Vec<u8>,
    pub(crate) base: Option<Recorded>,
    pub(crate) newly_ignored: bool,
    pub(crate) tracked_by: TrackedBy,
    pub(crate) gitlink: bool,
    /// The agent made git stop tracking it, and a rule ignores it: it counts as deleted although the file
    /// exists.
    pub(crate) given_up: bool,
}

/// How the agent made git track a path that the base does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TrackedBy {
    Nothing,
    Index,
    Commit,
}

impl Candidate {
    pub(crate) fn new(path: Vec<u8>, base: Option<Recorded>) -> Self {
        Self {
            path,
            base,
            newly_ignored: false,
            tracked_by: TrackedBy::Nothing,
            gitlink: false,
            given_up: false,
        }
    }

    /// Merges what another candidate knows of the same path.
    pub(crate) fn absorb(&mut self, other: &Self) {
        self.tracked_by = self.tracked_by.max(other.tracked_by);
        self.newly_ignored &= other.newly_ignored;
        self.gitlink |= other.gitlink;
        self.given_up |= other.given_up;
    }

    pub(crate) fn given_up(base: &Recorded, path: Vec<u8>) -> Self {
        Self {
            given_up: true,
            ..Self::new(path, Some(base.clone()))
        }
    }
}

impl RawSnapshot {
    /// Every path that differs from the base, with its kind, including those that do not count as progress.
    /// No entry has an object id.
    pub fn changed_paths(&self) -> Vec<ChangedPath> {
        let changed = |change: &Change| ChangedPath {
            path: change.path.clone(),
            before: 0,
            after: self.entries.get(&change.path).map_or(0, |entry| entry.mode),
            oid: String::new(),
        };
        self.all_changes().map(changed).collect()
    }

    /// The same with only those changes whose path is one of `these`, also if a new rule ignores them.
    #[must_use]
    pub fn only(&self, these: impl Fn(&[u8]) -> bool) -> Self {
        let mut only = self.clone();
        for changes in [&mut only.changes, &mut only.uncounted] {
            changes.retain(|change| these(&change.path));
            for change in changes {
                change.newly_ignored = false;
            }
        }
        only
    }

    /// Mode and digest of a path that differs from the base.
    pub fn content(&self, path: &[u8]) -> Option<(u32, [u8; 32])> {
        let entry = self.entries.get(path)?;
        Some((entry.mode, entry.digest))
    }

    /// The tree's fingerprint.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.known.tree
    }

    /// Paths that a clean working copy would not have: all changes except ignored files.
    pub fn dirty_paths(&self) -> Vec<Vec<u8>> {
        let dirty = self.changes.iter().filter(|change| !change.newly_ignored);
        dirty.map(|change| change.path.clone()).collect()
    }
}
