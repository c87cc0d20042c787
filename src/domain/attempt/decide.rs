//! Decides the next step within one task.

use super::conclude::{after_baseline, after_verification};
use super::facts::{
    IDLE_CUTS, after_evidence, no_progress, phase_has_work, prove, refused_again, row_at, unmoved,
    untouched, verify,
};
use super::moves::{
    after_commit, cut_off, give_up, nudge_if_left, retry_or, run_agent, satisfied,
    verify_or_accept, within_limits,
};
use super::output::after_output;
use super::phases::{after_turn_of_row, after_undo, examine};
use super::{
    Last, NO_FILE_CHANGES, Policy, Proof, Step, TaskState, TurnEnded, TurnPurpose, VerifyPurpose,
};
use crate::assess::{AssessmentKind, CutOff};
use crate::attempt::nudge::NudgeKind;
use crate::outcome::Outcome;
use crate::settings::Baseline;
use crate::wait::WaitPolicy;

/// The longest single wait, in milliseconds (five minutes).
const MAX_WAIT_MS: u64 = 300_000;

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
    // A violation, a crash or the agent's own report of a failure weighs more than the changes that wait.
    let waits = turn.assessment.kind.has_answer() && untouched(state);
    if let Some(held) = turn.held.clone().filter(|_| waits) {
        return Step::Finish(Outcome::NeedsPermission { held });
    }
    match turn.assessment.kind {
        kind if kind.is_idle() && policy.only_checks && untouched(state) => {
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
            nudge_if_left(policy, state, NudgeKind::EndedWithError).unwrap_or_else(|| {
                let end = Outcome::AgentCrashed { message: detail() };
                cut_off(policy, state, detail(), end)
            })
        }
        K::Changed | K::Unknown => examine(policy, state),
        K::AwaitingInput => nudge(policy, state, NudgeKind::AwaitingInput),
        K::PlanningOnly => nudge(policy, state, NudgeKind::Planning),
        K::Empty => nudge(policy, state, NudgeKind::Empty),
        K::AlreadySatisfied if untouched(state) => satisfied(policy, state),
        K::ReportsBlocked => nudge_if_left(policy, state, NudgeKind::Blocked)
            .filter(|_| !state.shown_unchanged)
            .unwrap_or_else(|| claims(policy, state)),
        K::AlreadySatisfied | K::ClaimsDone | K::NoChange => claims(policy, state),
    }
}

/// Whether the turn changed nothing, and turns before it did.
fn added_nothing_to_its_work(state: &TaskState) -> bool {
    unmoved(state.turn_start.as_ref(), state) && !untouched(state)
}

/// After an unchanged turn that should have done the work: nudges while nudges are left.
fn nudge(policy: &Policy, state: &TaskState, kind: NudgeKind) -> Step {
    // An agent that knows that nobody answers, and asks the same again, needs the answer.
    let is_told = kind == NudgeKind::AwaitingInput && state.asks_again;
    if let Some(step) = nudge_if_left(policy, state, kind).filter(|_| !is_told) {
        return step;
    }
    if phase_has_work(state) {
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
    if state.attempt() > 1 || phase_has_work(state) {
        return examine(policy, state);
    }
    nudge_if_left(policy, state, NudgeKind::ClaimsDone)
        .filter(|_| !state.shown_unchanged)
        .unwrap_or_else(|| evidence(policy, state, false))
}

/// Verifies once for the report; the task fails whatever the result.
pub(super) fn evidence(policy: &Policy, state: &TaskState, planning: bool) -> Step {
    if policy.has_checks {
        verify(state, VerifyPurpose::Evidence { planning })
    } else {
        Step::Finish(after_evidence(state, planning))
    }
}

fn wait_or_give_up(policy: &Policy, state: &TaskState, turn: &TurnEnded) -> Step {
    let why = turn.assessment.detail.clone();
    let (cuts, asked) = (state.idle_cuts, turn.assessment.retry_after_ms);
    let wait = policy.wait_ms(state.waits, asked);
    let wait = wait.map_err(|waits| format!("{why} ({waits})"));
    let idle =
        (cuts >= IDLE_CUTS).then(|| format!("{why}, {cuts} turns in a row, and changed nothing"));
    let ms = match idle.map_or(wait, Err) {
        Ok(ms) => ms,
        Err(message) => return give_up(policy, state, Outcome::AgentUnavailable { message }),
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
