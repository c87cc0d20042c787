//! What comes next inside one task.

use super::{
    Expect, Interruption, Last, NO_FILE_CHANGES, Policy, Step, TaskState, TurnEnded, TurnKey,
    TurnPurpose, VerificationEnded, VerifyPurpose, same_tree,
};
use crate::assess::AssessmentKind;
use crate::checks::verdict::Verdict;
use crate::outcome::Outcome;
use crate::prompt::NudgeKind;
use crate::snapshot::Snapshot;

/// The longest single wait, in milliseconds (five minutes).
const LONGEST_WAIT_MS: u64 = 300_000;

/// The next step of a task.
pub fn decide(policy: &Policy, state: &TaskState) -> Step {
    match state.interrupted {
        Some(Interruption::Cancel { signal }) => {
            return Step::Finish(Outcome::Cancelled { signal });
        }
        Some(Interruption::Deadline) => return Step::Finish(Outcome::Deadline),
        None => {}
    }
    match &state.last {
        Last::Begin => first_turn(policy, state),
        Last::Turn(turn) => after_turn(policy, state, turn),
        Last::Verified(purpose, ended) => after_verification(policy, state, *purpose, ended),
        Last::Committed(commit, true) => Step::Finish(Outcome::Unverified {
            commit: commit.clone(),
            accepted: true,
        }),
        Last::Committed(commit, false) => Step::Finish(Outcome::Verified {
            commit: commit.clone(),
        }),
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
        Last::Waited => same_attempt(policy, state),
        Last::Resumed(open) => after_resume(policy, state, open),
    }
}

fn first_turn(policy: &Policy, state: &TaskState) -> Step {
    run_agent(policy, state, 1, TurnPurpose::Implement)
}

fn after_turn(policy: &Policy, state: &TaskState, turn: &TurnEnded) -> Step {
    use AssessmentKind as K;
    let detail = || turn.assessment.detail.clone();
    match turn.assessment.kind {
        K::AgentUnavailable => Step::Finish(Outcome::AgentUnavailable { message: detail() }),
        K::AgentTransient => wait_or_give_up(policy, state, turn),
        // A limit of the run comes before the failure that it is the reason of.
        K::AgentCrashed => within_limits(policy, state).unwrap_or_else(|| {
            let end = Outcome::AgentCrashed { message: detail() };
            retry_or(policy, state, Some(detail()), end)
        }),
        K::TurnTimeout => retry_or(policy, state, Some(detail()), Outcome::TurnTimeout),
        K::PolicyViolation => Step::Finish(Outcome::PolicyViolation { what: detail() }),
        K::FailedReport => Step::Finish(Outcome::FailedReport { summary: detail() }),
        K::Changed | K::Unknown => examine(policy, state),
        K::AwaitingInput => nudge(policy, state, NudgeKind::AwaitingInput),
        K::PlanningOnly => nudge(policy, state, NudgeKind::Planning),
        K::Empty => nudge(policy, state, NudgeKind::Empty),
        K::ReportsBlocked if !state.shown_unchanged && state.nudges < policy.nudges => {
            give_nudge(policy, state, NudgeKind::Blocked)
        }
        K::AlreadySatisfied if untouched(state) => satisfied(policy, state),
        K::AlreadySatisfied | K::ReportsBlocked | K::ClaimsDone | K::NoChange => {
            claims(policy, state)
        }
    }
}

/// An unchanged turn that calls for the work itself: nudge while the budget lasts.
fn nudge(policy: &Policy, state: &TaskState, kind: NudgeKind) -> Step {
    if state.nudges < policy.nudges {
        return give_nudge(policy, state, kind);
    }
    if attempt_has_work(state) {
        return examine(policy, state);
    }
    if state.attempt() == 1 {
        return evidence(policy, state, true);
    }
    Step::Finish(no_progress(state, NO_FILE_CHANGES.into(), false))
}

/// An unchanged turn that says that the work is done, or says nothing to the point.
fn claims(policy: &Policy, state: &TaskState) -> Step {
    if state.attempt() > 1 || attempt_has_work(state) {
        return examine(policy, state);
    }
    if !state.shown_unchanged && state.nudges < policy.nudges {
        return give_nudge(policy, state, NudgeKind::ClaimsDone);
    }
    evidence(policy, state, false)
}

fn satisfied(policy: &Policy, state: &TaskState) -> Step {
    match (preflight(state), policy.has_checks) {
        (Some(outcome), _) => Step::Finish(outcome),
        (None, true) => verify(state, VerifyPurpose::Satisfied),
        (None, false) => Step::Finish(Outcome::AlreadySatisfied { verified: false }),
    }
}

