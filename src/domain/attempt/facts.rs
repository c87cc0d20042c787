//! What the history of a task says, and the steps that follow from it alone.

use super::{
    NO_FILE_CHANGES, PhaseSpec, Policy, Proof, ProofResult, Step, TaskState, TurnKey,
    VerifyPurpose, Writes, names, same_tree,
};
use crate::outcome::Outcome;
use crate::review;
use crate::settings::Baseline;
use crate::snapshot::{Fingerprint, Snapshot};

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

/// From the second attempt on, does not verify a tree that has already failed.
pub(super) fn preflight(state: &TaskState) -> Option<Outcome> {
    let current = state.current.as_ref()?;
    if let Some(end) = refused_again(state) {
        return Some(end);
    }
    if state.attempt() < 2 {
        return None;
    }
    let tree = current.tree()?;
    let failed = state
        .failed_trees
        .iter()
        .find(|failed| &failed.tree == tree)?;
    let last_failed = state.failed_trees.last().map(|last| last.attempt);
    let message = if Some(failed.attempt) == last_failed {
        NO_FILE_CHANGES.into()
    } else {
        format!(
            "No progress detected - agent returned to the state of attempt {}",
            failed.attempt
        )
    };
    Some(no_progress(state, message, true))
}

/// The refusal of a hook, if the tree is still the one that it refused.
pub(super) fn refused_again(state: &TaskState) -> Option<Outcome> {
    let (rejected, current) = (state.rejected.as_ref()?, state.current.as_ref()?);
    let message = state.hook_message.clone()?;
    same_tree(rejected, current).then_some(Outcome::CommitRejected { message })
}

pub(super) fn after_evidence(state: &TaskState, planning: bool) -> Outcome {
    if planning && state.asks.is_some() {
        Outcome::NeedsAnswer
    } else if planning {
        Outcome::PlanningOnly
    } else {
        no_progress(state, NO_FILE_CHANGES.into(), false)
    }
}

/// The run limit that is reached, if any.
pub(super) fn limit(policy: &Policy, state: &TaskState) -> Option<Outcome> {
    if policy
        .deadline_ms
        .is_some_and(|deadline| state.elapsed_ms >= deadline)
    {
        return Some(Outcome::Deadline);
    }
    let mut spend = policy.spent_before;
    spend.add(&state.spend);
    let message = spend.limit_reached(policy.max_tokens, policy.max_cost_usd)?;
    Some(Outcome::Budget { message })
}

pub(super) fn prove(state: &TaskState, proof: Proof) -> Step {
    let key = state.key.unwrap_or(TurnKey::FIRST);
    Step::Prove { key, proof }
}

pub(super) fn verify(state: &TaskState, purpose: VerifyPurpose) -> Step {
    let key = state.key.unwrap_or(TurnKey::FIRST);
    Step::Verify { key, purpose }
}

pub(super) fn no_progress(state: &TaskState, message: String, preflight: bool) -> Outcome {
    Outcome::NoProgress {
        message,
        preflight,
        untouched: untouched(state),
    }
}

/// Whether HEAD and the tree are known to be the same as at the start of the task.
pub(super) fn untouched(state: &TaskState) -> bool {
    unmoved(state.task_start.as_ref(), state)
}

/// Whether the tree is known to equal the task's starting tree, whatever commits the agent made in between.
pub(super) fn is_back_at_start(state: &TaskState) -> bool {
    let start = state.task_start.as_ref().zip(state.current.as_ref());
    start.is_some_and(|(start, current)| same_tree(start, current))
}

/// Whether this phase has, or may have, moved HEAD or changed the tree. The work of a turn that was cut off
/// in an earlier attempt is still to be judged.
pub(super) fn phase_has_work(state: &TaskState) -> bool {
    !unmoved(state.phase_start.as_ref(), state)
}

pub(super) fn unmoved(from: Option<&Snapshot>, state: &TaskState) -> bool {
    match (from, &state.current) {
        (Some(from), Some(current)) => from.same_as(current) == Some(true),
        _ => false,
    }
}

/// Before a failure is judged, runs the checks once on the tree from which the task started.
pub(super) fn look_up_baseline(policy: &Policy, state: &TaskState) -> Option<Step> {
    let is_open = state.proofs.baseline.is_none() && policy.baseline != Baseline::Off;
    is_open.then(|| prove(state, Proof::Baseline))
}

