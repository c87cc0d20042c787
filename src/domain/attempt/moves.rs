//! The moves of a task that lead to each other: a turn, a nudge, another phase, another attempt, a commit and the end.

use super::facts::{
    IDLE_CUTS, TESTS_GONE, Tests, expected_reports, index, invalid, is_at_phase_start,
    is_back_at_start, last_failed, limit, next, no_progress, of_current_tree, preflight, prove,
    row, row_at, runs_more_tests, unproven_tests, unresolved, verify,
    were_rewritten_since_they_failed,
};
use super::{
    Blame, BlamedTest, Expect, Grounds, Last, NO_FILE_CHANGES, PhaseSpec, Policy, Proof,
    ProofResult, Step, TaskState, TurnEnded, TurnKey, TurnPurpose, VerifyPurpose, are_named, names,
};
use crate::assess::AssessmentKind;
use crate::attempt::nudge::NudgeKind;
use crate::checks::signals::Signal;
use crate::outcome::Outcome;
use crate::settings::{Baseline, ProveNewTests, SignalPolicy, TestChangePolicy};
use crate::snapshot::{Fingerprint, RevId};

/// How often a reviewer may run when its turns are cut off.
const ASKED: u32 = 2;

const UNREAD: &str = "nothing was committed: the tree that the checks judged could not be read";

/// After a turn that was cut off: another attempt, but not a third one after two turns without a change.
pub(super) fn cut_off(policy: &Policy, state: &TaskState, why: String, end: Outcome) -> Step {
    if state.idle_cuts >= IDLE_CUTS {
        give_up(policy, state, end)
    } else {
        retry_or(policy, state, Some(why), end)
    }
}

pub(super) fn satisfied(policy: &Policy, state: &TaskState) -> Step {
    match (preflight(state), policy.has_checks) {
        (Some(outcome), _) => give_up(policy, state, outcome),
        (None, true) => verify(state, VerifyPurpose::Satisfied),
        (None, false) => nothing_to_do(policy, state, false),
    }
}

/// Ends a task that needs no work, once it has returned the required output value.
pub(super) fn nothing_to_do(policy: &Policy, state: &TaskState, verified: bool) -> Step {
    let end = Step::Finish(Outcome::AlreadySatisfied { verified });
    without_output(policy, state).unwrap_or(end)
}

pub(super) fn verify_or_accept(policy: &Policy, state: &TaskState, purpose: VerifyPurpose) -> Step {
    if policy.has_checks {
        return verify(state, purpose);
    }
    if is_back_at_start(state) {
        return Step::Finish(no_progress(state, NO_FILE_CHANGES.into(), false));
    }
    if policy.accept_unverified {
        accept(policy, state, Grounds::Unchecked)
    } else {
        Step::Finish(Outcome::Unverified {
            commit: None,
            accepted: false,
        })
    }
}

pub(super) fn retry_or(
    policy: &Policy,
    state: &TaskState,
    cut_off: Option<String>,
    end: Outcome,
) -> Step {
    retry(policy, state, cut_off).unwrap_or_else(|| give_up(policy, state, end))
}

/// Another attempt, if any is left.
fn retry(policy: &Policy, state: &TaskState, cut_off: Option<String>) -> Option<Step> {
    if row(policy, state).expect == Expect::Acceptable {
        return rework_after_failure(policy, state);
    }
    let (phase, attempt) = next_attempt(policy, state, cut_off.is_some())?;
    let purpose = TurnPurpose::Retry { cut_off };
    Some(run_agent_in(policy, state, phase, attempt, purpose))
}

/// A nudge, if one is left in the phase.
pub(super) fn nudge_if_left(policy: &Policy, state: &TaskState, kind: NudgeKind) -> Option<Step> {
    let n = state.nudges + 1;
    let purpose = TurnPurpose::Nudge { n, kind };
    (n <= row(policy, state).nudges).then(|| run_agent(policy, state, state.attempt(), purpose))
}

