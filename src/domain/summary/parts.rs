//! Converts the values of events to the parts of a summary.

use super::{CheckLine, HistoryLine, TaskSummary};
use crate::assess::AssessmentKind;
use crate::attempt::{Blame, BlamedTest, PhaseName};
use crate::checks::verdict::{CheckOutcome, CheckResult};
use crate::event::{TaskEnded, TaskLine};
use crate::history::HistoryEntry;
use crate::outcome::{Outcome, TaskEnd, listed};
use std::collections::BTreeMap;

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
    pub(super) fn end_message(&self, ended: &TaskEnded) -> String {
        let last = self.turns.last().map(|turn| turn.assessment);
        let is_left = ended.outcome.commit().is_none()
            && ended.agent_commits == 0
            && !ended.changed_files.is_empty();
        let message = match (&ended.outcome, last) {
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
            _ => ended.outcome.message(),
        };
        let flaky = ended
            .failing_tests
            .iter()
            .filter(|test| test.blame == Blame::Flaky);
        let flaky: Vec<String> = flaky.map(BlamedTest::name).collect();
        match &ended.outcome {
            Outcome::Verified { .. } if !flaky.is_empty() => {
                format!("{message}; flaky: {}", listed(&flaky))
            }
            _ => message,
        }
    }

    /// The question with which an unfinished task ended, if its last turn changed nothing.
    pub fn question(&self) -> Option<&str> {
        let last = self.turns.last().filter(|_| self.status != TaskEnd::Done)?;
        last.question.as_deref()
    }

    /// The number of checks that failed in their last run; `None` if none ran.
    pub fn failing_checks(&self) -> Option<usize> {
        let attempt = self.checks.last()?.attempt_name();
        let last = self
            .checks
            .iter()
            .filter(|check| check.attempt_name() == attempt);
        let verdicts: BTreeMap<&str, bool> = last
            .map(|check| (check.name.as_str(), check.passed))
            .collect();
        Some(verdicts.values().filter(|passed| !**passed).count())
    }

    pub(super) fn begin_anew(&mut self) {
        let line = TaskLine {
            id: self.id.clone(),
            title: self.title.clone(),
            done: false,
            selected: self.selected,
            line: self.line,
            max_retries: self.max_retries,
        };
        let usage = self.usage;
        *self = Self {
            usage,
            ..Self::from_line(&line)
        };
    }

    pub(super) fn from_line(line: &TaskLine) -> Self {
        Self {
            id: line.id.clone(),
            title: line.title.clone(),
            status: if line.done {
                TaskEnd::Done
            } else {
                TaskEnd::Pending
            },
            max_retries: line.max_retries,
            message: match (line.done, line.selected) {
                (true, _) => "done before this run".into(),
                (false, true) => "not reached".into(),
                (false, false) => "not selected".into(),
            },
            line: line.line,
            selected: line.selected,
            ..Self::default()
        }
    }
}

impl From<&HistoryEntry> for HistoryLine {
    fn from(entry: &HistoryEntry) -> Self {
        Self {
            attempt: entry.attempt,
            place: entry.phase,
            changes: entry.changes.clone(),
            outcome: entry.outcome.as_str().to_owned(),
            errors: entry.errors.clone(),
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
