//! Decides the next step within one task.

use super::conclude::{accept, after_baseline, after_commit, after_verification, give_up};
use super::output::{after_output, without_output};
use super::phases::{
    after_turn_of_row, after_undo, before_checks_of_tests, join_attempt, next_attempt,
    rework_after_failure, row, row_at,
};
use super::{
    Expect, Grounds, Last, NO_FILE_CHANGES, Policy, Proof, Step, TaskState, TurnEnded, TurnKey,
    TurnPurpose, VerifyPurpose, are_named, same_tree,
};
use crate::assess::{AssessmentKind, CutOff};
use crate::outcome::Outcome;
use crate::prompt::NudgeKind;
use crate::settings::Baseline;
use crate::snapshot::Snapshot;
use crate::wait::WaitPolicy;

/// The longest single wait, in milliseconds (five minutes).
const MAX_WAIT_MS: u64 = 300_000;

/// Number of consecutive turns that a limit may cut off without any change.
const IDLE_CUTS: u32 = 2;

/// The next step of a task.
pub fn decide(policy: &Policy, state: &TaskState) -> Step {
    if let Some(by) = state.interrupted {
        return Step::Finish(by.outcome());
    }
    match &state.last {
        Last::Begin => first_turn(policy, state),
        Last::Turn(turn) => after_turn(policy, state, turn),
        Last::Verified(purpose, ended) => after_verification(policy, state, *purpose, ended),
        Last::Undone => after_undo(policy, state),
        Last::Committed(commit, grounds) => {
            Step::Finish(after_commit(state, *grounds, commit.clone()))
        }
        Last::HookRejected(message) => {
            let end = Outcome::CommitRejected {
                message: message.clone(),
            };
            retry_or(policy, state, None, end)
        }
        Last::HookChanged { again: true } => Step::Finish(Outcome::CommitRejected {
            message: "a commit hook changes the tree every time it runs".into(),
        }),
        Last::HookChanged { again: false } => {
            verify_or_accept(policy, state, VerifyPurpose::AfterHook)
        }
        Last::CommitFailed(message) => Step::Finish(Outcome::CommitRejected {
            message: message.clone(),
        }),
        Last::Violated(what) => Step::Finish(Outcome::PolicyViolation { what: what.clone() }),
        Last::Waited => same_attempt(policy, state),
        Last::Resumed(open) => after_resume(policy, state, open),
    }
}

fn first_turn(policy: &Policy, state: &TaskState) -> Step {
    match &state.proofs.baseline {
        None if policy.has_checks && policy.baseline == Baseline::First => {
            prove(state, Proof::Baseline)
        }
        Some(baseline) => match after_baseline(baseline) {
            Some(end) => Step::Finish(end),
            None => run_agent(policy, state, 1, first_purpose(policy)),
        },
        None => run_agent(policy, state, 1, first_purpose(policy)),
    }
}

fn first_purpose(policy: &Policy) -> TurnPurpose {
    row_at(policy, 0).phase.purpose(None)
}

