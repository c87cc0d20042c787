//! The moves of a task that lead to each other: a turn, a nudge, another phase, another attempt, a commit and the end.

use super::facts::{Decision, IDLE_CUTS, TESTS_GONE, Tests, invalid};
use super::{
    Blame, BlamedTest, Expect, Grounds, Last, NO_FILE_CHANGES, PhaseSpec, Proof, ProofResult, Step,
    TaskState, TurnEnded, TurnKey, TurnPurpose, VerifyPurpose, are_named, names,
};
use crate::assess::AssessmentKind;
use crate::attempt::nudge::NudgeKind;
use crate::checks::signals::Signal;
use crate::outcome::Outcome;
use crate::settings::{Baseline, ProveNewTests, SignalPolicy, TestChangePolicy};
use crate::snapshot::RevId;

/// How often a reviewer may run when its turns are cut off.
const ASKED: u32 = 2;

const UNREAD: &str = "nothing was committed: the tree that the checks judged could not be read";

impl Decision<'_> {
    /// After a turn that was cut off: another attempt, but not a third one after two turns without a change.
    pub(super) fn cut_off(self, why: String, end: Outcome) -> Step {
        if self.idle_cuts >= IDLE_CUTS {
            self.give_up(end)
        } else {
            self.retry_or(Some(why), end)
        }
    }

    pub(super) fn satisfied(self) -> Step {
        match (self.preflight(), self.policy.has_checks) {
            (Some(outcome), _) => self.give_up(outcome),
            (None, true) => Step::Verify {
                purpose: VerifyPurpose::Satisfied,
            },
            (None, false) => self.nothing_to_do(false),
        }
    }

    /// Ends a task that needs no work, once it has returned the required output value.
    pub(super) fn nothing_to_do(self, verified: bool) -> Step {
        let end = Step::Finish(Outcome::AlreadySatisfied { verified });
        self.without_output().unwrap_or(end)
    }

    pub(super) fn verify_or_accept(self, purpose: VerifyPurpose) -> Step {
        if self.policy.has_checks {
            Step::Verify { purpose }
        } else {
            self.accept_unchecked()
        }
    }

    pub(super) fn accept_unchecked(self) -> Step {
        if self.is_back_at_start() {
            Step::Finish(self.no_progress(NO_FILE_CHANGES))
        } else if self.policy.accept_unverified {
            self.accept(Grounds::Unchecked)
        } else {
            Step::Finish(Outcome::REFUSED_UNVERIFIED)
        }
    }

    pub(super) fn retry_or(self, cut_off: Option<String>, end: Outcome) -> Step {
        self.retry(cut_off).unwrap_or_else(|| self.give_up(end))
    }

    /// Another attempt, if any is left.
    fn retry(self, cut_off: Option<String>) -> Option<Step> {
        if self.row().expect == Expect::Acceptable {
            return self.rework_after_failure();
        }
        let (phase, attempt) = self.next_attempt(cut_off.is_some())?;
        let purpose = TurnPurpose::Retry { cut_off };
        Some(self.run_agent_in(phase, attempt, purpose))
    }

    /// A nudge, if one is left in the phase.
    pub(super) fn nudge_if_left(self, kind: NudgeKind) -> Option<Step> {
        let n = self.nudges + 1;
        let purpose = TurnPurpose::Nudge { n, kind };
        (n <= self.row().nudges).then(|| self.run_agent(self.attempt(), purpose))
    }

    pub(super) fn run_agent(self, attempt: u32, purpose: TurnPurpose) -> Step {
        self.run_agent_in(self.index(), attempt, purpose)
    }

    fn run_agent_in(self, phase: usize, attempt: u32, purpose: TurnPurpose) -> Step {
        self.within_limits().unwrap_or_else(|| {
            let key = TurnKey {
                phase,
                attempt,
                turn: self.turns() + 1,
                name: are_named(&self.policy.phases).then(|| self.policy.row_at(phase).name()),
            };
            Step::RunAgent { key, purpose }
        })
    }

    /// Ends the task when a run limit is reached.
    pub(super) fn within_limits(self) -> Option<Step> {
        Some(match self.limit()? {
            Outcome::Deadline => Step::Finish(Outcome::Deadline),
            end => self.give_up(end),
        })
    }

    pub(super) fn failed(self) -> Step {
        if self.may_undo() {
            return self.undo();
        }
        if let Some((_, times)) = &self.failure
            && *times >= self.policy.identical_failures
        {
            return self.give_up(Outcome::RepeatingFailure { times: *times });
        }
        self.retry_or(None, Outcome::VerificationFailed)
    }

    /// Accepts the current tree, once the required proofs about its tests exist.
    pub(super) fn accept(self, grounds: Grounds) -> Step {
        match self.tests_to_prove() {
            Tests::Settled => self.settle(grounds),
            _ if grounds == Grounds::Unchecked => self.settle(grounds),
            Tests::Prove(proof) => Step::Prove { proof },
            Tests::Refused(end) => Step::Finish(end),
            Tests::ProveNothing(_) if self.may_undo() => self.undo(),
            Tests::ProveNothing(end) => self.retry(None).unwrap_or(Step::Finish(end)),
        }
    }

    /// Continues with accepted work: starts the next phase or commits.
    fn settle(self, grounds: Grounds) -> Step {
        if let Some(step) = self.without_tests().or_else(|| self.without_output()) {
            return step;
        }
        if grounds == Grounds::Passed
            && self.reported.is_no_evidence()
            && !self.policy.accept_unverified
        {
            return Step::Finish(Outcome::REFUSED_UNVERIFIED);
        }
        if self.policy.signals == SignalPolicy::Fail && !self.signals.is_empty() {
            let what: Vec<String> = self.signals.iter().map(Signal::says).collect();
            let what = what.join("; ");
            return Step::Finish(Outcome::PolicyViolation { what });
        }
        self.go_on(grounds).unwrap_or_else(|| self.take(grounds))
    }

    fn tests_to_prove(self) -> Tests {
        let proved = |kept: &Option<_>| self.of_current_tree(kept.as_ref());
        let is_start_known =
            self.proofs.baseline.is_some() || self.policy.baseline == Baseline::Off;
        let is_doubtful =
            !self.reported.doubtful.is_empty() && self.policy.test_changes.is_proved();
        if is_doubtful && !is_start_known {
            return Tests::Prove(Proof::Baseline);
        }
        let lost = || !self.reported.lost_since(&self.proofs.at_start).is_empty();
        if self.policy.test_changes.is_proved() && (self.tests.touch_what_was_there() || lost()) {
            match proved(&self.proofs.old_tests) {
                None => return Tests::Prove(Proof::OldTests),
                Some(ProofResult::Passed) => {}
                Some(_) if self.policy.test_changes == TestChangePolicy::Fail => {
                    return Tests::Refused(self.changed_expectations(None, false));
                }
                Some(_) => {}
            }
        }
        let are_rewritten = self.were_rewritten_since_they_failed();
        let is_asked = self.policy.prove_new_tests != ProveNewTests::Off;
        let may_add = is_asked && self.tests.added.is_empty() && !self.tests.changed.is_empty();
        if may_add && !is_start_known {
            return Tests::Prove(Proof::Baseline);
        }
        let are_new = is_asked && !self.tests.added.is_empty() || may_add && self.runs_more_tests();
        if are_rewritten || are_new {
            let is_required =
                are_rewritten || self.policy.prove_new_tests == ProveNewTests::Require;
            match proved(&self.proofs.new_tests) {
                None => return Tests::Prove(Proof::NewTests),
                Some(ProofResult::Failed { .. }) => {}
                Some(_) if !is_required => {}
                Some(ProofResult::Passed) => return Tests::ProveNothing(self.unproven_tests()),
                Some(_) => return Tests::Refused(self.unproven_tests()),
            }
        }
        Tests::Settled
    }

    /// Commits the current tree. A permit does not outlive the process that ran the checks.
    fn take(self, grounds: Grounds) -> Step {
        let tree = self.tree();
        let is_as_said = self.has_passed == (grounds == Grounds::Passed);
        match (tree, &self.last) {
            _ if grounds == Grounds::Unchecked => self.commit(grounds),
            (Some(_), _) if self.judged.as_ref() == tree && is_as_said => self.commit(grounds),
            // An unreadable tree has no permit: the commit step reads it again and reports why it cannot.
            (None, Last::Verified(..)) if self.policy.commits => self.commit(grounds),
            (None, Last::Verified(..)) => Step::Finish(Outcome::CommitRejected {
                message: UNREAD.into(),
            }),
            _ => Step::Verify {
                purpose: VerifyPurpose::Attempt,
            },
        }
    }

    pub(super) fn commit(self, grounds: Grounds) -> Step {
        if self.policy.commits {
            Step::Commit { grounds }
        } else {
            Step::Finish(self.after_commit(grounds, None))
        }
    }

    /// Ends a task that failed, for any reason. If the last attempt changed the tree and a test fails there that passed
    /// on the start tree, or that tree is never checked, the checks first run again: if they pass, the tree is accepted.
    pub(super) fn give_up(self, end: Outcome) -> Step {
        let tree = self.tree();
        let mut failed_trees = self.failed_trees.iter();
        let failed = failed_trees.find(|failed| Some(&failed.tree) == tree);
        let rejected = self.rejected.as_ref().and_then(|rejected| rejected.tree());
        let is_idle = matches!(end, Outcome::NoProgress { .. });
        let is_final =
            is_idle || rejected == tree || !self.policy.has_checks || self.is_back_at_start();
        let Some(failed) = failed.filter(|_| !is_final) else {
            return Step::Finish(end);
        };
        if self.proofs.passed_again.as_ref() == tree {
            return match self.tests_to_prove() {
                Tests::Settled => self.settle(Grounds::Passed),
                Tests::Prove(proof) => Step::Prove { proof },
                Tests::Refused(end) | Tests::ProveNothing(end) => Step::Finish(end),
            };
        }
        let blamed = self.proofs.blame(&failed.verification.failed);
        let has_passed = |test: &BlamedTest| matches!(test.blame, Blame::New | Blame::Flaky);
        let may_be_flaky = self.policy.baseline == Baseline::Off || blamed.iter().any(has_passed);
        if self.proofs.reruns < self.policy.flaky_reruns && may_be_flaky {
            Step::Prove {
                proof: Proof::Flake,
            }
        } else {
            Step::Finish(end)
        }
    }

    /// Starts a phase. `grounds` says why the existing work is acceptable, if it is.
    pub(super) fn begin(self, index: usize, grounds: Option<Grounds>) -> Step {
        let row = self.policy.row_at(index);
        let goes_on = row.joins || row.expect == Expect::Acceptable;
        let attempt = if goes_on { self.attempt() } else { 1 };
        self.run_agent_in(index, attempt, row.phase.purpose(grounds))
    }

    /// Continues with the next phase. Returns `None` when there is none and the work should be committed.
    fn go_on(self, grounds: Grounds) -> Option<Step> {
        if self.row().expect == Expect::Acceptable {
            return self.review_of_this_tree(grounds);
        }
        self.next().map(|index| self.begin(index, Some(grounds)))
    }

    /// A tree that a reviewer accepted is done. Any other tree is reviewed while a review is left.
    fn review_of_this_tree(self, grounds: Grounds) -> Option<Step> {
        let tree = self.tree();
        if tree.is_none() || self.accepted.as_ref() == tree {
            return None;
        }
        let now = self.index();
        let is_review = |index: &usize| self.policy.row_at(*index).expect == Expect::Acceptable;
        let then = match self.review {
            None => Some(now),
            Some(_) => (now + 1..self.policy.phases.len()).find(is_review),
        };
        let end = Step::Finish(self.review_findings());
        Some(then.map_or(end, |then| self.begin(then, Some(grounds))))
    }

    /// When tests are written first, work without tests is rejected. Returns `None` when there are tests.
    fn without_tests(self) -> Option<Step> {
        let mut rows = self.policy.phases.iter();
        let tests_first = rows.any(|row| row.expect == Expect::Fail);
        if !tests_first || self.tree().is_none() || self.tests.are_tests_touched() {
            return None;
        }
        if self.may_undo() {
            return Some(self.undo());
        }
        Some(self.retry(None).unwrap_or_else(|| invalid(TESTS_GONE)))
    }

    /// The row that gets the next attempt, and the attempt's number, if the row allows another.
    fn next_attempt(self, cut_off: bool) -> Option<(usize, u32)> {
        let mut index = self.index();
        let goes_back = |row: PhaseSpec| (row.joins && !cut_off) || row.optional;
        while index > 0 && goes_back(self.policy.row_at(index)) {
            index -= 1;
        }
        let row = self.policy.row_at(index);
        let counted = row.name().counted_in();
        let begun = counted.and_then(|counted| self.attempts.get(&counted).copied());
        let begun = begun.unwrap_or_else(|| self.attempt());
        (begun <= row.retries).then_some((index, begun + 1))
    }

    /// After a cut-off turn in a phase that is optional or whose only result is a verdict.
    pub(super) fn lost(self, turn: &TurnEnded, row: PhaseSpec) -> Option<Step> {
        if row.optional {
            return Some(self.within_limits().unwrap_or_else(|| self.undo()));
        }
        let who = match row.expect {
            Expect::Acceptable => "the reviewer: ",
            Expect::Answer => "",
            Expect::Pass | Expect::Fail => return None,
        };
        let is_review = row.expect == Expect::Acceptable;
        if let Some(step) = self.ask_reviewer_again().filter(|_| is_review) {
            return Some(step);
        }
        let message = format!("{who}{}", turn.assessment.detail);
        let end = match turn.assessment.kind {
            AssessmentKind::TurnTimeout => Outcome::TurnTimeout,
            _ => Outcome::AgentCrashed { message },
        };
        Some(self.within_limits().unwrap_or(Step::Finish(end)))
    }

    /// Repeats a review that gave no verdict, once.
    pub(super) fn ask_reviewer_again(self) -> Option<Step> {
        let purpose = self.row().phase.purpose(self.grounds);
        let again = || self.run_agent_in(self.index(), self.attempt(), purpose);
        (self.lost_turns < ASKED).then(again)
    }

    /// Starts the next round, if one is left.
    pub(super) fn rework(self) -> Option<Step> {
        let then = self.index() + 1;
        self.policy.phases.get(then)?;
        Some(self.begin(then, None))
    }

    /// Work that a reviewer accepted and that failed afterwards starts a new round, because a tree that no
    /// reviewer has seen is not committed.
    fn rework_after_failure(self) -> Option<Step> {
        let next = self.policy.phases.get(self.index() + 1)?;
        (next.retries > 0).then(|| self.rework()).flatten()
    }

    /// Accepts work that was acceptable when the phase started and has not changed since.
    pub(super) fn go_on_or_accept(self) -> Step {
        self.accept(self.grounds.unwrap_or(Grounds::Passed))
    }

    /// Whether the changes of an optional phase can still be undone.
    fn may_undo(self) -> bool {
        self.row().optional && !self.undone && !self.is_at_phase_start()
    }

    /// Restores the work to the start of the phase, once.
    fn undo(self) -> Step {
        if self.is_at_phase_start() {
            return self.go_on_or_accept();
        }
        match self.key {
            Some(key) if !self.undone => Step::Undo { key },
            _ => self.give_up(Outcome::VerificationFailed),
        }
    }

    /// The step when the required value is missing, before work is accepted or passed to another phase: asks the
    /// agent for it, or fails the task when no nudge is left. Returns `None` when nothing is missing.
    pub(super) fn without_output(self) -> Option<Step> {
        let why = match &self.output {
            _ if !self.policy.wants_output => return None,
            Some(Ok(_)) => return None,
            Some(Err(why)) => why.clone(),
            None => "there is no final message".to_owned(),
        };
        if let Some(end) = self.limit() {
            return Some(Step::Finish(end));
        }
        let end = || Step::Finish(Outcome::OutputMismatch { why });
        Some(self.nudge_if_left(NudgeKind::Output).unwrap_or_else(end))
    }
}

