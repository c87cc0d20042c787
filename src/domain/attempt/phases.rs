//! Transitions between the phases of a task. They depend on the row of the phase, never on its name.

use super::conclude::{accept, give_up, look_up_baseline};
use super::decide::{
    examine, give_nudge, no_progress, retry, run_agent_in, untouched, verify_or_accept,
    within_limits,
};
use super::output::without_output;
use super::refusal::TESTS_GONE;
use super::{
    Blame, Expect, Grounds, PhaseSpec, Policy, Role, Step, TaskState, TurnEnded, VerificationEnded,
    VerifyPurpose, Writes, same_tree,
};
use crate::assess::AssessmentKind;
use crate::checks::verdict::Verdict;
use crate::outcome::Outcome;
use crate::prompt::NudgeKind;
use crate::review::{self, ReviewVerdict};

/// How often a reviewer may run when its turns are cut off.
const ASKED: u32 = 2;

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

/// Starts a phase. `grounds` says why the existing work is acceptable, if it is.
fn begin(policy: &Policy, state: &TaskState, index: usize, grounds: Option<Grounds>) -> Step {
    let row = row_at(policy, index);
    let attempt = if row.joins || row.expect == Expect::Acceptable {
        state.attempt()
    } else {
        1
    };
    run_agent_in(policy, state, index, attempt, row.phase.purpose(grounds))
}

/// The phase that follows when the work of the current phase is complete.
pub(super) fn next(policy: &Policy, state: &TaskState) -> Option<usize> {
    let is_next = |index: &usize| {
        let row = row_at(policy, *index);
        !(row.joins || row.optional && state.begun.contains(index))
    };
    (index(state) + 1..policy.phases.len()).find(is_next)
}

/// Continues with the next phase. Returns `None` when there is none and the work should be committed.
pub(super) fn go_on(policy: &Policy, state: &TaskState, grounds: Grounds) -> Option<Step> {
    if row(policy, state).expect == Expect::Acceptable {
        return review_of_this_tree(policy, state, grounds);
    }
    next(policy, state).map(|index| begin(policy, state, index, Some(grounds)))
}