fn after_turn(policy: &Policy, state: &TaskState, turn: &TurnEnded) -> Step {
    use AssessmentKind as K;
    let special = after_output(policy, state, turn);
    if let Some(step) = special.or_else(|| after_turn_of_row(policy, state, turn)) {
        return step;
    }
    let detail = || turn.assessment.detail.clone();
    if let Some(held) = turn.held.clone().filter(|_| untouched(state)) {
        return Step::Finish(Outcome::NeedsPermission { held });
    }
    match turn.assessment.kind {
        K::AwaitingInput
        | K::PlanningOnly
        | K::Empty
        | K::ReportsBlocked
        | K::AlreadySatisfied
        | K::ClaimsDone
        | K::NoChange
            if policy.only_checks && untouched(state) =>
        {
            satisfied(policy, state)
        }
        K::AlreadySatisfied | K::ClaimsDone | K::NoChange
            if policy.is_question && untouched(state) =>
        {
            Step::Finish(Outcome::Answered)
        }
        K::AgentUnavailable => {
            let end = Outcome::AgentUnavailable { message: detail() };
            give_up(policy, state, end)
        }
        K::AgentTransient => wait_or_give_up(policy, state, turn),
        // It was asked to go on, found nothing more to do and ended in the same way: the checks judge its work.
        K::AgentCrashed
            if turn.assessment.error_exit.is_some() && added_nothing_to_its_work(state) =>
        {
            examine(policy, state)
        }
        // A run limit takes precedence over the failure that it causes.
        K::AgentCrashed => within_limits(policy, state).unwrap_or_else(|| {
            let end = match turn.assessment.cut_off {
                Some(CutOff::NoProgress) => no_progress(state, detail(), false),
                Some(CutOff::OwnLimit) if state.idle_cuts > 0 => {
                    no_progress(state, format!("No progress detected - {}", detail()), false)
                }
                _ => Outcome::AgentCrashed { message: detail() },
            };
            cut_off(policy, state, detail(), end)
        }),
        K::TurnTimeout => cut_off(policy, state, detail(), Outcome::TurnTimeout),
        K::PolicyViolation => Step::Finish(Outcome::PolicyViolation { what: detail() }),
        K::FailedReport => Step::Finish(Outcome::FailedReport { summary: detail() }),
        // The work may be half done: it is kept, and the agent is asked to go on.
        K::Changed if turn.assessment.error_exit.is_some() => {
            if state.nudges < row(policy, state).nudges {
                give_nudge(policy, state, NudgeKind::EndedWithError)
            } else {
                let end = Outcome::AgentCrashed { message: detail() };
                cut_off(policy, state, detail(), end)
            }
        }
        K::Changed | K::Unknown => examine(policy, state),
        K::AwaitingInput => nudge(policy, state, NudgeKind::AwaitingInput),
        K::PlanningOnly => nudge(policy, state, NudgeKind::Planning),
        K::Empty => nudge(policy, state, NudgeKind::Empty),
        K::ReportsBlocked if !state.shown_unchanged && state.nudges < row(policy, state).nudges => {
            give_nudge(policy, state, NudgeKind::Blocked)
        }
        K::AlreadySatisfied if untouched(state) => satisfied(policy, state),
        K::AlreadySatisfied | K::ReportsBlocked | K::ClaimsDone | K::NoChange => {
            claims(policy, state)
        }
    }
}

/// Whether the turn changed nothing, and turns before it did.
fn added_nothing_to_its_work(state: &TaskState) -> bool {
    unmoved(state.turn_start.as_ref(), state) && !untouched(state)
}

/// After a turn that was cut off: another attempt, but not a third one after two turns without a change.
fn cut_off(policy: &Policy, state: &TaskState, why: String, end: Outcome) -> Step {
    if state.idle_cuts >= IDLE_CUTS {
        give_up(policy, state, end)
    } else {
        retry_or(policy, state, Some(why), end)
    }
}

/// After an unchanged turn that should have done the work: nudges while nudges are left.
fn nudge(policy: &Policy, state: &TaskState, kind: NudgeKind) -> Step {
    if state.nudges < row(policy, state).nudges {
        return give_nudge(policy, state, kind);
    }
    if attempt_has_work(state) {
        return examine(policy, state);
    }
    if state.attempt() == 1 {
        return evidence(policy, state, true);
    }
    let end =
        refused_again(state).unwrap_or_else(|| no_progress(state, NO_FILE_CHANGES.into(), false));
    give_up(policy, state, end)
}