impl TaskState {
    /// The outcome of a task whose work is on the branch.
    pub(super) fn after_commit(&self, grounds: Grounds, commit: Option<RevId>) -> Outcome {
        let proved = self.of_current_tree(self.proofs.old_tests.as_ref());
        let is_unproved = proved.is_some_and(|result| result != ProofResult::Passed);
        let failed = self.last_failure.as_ref();
        let (accepted, no_evidence) = (true, self.reported.is_no_evidence());
        match grounds {
            Grounds::Unchecked => Outcome::Unverified { commit, accepted },
            _ if is_unproved => self.changed_expectations(commit, accepted),
            Grounds::KnownFailures => Outcome::KnownFailures {
                commit,
                tests: failed.map_or_else(Vec::new, |last| names(&last.failed)),
            },
            Grounds::Passed if no_evidence => Outcome::Unverified { commit, accepted },
            Grounds::Passed => Outcome::Verified { commit },
        }
    }

    fn changed_expectations(&self, commit: Option<RevId>, accepted: bool) -> Outcome {
        let (tests, unknown) = match &self.proofs.old_tests {
            Some((_, ProofResult::Failed { failed })) => (names(failed), None),
            Some((_, other)) => (Vec::new(), Some(other.details().join("; "))),
            None => (Vec::new(), None),
        };
        Outcome::ChangedExpectations {
            commit,
            accepted,
            files: self.tests.touched(),
            not_committed: !self.tests.are_rewritten(),
            only_with: self.proofs.only_with.clone(),
            tests,
            unknown,
        }
    }
}
