//! What follows from a verdict: further proofs, a commit, another attempt, or the end of the task.

use super::facts::{
    after_evidence, is_back_at_start, look_up_baseline, no_progress, of_current_tree, prove, row,
    untouched, verify, were_rewritten_since_they_failed,
};
use super::moves::{accept, failed, nothing_to_do, verify_or_accept};
use super::phases::after_checks_of_tests;
use super::{
    Expect, FailedCheck, Grounds, Policy, Proof, ProofResult, Step, TaskState, VerificationEnded,
    VerifyPurpose,
};
use crate::checks::verdict::Verdict;
use crate::outcome::Outcome;
use crate::settings::{Baseline, KnownFailures};

/// The step after a verification.
pub(super) fn after_verification(
    policy: &Policy,
    state: &TaskState,
    purpose: VerifyPurpose,
    ended: &VerificationEnded,
) -> Step {
    if let Verdict::CannotStart { check, program } = &ended.verdict
        && let Some(step) = cannot_start(policy, state, purpose, check, program)
    {
        return step;
    }
    if let VerifyPurpose::Evidence { planning } = purpose {
        return Step::Finish(after_evidence(state, planning));
    }
    if let Some(step) = recheck(state, purpose, ended) {
        return step;
    }
    let is_satisfied =
        purpose == VerifyPurpose::Satisfied && ended.verdict == Verdict::Passed && untouched(state);
    if row(policy, state).expect == Expect::Fail && !is_satisfied {
        return after_checks_of_tests(policy, state, ended);
    }
    match &ended.verdict {
        Verdict::Passed if is_satisfied => confirmed(policy, state),
        Verdict::Passed if is_back_at_start(state) => Step::Finish(back_at_start(state)),
        Verdict::Passed => accept(policy, state, Grounds::Passed),
        Verdict::Failed { .. } | Verdict::TimedOut { .. } | Verdict::CannotStart { .. } => {
            known_failures(policy, state, purpose, ended).unwrap_or_else(|| failed(policy, state))
        }
        Verdict::NotRun => {
            let unchecked = Policy {
                has_checks: false,
                ..policy.clone()
            };
            verify_or_accept(&unchecked, state, purpose)
        }
        Verdict::Aborted => Step::Finish(Outcome::Deadline),
    }
}

/// A verdict applies to a single tree. If the checks changed the tree, they run once more on the tree that
/// they left. A pass that never leaves the tree unchanged permits no commit.
fn recheck(state: &TaskState, purpose: VerifyPurpose, ended: &VerificationEnded) -> Option<Step> {
    let passed = ended.verdict == Verdict::Passed;
    let failed = matches!(ended.verdict, Verdict::Failed { .. });
    let stable = ended.before.same_as(&ended.after);
    // An unreadable tree has no permit: the commit step reads it again and reports why it cannot.
    let is_read = ended.after.tree().is_some();
    if stable == Some(true) || !is_read || !(passed || failed) {
        return None;
    }
    if purpose != VerifyPurpose::Recheck {
        return Some(verify(state, VerifyPurpose::Recheck));
    }
    (passed && stable == Some(false)).then(|| {
        Step::Finish(Outcome::UnstableChecks {
            files: ended.altered.clone(),
        })
    })
}

/// A check that cannot start is a problem of the machine, unless it could start before the agent changed
/// anything. Returns `None` when the agent caused it.
fn cannot_start(
    policy: &Policy,
    state: &TaskState,
    purpose: VerifyPurpose,
    check: &str,
    program: &str,
) -> Option<Step> {
    let of_machine = Step::Finish(Outcome::CheckCannotStart {
        check: check.to_owned(),
        program: program.to_owned(),
    });
    let evidence = matches!(purpose, VerifyPurpose::Evidence { .. });
    match &state.proofs.baseline {
        _ if untouched(state) || evidence => Some(of_machine),
        None if policy.baseline != Baseline::Off => Some(prove(state, Proof::Baseline)),
        None | Some(ProofResult::CannotStart { .. } | ProofResult::Unknown { .. }) => {
            Some(of_machine)
        }
        Some(ProofResult::Passed | ProofResult::Failed { .. }) => None,
    }
}