/// The pre-flight check, then verification.
fn examine(policy: &Policy, state: &TaskState) -> Step {
    if let Some(outcome) = preflight(state) {
        return Step::Finish(outcome);
    }
    verify_or_accept(policy, state, VerifyPurpose::Attempt)
}

/// From the second attempt on, a tree that has already failed is not verified again.
fn preflight(state: &TaskState) -> Option<Outcome> {
    if state.attempt() < 2 {
        return None;
    }
    let current = state.current.as_ref()?;
    if let (Some(rejected), Some(message)) = (&state.rejected, &state.hook_message)
        && same_tree(rejected, current)
    {
        return Some(Outcome::CommitRejected {
            message: message.clone(),
        });
    }
    let tree = current.tree()?;
    let failed = state
        .failed_trees
        .iter()
        .find(|failed| &failed.tree == tree)?;
    let last_failed = state.failed_trees.last().map(|last| last.attempt);
    let message = match Some(failed.attempt) == last_failed {
        true => NO_FILE_CHANGES.into(),
        false => format!(
            "No progress detected - agent returned to the state of attempt {}",
            failed.attempt
        ),
    };
    Some(no_progress(state, message, true))
}

fn verify_or_accept(policy: &Policy, state: &TaskState, purpose: VerifyPurpose) -> Step {
    if policy.has_checks {
        return verify(state, purpose);
    }
    if untouched(state) {
        return Step::Finish(no_progress(state, NO_FILE_CHANGES.into(), false));
    }
    match (policy.accept_unverified, policy.commits) {
        (false, _) => Step::Finish(Outcome::Unverified {
            commit: None,
            accepted: false,
        }),
        (true, true) => Step::Commit { unverified: true },
        (true, false) => Step::Finish(Outcome::Unverified {
            commit: None,
            accepted: true,
        }),
    }
}

/// One verification for the report; the task fails whatever it says.
fn evidence(policy: &Policy, state: &TaskState, planning: bool) -> Step {
    match policy.has_checks {
        true => verify(state, VerifyPurpose::Evidence { planning }),
        false => Step::Finish(after_evidence(state, planning)),
    }
}

fn after_evidence(state: &TaskState, planning: bool) -> Outcome {
    match planning {
        true => Outcome::PlanningOnly,
        false => no_progress(state, NO_FILE_CHANGES.into(), false),
    }
}

fn after_verification(
    policy: &Policy,
    state: &TaskState,
    purpose: VerifyPurpose,
    ended: &VerificationEnded,
) -> Step {
    if let VerifyPurpose::Evidence { planning } = purpose {
        return Step::Finish(after_evidence(state, planning));
    }
    match met(policy, state, &ended.verdict) {
        Met::Yes if purpose == VerifyPurpose::Satisfied && untouched(state) => {
            Step::Finish(Outcome::AlreadySatisfied { verified: true })
        }
        Met::Yes if untouched(state) => Step::Finish(no_progress(
            state,
            "No progress detected - the tree is as it was when the task began".into(),
            false,
        )),
        Met::Yes if policy.commits => Step::Commit { unverified: false },
        Met::Yes => Step::Finish(Outcome::Verified { commit: None }),
        Met::No => failed_attempt(policy, state),
        Met::NotRun => verify_or_accept(
            &Policy {
                has_checks: false,
                ..policy.clone()
            },
            state,
            purpose,
        ),
        Met::Aborted => Step::Finish(Outcome::Deadline),
    }
}

enum Met {
    Yes,
    No,
    NotRun,
    Aborted,
}

fn met(policy: &Policy, state: &TaskState, verdict: &Verdict) -> Met {
    let expect = state
        .key
        .and_then(|key| policy.phases.get(key.phase))
        .map_or(Expect::Pass, |phase| phase.expect);
    match (verdict, expect) {
        (Verdict::Passed, Expect::Pass) | (Verdict::Failed { .. }, Expect::Fail) => Met::Yes,
        (Verdict::Failed { .. }, Expect::Pass)
        | (Verdict::Passed, Expect::Fail)
        | (Verdict::TimedOut { .. }, _) => Met::No,
        (Verdict::NotRun, _) => Met::NotRun,
        (Verdict::Aborted, _) => Met::Aborted,
    }
}

fn failed_attempt(policy: &Policy, state: &TaskState) -> Step {
    if let Some((_, times)) = &state.failure
        && *times >= policy.identical_failures
    {
        return Step::Finish(Outcome::RepeatingFailure { times: *times });
    }
    retry_or(policy, state, None, Outcome::VerificationFailed)
}

