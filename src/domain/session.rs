//! How a session of the built-in agent ended, in events and in `summary.json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reason why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum SessionExit {
    /// The model submitted its work, and this was accepted.
    Submitted,
    /// The limit of steps or of tool calls was reached.
    StepLimit,
    /// The limit of tokens was reached.
    TokenLimit,
    /// The limit of cost was reached.
    CostLimit,
    /// The limit of time was reached.
    TimeLimit,
    /// Too many responses in a row had no usable action.
    RepeatedFormatError,
    /// There was no progress, and the repair turn did not finish the plan.
    Stalled,
    /// The model's API failed permanently.
    ModelError,
    /// The session was cancelled.
    Cancelled,
}

impl SessionExit {
    /// Whether a limit ended the session.
    pub fn is_limit(self) -> bool {
        matches!(
            self,
            Self::StepLimit | Self::TokenLimit | Self::CostLimit | Self::TimeLimit
        )
    }
}

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
}
