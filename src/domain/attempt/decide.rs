//! Decides the next step within one task.

use super::conclude::after_baseline;
use super::facts::{Decision, IDLE_CUTS};
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
    let task = Decision { policy, state };
    let rejected = |message: &str| Outcome::CommitRejected {
        message: message.to_owned(),
    };
    Step::Finish(match &state.last {
        Last::Begin => return task.first_turn(),
        Last::Turn(turn) => return task.after_turn(turn),
        Last::Verified(purpose, ended) => return task.after_verification(*purpose, ended),
        Last::Undone => return task.after_undo(),
        Last::HookRejected(message) => return task.retry_or(None, rejected(message)),
        Last::HookChanged { again: false } => {
            return task.verify_or_accept(VerifyPurpose::AfterHook);
        }
        Last::Waited => return task.same_attempt(),
        Last::Resumed(open) => return task.after_resume(open),
        Last::Committed(commit, grounds) => state.after_commit(*grounds, commit.clone()),
        Last::HookChanged { again: true } => {
            rejected("a commit hook changes the tree every time it runs")
        }
        Last::CommitFailed(message) => rejected(message),
        Last::Violated(what) => Outcome::PolicyViolation { what: what.clone() },
    })
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
        let first_ms = self.wait_base_ms;
        let (factor, longest_ms) = (3, MAX_WAIT_MS);
        let policy = WaitPolicy {
            first_ms,
            factor,
            longest_ms,
        };
        Ok(policy.wait_ms(waits.saturating_add(1), asked_ms))
    }
}

