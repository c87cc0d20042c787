//! How paths differ from the base, and what a snapshot says of them.

use crate::domain::snapshot::{Fingerprint, KnownSnapshot};
use crate::git::bytes::display_path;
use crate::git::entries::Digest;
use crate::git::snapshot::listing::{ChangedPath, Recorded};
use globset::GlobSet;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Removes from a plan file's content what only Sprag writes; `None` when it is no such file.
pub type StripOwned = Box<dyn Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync>;

/// What does not count as change.
#[derive(Debug, Default)]
pub struct Exempt {
    /// Paths that the configuration leaves out of progress.
    pub progress_ignore: GlobSet,
    /// Untracked files that only verification created.
    pub check_artifacts: BTreeSet<Vec<u8>>,
    /// The plan file, whose status is Sprag's own.
    pub plan: Option<PlanExempt>,
}

/// A plan file inside the work tree.
pub struct PlanExempt {
    /// Relative to the top of the work tree.
    pub path: Vec<u8>,
    /// Leaves only what an agent may change.
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
    /// It is gone.
    Deleted,
    /// It was a file and is a link, or the other way round.
    TypeChanged,
    /// Only its executable bit differs.
    ModeChanged,
    /// A submodule has another commit checked out.
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
    /// Whether it is ignored by a rule that the base does not have: it counts as change, but is
    /// not committed.
    pub newly_ignored: bool,
    /// Whether it could not be read: only its size and time were compared.
    pub unreadable: bool,
}

/// A snapshot with what it was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawSnapshot {
    /// The part that is compared.
    pub known: KnownSnapshot,
    /// What counts as change, by path.
    pub changes: Vec<Change>,
    /// What `progress.ignore` leaves out of the fingerprint. It is committed all the same.
    pub uncounted: Vec<Change>,
    /// Droppings that are there now.
    pub check_artifacts: Vec<Vec<u8>>,
    /// Untracked repositories inside the work tree. They are never committed.
    pub nested: Vec<Vec<u8>>,
    /// Paths that the repository's own index holds as conflicts.
    pub unmerged: Vec<Vec<u8>>,
    /// What a person should know.
    pub warnings: Vec<String>,
    pub(in crate::git) entries: BTreeMap<Vec<u8>, Entry>,
}

impl RawSnapshot {
    /// The paths that hold something else than in the earlier snapshot, in order.
    pub fn changed_since(&self, earlier: &Self) -> Vec<Vec<u8>> {
        let now = self.entries.iter();
        let differ = now.filter(|(path, entry)| earlier.entries.get(*path) != Some(entry));
        let gone = earlier.entries.keys();
        let gone = gone.filter(|path| !self.entries.contains_key(*path));
        let mut paths: Vec<Vec<u8>> = differ.map(|(path, _)| path).chain(gone).cloned().collect();
        paths.sort();
        paths
    }
}

/// What a changed path holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git) struct Entry {
    pub(in crate::git) mode: u32,
    pub(in crate::git) digest: Digest,
}

/// A path to be looked at.
#[derive(Clone)]
pub(in crate::git) struct Candidate {
    pub(in crate::git) path: Vec<u8>,
    pub(in crate::git) base: Option<Recorded>,
    pub(in crate::git) newly_ignored: bool,
    pub(in crate::git) tracked_by: TrackedBy,
    pub(in crate::git) gitlink: bool,
    /// The agent made git stop tracking it, and it is ignored: it lies there and is gone all the same.
    pub(in crate::git) given_up: bool,
}

/// Where the agent made git track a path that the base does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::git) enum TrackedBy {
    Nothing,
    Index,
    Commit,
}

impl Candidate {
    pub(in crate::git) fn new(path: Vec<u8>, base: Option<Recorded>) -> Self {
        Self {
            path,
            base,
            newly_ignored: false,
            tracked_by: TrackedBy::Nothing,
            gitlink: false,
            given_up: false,
        }
    }

    /// Takes over what else is known of the path.
    pub(in crate::git) fn absorb(&mut self, other: &Self) {
        self.tracked_by = self.tracked_by.max(other.tracked_by);
        self.newly_ignored &= other.newly_ignored;
        self.gitlink |= other.gitlink;
        self.given_up |= other.given_up;
    }

    pub(in crate::git) fn given_up((path, base): (Vec<u8>, Recorded)) -> Self {
        Self {
            given_up: true,
            ..Self::new(path, Some(base))
        }
    }
}

impl RawSnapshot {
    /// Every path that differs from the base, what progress leaves out included, with its kind as it was looked
    /// at. None has an object.
    pub fn changed_paths(&self) -> Vec<ChangedPath> {
        let all = self.changes.iter().chain(&self.uncounted);
        let kind = |change: &Change| self.entries.get(&change.path).map_or(0, |entry| entry.mode);
        all.map(|change| ChangedPath {
            path: change.path.clone(),
            before: 0,
            after: kind(change),
            oid: String::new(),
        })
        .collect()
    }

    /// Mode and digest of what a path holds that differs from the base.
    pub fn content(&self, path: &[u8]) -> Option<(u32, [u8; 32])> {
        let entry = self.entries.get(path)?;
        Some((entry.mode, entry.digest))
    }

    /// The tree's fingerprint.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.known.tree
    }

    /// Paths that a clean working copy would not have: all changes but what is ignored.
    pub fn dirty_paths(&self) -> Vec<Vec<u8>> {
        let dirty = self.changes.iter().filter(|change| !change.newly_ignored);
        dirty.map(|change| change.path.clone()).collect()
    }
}
