//! Transitions between the phases of a task. They depend on the row of the phase, never on its name.

use super::facts::{
    index, invalid, is_at_phase_start, is_nothing_written, look_up_baseline, next, no_progress,
    preflight, row, unresolved, untouched,
};
use super::moves::{
    ask_reviewer_again, begin, give_up, go_on_or_accept, lost, nudge_if_left, rework,
    verify_or_accept, without_output,
};
use super::{
    Blame, Expect, PhaseSpec, Policy, Role, Step, TaskState, TurnEnded, VerificationEnded,
    VerifyPurpose, Writes,
};
use crate::assess::AssessmentKind;
use crate::attempt::nudge::NudgeKind;
use crate::checks::verdict::Verdict;
use crate::outcome::Outcome;
use crate::review::{Review, ReviewVerdict};

/// Runs the pre-flight check, then verifies.
pub(super) fn examine(policy: &Policy, state: &TaskState) -> Step {
    if let Some(outcome) = preflight(state) {
        return give_up(policy, state, outcome);
    }
    join_attempt(policy, state)
        .or_else(|| before_checks_of_tests(policy, state))
        .unwrap_or_else(|| verify_or_accept(policy, state, VerifyPurpose::Attempt))
}

/// The step after a turn where the row differs from the plain implement row.
pub(super) fn after_turn_of_row(
    policy: &Policy,
    state: &TaskState,
    turn: &TurnEnded,
) -> Option<Step> {
    use AssessmentKind as K;
    let row = row(policy, state);
    let kind = turn.assessment.kind;
    match kind {
        K::AgentUnavailable | K::AgentTransient | K::PolicyViolation | K::FailedReport => None,
        K::AgentCrashed | K::TurnTimeout => lost(policy, state, turn, row),
        _ if row.expect == Expect::Acceptable => Some(after_review(policy, state)),
        _ if row.expect == Expect::Answer => Some(after_answer(state, turn)),
        _ if row.writes == Writes::Tests && !turn.undone.is_empty() => {
            Some(only_tests(policy, state))
        }
        K::Changed | K::Unknown => None,
        _ if row.optional => Some(go_on_or_accept(policy, state)),
        K::AlreadySatisfied if untouched(state) => None,
        _ if row.writes == Writes::Tests => Some(no_tests(policy, state, kind)),
        _ if matches!(row.role, Role::Tester | Role::Fixer) => {
            Some(idle_helper(policy, state, row, kind))
        }
        _ => None,
    }
}

/// Passes work to the row that joins its attempt, once, before it is checked.
pub(super) fn join_attempt(policy: &Policy, state: &TaskState) -> Option<Step> {
    let then = index(state) + 1;
    let joins = policy.phases.get(then).is_some_and(|next| next.joins);
    let hands_on = joins && !state.begun.contains(&then);
    hands_on
        .then(|| without_output(policy, state).unwrap_or_else(|| begin(policy, state, then, None)))
}

/// A tester or fixer that changed nothing is nudged once; then the work continues as it is. A tester may say
/// that no test is missing.
fn idle_helper(policy: &Policy, state: &TaskState, row: PhaseSpec, kind: AssessmentKind) -> Step {
    let of_fixer = (row.role == Role::Fixer).then_some(NudgeKind::Findings);
    NudgeKind::without_words(kind)
        .or(of_fixer)
        .and_then(|kind| nudge_if_left(policy, state, kind))
        .unwrap_or_else(|| examine(policy, state))
}

/// Ends a question with its answer, or with the question that the agent asks in return.
fn after_answer(state: &TaskState, turn: &TurnEnded) -> Step {
    Step::Finish(match turn.assessment.kind {
        _ if has_left_changes(state) => Outcome::PolicyViolation {
            what: "what the agent changed could not be undone".to_owned(),
        },
        AssessmentKind::AwaitingInput => Outcome::NeedsAnswer,
        AssessmentKind::Empty => no_progress(state, "the agent gave no answer".into(), false),
        AssessmentKind::PlanningOnly if is_announcement(turn) => {
            let message = "the agent announced an answer and gave none";
            no_progress(state, message.into(), false)
        }
        _ => Outcome::Answered,
    })
}

/// Whether a message says hardly more than the sentences that announce something. A plan may be the answer.
fn is_announcement(turn: &TurnEnded) -> bool {
    let announced = turn.assessment.indicators.iter().map(String::len);
    let said = turn.message.as_deref().unwrap_or_default();
    announced.sum::<usize>() * 2 > said.trim().len()
}