fn retry_or(policy: &Policy, state: &TaskState, cut_off: Option<String>, end: Outcome) -> Step {
    let retries = state
        .key
        .and_then(|key| policy.phases.get(key.phase))
        .map_or(0, |phase| phase.retries);
    let attempt = state.attempt();
    match attempt <= retries {
        true => run_agent(policy, state, attempt + 1, TurnPurpose::Retry { cut_off }),
        false => Step::Finish(end),
    }
}

fn give_nudge(policy: &Policy, state: &TaskState, kind: NudgeKind) -> Step {
    let purpose = TurnPurpose::Nudge {
        n: state.nudges + 1,
        kind,
    };
    run_agent(policy, state, state.attempt(), purpose)
}

fn wait_or_give_up(policy: &Policy, state: &TaskState, turn: &TurnEnded) -> Step {
    let why = turn.assessment.detail.clone();
    if state.waits >= policy.waits {
        let message = format!("{why} (after {} waits)", state.waits);
        return Step::Finish(Outcome::AgentUnavailable { message });
    }
    let growing = policy
        .wait_base_ms
        .saturating_mul(3u64.saturating_pow(state.waits));
    let ms = turn
        .assessment
        .retry_after_ms
        .unwrap_or(growing)
        .min(LONGEST_WAIT_MS);
    let ends = state.elapsed_ms.saturating_add(ms);
    match policy.deadline_ms {
        Some(deadline) if ends >= deadline => Step::Finish(Outcome::Deadline),
        _ => Step::Wait { ms, why },
    }
}

/// The turn that was answered by a transient error, once more, in the same attempt.
fn same_attempt(policy: &Policy, state: &TaskState) -> Step {
    let purpose = state.purpose.clone().unwrap_or(TurnPurpose::Implement);
    run_agent(policy, state, state.attempt(), purpose)
}

/// A step that was open when the run died is taken up again, under the same number.
fn after_resume(policy: &Policy, state: &TaskState, open: &Step) -> Step {
    match open {
        Step::RunAgent { .. } => within_limits(policy, state).unwrap_or_else(|| open.clone()),
        Step::Wait { .. } => same_attempt(policy, state),
        // Leave to commit does not outlive the process that saw the checks pass.
        Step::Commit { unverified: false } => verify(state, VerifyPurpose::Attempt),
        Step::Verify { .. } | Step::Commit { .. } | Step::Finish(_) => open.clone(),
    }
}

fn run_agent(policy: &Policy, state: &TaskState, attempt: u32, purpose: TurnPurpose) -> Step {
    within_limits(policy, state).unwrap_or_else(|| {
        let phase = state.key.map_or(0, |key| key.phase);
        let key = TurnKey {
            phase,
            attempt,
            turn: state.turns() + 1,
        };
        Step::RunAgent { key, purpose }
    })
}

/// The end of the task when a limit of the run is reached.
fn within_limits(policy: &Policy, state: &TaskState) -> Option<Step> {
    if policy
        .deadline_ms
        .is_some_and(|deadline| state.elapsed_ms >= deadline)
    {
        return Some(Step::Finish(Outcome::Deadline));
    }
    let tokens = policy
        .spent_before
        .tokens
        .saturating_add(state.spend.tokens);
    let cost = policy.spent_before.cost_usd + state.spend.cost_usd;
    let message = match (policy.max_tokens, policy.max_cost_usd) {
        (Some(limit), _) if tokens >= limit => {
            format!("the token limit is reached: {tokens} of {limit}")
        }
        (_, Some(limit)) if cost >= limit => {
            format!("the cost limit is reached: ${cost:.2} of ${limit:.2}")
        }
        _ => return None,
    };
    Some(Step::Finish(Outcome::Budget { message }))
}

fn verify(state: &TaskState, purpose: VerifyPurpose) -> Step {
    let key = state.key.unwrap_or(TurnKey::FIRST);
    Step::Verify { key, purpose }
}

fn no_progress(state: &TaskState, message: String, preflight: bool) -> Outcome {
    Outcome::NoProgress {
        message,
        preflight,
        untouched: untouched(state),
    }
}

/// Whether HEAD and tree are known to be where the task began.
fn untouched(state: &TaskState) -> bool {
    unmoved(state.task_start.as_ref(), state)
}

/// Whether this attempt has moved HEAD or tree, or may have.
fn attempt_has_work(state: &TaskState) -> bool {
    !unmoved(state.attempt_start.as_ref(), state)
}

fn unmoved(from: Option<&Snapshot>, state: &TaskState) -> bool {
    match (from, &state.current) {
        (Some(from), Some(current)) => from.same_as(current) == Some(true),
        _ => false,
    }
}
