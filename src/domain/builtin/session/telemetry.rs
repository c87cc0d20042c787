//! The statistics of a session.

use super::{Limits, SessionExit, State};
use crate::checks::verdict::Verdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How complete the work of a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompletionKind {
    /// An item is blocked: the model says so, or its file could not be edited.
    Blocked,
    /// Everything is finished, and verification passed.
    CompleteVerified,
    /// Everything is finished, and nothing was verified.
    CompleteUnverified,
    /// A limit ended the session.
    Exhausted,
    /// Anything else.
    Partial,
}

impl CompletionKind {
    /// How complete a session's work is, given how it ended. `verdict` is the verification's verdict on the
    /// tree that it left; the model's claims never count as verification.
    pub fn of(state: &State, exit: SessionExit, verdict: Option<&Verdict>) -> Self {
        let complete = match verdict {
            Some(Verdict::Passed) => Some(Self::CompleteVerified),
            None | Some(Verdict::NotRun | Verdict::Aborted) => Some(Self::CompleteUnverified),
            Some(
                Verdict::Failed { .. } | Verdict::TimedOut { .. } | Verdict::CannotStart { .. },
            ) => None,
        };
        if state.is_blocked() {
            return Self::Blocked;
        }
        match complete {
            Some(complete) if state.is_complete(exit) => complete,
            _ if exit.is_limit() => Self::Exhausted,
            _ => Self::Partial,
        }
    }
}

/// The statistics of one session, for `summary.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Telemetry {
    /// The reason why it ended.
    pub exit: SessionExit,
    /// The number of items of the plan, without superseded ones.
    pub plan_items: usize,
    /// The number of these items that are done or already satisfied.
    pub plan_finished: usize,
    /// The number of blocks and calls that changed the plan after its registration.
    pub plan_update_count: u32,
    /// How often final words were not accepted.
    pub final_suppressed: u32,
    /// The number of repair messages.
    pub repair_turns: u32,
    /// The highest stagnation score, from 0 to 4.
    pub stagnation_score_max: u32,
    /// The number of requests that demanded an edit.
    pub forced_mode_steps: u32,
    /// The number of sessions on a single file.
    pub fix_slice_count: u32,
    /// The number of tool calls, including those of such sessions.
    pub tool_calls: u32,
    /// The number of steps that only read.
    pub read_only_steps: u32,
    /// Input and output tokens; `null` if the provider does not report them.
    pub tokens: Option<u64>,
    /// How complete the work is.
    pub completion_kind: CompletionKind,
}

impl Telemetry {
    /// Applies the verification's result for the tree that a session left.
    pub fn judge(&mut self, passed: bool) {
        use CompletionKind as K;
        self.completion_kind = match (self.completion_kind, passed) {
            (K::CompleteUnverified, true) => K::CompleteVerified,
            (K::CompleteUnverified | K::CompleteVerified, false) if self.exit.is_limit() => {
                K::Exhausted
            }
            (K::CompleteUnverified | K::CompleteVerified, false) => K::Partial,
            (kind, _) => kind,
        };
    }

    /// The statistics of a session that ended with `exit`.
    pub fn of(state: &State, exit: SessionExit, verdict: Option<&Verdict>) -> Self {
        let counts = state.counts();
        Self {
            exit,
            plan_items: state.ledger().planned(),
            plan_finished: state.ledger().finished(),
            plan_update_count: state.ledger().updates(),
            final_suppressed: counts.final_suppressed,
            repair_turns: counts.repair_turns,
            stagnation_score_max: counts.stagnation_score_max,
            forced_mode_steps: counts.forced_mode_steps,
            fix_slice_count: counts.fix_slices,
            tool_calls: counts.tool_calls,
            read_only_steps: counts.read_only_steps,
            tokens: state.tokens(),
            completion_kind: CompletionKind::of(state, exit, verdict),
        }
    }
}

/// The limits of a session on a single file: low, and never more than what is left.
pub(super) fn slice_limits(limits: &Limits, state: &State) -> Limits {
    const STEPS: u32 = 10;
    const TOOL_CALLS: u32 = 30;
    let counts = state.counts();
    let left = |limit: u64, used: Option<u64>| limit.saturating_sub(used.unwrap_or_default());
    Limits {
        steps: STEPS.min(limits.steps.saturating_sub(counts.steps)),
        tool_calls: TOOL_CALLS.min(limits.tool_calls.saturating_sub(counts.tool_calls)),
        time_ms: limits.time_ms.saturating_sub(state.elapsed_ms()),
        tokens: limits.tokens.map(|limit| left(limit, state.tokens())),
        cost_usd: limits
            .cost_usd
            .map(|limit| (limit - state.cost_usd().unwrap_or_default()).max(0.0)),
        fix_slices: 0,
        ..limits.clone()
    }
}
