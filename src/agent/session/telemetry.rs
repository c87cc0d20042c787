//! The statistics of a session.

use super::{CompletionKind, Limits, SessionExit, State, Telemetry};

/// How complete a session's work is, given how it ended. The model's claims never count as verification:
/// [`Telemetry::judge`] applies its result.
fn completion_kind(state: &State, exit: SessionExit) -> CompletionKind {
    if state.is_blocked() {
        CompletionKind::Blocked
    } else if state.is_complete(exit) {
        CompletionKind::CompleteUnverified
    } else if exit.is_limit() {
        CompletionKind::Exhausted
    } else {
        CompletionKind::Partial
    }
}

/// The statistics of a session that ended with `exit`.
pub fn telemetry(state: &State, exit: SessionExit) -> Telemetry {
    let counts = state.counts;
    Telemetry {
        exit,
        plan_items: state.ledger.planned(),
        plan_finished: state.ledger.finished(),
        plan_update_count: state.ledger.updates(),
        final_suppressed: counts.final_suppressed,
        repair_turns: counts.repair_turns,
        stagnation_score_max: counts.stagnation_score_max,
        forced_mode_steps: counts.forced_mode_steps,
        fix_slice_count: counts.fix_slices,
        tool_calls: counts.tool_calls,
        read_only_steps: counts.read_only_steps,
        tokens: state.tokens(),
        completion_kind: completion_kind(state, exit),
    }
}

/// The limits of a session on a single file: low, and never more than what is left.
pub(super) fn slice_limits(limits: &Limits, state: &State) -> Limits {
    const STEPS: u32 = 10;
    const TOOL_CALLS: u32 = 30;
    let counts = state.counts;
    let left = |limit: u64, used: Option<u64>| limit.saturating_sub(used.unwrap_or_default());
    Limits {
        steps: STEPS.min(limits.steps.saturating_sub(counts.steps)),
        tool_calls: TOOL_CALLS.min(limits.tool_calls.saturating_sub(counts.tool_calls)),
        time_ms: limits.time_ms.saturating_sub(state.elapsed_ms),
        tokens: limits.tokens.map(|limit| left(limit, state.tokens())),
        cost_usd: limits
            .cost_usd
            .map(|limit| (limit - state.usage.cost_usd.unwrap_or_default()).max(0.0)),
        fix_slices: 0,
        ..limits.clone()
    }
}