impl Decision<'_> {
    fn first_turn(self) -> Step {
        let baseline = self.proofs.baseline.as_ref();
        if baseline.is_none() && self.policy.has_checks && self.policy.baseline == Baseline::First {
            return Step::Prove {
                proof: Proof::Baseline,
            };
        }
        match baseline.and_then(after_baseline) {
            Some(end) => Step::Finish(end),
            None => self.run_agent(1, self.policy.first_purpose()),
        }
    }

    fn after_turn(self, turn: &TurnEnded) -> Step {
        use AssessmentKind as K;
        let special = self.after_output(turn);
        if let Some(step) = special.or_else(|| self.after_turn_of_row(turn)) {
            return step;
        }
        let detail = || turn.assessment.detail.clone();
        // A violation, a crash or the agent's own report of a failure weighs more than the changes that wait.
        let waits = turn.assessment.kind.has_answer() && self.untouched();
        if let Some(held) = turn.held.clone().filter(|_| waits) {
            return Step::Finish(Outcome::NeedsPermission { held });
        }
        match turn.assessment.kind {
            kind if kind.is_idle() && self.policy.only_checks && self.untouched() => {
                self.satisfied()
            }
            K::AlreadySatisfied | K::ClaimsDone | K::NoChange
                if self.policy.is_question && self.untouched() =>
            {
                Step::Finish(Outcome::Answered)
            }
            K::AgentUnavailable => self.give_up(Outcome::AgentUnavailable { message: detail() }),
            K::AgentTransient => self.wait_or_give_up(turn),
            // It was asked to go on, found nothing more to do and ended in the same way: the checks judge its work.
            K::AgentCrashed
                if turn.assessment.error_exit.is_some() && self.added_nothing_to_its_work() =>
            {
                self.examine()
            }
            // A run limit takes precedence over the failure that it causes.
            K::AgentCrashed => self.within_limits().unwrap_or_else(|| {
                let end = match turn.assessment.cut_off {
                    Some(CutOff::NoProgress) => self.no_progress(detail()),
                    Some(CutOff::OwnLimit) if self.idle_cuts > 0 => {
                        self.no_progress(format!("No progress detected - {}", detail()))
                    }
                    _ => Outcome::AgentCrashed { message: detail() },
                };
                self.cut_off(detail(), end)
            }),
            K::TurnTimeout => self.cut_off(detail(), Outcome::TurnTimeout),
            K::PolicyViolation => Step::Finish(Outcome::PolicyViolation { what: detail() }),
            K::FailedReport => Step::Finish(Outcome::FailedReport { summary: detail() }),
            // The work may be half done: it is kept, and the agent is asked to go on.
            K::Changed if turn.assessment.error_exit.is_some() => {
                let end = Outcome::AgentCrashed { message: detail() };
                let nudge = self.nudge_if_left(NudgeKind::EndedWithError);
                nudge.unwrap_or_else(|| self.cut_off(detail(), end))
            }
            K::Changed | K::Unknown => self.examine(),
            K::AwaitingInput => self.nudge(NudgeKind::AwaitingInput),
            K::PlanningOnly => self.nudge(NudgeKind::Planning),
            K::Empty => self.nudge(NudgeKind::Empty),
            K::AlreadySatisfied if self.untouched() => self.satisfied(),
            K::ReportsBlocked if self.shown_unchanged => self.claims(),
            K::ReportsBlocked => {
                (self.nudge_if_left(NudgeKind::Blocked)).unwrap_or_else(|| self.claims())
            }
            K::AlreadySatisfied | K::ClaimsDone | K::NoChange => self.claims(),
        }
    }

    /// After an unchanged turn that should have done the work: nudges while nudges are left.
    fn nudge(self, kind: NudgeKind) -> Step {
        // An agent that knows that nobody answers, and asks the same again, needs the answer.
        let is_told = kind == NudgeKind::AwaitingInput && self.asks_again;
        if let Some(step) = self.nudge_if_left(kind).filter(|_| !is_told) {
            return step;
        }
        if self.phase_has_work() {
            return self.examine();
        }
        if self.attempt() == 1 {
            return self.evidence(true);
        }
        let refused = self.refused_again();
        self.give_up(refused.unwrap_or_else(|| self.no_progress(NO_FILE_CHANGES)))
    }

    /// After an unchanged turn that claims the work is done, or says nothing relevant.
    fn claims(self) -> Step {
        if self.attempt() > 1 || self.phase_has_work() {
            return self.examine();
        }
        let nudge = self.nudge_if_left(NudgeKind::ClaimsDone);
        let nudge = nudge.filter(|_| !self.shown_unchanged);
        nudge.unwrap_or_else(|| self.evidence(false))
    }

    /// Verifies once for the report; the task fails whatever the result.
    pub(super) fn evidence(self, planning: bool) -> Step {
        if self.policy.has_checks {
            Step::Verify {
                purpose: VerifyPurpose::Evidence { planning },
            }
        } else {
            Step::Finish(self.after_evidence(planning))
        }
    }

    fn wait_or_give_up(self, turn: &TurnEnded) -> Step {
        let why = turn.assessment.detail.clone();
        let (cuts, asked) = (self.idle_cuts, turn.assessment.retry_after_ms);
        let wait = self.policy.wait_ms(self.waits, asked);
        let wait = wait.map_err(|waits| format!("{why} ({waits})"));
        let idle = (cuts >= IDLE_CUTS)
            .then(|| format!("{why}, {cuts} turns in a row, and changed nothing"));
        let ms = match idle.map_or(wait, Err) {
            Ok(ms) => ms,
            Err(message) => return self.give_up(Outcome::AgentUnavailable { message }),
        };
        let ends = self.elapsed_ms.saturating_add(ms);
        match self.policy.deadline_ms {
            Some(deadline) if ends >= deadline => Step::Finish(Outcome::Deadline),
            _ => Step::Wait { ms, why },
        }
    }

    /// Repeats, in the same attempt, the turn that ended with a transient error.
    fn same_attempt(self) -> Step {
        let purpose = self.purpose.clone();
        let purpose = purpose.unwrap_or_else(|| self.policy.first_purpose());
        self.run_agent(self.attempt(), purpose)
    }

    /// Resumes the step that was open when the run died, under the same number.
    fn after_resume(self, open: &Step) -> Step {
        match open {
            Step::RunAgent { .. } => self.within_limits().unwrap_or_else(|| open.clone()),
            Step::Wait { .. } => self.same_attempt(),
            _ => open.clone(),
        }
    }
}

impl TaskState {
    /// Whether the turn changed nothing, and turns before it did.
    fn added_nothing_to_its_work(&self) -> bool {
        self.unmoved(self.turn_start.as_ref()) && !self.untouched()
    }
}

impl Policy {
    fn first_purpose(&self) -> TurnPurpose {
        self.row_at(0).phase.purpose(None)
    }
}