/// A tree that a reviewer accepted is done. Any other tree is reviewed while a review is left.
fn review_of_this_tree(policy: &Policy, state: &TaskState, grounds: Grounds) -> Option<Step> {
    let tree = state.current.as_ref().and_then(|current| current.tree());
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
pub(super) fn without_tests(policy: &Policy, state: &TaskState) -> Option<Step> {
    let tests_first = policy.phases.iter().any(|row| row.expect == Expect::Fail);
    let is_known = state
        .current
        .as_ref()
        .is_some_and(|now| now.tree().is_some());
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
pub(super) fn next_attempt(
    policy: &Policy,
    state: &TaskState,
    cut_off: bool,
) -> Option<(usize, u32)> {
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
        _ if row.expect == Expect::Answer => Some(after_answer(state, kind)),
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

/// After a cut-off turn in a phase that is optional or whose only result is a verdict.
fn lost(policy: &Policy, state: &TaskState, turn: &TurnEnded, row: PhaseSpec) -> Option<Step> {
    if row.optional {
        return Some(within_limits(policy, state).unwrap_or_else(|| undo(policy, state)));
    }
    let reviews = row.expect == Expect::Acceptable;
    if !reviews && row.expect != Expect::Answer {
        return None;
    }
    if reviews && state.lost_turns < ASKED {
        let purpose = row.phase.purpose(state.grounds);
        let attempt = state.attempt();
        return Some(run_agent_in(policy, state, index(state), attempt, purpose));
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
    use AssessmentKind as K;
    let kind = match kind {
        K::PlanningOnly => Some(NudgeKind::Planning),
        K::AwaitingInput => Some(NudgeKind::AwaitingInput),
        K::Empty => Some(NudgeKind::Empty),
        _ => (row.role == Role::Fixer).then_some(NudgeKind::Findings),
    };
    match kind.filter(|_| state.nudges < row.nudges) {
        Some(kind) => give_nudge(policy, state, kind),
        None => examine(policy, state),
    }
}

/// Ends a question with its answer, or with the question that the agent asks in return.
fn after_answer(state: &TaskState, kind: AssessmentKind) -> Step {
    Step::Finish(match kind {
        _ if has_left_changes(state) => Outcome::PolicyViolation {
            what: "what the agent changed could not be undone".to_owned(),
        },
        AssessmentKind::AwaitingInput => Outcome::NeedsAnswer,
        AssessmentKind::Empty => no_progress(state, "the agent gave no answer".into(), false),
        _ => Outcome::Answered,
    })
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
            let end = Outcome::ReviewFindings {
                findings: unresolved(state),
                reviews: row(policy, state).cycle,
            };
            rework(policy, state).unwrap_or(Step::Finish(end))
        }
    }
}

/// Whether no phase of the task may write, so there is nothing to check or commit.
fn is_nothing_written(policy: &Policy) -> bool {
    let mut rows = policy.phases.iter();
    rows.all(|row| row.writes == Writes::Nothing)
}

fn unresolved(state: &TaskState) -> u32 {
    u32::try_from(review::open(&state.findings).count()).unwrap_or(u32::MAX)
}

/// Starts the next round, if one is left.
fn rework(policy: &Policy, state: &TaskState) -> Option<Step> {
    let then = index(state) + 1;
    policy.phases.get(then)?;
    Some(begin(policy, state, then, None))
}

/// Work that a reviewer accepted and that failed afterwards starts a new round, because a tree that no
/// reviewer has seen is not committed.
pub(super) fn rework_after_failure(policy: &Policy, state: &TaskState) -> Option<Step> {
    let next = policy.phases.get(index(state) + 1)?;
    (next.retries > 0).then(|| rework(policy, state)).flatten()
}

/// Accepts work that was acceptable when the phase started and has not changed since.
fn go_on_or_accept(policy: &Policy, state: &TaskState) -> Step {
    accept(policy, state, state.grounds.unwrap_or(Grounds::Passed))
}

/// Restores the work to the start of the phase, once.
pub(super) fn undo(policy: &Policy, state: &TaskState) -> Step {
    if is_at_phase_start(state) {
        return go_on_or_accept(policy, state);
    }
    match state.key {
        Some(key) if !state.undone => Step::Undo { key },
        _ => give_up(policy, state, Outcome::VerificationFailed),
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

pub(super) fn is_at_phase_start(state: &TaskState) -> bool {
    let start = state.phase_start.as_ref().zip(state.current.as_ref());
    start.is_some_and(|(start, now)| same_tree(start, now))
}

/// After a turn in a tests-only phase whose other changes were reverted.
fn only_tests(policy: &Policy, state: &TaskState) -> Step {
    if state.nudges < row(policy, state).nudges {
        return give_nudge(policy, state, NudgeKind::OnlyTests);
    }
    if state.tests.are_tests_touched() {
        examine(policy, state)
    } else {
        invalid("only tests may change before they fail, and no test did")
    }
}

/// After a turn without changes in a phase that must write tests.
fn no_tests(policy: &Policy, state: &TaskState, kind: AssessmentKind) -> Step {
    use AssessmentKind as K;
    if state.tests.are_tests_touched() {
        return examine(policy, state);
    }
    let kind = match kind {
        K::AwaitingInput => NudgeKind::AwaitingInput,
        K::PlanningOnly => NudgeKind::Planning,
        K::Empty => NudgeKind::Empty,
        _ => NudgeKind::NoTests,
    };
    if state.nudges < row(policy, state).nudges {
        give_nudge(policy, state, kind)
    } else {
        invalid("no test was written")
    }
}

/// The step before checks that are expected to fail. Returns `None` when the checks should run.
pub(super) fn before_checks_of_tests(policy: &Policy, state: &TaskState) -> Option<Step> {
    if row(policy, state).expect != Expect::Fail {
        return None;
    }
    if !policy.has_checks {
        return Some(invalid("no check is configured, so that no test can fail"));
    }
    let is_known = state
        .current
        .as_ref()
        .is_some_and(|now| now.tree().is_some());
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
    if state.nudges < row(policy, state).nudges {
        give_nudge(policy, state, NudgeKind::TestsPass)
    } else {
        invalid(what)
    }
}

fn invalid(what: &str) -> Step {
    let what = what.to_owned();
    Step::Finish(Outcome::TddViolation { what })
}
