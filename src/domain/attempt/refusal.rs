//! Attempts whose checks pass and that fail all the same, because of their tests.

use super::facts::TESTS_GONE;
use super::{ProofResult, TaskState, TurnPurpose};
use crate::history::AttemptOutcome;

impl TaskState {
    /// Notes for the prompts of the attempt that begins how the last turn was cut off, and, also in the history, why
    /// the last attempt failed although its checks pass.
    pub(super) fn note_refusal(&mut self, purpose: &TurnPurpose) {
        (self.refused, self.cut_off) = match purpose {
            TurnPurpose::Nudge { .. } => return,
            TurnPurpose::Retry { cut_off } => (self.refusal(), cut_off.clone()),
            TurnPurpose::Implement | TurnPurpose::Phase { .. } => (None, None),
        };
        if let (Some(why), Some(last)) = (&self.refused, self.history.last_mut()) {
            last.outcome = AttemptOutcome::FailedTests;
            last.errors = vec![why.clone()];
        }
    }

    fn refusal(&self) -> Option<String> {
        let last = self.history.last()?;
        let is_of_attempt = last.attempt == self.attempt() && last.phase == self.counted;
        if !is_of_attempt || last.outcome != AttemptOutcome::Passed {
            return None;
        }
        match self.of_current_tree(self.proofs.new_tests.as_ref()) {
            Some(ProofResult::Passed) => Some(self.unproven_tests().message()),
            _ => (!self.tests.are_tests_touched()).then(|| TESTS_GONE.to_owned()),
        }
    }
}
