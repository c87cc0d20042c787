//! Decides when the work tree has to be inspected for the files that commands changed.
//!
//! An inspection costs as much as a `git status`, so a command's changes are left unknown until a decision, or
//! what people see, depends on them. A change that is known without one often decides; what else changed then
//! counts at the next inspection.

use super::{Limits, Observation, Response, Session, State, Step, ToolResult, decide};
use crate::fence;
use crate::tool::ToolRequest;

impl Session {
    /// Whether commands ran since the last inspection.
    pub fn is_inspection_open(&self) -> bool {
        self.state().uninspected
    }

    /// Whether the work tree must be inspected before these results of the open calls are observed: the next
    /// decision would be another one if a command had changed a file, or an open item of the plan names files.
    pub fn must_inspect_after(&self, results: &[ToolResult]) -> bool {
        let state = self.state();
        let ran = state.open.iter().any(|call| call.request.is_command());
        if !(ran || state.uninspected) {
            return false;
        }
        if state.ledger.open().any(|item| !item.files.is_empty()) {
            return true;
        }
        let unchanged = Outlook::after(self.limits(), state, results, None);
        let changed = Outlook::after(self.limits(), state, results, Some(vec![String::new()]));
        !matches!(unchanged.step, Step::AskModel(_)) || unchanged != changed
    }

    /// Whether the work tree must be inspected before this response is observed: it updates the plan, ends the
    /// work, or has no call that accesses the work tree.
    pub fn must_inspect_before(&self, response: &Response) -> bool {
        let accesses_work_tree = |request: Result<ToolRequest, String>| {
            request.is_ok_and(|request| !request.is_answered_by_session())
        };
        let mut requests = response.calls.iter().map(ToolRequest::of);
        let only_work = !response.calls.is_empty() && requests.all(accesses_work_tree);
        let plans = || !fence::scan(&response.text).blocks.is_empty();
        self.is_inspection_open() && (!only_work || plans())
    }

    /// Records the files that an inspection after the last step found changed.
    pub fn inspected(&mut self, changed: &[String]) {
        self.state.inspected(changed);
    }
}

/// What depends on whether a step changed files.
#[derive(PartialEq)]
struct Outlook {
    score: u32,
    warnings: u32,
    step: Step,
}

impl Outlook {
    fn after(
        limits: &Limits,
        state: &State,
        results: &[ToolResult],
        inspected: Option<Vec<String>>,
    ) -> Self {
        let without_output = |result: &ToolResult| ToolResult {
            output: String::new(),
            ..result.clone()
        };
        let mut state = state.clone();
        state.observe(&Observation::ToolsApplied {
            results: results.iter().map(without_output).collect(),
            elapsed_ms: 0,
            inspected,
        });
        Self {
            score: state.score(),
            warnings: state.loops.warnings(),
            step: decide(limits, &state),
        }
    }
}