/// The outcome when a check cannot start on the tree from which the task started.
pub(super) fn after_baseline(baseline: &ProofResult) -> Option<Outcome> {
    match baseline {
        ProofResult::CannotStart { check, program } => Some(Outcome::CheckCannotStart {
            check: check.clone(),
            program: program.clone(),
        }),
        ProofResult::Failed { failed } => failed.iter().find_map(refused),
        ProofResult::Passed | ProofResult::Unknown { .. } => None,
    }
}

/// The outcome when the sandbox makes a check fail.
fn refused(failed: &FailedCheck) -> Option<Outcome> {
    failed.refused.clone().map(|path| Outcome::CheckRefused {
        check: failed.check.clone(),
        path,
    })
}

/// The directory in which the sandbox let nothing be written.
fn directory(failed: &FailedCheck) -> Option<&str> {
    let (directory, _) = failed.refused.as_deref()?.rsplit_once('/')?;
    Some(directory)
}

/// The outcome when the sandbox makes a check fail without the work as well.
fn refused_before(state: &TaskState, ended: &VerificationEnded) -> Option<Outcome> {
    let Some(ProofResult::Failed { failed: before }) = &state.proofs.baseline else {
        return None;
    };
    ended.failed.iter().find_map(|now| {
        // The name may be another one each time.
        let is_same =
            |then: &&FailedCheck| then.check == now.check && directory(then) == directory(now);
        now.refused.as_ref()?;
        before.iter().find(is_same).and_then(refused)
    })
}

/// Looks up the failures that existed before the task, once, and accepts them where the policy says so.
fn known_failures(
    policy: &Policy,
    state: &TaskState,
    purpose: VerifyPurpose,
    ended: &VerificationEnded,
) -> Option<Step> {
    let is_failure = matches!(
        ended.verdict,
        Verdict::Failed { .. } | Verdict::TimedOut { .. }
    );
    if let Some(step) = look_up_baseline(policy, state).filter(|_| is_failure) {
        return Some(step);
    }
    let is_refused = ended.failed.iter().any(|failed| failed.refused.is_some());
    if is_refused && state.proofs.baseline.is_none() {
        return Some(prove(state, Proof::Baseline));
    }
    if let Some(end) = refused_before(state, ended) {
        return Some(Step::Finish(end));
    }
    let Verdict::Failed { build, .. } = ended.verdict else {
        return None;
    };
    // A failed build skips the other checks, so their results are unknown.
    let tolerated = policy.known_failures == KnownFailures::Tolerate
        && !build
        && ended.judged().is_some()
        && state.proofs.were_red_before(&ended.failed);
    match is_back_at_start(state) {
        _ if !tolerated => None,
        false => Some(accept(policy, state, Grounds::KnownFailures)),
        true if purpose == VerifyPurpose::Satisfied && untouched(state) => {
            Some(nothing_to_do(policy, state, false))
        }
        true => Some(Step::Finish(back_at_start(state))),
    }
}

/// The end of a task that needs no work according to the agent and the checks, unless these pass only with what no
/// commit contains.
fn confirmed(policy: &Policy, state: &TaskState) -> Step {
    let is_evidence = !state.reported.is_no_evidence();
    if !policy.test_changes.is_proved() || !state.tests.touch_what_was_there() {
        return nothing_to_do(policy, state, is_evidence);
    }
    match of_current_tree(state, state.proofs.old_tests.as_ref()) {
        None => prove(state, Proof::OldTests),
        Some(ProofResult::Passed) => nothing_to_do(policy, state, is_evidence),
        Some(ProofResult::Failed { .. }) if state.proofs.reruns < policy.flaky_reruns => {
            prove(state, Proof::OldTests)
        }
        Some(ProofResult::Failed { .. }) => {
            let left = state.tests.touched().join(", ");
            let message = format!(
                "No progress detected - the checks pass only with what no commit contains: {left}"
            );
            Step::Finish(no_progress(state, message, false))
        }
        Some(ProofResult::CannotStart { .. } | ProofResult::Unknown { .. }) => {
            nothing_to_do(policy, state, false)
        }
    }
}

fn back_at_start(state: &TaskState) -> Outcome {
    let message = "No progress detected - the tree is as it was when the task began";
    no_progress(state, message.into(), false)
}

impl TaskState {
    /// Whether the proof with the new tests is also about tests that were there before. It does not matter then
    /// whether they failed as they were.
    pub fn are_red_tests_changed(&self) -> bool {
        were_rewritten_since_they_failed(self) && !self.tests.changed.is_empty()
    }
}