pub(super) fn run_agent(
    policy: &Policy,
    state: &TaskState,
    attempt: u32,
    purpose: TurnPurpose,
) -> Step {
    let phase = state.key.map_or(0, |key| key.phase);
    run_agent_in(policy, state, phase, attempt, purpose)
}

fn run_agent_in(
    policy: &Policy,
    state: &TaskState,
    phase: usize,
    attempt: u32,
    purpose: TurnPurpose,
) -> Step {
    within_limits(policy, state).unwrap_or_else(|| {
        let key = TurnKey {
            phase,
            attempt,
            turn: state.turns() + 1,
            name: are_named(&policy.phases).then(|| row_at(policy, phase).name()),
        };
        Step::RunAgent { key, purpose }
    })
}

/// Ends the task when a run limit is reached.
pub(super) fn within_limits(policy: &Policy, state: &TaskState) -> Option<Step> {
    Some(match limit(policy, state)? {
        Outcome::Deadline => Step::Finish(Outcome::Deadline),
        end => give_up(policy, state, end),
    })
}

pub(super) fn failed(policy: &Policy, state: &TaskState) -> Step {
    if row(policy, state).optional && !state.undone && !is_at_phase_start(state) {
        return undo(policy, state);
    }
    if let Some((_, times)) = &state.failure
        && *times >= policy.identical_failures
    {
        return give_up(policy, state, Outcome::RepeatingFailure { times: *times });
    }
    retry_or(policy, state, None, Outcome::VerificationFailed)
}

/// Accepts the current tree, once the required proofs about its tests exist.
pub(super) fn accept(policy: &Policy, state: &TaskState, grounds: Grounds) -> Step {
    match tests_to_prove(policy, state) {
        _ if grounds == Grounds::Unchecked => settle(policy, state, grounds),
        Tests::Settled => settle(policy, state, grounds),
        Tests::Prove(proof) => prove(state, proof),
        Tests::Refused(end) => Step::Finish(end),
        Tests::ProveNothing(_)
            if row(policy, state).optional && !state.undone && !is_at_phase_start(state) =>
        {
            undo(policy, state)
        }
        Tests::ProveNothing(end) => retry(policy, state, None).unwrap_or(Step::Finish(end)),
    }
}

/// Continues with accepted work: starts the next phase or commits.
fn settle(policy: &Policy, state: &TaskState, grounds: Grounds) -> Step {
    if let Some(step) = without_tests(policy, state) {
        return step;
    }
    if let Some(step) = without_output(policy, state) {
        return step;
    }
    if grounds == Grounds::Passed && state.reported.is_no_evidence() && !policy.accept_unverified {
        return Step::Finish(Outcome::Unverified {
            commit: None,
            accepted: false,
        });
    }
    if policy.signals == SignalPolicy::Fail && !state.signals.is_empty() {
        let what: Vec<String> = state.signals.iter().map(Signal::says).collect();
        return Step::Finish(Outcome::PolicyViolation {
            what: what.join("; "),
        });
    }
    let committed = || match grounds {
        Grounds::Unchecked => commit(policy, state, grounds),
        Grounds::Passed | Grounds::KnownFailures => take(policy, state, grounds),
    };
    go_on(policy, state, grounds).unwrap_or_else(committed)
}

