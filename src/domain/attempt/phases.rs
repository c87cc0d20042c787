//! Transitions between the phases of a task. They depend on the row of the phase, never on its name.

use super::facts::{Decision, invalid};
use super::{
    Blame, Expect, PhaseSpec, Role, Step, TaskState, TurnEnded, VerificationEnded, VerifyPurpose,
    Writes,
};
use crate::assess::AssessmentKind;
use crate::attempt::nudge::NudgeKind;
use crate::checks::verdict::Verdict;
use crate::outcome::Outcome;
use crate::review::{Review, ReviewVerdict};

/// Whether a message says hardly more than the sentences that announce something. A plan may be the answer.
fn is_announcement(turn: &TurnEnded) -> bool {
    let announced = turn.assessment.indicators.iter().map(String::len);
    let said = turn.message.as_deref().unwrap_or_default();
    announced.sum::<usize>() * 2 > said.trim().len()
}

impl Decision<'_> {
    /// Runs the pre-flight check, then verifies.
    pub(super) fn examine(self) -> Step {
        if let Some(outcome) = self.preflight() {
            return self.give_up(outcome);
        }
        self.join_attempt()
            .or_else(|| self.before_checks_of_tests())
            .unwrap_or_else(|| self.verify_or_accept(VerifyPurpose::Attempt))
    }

    /// The step after a turn where the row differs from the plain implement row.
    pub(super) fn after_turn_of_row(self, turn: &TurnEnded) -> Option<Step> {
        use AssessmentKind as K;
        let row = self.row();
        let kind = turn.assessment.kind;
        match kind {
            K::AgentUnavailable | K::AgentTransient | K::PolicyViolation | K::FailedReport => None,
            K::AgentCrashed | K::TurnTimeout => self.lost(turn, row),
            _ if row.expect == Expect::Acceptable => Some(self.after_review()),
            _ if row.expect == Expect::Answer => Some(self.after_answer(turn)),
            _ if row.writes == Writes::Tests && !turn.undone.is_empty() => Some(self.only_tests()),
            K::Changed | K::Unknown => None,
            _ if row.optional => Some(self.go_on_or_accept()),
            K::AlreadySatisfied if self.untouched() => None,
            _ if row.writes == Writes::Tests => Some(self.no_tests(kind)),
            _ if matches!(row.role, Role::Tester | Role::Fixer) => {
                Some(self.idle_helper(row, kind))
            }
            _ => None,
        }
    }

    /// After a turn that was asked only for the value that the task must return, and changed nothing: judges the
    /// work as before.
    pub(super) fn after_output(self, turn: &TurnEnded) -> Option<Step> {
        if !self.is_asked_for_output() || !turn.assessment.kind.is_idle() {
            return None;
        }
        if self.untouched() {
            return Some(self.satisfied());
        }
        let verify = || self.verify_or_accept(VerifyPurpose::Attempt);
        Some(self.join_attempt().unwrap_or_else(verify))
    }

    /// Passes work to the row that joins its attempt, once, before it is checked.
    pub(super) fn join_attempt(self) -> Option<Step> {
        let then = self.index() + 1;
        let joins = self.policy.phases.get(then).is_some_and(|next| next.joins);
        let hands_on = joins && !self.begun.contains(&then);
        let end = self.without_output().filter(|_| hands_on);
        end.or_else(|| hands_on.then(|| self.begin(then, None)))
    }

    /// A tester or fixer that changed nothing is nudged once; then the work continues as it is. A tester may say
    /// that no test is missing.
    fn idle_helper(self, row: PhaseSpec, kind: AssessmentKind) -> Step {
        let of_fixer = (row.role == Role::Fixer).then_some(NudgeKind::Findings);
        NudgeKind::without_words(kind)
            .or(of_fixer)
            .and_then(|kind| self.nudge_if_left(kind))
            .unwrap_or_else(|| self.examine())
    }

    /// Acts on the reviewer's verdict: the work is done, or another round starts.
    fn after_review(self) -> Step {
        if self.has_left_changes() {
            let what = "what the reviewer changed could not be undone".to_owned();
            return Step::Finish(Outcome::PolicyViolation { what });
        }
        let only_reviews = self.policy.is_nothing_written();
        let review = self.review.as_ref();
        if review.is_some_and(|review| review.verdict == ReviewVerdict::Acceptable) {
            if only_reviews {
                return Step::Finish(Outcome::Acceptable);
            }
            return self.go_on_or_accept();
        }
        // A fixer can do nothing about a reviewer that says nothing.
        if review.is_some_and(Review::is_silent) && !only_reviews {
            let message = "the reviewer gave no verdict".to_owned();
            let end = Step::Finish(Outcome::AgentCrashed { message });
            return self.ask_reviewer_again().unwrap_or(end);
        }
        let end = || Step::Finish(self.review_findings());
        self.rework().unwrap_or_else(end)
    }

    /// The step after the work was restored.
    pub(super) fn after_undo(self) -> Step {
        if self.is_at_phase_start() {
            self.go_on_or_accept()
        } else {
            self.verify_or_accept(VerifyPurpose::Attempt)
        }
    }

    /// After a turn in a tests-only phase whose other changes were reverted.
    fn only_tests(self) -> Step {
        match self.nudge_if_left(NudgeKind::OnlyTests) {
            Some(step) => step,
            None if self.tests.are_tests_touched() => self.examine(),
            None => invalid("only tests may change before they fail, and no test did"),
        }
    }

    /// After a turn without changes in a phase that must write tests.
    fn no_tests(self, kind: AssessmentKind) -> Step {
        if self.tests.are_tests_touched() {
            return self.examine();
        }
        let kind = NudgeKind::without_words(kind).unwrap_or(NudgeKind::NoTests);
        self.nudge_if_left(kind)
            .unwrap_or_else(|| invalid("no test was written"))
    }

    /// The step before checks that are expected to fail. Returns `None` when the checks should run.
    fn before_checks_of_tests(self) -> Option<Step> {
        if self.row().expect != Expect::Fail {
            return None;
        }
        if !self.policy.has_checks {
            return Some(invalid("no check is configured, so that no test can fail"));
        }
        let has_none = self.tree().is_some() && !self.tests.are_tests_touched();
        has_none.then(|| self.no_tests(AssessmentKind::NoChange))
    }

    /// The step after checks that were expected to fail.
    pub(super) fn after_checks_of_tests(self, ended: &VerificationEnded) -> Step {
        let what = match &ended.verdict {
            Verdict::Aborted => return Step::Finish(Outcome::Deadline),
            Verdict::NotRun => return invalid("no check is configured, so that no test can fail"),
            Verdict::Failed { .. } if !self.tests.are_tests_touched() => "no test was written",
            Verdict::Failed { .. } => {
                if let Some(step) = self.look_up_baseline() {
                    return step;
                }
                let blamed = self.proofs.blame(&ended.failed);
                let is_new = |blame| matches!(blame, Blame::New | Blame::Unknown);
                if blamed.is_empty() || blamed.iter().any(|test| is_new(test.blame)) {
                    let end = || invalid("nothing makes the new tests pass");
                    return (self.next()).map_or_else(end, |then| self.begin(then, None));
                }
                "the checks fail only where they failed before the new tests"
            }
            Verdict::Passed => "the new tests pass before the work is done",
            Verdict::TimedOut { .. } => "a check timed out, so that no new test is known to fail",
            Verdict::CannotStart { .. } => "a check cannot start with the new tests",
        };
        self.nudge_if_left(NudgeKind::TestsPass)
            .unwrap_or_else(|| invalid(what))
    }
}

impl TaskState {
    /// Ends a question with its answer, or with the question that the agent asks in return.
    fn after_answer(&self, turn: &TurnEnded) -> Step {
        Step::Finish(match turn.assessment.kind {
            _ if self.has_left_changes() => Outcome::PolicyViolation {
                what: "what the agent changed could not be undone".to_owned(),
            },
            AssessmentKind::AwaitingInput => Outcome::NeedsAnswer,
            AssessmentKind::Empty => self.no_progress("the agent gave no answer"),
            AssessmentKind::PlanningOnly if is_announcement(turn) => {
                self.no_progress("the agent announced an answer and gave none")
            }
            _ => Outcome::Answered,
        })
    }

    /// Whether a turn of a phase that may change nothing has changed something for good.
    fn has_left_changes(&self) -> bool {
        let start = self.phase_start.as_ref().zip(self.current.as_ref());
        start.and_then(|(start, now)| start.same_as(now)) == Some(false)
    }
}
