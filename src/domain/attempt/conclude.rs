//! What follows from a verdict: further proofs, a commit, another attempt, or the end of the task.

use super::facts::Decision;
use super::{
    Expect, FailedCheck, Grounds, Proof, ProofResult, Step, TaskState, VerificationEnded,
    VerifyPurpose,
};
use crate::checks::verdict::Verdict;
use crate::outcome::Outcome;
use crate::settings::{Baseline, KnownFailures};

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

impl Decision<'_> {
    /// The step after a verification.
    pub(super) fn after_verification(
        self,
        purpose: VerifyPurpose,
        ended: &VerificationEnded,
    ) -> Step {
        if let Verdict::CannotStart { check, program } = &ended.verdict
            && let Some(step) = self.cannot_start(purpose, check, program)
        {
            return step;
        }
        if let VerifyPurpose::Evidence { planning } = purpose {
            return Step::Finish(self.after_evidence(planning));
        }
        if let Some(step) = self.recheck(purpose, ended) {
            return step;
        }
        let is_satisfied = purpose == VerifyPurpose::Satisfied
            && ended.verdict == Verdict::Passed
            && self.untouched();
        if self.row().expect == Expect::Fail && !is_satisfied {
            return self.after_checks_of_tests(ended);
        }
        match &ended.verdict {
            Verdict::Passed if is_satisfied => self.confirmed(),
            Verdict::Passed if self.is_back_at_start() => Step::Finish(self.back_at_start()),
            Verdict::Passed => self.accept(Grounds::Passed),
            Verdict::Failed { .. } | Verdict::TimedOut { .. } | Verdict::CannotStart { .. } => self
                .known_failures(purpose, ended)
                .unwrap_or_else(|| self.failed()),
            Verdict::NotRun => self.accept_unchecked(),
            Verdict::Aborted => Step::Finish(Outcome::Deadline),
        }
    }

    /// A check that cannot start is a problem of the machine, unless it could start before the agent changed
    /// anything. Returns `None` when the agent caused it.
    fn cannot_start(self, purpose: VerifyPurpose, check: &str, program: &str) -> Option<Step> {
        let of_machine = Step::Finish(Outcome::CheckCannotStart {
            check: check.to_owned(),
            program: program.to_owned(),
        });
        let evidence = matches!(purpose, VerifyPurpose::Evidence { .. });
        match &self.proofs.baseline {
            _ if self.untouched() || evidence => Some(of_machine),
            None if self.policy.baseline != Baseline::Off => Some(Step::Prove {
                proof: Proof::Baseline,
            }),
            None | Some(ProofResult::CannotStart { .. } | ProofResult::Unknown { .. }) => {
                Some(of_machine)
            }
            Some(ProofResult::Passed | ProofResult::Failed { .. }) => None,
        }
    }

    /// Looks up the failures that existed before the task, once, and accepts them where the policy says so.
    fn known_failures(self, purpose: VerifyPurpose, ended: &VerificationEnded) -> Option<Step> {
        let is_known = matches!(ended.verdict, Verdict::CannotStart { .. })
            || self.policy.baseline == Baseline::Off;
        let is_refused = ended.failed.iter().any(|failed| failed.refused.is_some());
        if self.proofs.baseline.is_none() && (!is_known || is_refused) {
            return Some(Step::Prove {
                proof: Proof::Baseline,
            });
        }
        if let Some(end) = self.refused_before(ended) {
            return Some(Step::Finish(end));
        }
        let Verdict::Failed { build, .. } = ended.verdict else {
            return None;
        };
        // A failed build skips the other checks, so their results are unknown.
        let tolerated = self.policy.known_failures == KnownFailures::Tolerate
            && !build
            && ended.judged().is_some()
            && self.proofs.were_red_before(&ended.failed);
        match self.is_back_at_start() {
            _ if !tolerated => None,
            false => Some(self.accept(Grounds::KnownFailures)),
            true if purpose == VerifyPurpose::Satisfied && self.untouched() => {
                Some(self.nothing_to_do(false))
            }
            true => Some(Step::Finish(self.back_at_start())),
        }
    }

    /// The end of a task that needs no work according to the agent and the checks, unless these pass only with what no
    /// commit contains.
    fn confirmed(self) -> Step {
        let is_evidence = !self.reported.is_no_evidence();
        if !self.policy.test_changes.is_proved() || !self.tests.touch_what_was_there() {
            return self.nothing_to_do(is_evidence);
        }
        match self.of_current_tree(self.proofs.old_tests.as_ref()) {
            None => Step::Prove {
                proof: Proof::OldTests,
            },
            Some(ProofResult::Passed) => self.nothing_to_do(is_evidence),
            Some(ProofResult::Failed { .. }) if self.proofs.reruns < self.policy.flaky_reruns => {
                Step::Prove {
                    proof: Proof::OldTests,
                }
            }
            Some(ProofResult::Failed { .. }) => {
                let left = self.tests.touched().join(", ");
                let message = format!(
                    "No progress detected - the checks pass only with what no commit contains: {left}"
                );
                Step::Finish(self.no_progress(message))
            }
            Some(ProofResult::CannotStart { .. } | ProofResult::Unknown { .. }) => {
                self.nothing_to_do(false)
            }
        }
    }
}

impl TaskState {
    /// Whether the proof with the new tests is also about tests that were there before. It does not matter then
    /// whether they failed as they were.
    pub fn are_red_tests_changed(&self) -> bool {
        self.were_rewritten_since_they_failed() && !self.tests.changed.is_empty()
    }

    /// A verdict applies to a single tree. If the checks changed the tree, they run once more on the tree that
    /// they left. A pass that never leaves the tree unchanged permits no commit.
    fn recheck(&self, purpose: VerifyPurpose, ended: &VerificationEnded) -> Option<Step> {
        let passed = ended.verdict == Verdict::Passed;
        let failed = matches!(ended.verdict, Verdict::Failed { .. });
        let stable = ended.before.same_as(&ended.after);
        // An unreadable tree has no permit: the commit step reads it again and reports why it cannot.
        let is_read = ended.after.tree().is_some();
        if stable == Some(true) || !is_read || !(passed || failed) {
            return None;
        }
        if purpose != VerifyPurpose::Recheck {
            return Some(Step::Verify {
                purpose: VerifyPurpose::Recheck,
            });
        }
        let files = ended.altered.clone();
        (passed && stable == Some(false)).then_some(Step::Finish(Outcome::UnstableChecks { files }))
    }

    /// The outcome when the sandbox makes a check fail without the work as well.
    fn refused_before(&self, ended: &VerificationEnded) -> Option<Outcome> {
        let Some(ProofResult::Failed { failed: before }) = &self.proofs.baseline else {
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

    fn back_at_start(&self) -> Outcome {
        self.no_progress("No progress detected - the tree is as it was when the task began")
    }
}
