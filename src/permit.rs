//! The tokens without which nothing can be committed.

use crate::domain::snapshot::Fingerprint;

/// A permit to commit one tree, and why. The payloads can be minted by this crate alone, where the
/// reason has just been established; a token is consumed by the commit that it permits.
#[derive(Debug, PartialEq, Eq)]
pub enum Committable {
    /// Every check passed on this tree.
    Verified(Tree),
    /// Checks failed on this tree as they did before the task, and the policy takes that.
    KnownFailures(Tree),
    /// No check is configured, and the policy accepts unverified work.
    NoChecks(Tree),
    /// Nothing but the plan's own status is committed.
    PlanOnly(PlanOnly),
}

/// The one tree that a token is good for.
#[derive(Debug, PartialEq, Eq)]
pub struct Tree(Fingerprint);

/// Marks a token that is good for the plan's status alone.
#[derive(Debug, PartialEq, Eq)]
pub struct PlanOnly(());

impl Committable {
    /// For the code that has just seen every check pass on `tree`.
    pub(crate) fn verified(tree: Fingerprint) -> Self {
        Self::Verified(Tree(tree))
    }

    /// For the code that has just seen the checks fail on `tree` with nothing but known failures.
    pub(crate) fn known_failures(tree: Fingerprint) -> Self {
        Self::KnownFailures(Tree(tree))
    }

    /// For the code that knows that no check is configured and that this is acceptable.
    pub(crate) fn no_checks(tree: Fingerprint) -> Self {
        Self::NoChecks(Tree(tree))
    }

    /// For the commit that records the plan's status and nothing else.
    pub(crate) fn plan_only() -> Self {
        Self::PlanOnly(PlanOnly(()))
    }
}

impl Committable {
    /// The tree that may be committed; `None` when only the plan's status may be.
    pub fn tree(&self) -> Option<&Fingerprint> {
        match self {
            Self::Verified(tree) | Self::KnownFailures(tree) | Self::NoChecks(tree) => {
                Some(&tree.0)
            }
            Self::PlanOnly(_) => None,
        }
    }
}
