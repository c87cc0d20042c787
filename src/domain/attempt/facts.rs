//! What the history of a task says, and the steps that follow from it alone.

use super::{NO_FILE_CHANGES, PhaseSpec, Policy, Proof, ProofResult, Step, TaskState, Writes};
use crate::outcome::Outcome;
use crate::review;
use crate::settings::Baseline;
use crate::snapshot::{Fingerprint, Snapshot};
use std::ops::Deref;

/// A task before its next step, which its policy and its state decide.
#[derive(Clone, Copy)]
pub(super) struct Decision<'a> {
    pub(super) policy: &'a Policy,
    pub(super) state: &'a TaskState,
}

impl Deref for Decision<'_> {
    type Target = TaskState;

    fn deref(&self) -> &TaskState {
        self.state
    }
}

/// What a task fails with whose tests were written first and are gone.
pub(super) const TESTS_GONE: &str = "the tests that were written first are gone";

/// The state of the proofs about the tests that the current tree changes or adds.
pub(super) enum Tests {
    Settled,
    Prove(Proof),
    Refused(Outcome),
    ProveNothing(Outcome),
}

/// Number of consecutive turns that a limit may cut off without any change.
pub(super) const IDLE_CUTS: u32 = 2;

pub(super) fn invalid(what: &str) -> Step {
    let what = what.to_owned();
    Step::Finish(Outcome::TddViolation { what })
}

impl Decision<'_> {
    /// The run limit that is reached, if any.
    pub(super) fn limit(self) -> Option<Outcome> {
        let deadline = self.policy.deadline_ms;
        if deadline.is_some_and(|deadline| self.elapsed_ms >= deadline) {
            return Some(Outcome::Deadline);
        }
        let mut spend = self.policy.spent_before;
        spend.add(&self.spend);
        let message = spend.limit_reached(self.policy.max_tokens, self.policy.max_cost_usd)?;
        Some(Outcome::Budget { message })
    }

    /// Before a failure is judged, runs the checks once on the tree from which the task started.
    pub(super) fn look_up_baseline(self) -> Option<Step> {
        let is_open = self.proofs.baseline.is_none() && self.policy.baseline != Baseline::Off;
        is_open.then_some(Step::Prove {
            proof: Proof::Baseline,
        })
    }

    /// The end of work that the reviews do not accept.
    pub(super) fn review_findings(self) -> Outcome {
        let open = review::open(&self.findings).count();
        Outcome::ReviewFindings {
            findings: u32::try_from(open).unwrap_or(u32::MAX),
            reviews: self.row().cycle,
        }
    }

    /// The row of the current phase.
    pub(super) fn row(self) -> PhaseSpec {
        self.policy.row_at(self.index())
    }

    /// The phase that follows when the work of the current phase is complete.
    pub(super) fn next(self) -> Option<usize> {
        let is_next = |index: &usize| {
            let row = self.policy.row_at(*index);
            !(row.joins || row.optional && self.begun.contains(index))
        };
        (self.index() + 1..self.policy.phases.len()).find(is_next)
    }
}

impl TaskState {
    /// From the second attempt on, does not verify a tree that has already failed.
    pub(super) fn preflight(&self) -> Option<Outcome> {
        if let Some(end) = self.refused_again() {
            return Some(end);
        }
        let tree = self.tree().filter(|_| self.attempt() > 1)?;
        let mut all = self.failed_trees.iter();
        let attempt = all.find(|failed| &failed.tree == tree)?.attempt;
        let last = self.failed_trees.last().map(|last| last.attempt);
        let message = if Some(attempt) == last {
            NO_FILE_CHANGES.to_owned()
        } else {
            format!("No progress detected - agent returned to the state of attempt {attempt}")
        };
        Some(Outcome::NoProgress {
            message,
            preflight: true,
            untouched: self.untouched(),
        })
    }

    /// The refusal of a hook, if the tree is still the one that it refused.
    pub(super) fn refused_again(&self) -> Option<Outcome> {
        let message = self.hook_message.clone()?;
        let end = Outcome::CommitRejected { message };
        self.is_tree_of(self.rejected.as_ref()).then_some(end)
    }

