//! Permits: nothing can be committed without one.

use crate::domain::snapshot::Fingerprint;

/// A permit to commit one tree, with the reason. Only this crate can create the payloads, where the
/// reason has just been established. The commit consumes the permit.
#[derive(Debug, PartialEq, Eq)]
pub enum Committable {
    /// Every check passed on this tree.
    Verified(Tree),
    /// Checks failed on this tree as they did before the task, and the policy accepts that.
    KnownFailures(Tree),
    /// No check is configured, and the policy accepts unverified work.
    NoChecks(Tree),
    /// Only the plan's own status is committed.
    PlanOnly(PlanOnly),
}

/// The tree that a permit applies to.
#[derive(Debug, PartialEq, Eq)]
pub struct Tree(Fingerprint);

/// Marks a permit that applies only to the plan's status.
#[derive(Debug, PartialEq, Eq)]
pub struct PlanOnly(());

impl Committable {
    /// For code that has just seen every check pass on `tree`.
    pub(crate) fn verified(tree: Fingerprint) -> Self {
        Self::Verified(Tree(tree))
    }

    /// For code that has just seen only known failures on `tree`.
    pub(crate) fn known_failures(tree: Fingerprint) -> Self {
        Self::KnownFailures(Tree(tree))
    }

    /// For code that knows that no check is configured and that this is accepted.
    pub(crate) fn no_checks(tree: Fingerprint) -> Self {
        Self::NoChecks(Tree(tree))
    }

    /// For the commit that records only the plan's status.
    pub(crate) fn plan_only() -> Self {
        Self::PlanOnly(PlanOnly(()))
    }
}

impl Committable {
    /// The tree that may be committed; `None` if only the plan's status may be.
    pub fn tree(&self) -> Option<&Fingerprint> {
        match self {
            Self::Verified(tree) | Self::KnownFailures(tree) | Self::NoChecks(tree) => {
                Some(&tree.0)
            }
            Self::PlanOnly(_) => None,
        }
    }
}
