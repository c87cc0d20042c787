//! Converts the values of events to the parts of a summary.

use super::{CheckLine, TaskSummary};
use crate::assess::AssessmentKind;
use crate::attempt::{Blame, BlamedTest, PhaseName};
use crate::checks::verdict::{CheckOutcome, CheckResult};
use crate::event::TaskLine;
use crate::outcome::{Outcome, TaskEnd, listed};
use std::collections::BTreeMap;

/// The message of a task that is still to be done.
const NOT_REACHED: &str = "not reached";

impl TaskSummary {
    /// Applies the verification's result for the last turn to the turn's session too.
    pub(super) fn judge_session(&mut self, passed: bool) {
        let session = self.turns.last_mut().and_then(|turn| turn.builtin.as_mut());
        if let Some(session) = session {
            session.judge(passed);
        }
    }

    /// A description of the task's end, which mentions what its last unchanged turn did, and the work that
    /// was not committed because commits are off.
    pub(super) fn end_message(&self, outcome: &Outcome) -> String {
        let last = self.turns.last().map(|turn| turn.assessment);
        let is_left = outcome.commit().is_none()
            && self.work.agent_commits == 0
            && !self.work.changed_files.is_empty();
        let message = match (outcome, last) {
            (Outcome::PlanningOnly, Some(AssessmentKind::AwaitingInput)) => {
                "the agent asked and waited, and never changed a file".into()
            }
            (Outcome::PlanningOnly, Some(AssessmentKind::Empty)) => {
                "the agent said nothing and never changed a file".into()
            }
            (Outcome::Verified { .. }, _) if is_left => {
                "checks passed; the changes are left uncommitted".into()
            }
            (Outcome::Unverified { accepted: true, .. }, _) if is_left => {
                "no check confirms the work; the changes are left uncommitted".into()
            }
            _ => outcome.message(),
        };
        let is_flaky = |test: &&BlamedTest| test.blame == Blame::Flaky;
        let flaky = self.work.failing_tests.iter().filter(is_flaky);
        let flaky: Vec<String> = flaky.map(BlamedTest::name).collect();
        if flaky.is_empty() || !matches!(outcome, Outcome::Verified { .. }) {
            message
        } else {
            format!("{message}; flaky: {}", listed(&flaky))
        }
    }

    /// Whether it was worked on but is not done.
    pub fn is_undone(&self) -> bool {
        self.reason.is_some() && self.status != TaskEnd::Done
    }

    /// The question with which an unfinished task ended, if its last turn changed nothing.
    pub fn question(&self) -> Option<&str> {
        let last = self.turns.last().filter(|_| self.status != TaskEnd::Done)?;
        last.question.as_deref()
    }

    /// The number of checks that failed in their last run; `None` if none ran.
    pub fn failing_checks(&self) -> Option<usize> {
        let attempt = self.checks.last()?.attempt_name();
        let checks = self.checks.iter();
        let verdicts: BTreeMap<&str, bool> = checks
            .filter(|check| check.attempt_name() == attempt)
            .map(|check| (check.name.as_str(), check.passed))
            .collect();
        Some(verdicts.values().filter(|passed| !**passed).count())
    }

    pub(super) fn begin_anew(&mut self) {
        *self = Self {
            id: std::mem::take(&mut self.id),
            title: std::mem::take(&mut self.title),
            max_retries: self.max_retries,
            message: NOT_REACHED.into(),
            line: self.line,
            selected: self.selected,
            usage: self.usage,
            ..Self::default()
        };
    }

    pub(super) fn from_line(line: &TaskLine) -> Self {
        let (status, message) = match (line.done, line.selected) {
            (true, _) => (TaskEnd::Done, "done before this run"),
            (false, true) => (TaskEnd::Pending, NOT_REACHED),
            (false, false) => (TaskEnd::Pending, "not selected"),
        };
        Self {
            id: line.id.clone(),
            title: line.title.clone(),
            status,
            max_retries: line.max_retries,
            message: message.into(),
            line: line.line,
            selected: line.selected,
            ..Self::default()
        }
    }
}

impl CheckLine {
    pub(super) fn new(
        result: &CheckResult,
        attempt: u32,
        place: Option<PhaseName>,
        ended_at: &str,
    ) -> Self {
        let passed = matches!(result.outcome, CheckOutcome::Passed);
        Self {
            name: result.name.clone(),
            kind: result.kind,
            attempt,
            place,
            passed,
            passed_count: result.counts.passed,
            failed_count: result.counts.failed,
            timed_out: matches!(result.outcome, CheckOutcome::TimedOut { .. }),
            elapsed_ms: result.elapsed_ms,
            log: result.log.clone(),
            ended_at: ended_at.to_owned(),
            detail: result.outcome.to_string(),
            excerpt: (!passed && !result.excerpt.is_empty()).then(|| result.excerpt.clone()),
            diagnostics: result.diagnostics.clone(),
        }
    }
}