/// Whether a turn of a phase that may change nothing has changed something for good.
fn has_left_changes(state: &TaskState) -> bool {
    let start = state.phase_start.as_ref().zip(state.current.as_ref());
    start.and_then(|(start, now)| start.same_as(now)) == Some(false)
}

/// Acts on the reviewer's verdict: the work is done, or another round starts.
fn after_review(policy: &Policy, state: &TaskState) -> Step {
    if has_left_changes(state) {
        let what = "what the reviewer changed could not be undone".to_owned();
        return Step::Finish(Outcome::PolicyViolation { what });
    }
    let verdict = state.review.as_ref().map(|review| review.verdict);
    match verdict {
        Some(ReviewVerdict::Acceptable) if is_nothing_written(policy) => {
            Step::Finish(Outcome::Acceptable)
        }
        Some(ReviewVerdict::Acceptable) => go_on_or_accept(policy, state),
        Some(ReviewVerdict::NeedsFixes) | None => {
            // A fixer can do nothing about a reviewer that says nothing.
            let is_silent = state.review.as_ref().is_some_and(Review::is_silent);
            if is_silent && !is_nothing_written(policy) {
                return ask_reviewer_again(policy, state, row(policy, state)).unwrap_or_else(
                    || {
                        let message = "the reviewer gave no verdict".to_owned();
                        Step::Finish(Outcome::AgentCrashed { message })
                    },
                );
            }
            let end = Outcome::ReviewFindings {
                findings: unresolved(state),
                reviews: row(policy, state).cycle,
            };
            rework(policy, state).unwrap_or(Step::Finish(end))
        }
    }
}

/// The step after the work was restored.
pub(super) fn after_undo(policy: &Policy, state: &TaskState) -> Step {
    if is_at_phase_start(state) {
        go_on_or_accept(policy, state)
    } else {
        verify_or_accept(policy, state, VerifyPurpose::Attempt)
    }
}

/// After a turn in a tests-only phase whose other changes were reverted.
fn only_tests(policy: &Policy, state: &TaskState) -> Step {
    nudge_if_left(policy, state, NudgeKind::OnlyTests).unwrap_or_else(|| {
        if state.tests.are_tests_touched() {
            examine(policy, state)
        } else {
            invalid("only tests may change before they fail, and no test did")
        }
    })
}

/// After a turn without changes in a phase that must write tests.
fn no_tests(policy: &Policy, state: &TaskState, kind: AssessmentKind) -> Step {
    if state.tests.are_tests_touched() {
        return examine(policy, state);
    }
    let kind = NudgeKind::without_words(kind).unwrap_or(NudgeKind::NoTests);
    nudge_if_left(policy, state, kind).unwrap_or_else(|| invalid("no test was written"))
}

/// The step before checks that are expected to fail. Returns `None` when the checks should run.
fn before_checks_of_tests(policy: &Policy, state: &TaskState) -> Option<Step> {
    if row(policy, state).expect != Expect::Fail {
        return None;
    }
    if !policy.has_checks {
        return Some(invalid("no check is configured, so that no test can fail"));
    }
    let is_known = state.tree().is_some();
    if is_known && !state.tests.are_tests_touched() {
        Some(no_tests(policy, state, AssessmentKind::NoChange))
    } else {
        None
    }
}

/// The step after checks that were expected to fail.
pub(super) fn after_checks_of_tests(
    policy: &Policy,
    state: &TaskState,
    ended: &VerificationEnded,
) -> Step {
    let what = match &ended.verdict {
        Verdict::Aborted => return Step::Finish(Outcome::Deadline),
        Verdict::NotRun => return invalid("no check is configured, so that no test can fail"),
        Verdict::Failed { .. } if !state.tests.are_tests_touched() => "no test was written",
        Verdict::Failed { .. } => {
            if let Some(step) = look_up_baseline(policy, state) {
                return step;
            }
            let blamed = state.proofs.blame(&ended.failed);
            let is_new = |blame| matches!(blame, Blame::New | Blame::Unknown);
            if blamed.is_empty() || blamed.iter().any(|test| is_new(test.blame)) {
                let then = next(policy, state);
                return match then {
                    Some(then) => begin(policy, state, then, None),
                    None => invalid("nothing makes the new tests pass"),
                };
            }
            "the checks fail only where they failed before the new tests"
        }
        Verdict::Passed => "the new tests pass before the work is done",
        Verdict::TimedOut { .. } => "a check timed out, so that no new test is known to fail",
        Verdict::CannotStart { .. } => "a check cannot start with the new tests",
    };
    nudge_if_left(policy, state, NudgeKind::TestsPass).unwrap_or_else(|| invalid(what))
}