/// After an unchanged turn that claims the work is done, or says nothing relevant.
fn claims(policy: &Policy, state: &TaskState) -> Step {
    if state.attempt() > 1 || attempt_has_work(state) {
        return examine(policy, state);
    }
    if !state.shown_unchanged && state.nudges < row(policy, state).nudges {
        return give_nudge(policy, state, NudgeKind::ClaimsDone);
    }
    evidence(policy, state, false)
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

/// Runs the pre-flight check, then verifies.
pub(super) fn examine(policy: &Policy, state: &TaskState) -> Step {
    if let Some(outcome) = preflight(state) {
        return give_up(policy, state, outcome);
    }
    join_attempt(policy, state)
        .or_else(|| before_checks_of_tests(policy, state))
        .unwrap_or_else(|| verify_or_accept(policy, state, VerifyPurpose::Attempt))
}

/// From the second attempt on, does not verify a tree that has already failed.
fn preflight(state: &TaskState) -> Option<Outcome> {
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
fn refused_again(state: &TaskState) -> Option<Outcome> {
    let (rejected, current) = (state.rejected.as_ref()?, state.current.as_ref()?);
    let message = state.hook_message.clone()?;
    same_tree(rejected, current).then_some(Outcome::CommitRejected { message })
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

/// Verifies once for the report; the task fails whatever the result.
fn evidence(policy: &Policy, state: &TaskState, planning: bool) -> Step {
    if policy.has_checks {
        verify(state, VerifyPurpose::Evidence { planning })
    } else {
        Step::Finish(after_evidence(state, planning))
    }
}

pub(super) fn after_evidence(state: &TaskState, planning: bool) -> Outcome {
    if planning && state.asks {
        Outcome::NeedsAnswer
    } else if planning {
        Outcome::PlanningOnly
    } else {
        no_progress(state, NO_FILE_CHANGES.into(), false)
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
pub(super) fn retry(policy: &Policy, state: &TaskState, cut_off: Option<String>) -> Option<Step> {
    if row(policy, state).expect == Expect::Acceptable {
        return rework_after_failure(policy, state);
    }
    let (phase, attempt) = next_attempt(policy, state, cut_off.is_some())?;
    let purpose = TurnPurpose::Retry { cut_off };
    Some(run_agent_in(policy, state, phase, attempt, purpose))
}

pub(super) fn give_nudge(policy: &Policy, state: &TaskState, kind: NudgeKind) -> Step {
    let purpose = TurnPurpose::Nudge {
        n: state.nudges + 1,
        kind,
    };
    run_agent(policy, state, state.attempt(), purpose)
}

fn wait_or_give_up(policy: &Policy, state: &TaskState, turn: &TurnEnded) -> Step {
    let why = turn.assessment.detail.clone();
    let message = if state.idle_cuts >= IDLE_CUTS {
        Some(format!(
            "{why}, {} turns in a row, and changed nothing",
            state.idle_cuts
        ))
    } else {
        None
    };
    let asked = turn.assessment.retry_after_ms;
    let ms = match (message, policy.wait_ms(state.waits, asked)) {
        (None, Ok(ms)) => ms,
        (Some(why), _) => {
            return give_up(policy, state, Outcome::AgentUnavailable { message: why });
        }
        (None, Err(waits)) => {
            let message = format!("{why} ({waits})");
            return give_up(policy, state, Outcome::AgentUnavailable { message });
        }
    };
    let ends = state.elapsed_ms.saturating_add(ms);
    match policy.deadline_ms {
        Some(deadline) if ends >= deadline => Step::Finish(Outcome::Deadline),
        _ => Step::Wait { ms, why },
    }
}

impl Policy {
    /// The wait for a transient error after `waits` earlier waits, in milliseconds. `asked_ms` is the wait
    /// that the server asks for.
    ///
    /// # Errors
    /// A message with the number of waits, when the limit on waits is reached.
    pub fn wait_ms(&self, waits: u32, asked_ms: Option<u64>) -> Result<u64, String> {
        if waits >= self.waits {
            return Err(format!("after {waits} waits"));
        }
        let policy = WaitPolicy {
            first_ms: self.wait_base_ms,
            factor: 3,
            longest_ms: MAX_WAIT_MS,
        };
        Ok(policy.wait_ms(waits.saturating_add(1), asked_ms))
    }
}

/// Repeats, in the same attempt, the turn that ended with a transient error.
fn same_attempt(policy: &Policy, state: &TaskState) -> Step {
    let purpose = state
        .purpose
        .clone()
        .unwrap_or_else(|| first_purpose(policy));
    run_agent(policy, state, state.attempt(), purpose)
}

/// Resumes the step that was open when the run died, under the same number.
fn after_resume(policy: &Policy, state: &TaskState, open: &Step) -> Step {
    match open {
        Step::RunAgent { .. } => within_limits(policy, state).unwrap_or_else(|| open.clone()),
        Step::Wait { .. } => same_attempt(policy, state),
        Step::Verify { .. }
        | Step::Prove { .. }
        | Step::Undo { .. }
        | Step::Commit { .. }
        | Step::Finish(_) => open.clone(),
    }
}

fn run_agent(policy: &Policy, state: &TaskState, attempt: u32, purpose: TurnPurpose) -> Step {
    let phase = state.key.map_or(0, |key| key.phase);
    run_agent_in(policy, state, phase, attempt, purpose)
}

pub(super) fn run_agent_in(
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

/// Whether this attempt has, or may have, moved HEAD or changed the tree.
fn attempt_has_work(state: &TaskState) -> bool {
    !unmoved(state.attempt_start.as_ref(), state)
}

fn unmoved(from: Option<&Snapshot>, state: &TaskState) -> bool {
    match (from, &state.current) {
        (Some(from), Some(current)) => from.same_as(current) == Some(true),
        _ => false,
    }
}