fn tests_to_prove(policy: &Policy, state: &TaskState) -> Tests {
    let proved = |kept: &Option<_>| of_current_tree(state, kept.as_ref());
    if let Some(step) = expected_reports(policy, state) {
        return step;
    }
    let lost = || !state.reported.lost_since(&state.proofs.at_start).is_empty();
    if policy.test_changes.is_proved() && (state.tests.touch_what_was_there() || lost()) {
        match proved(&state.proofs.old_tests) {
            None => return Tests::Prove(Proof::OldTests),
            Some(ProofResult::Passed) => {}
            Some(_) if policy.test_changes == TestChangePolicy::Fail => {
                return Tests::Refused(changed_expectations(state, None, false));
            }
            Some(_) => {}
        }
    }
    let are_rewritten = were_rewritten_since_they_failed(state);
    let is_asked = policy.prove_new_tests != ProveNewTests::Off;
    let may_add = is_asked && state.tests.added.is_empty() && !state.tests.changed.is_empty();
    let is_start_known = state.proofs.baseline.is_some() || policy.baseline == Baseline::Off;
    if may_add && !is_start_known {
        return Tests::Prove(Proof::Baseline);
    }
    let are_new = is_asked && !state.tests.added.is_empty() || may_add && runs_more_tests(state);
    if are_rewritten || are_new {
        let is_required = are_rewritten || policy.prove_new_tests == ProveNewTests::Require;
        match proved(&state.proofs.new_tests) {
            None => return Tests::Prove(Proof::NewTests),
            Some(ProofResult::Failed { .. }) => {}
            Some(_) if !is_required => {}
            Some(ProofResult::Passed) => return Tests::ProveNothing(unproven_tests(state)),
            Some(_) => return Tests::Refused(unproven_tests(state)),
        }
    }
    Tests::Settled
}

/// Commits the current tree. A permit does not outlive the process that ran the checks.
fn take(policy: &Policy, state: &TaskState, grounds: Grounds) -> Step {
    let tree = state.tree();
    let is_as_said = state.has_passed == (grounds == Grounds::Passed);
    match (tree, &state.last) {
        (Some(_), _) if state.judged.as_ref() == tree && is_as_said => {
            commit(policy, state, grounds)
        }
        // An unreadable tree has no permit: the commit step reads it again and reports why it cannot.
        (None, Last::Verified(..)) if policy.commits => commit(policy, state, grounds),
        (None, Last::Verified(..)) => Step::Finish(Outcome::CommitRejected {
            message: UNREAD.to_owned(),
        }),
        _ => verify(state, VerifyPurpose::Attempt),
    }
}

pub(super) fn commit(policy: &Policy, state: &TaskState, grounds: Grounds) -> Step {
    if policy.commits {
        Step::Commit { grounds }
    } else {
        Step::Finish(after_commit(state, grounds, None))
    }
}

/// The outcome of a task whose work is on the branch.
pub(super) fn after_commit(state: &TaskState, grounds: Grounds, commit: Option<RevId>) -> Outcome {
    let tree = state.tree();
    let unproved = |(of, result): &(Fingerprint, ProofResult)| {
        *result != ProofResult::Passed && tree == Some(of)
    };
    match grounds {
        Grounds::Unchecked => Outcome::Unverified {
            commit,
            accepted: true,
        },
        _ if state.proofs.old_tests.as_ref().is_some_and(unproved) => {
            changed_expectations(state, commit, true)
        }
        Grounds::KnownFailures => Outcome::KnownFailures {
            commit,
            tests: last_failed(state),
        },
        Grounds::Passed if state.reported.is_no_evidence() => Outcome::Unverified {
            commit,
            accepted: true,
        },
        Grounds::Passed => Outcome::Verified { commit },
    }
}

fn changed_expectations(state: &TaskState, commit: Option<RevId>, accepted: bool) -> Outcome {
    let result = state.proofs.old_tests.as_ref().map(|(_, result)| result);
    let (tests, unknown) = match result {
        Some(ProofResult::Failed { failed }) => (names(failed), None),
        Some(other) => (Vec::new(), Some(other.details().join("; "))),
        None => (Vec::new(), None),
    };
    Outcome::ChangedExpectations {
        commit,
        accepted,
        files: state.tests.touched(),
        not_committed: !state.tests.are_rewritten(),
        only_with: state.proofs.only_with.clone(),
        tests,
        unknown,
    }
}