    pub(super) fn after_evidence(&self, planning: bool) -> Outcome {
        if planning && self.asks.is_some() {
            Outcome::NeedsAnswer
        } else if planning {
            Outcome::PlanningOnly
        } else {
            self.no_progress(NO_FILE_CHANGES)
        }
    }

    pub(super) fn no_progress(&self, message: impl Into<String>) -> Outcome {
        Outcome::NoProgress {
            message: message.into(),
            preflight: false,
            untouched: self.untouched(),
        }
    }

    /// Whether HEAD and the tree are known to be the same as at the start of the task.
    pub(super) fn untouched(&self) -> bool {
        self.unmoved(self.task_start.as_ref())
    }

    /// Whether the tree is known to equal the task's starting tree, whatever commits the agent made in between.
    pub(super) fn is_back_at_start(&self) -> bool {
        self.is_tree_of(self.task_start.as_ref())
    }

    /// Whether the tree is known to equal this one.
    fn is_tree_of(&self, other: Option<&Snapshot>) -> bool {
        let tree = self.tree();
        tree.is_some() && other.and_then(Snapshot::tree) == tree
    }

    /// Whether this phase has, or may have, moved HEAD or changed the tree. The work of a turn that was cut off
    /// in an earlier attempt is still to be judged.
    pub(super) fn phase_has_work(&self) -> bool {
        !self.unmoved(self.phase_start.as_ref())
    }

    pub(super) fn unmoved(&self, from: Option<&Snapshot>) -> bool {
        let both = from.zip(self.current.as_ref());
        both.is_some_and(|(from, now)| from.same_as(now) == Some(true))
    }

    /// The result of a proof, if it is about the current tree.
    pub(super) fn of_current_tree(
        &self,
        kept: Option<&(Fingerprint, ProofResult)>,
    ) -> Option<ProofResult> {
        let tree = self.tree();
        let kept = kept.filter(|(of, _)| Some(of) == tree);
        kept.map(|(_, result)| result.clone())
    }

    /// Whether a check ran more tests than on the tree on which the task started.
    pub(super) fn runs_more_tests(&self) -> bool {
        let before = &self.proofs.at_start.ran;
        let mut now = self.reported.ran.iter();
        now.any(|(check, now)| before.get(check).is_some_and(|before| now > before))
    }

    /// The outcome of tests that have to fail without the work and do not.
    pub(super) fn unproven_tests(&self) -> Outcome {
        let are_rewritten = self.were_rewritten_since_they_failed();
        let are_meant = are_rewritten || self.tests.added.is_empty();
        let changed = self.tests.changed.iter().filter(|_| are_meant);
        let result = self.of_current_tree(self.proofs.new_tests.as_ref());
        let result = result.filter(|result| *result != ProofResult::Passed);
        Outcome::UnprovenTests {
            tests: self.tests.added.iter().chain(changed).cloned().collect(),
            unknown: result.map(|result| result.details().join("; ")),
        }
    }

    /// Whether tests that failed before the work began have changed since. They must then be shown again to fail
    /// without the work.
    pub(super) fn were_rewritten_since_they_failed(&self) -> bool {
        let red = self.red_tests.as_ref();
        self.tests.are_tests_touched() && red.is_some_and(|red| *red != self.tests.digest)
    }

    /// The index of the current phase.
    pub(super) fn index(&self) -> usize {
        self.key.map_or(0, |key| key.phase)
    }

    pub(super) fn is_at_phase_start(&self) -> bool {
        self.is_tree_of(self.phase_start.as_ref())
    }
}

impl Policy {
    /// The row at an index; a policy without that row allows one attempt.
    pub(super) fn row_at(&self, index: usize) -> PhaseSpec {
        let row = self.phases.get(index).copied();
        row.unwrap_or(PhaseSpec::PLAIN)
    }

    /// Whether no phase of the task may write, so there is nothing to check or commit.
    pub(super) fn is_nothing_written(&self) -> bool {
        let mut rows = self.phases.iter();
        rows.all(|row| row.writes == Writes::Nothing)
    }
}
