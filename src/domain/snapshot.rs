//! The state of the repository at one moment, as opaque values that can only be compared.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A revision's identifier (a git or jj commit id): opaque, and only ever compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RevId(pub String);

impl fmt::Display for RevId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A digest of everything in the working copy that counts as a change: tracked edits, deletions, modes,
/// symlinks, and untracked files that are not ignored. Equal fingerprints mean equal trees, whichever commits
/// led to them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(pub String);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where HEAD points.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Head {
    /// A branch without commits.
    Unborn,
    /// A commit.
    At(RevId),
}

/// HEAD, branch and tree at one moment, or the reason why they could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Snapshot {
    /// The state could be read.
    Known(Arc<KnownSnapshot>),
    /// The state could not be read: progress detection is off for this turn.
    Unknown {
        /// The failure, for the warning.
        why: String,
    },
}

/// A snapshot that could be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KnownSnapshot {
    /// Where HEAD points.
    pub head: Head,
    /// The full name of the branch that is checked out (`refs/heads/main`); `None` when HEAD is detached.
    pub branch: Option<String>,
    /// The tree of the working copy.
    pub tree: Fingerprint,
    /// Whether the working copy differs from HEAD's tree.
    pub dirty: bool,
}

impl Snapshot {
    /// Whether `self` and `later` are the same state. `None` when either is unknown, so "unknown" can never
    /// be read as "unchanged".
    pub fn same_as(&self, later: &Self) -> Option<bool> {
        match (self, later) {
            (Self::Known(a), Self::Known(b)) => Some(a.head == b.head && a.tree == b.tree),
            _ => None,
        }
    }

    /// The tree's fingerprint, if it is known.
    pub fn tree(&self) -> Option<&Fingerprint> {
        match self {
            Self::Known(known) => Some(&known.tree),
            Self::Unknown { .. } => None,
        }
    }
}