/// Ends a task that failed, for any reason. If the last attempt changed the tree and a test fails there that passed
/// on the start tree, or that tree is never checked, the checks first run again: if they pass, the tree is accepted.
pub(super) fn give_up(policy: &Policy, state: &TaskState, end: Outcome) -> Step {
    let tree = state.tree();
    let mut failed_trees = state.failed_trees.iter();
    let failed = failed_trees.find(|failed| Some(&failed.tree) == tree);
    let rejected = state.rejected.as_ref().and_then(|rejected| rejected.tree());
    let is_idle = matches!(end, Outcome::NoProgress { .. });
    let Some(failed) = failed.filter(|_| !is_idle && rejected != tree) else {
        return Step::Finish(end);
    };
    if !policy.has_checks || is_back_at_start(state) {
        return Step::Finish(end);
    }
    if state.proofs.passed_again.as_ref() == tree {
        return match tests_to_prove(policy, state) {
            Tests::Settled => settle(policy, state, Grounds::Passed),
            Tests::Prove(proof) => prove(state, proof),
            Tests::Refused(end) | Tests::ProveNothing(end) => Step::Finish(end),
        };
    }
    let blamed = state.proofs.blame(&failed.verification.failed);
    let has_passed = |test: &BlamedTest| matches!(test.blame, Blame::New | Blame::Flaky);
    let may_be_flaky = policy.baseline == Baseline::Off || blamed.iter().any(has_passed);
    if state.proofs.reruns < policy.flaky_reruns && may_be_flaky {
        prove(state, Proof::Flake)
    } else {
        Step::Finish(end)
    }
}

/// Starts a phase. `grounds` says why the existing work is acceptable, if it is.
pub(super) fn begin(
    policy: &Policy,
    state: &TaskState,
    index: usize,
    grounds: Option<Grounds>,
) -> Step {
    let row = row_at(policy, index);
    let attempt = if row.joins || row.expect == Expect::Acceptable {
        state.attempt()
    } else {
        1
    };
    run_agent_in(policy, state, index, attempt, row.phase.purpose(grounds))
}

/// Continues with the next phase. Returns `None` when there is none and the work should be committed.
fn go_on(policy: &Policy, state: &TaskState, grounds: Grounds) -> Option<Step> {
    if row(policy, state).expect == Expect::Acceptable {
        return review_of_this_tree(policy, state, grounds);
    }
    next(policy, state).map(|index| begin(policy, state, index, Some(grounds)))
}

/// A tree that a reviewer accepted is done. Any other tree is reviewed while a review is left.
fn review_of_this_tree(policy: &Policy, state: &TaskState, grounds: Grounds) -> Option<Step> {
    let tree = state.tree();
    if tree.is_none() || state.accepted.as_ref() == tree {
        return None;
    }
    let now = index(state);
    let is_review = |index: &usize| row_at(policy, *index).expect == Expect::Acceptable;
    let then = match state.review {
        None => Some(now),
        Some(_) => (now + 1..policy.phases.len()).find(is_review),
    };
    let end = Outcome::ReviewFindings {
        findings: unresolved(state),
        reviews: row(policy, state).cycle,
    };
    Some(then.map_or(Step::Finish(end), |then| {
        begin(policy, state, then, Some(grounds))
    }))
}

/// When tests are written first, work without tests is rejected. Returns `None` when there are tests.
fn without_tests(policy: &Policy, state: &TaskState) -> Option<Step> {
    let tests_first = policy.phases.iter().any(|row| row.expect == Expect::Fail);
    let is_known = state.tree().is_some();
    if !tests_first || !is_known || state.tests.are_tests_touched() {
        return None;
    }
    if row(policy, state).optional && !state.undone && !is_at_phase_start(state) {
        return Some(undo(policy, state));
    }
    let end = invalid(TESTS_GONE);
    Some(retry(policy, state, None).unwrap_or(end))
}