/// The result of a proof, if it is about the current tree.
pub(super) fn of_current_tree(
    state: &TaskState,
    kept: Option<&(Fingerprint, ProofResult)>,
) -> Option<ProofResult> {
    let tree = state.tree();
    let kept = kept.filter(|(of, _)| Some(of) == tree);
    kept.map(|(_, result)| result.clone())
}

/// Whether a check ran more tests than on the tree on which the task started.
pub(super) fn runs_more_tests(state: &TaskState) -> bool {
    let before = &state.proofs.at_start.ran;
    let mut now = state.reported.ran.iter();
    now.any(|(check, now)| before.get(check).is_some_and(|before| now > before))
}

/// Before a pass without the expected report of its tests is judged, finds out once what the checks
/// reported on the tree from which the task started.
pub(super) fn expected_reports(policy: &Policy, state: &TaskState) -> Option<Tests> {
    let is_open = state.proofs.baseline.is_none() && policy.baseline != Baseline::Off;
    let is_doubtful = !state.reported.doubtful.is_empty() && policy.test_changes.is_proved();
    (is_open && is_doubtful).then_some(Tests::Prove(Proof::Baseline))
}

/// The outcome of tests that have to fail without the work and do not.
pub(super) fn unproven_tests(state: &TaskState) -> Outcome {
    let are_rewritten = were_rewritten_since_they_failed(state);
    let are_meant = are_rewritten || state.tests.added.is_empty();
    let changed = state.tests.changed.iter().filter(|_| are_meant);
    let result = of_current_tree(state, state.proofs.new_tests.as_ref());
    let result = result.filter(|result| *result != ProofResult::Passed);
    Outcome::UnprovenTests {
        tests: state.tests.added.iter().chain(changed).cloned().collect(),
        unknown: result.map(|result| result.details().join("; ")),
    }
}

/// Whether tests that failed before the work began have changed since. They must then be shown again to fail
/// without the work.
pub(super) fn were_rewritten_since_they_failed(state: &TaskState) -> bool {
    let red = state.red_tests.as_ref();
    state.tests.are_tests_touched() && red.is_some_and(|red| *red != state.tests.digest)
}

pub(super) fn last_failed(state: &TaskState) -> Vec<String> {
    let failed = state.last_failure.as_ref().map(|last| names(&last.failed));
    failed.unwrap_or_default()
}

/// The index of the current phase.
pub(super) fn index(state: &TaskState) -> usize {
    state.key.map_or(0, |key| key.phase)
}

/// The row of the current phase.
pub(super) fn row(policy: &Policy, state: &TaskState) -> PhaseSpec {
    row_at(policy, index(state))
}

/// The row at an index; a policy without that row allows one attempt.
pub(super) fn row_at(policy: &Policy, index: usize) -> PhaseSpec {
    policy
        .phases
        .get(index)
        .copied()
        .unwrap_or(PhaseSpec::PLAIN)
}

/// The phase that follows when the work of the current phase is complete.
pub(super) fn next(policy: &Policy, state: &TaskState) -> Option<usize> {
    let is_next = |index: &usize| {
        let row = row_at(policy, *index);
        !(row.joins || row.optional && state.begun.contains(index))
    };
    (index(state) + 1..policy.phases.len()).find(is_next)
}

/// Whether no phase of the task may write, so there is nothing to check or commit.
pub(super) fn is_nothing_written(policy: &Policy) -> bool {
    let mut rows = policy.phases.iter();
    rows.all(|row| row.writes == Writes::Nothing)
}

pub(super) fn unresolved(state: &TaskState) -> u32 {
    u32::try_from(review::open(&state.findings).count()).unwrap_or(u32::MAX)
}

pub(super) fn is_at_phase_start(state: &TaskState) -> bool {
    let start = state.phase_start.as_ref().zip(state.current.as_ref());
    start.is_some_and(|(start, now)| same_tree(start, now))
}

pub(super) fn invalid(what: &str) -> Step {
    let what = what.to_owned();
    Step::Finish(Outcome::TddViolation { what })
}
