//! A session with a model as a history of intents and observations, and the choice of the next step.
//!
//! [`Session::observe`] folds a history into a [`State`], and [`decide()`] returns the next [`Step`]; both are
//! pure and total. A response is always applied completely, in this order: usage, plan blocks, every tool call,
//! the final message. Only then are the stagnation score and a decision to stop computed. The structure
//! enforces this order: while calls are open, the only step is to carry them out; when they have been, the
//! step is closed, scored and judged.
//!
//! The loop in [`crate::turn`] carries out the steps and reports their results.

mod apply;
mod decide;
mod limits;
mod loops;
mod running;
mod stagnation;
mod state;
mod telemetry;

#[cfg(test)]
mod explore;
#[cfg(test)]
mod tests;

pub use decide::decide;
pub use limits::{Limits, RECENT_STEPS, Thresholds};
pub use loops::LoopKind;
pub use running::Session;
pub use sprag_domain::session::{CompletionKind, SessionExit, Telemetry};
pub use stagnation::Stagnation;
pub use state::{Counts, Repair, State};
pub use telemetry::telemetry;

use super::context::Message;
use super::model_error::ModelError;
use super::tool::{ToolCall, ToolRequest};
use serde::Serialize;
use sprag_domain::agent::Usage;

/// The next step of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// Ask the model.
    AskModel(ModelRequest),
    /// Carry out these calls, in this order.
    ApplyTools {
        /// The calls.
        calls: Vec<OpenCall>,
    },
    /// Run a session on a single file.
    FixSlice(Slice),
    /// Wait before the next request to the model.
    Wait {
        /// The minimum wait in milliseconds.
        ms: u64,
    },
    /// The session is over.
    End {
        /// The reason.
        exit: SessionExit,
    },
}

/// A request to the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ModelRequest {
    /// Results of the calls that did not need the work tree.
    pub answers: Vec<Message>,
    /// The session's notes to the model, in order.
    pub notes: Vec<Note>,
    /// How often the API refused this session's requests for their length; each refusal shortens later
    /// requests.
    pub refusals: u32,
}

/// A note of the session to the model; [`texts::note`] has its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub enum Note {
    /// The final message is not accepted yet.
    FinalSuppressed {
        /// The reason.
        why: Suppressed,
        /// Items left.
        remaining: usize,
        /// The item to work on.
        next: Option<String>,
        /// Whether no file has been changed so far.
        unchanged: bool,
    },
    /// The response had no usable action.
    FormatError {
        /// The problem.
        why: FormatError,
    },
    /// The session on one file ended.
    SliceEnded {
        /// The file.
        file: String,
        /// Whether it changed the file.
        changed: bool,
    },
    /// The model repeats itself.
    LoopWarning {
        /// The kind of loop.
        kind: LoopKind,
        /// Whether this is the last warning.
        strong: bool,
    },
    /// There is too little progress: the next response must edit.
    Forced {
        /// The item to work on.
        next: Option<String>,
    },
    /// A response without a request was processed: a request must not end with the model's own message.
    GoOn {
        /// The item to work on.
        next: Option<String>,
    },
    /// The last chance: exactly one more response is accepted.
    Repair {
        /// The items left.
        open: Vec<String>,
        /// Whether no file has been changed so far.
        unchanged: bool,
    },
}

/// The reason why final words are not accepted yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Suppressed {
    /// Items are left.
    ItemsLeft,
    /// Nothing was changed and nothing was satisfied.
    NothingChanged,
    /// An edit of the same response failed.
    EditFailed,
}

/// The problem with a response without a usable action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FormatError {
    /// It has neither a call nor a block.
    NoAction,
    /// It was cut off before a call or a block.
    CutOff,
    /// None of its calls could be read.
    BadCalls,
}

/// A session on a single file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slice {
    /// The file that could not be edited.
    pub file: String,
    /// The items left that name it.
    pub items: Vec<String>,
    /// Its limits, within the remaining limits of the outer session.
    pub limits: Limits,
}

/// A call to carry out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct OpenCall {
    /// The provider's id of the call.
    pub id: String,
    /// The request.
    pub request: ToolRequest,
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "observed", rename_all = "snake_case")]
pub enum Observation {
    /// The model answered.
    ModelResponded(Response),
    /// The model's API failed.
    ModelFailed {
        /// The error.
        error: ModelError,
        /// The session's clock, in milliseconds.
        elapsed_ms: u64,
    },
    /// The calls were carried out.
    ToolsApplied {
        /// The result of each call, in order.
        results: Vec<ToolResult>,
        /// The session's clock, in milliseconds.
        elapsed_ms: u64,
    },
    /// The session on one file ended.
    SliceEnded(SliceEnded),
    /// A wait ended.
    Waited {
        /// The session's clock, in milliseconds.
        elapsed_ms: u64,
    },
    /// The session was cancelled.
    Cancelled,
}

/// A response of the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Response {
    /// Its text.
    pub text: String,
    /// Its reasoning, as far as the provider returns it.
    pub reasoning: String,
    /// The tools that it called, in order.
    pub calls: Vec<ToolCall>,
    /// The tokens and cost of the response, including the request.
    pub usage: Usage,
    /// The reason why it ended.
    pub stop: StopReason,
    /// The session's clock, in milliseconds.
    pub elapsed_ms: u64,
}

/// The reason why a response ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model ended it, with or without calls.
    #[default]
    End,
    /// It reached its length limit.
    Length,
    /// A content filter cut it off.
    Filter,
}

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize)]
pub struct ToolResult {
    /// Whether it succeeded.
    pub ok: bool,
    /// The output for the model.
    pub output: String,
    /// The files whose content it changed. What the commands of a response changed is in the result of the last one.
    pub changed: Vec<String>,
    /// The files that it read.
    pub read: Vec<String>,
}

/// The result of a session on a single file.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SliceEnded {
    /// The file.
    pub file: String,
    /// The files that it changed.
    pub changed: Vec<String>,
    /// The number of responses.
    pub steps: u32,
    /// The number of tool calls.
    pub tool_calls: u32,
    /// Its tokens and cost.
    pub usage: Usage,
    /// The outer session's clock, in milliseconds.
    pub elapsed_ms: u64,
}
