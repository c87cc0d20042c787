//! What follows from a verdict: further proofs, a commit, another attempt, or the end of the task.

use super::decide::{
    after_evidence, is_back_at_start, no_progress, nothing_to_do, prove, retry, retry_or,
    untouched, verify, verify_or_accept,
};
use super::output::without_output;
use super::phases::{after_checks_of_tests, go_on, is_at_phase_start, row, undo, without_tests};
use super::{
    Blame, BlamedTest, Expect, FailedCheck, Grounds, Last, Policy, Proof, ProofResult, Step,
    TaskState, VerificationEnded, VerifyPurpose, names,
};
use crate::checks::signals::Signal;
use crate::checks::verdict::Verdict;
use crate::outcome::Outcome;
use crate::settings::{Baseline, KnownFailures, ProveNewTests, SignalPolicy, TestChangePolicy};
use crate::snapshot::{Fingerprint, RevId};

const UNREAD: &str = "nothing was committed: the tree that the checks judged could not be read";

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
    match met(&ended.verdict) {
        Expected::Yes if purpose == VerifyPurpose::Satisfied && untouched(state) => {
            confirmed(policy, state)
        }
        Expected::Yes if is_back_at_start(state) => Step::Finish(back_at_start(state)),
        Expected::Yes => accept(policy, state, Grounds::Passed),
        Expected::No => {
            known_failures(policy, state, purpose, ended).unwrap_or_else(|| failed(policy, state))
        }
        Expected::NotRun => verify_or_accept(
            &Policy {
                has_checks: false,
                ..policy.clone()
            },
            state,
            purpose,
        ),
        Expected::Aborted => Step::Finish(Outcome::Deadline),
    }
}

enum Expected {
    Yes,
    No,
    NotRun,
    Aborted,
}

fn met(verdict: &Verdict) -> Expected {
    match verdict {
        Verdict::Passed => Expected::Yes,
        Verdict::Failed { .. } | Verdict::TimedOut { .. } | Verdict::CannotStart { .. } => {
            Expected::No
        }
        Verdict::NotRun => Expected::NotRun,
        Verdict::Aborted => Expected::Aborted,
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

/// Before a failure is judged, runs the checks once on the tree from which the task started.
pub(super) fn look_up_baseline(policy: &Policy, state: &TaskState) -> Option<Step> {
    let is_open = state.proofs.baseline.is_none() && policy.baseline != Baseline::Off;
    is_open.then(|| prove(state, Proof::Baseline))
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

/// The result of a proof, if it is about the current tree.
fn of_current_tree(
    state: &TaskState,
    kept: Option<&(Fingerprint, ProofResult)>,
) -> Option<ProofResult> {
    let tree = state.current.as_ref().and_then(|current| current.tree());
    let kept = kept.filter(|(of, _)| Some(of) == tree);
    kept.map(|(_, result)| result.clone())
}

fn back_at_start(state: &TaskState) -> Outcome {
    let message = "No progress detected - the tree is as it was when the task began";
    no_progress(state, message.into(), false)
}

fn failed(policy: &Policy, state: &TaskState) -> Step {
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

/// The state of the proofs about the tests that the current tree changes or adds.
enum Tests {
    Settled,
    Prove(Proof),
    Refused(Outcome),
    ProveNothing(Outcome),
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

/// Whether a check ran more tests than on the tree on which the task started.
fn runs_more_tests(state: &TaskState) -> bool {
    let before = &state.proofs.at_start.ran;
    let mut now = state.reported.ran.iter();
    now.any(|(check, now)| before.get(check).is_some_and(|before| now > before))
}

/// Before a pass without the expected report of its tests is judged, finds out once what the checks
/// reported on the tree from which the task started.
fn expected_reports(policy: &Policy, state: &TaskState) -> Option<Tests> {
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
fn were_rewritten_since_they_failed(state: &TaskState) -> bool {
    let red = state.red_tests.as_ref();
    state.tests.are_tests_touched() && red.is_some_and(|red| *red != state.tests.digest)
}

impl TaskState {
    /// Whether the proof with the new tests is also about tests that were there before. It does not matter then
    /// whether they failed as they were.
    pub fn are_red_tests_changed(&self) -> bool {
        were_rewritten_since_they_failed(self) && !self.tests.changed.is_empty()
    }
}

/// Commits the current tree. A permit does not outlive the process that ran the checks.
fn take(policy: &Policy, state: &TaskState, grounds: Grounds) -> Step {
    let tree = state.current.as_ref().and_then(|current| current.tree());
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

fn commit(policy: &Policy, state: &TaskState, grounds: Grounds) -> Step {
    if policy.commits {
        Step::Commit { grounds }
    } else {
        Step::Finish(after_commit(state, grounds, None))
    }
}

/// The outcome of a task whose work is on the branch.
pub(super) fn after_commit(state: &TaskState, grounds: Grounds, commit: Option<RevId>) -> Outcome {
    let tree = state.current.as_ref().and_then(|current| current.tree());
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

fn last_failed(state: &TaskState) -> Vec<String> {
    let failed = state.last_failure.as_ref().map(|last| names(&last.failed));
    failed.unwrap_or_default()
}

/// Ends a task that failed, for any reason. If the last attempt changed the tree and a test fails there that passed
/// on the start tree, or that tree is never checked, the checks first run again: if they pass, the tree is accepted.
pub(super) fn give_up(policy: &Policy, state: &TaskState, end: Outcome) -> Step {
    let tree = state.current.as_ref().and_then(|current| current.tree());
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