/// The row that gets the next attempt, and the attempt's number, if the row allows another.
fn next_attempt(policy: &Policy, state: &TaskState, cut_off: bool) -> Option<(usize, u32)> {
    let mut index = index(state);
    let goes_back = |row: PhaseSpec| (row.joins && !cut_off) || row.optional;
    while index > 0 && goes_back(row_at(policy, index)) {
        index -= 1;
    }
    let row = row_at(policy, index);
    let begun = row
        .name()
        .counted_in()
        .and_then(|counted| state.attempts.get(&counted))
        .copied()
        .unwrap_or_else(|| state.attempt());
    (begun <= row.retries).then_some((index, begun + 1))
}

/// After a cut-off turn in a phase that is optional or whose only result is a verdict.
pub(super) fn lost(
    policy: &Policy,
    state: &TaskState,
    turn: &TurnEnded,
    row: PhaseSpec,
) -> Option<Step> {
    if row.optional {
        return Some(within_limits(policy, state).unwrap_or_else(|| undo(policy, state)));
    }
    let reviews = row.expect == Expect::Acceptable;
    if !reviews && row.expect != Expect::Answer {
        return None;
    }
    if let Some(step) = ask_reviewer_again(policy, state, row).filter(|_| reviews) {
        return Some(step);
    }
    let end = match turn.assessment.kind {
        AssessmentKind::TurnTimeout => Outcome::TurnTimeout,
        _ if reviews => Outcome::AgentCrashed {
            message: format!("the reviewer: {}", turn.assessment.detail),
        },
        _ => Outcome::AgentCrashed {
            message: turn.assessment.detail.clone(),
        },
    };
    Some(within_limits(policy, state).unwrap_or(Step::Finish(end)))
}

/// Repeats a review that gave no verdict, once.
pub(super) fn ask_reviewer_again(
    policy: &Policy,
    state: &TaskState,
    row: PhaseSpec,
) -> Option<Step> {
    let purpose = row.phase.purpose(state.grounds);
    let again = || run_agent_in(policy, state, index(state), state.attempt(), purpose);
    (state.lost_turns < ASKED).then(again)
}

/// Starts the next round, if one is left.
pub(super) fn rework(policy: &Policy, state: &TaskState) -> Option<Step> {
    let then = index(state) + 1;
    policy.phases.get(then)?;
    Some(begin(policy, state, then, None))
}

/// Work that a reviewer accepted and that failed afterwards starts a new round, because a tree that no
/// reviewer has seen is not committed.
fn rework_after_failure(policy: &Policy, state: &TaskState) -> Option<Step> {
    let next = policy.phases.get(index(state) + 1)?;
    (next.retries > 0).then(|| rework(policy, state)).flatten()
}

/// Accepts work that was acceptable when the phase started and has not changed since.
pub(super) fn go_on_or_accept(policy: &Policy, state: &TaskState) -> Step {
    accept(policy, state, state.grounds.unwrap_or(Grounds::Passed))
}

/// Restores the work to the start of the phase, once.
fn undo(policy: &Policy, state: &TaskState) -> Step {
    if is_at_phase_start(state) {
        return go_on_or_accept(policy, state);
    }
    match state.key {
        Some(key) if !state.undone => Step::Undo { key },
        _ => give_up(policy, state, Outcome::VerificationFailed),
    }
}

/// The step when the required value is missing, before work is accepted or passed to another phase: asks the
/// agent for it, or fails the task when no nudge is left. Returns `None` when nothing is missing.
pub(super) fn without_output(policy: &Policy, state: &TaskState) -> Option<Step> {
    let why = match &state.output {
        _ if !policy.wants_output => return None,
        Some(Ok(_)) => return None,
        Some(Err(why)) => why.clone(),
        None => "there is no final message".to_owned(),
    };
    if let Some(end) = limit(policy, state) {
        return Some(Step::Finish(end));
    }
    let end = || Step::Finish(Outcome::OutputMismatch { why });
    Some(nudge_if_left(policy, state, NudgeKind::Output).unwrap_or_else(end))
}
