//! What an agent did in one turn, in one vocabulary for every agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing that an agent said or did while its turn was running. An unknown line is `Raw` and
/// never fails a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentEvent {
    /// The agent opened (or resumed) a session that a later turn can continue.
    SessionStarted {
        /// The agent's own session id.
        session_id: String,
    },
    /// Text for the user.
    Message {
        /// The whole message.
        text: String,
    },
    /// The model's reasoning, where the agent shows it.
    Reasoning {
        /// The text shown.
        text: String,
    },
    /// A tool was called.
    ToolCall {
        /// The agent's id of the call, to pair it with its result.
        id: Option<String>,
        /// The tool's name.
        name: String,
        /// One line for a person: the command, the path.
        summary: String,
    },
    /// A tool call ended.
    ToolResult {
        /// The agent's id of the call.
        id: Option<String>,
        /// Whether it succeeded.
        ok: bool,
        /// Exit code of a command, where there is one.
        exit_code: Option<i32>,
        /// The output's beginning.
        summary: String,
    },
    /// The agent says that it changed a file. A claim: the repository decides.
    FileChange {
        /// As the agent names it.
        path: String,
        /// `add`, `update`, `delete` …
        kind: String,
    },
    /// The agent's own list of things to do, whole, as it now stands.
    Todo {
        /// Every item, in the agent's order.
        items: Vec<TodoItem>,
    },
    /// Tokens and cost so far.
    Usage(Usage),
    /// An error that the agent reported. Only a final one ends the turn.
    Error {
        /// The agent's text.
        message: String,
        /// Whether the turn failed with it (`Reconnecting… 2/5` is not final).
        is_final: bool,
    },
    /// A line that is not of the agent's protocol, kept as it was.
    Raw {
        /// The line, cut where it is very long.
        line: String,
    },
}

/// One item of an agent's own list of things to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoItem {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub status: TodoStatus,
}

/// How far an item of an agent's list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done, the agent says.
    Completed,
}

/// Tokens and cost. `None` means unknown, which is never the same as zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens sent to the model, cached ones included.
    pub tokens_in: Option<u64>,
    /// Of these, tokens served from a cache.
    pub tokens_cached: Option<u64>,
    /// Tokens produced by the model, reasoning included.
    pub tokens_out: Option<u64>,
    /// Cost in US dollars as the agent reports it.
    pub cost_usd: Option<f64>,
}

/// What the usage in a report counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageBasis {
    /// This turn alone.
    #[default]
    Turn,
    /// The whole session, earlier turns included (codex on `resume`): the turn's own usage is the
    /// difference to the session's last report.
    Session,
}

/// An error of the model's API (or of the agent's login) as far as it can be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiError {
    /// HTTP status, where one is known.
    pub status: Option<u16>,
    /// The agent's text.
    pub message: String,
    /// How long the server asked to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// What can be done about it.
    pub class: ApiErrorClass,
}

/// What can be done about an API error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiErrorClass {
    /// Waiting helps: 429, 5xx, overloaded, a broken connection, a usage limit with a reset time.
    Transient,
    /// Only a person can help: a bad key, no permission, an unknown model.
    Unavailable,
    /// The request itself was refused (400, context too long): a failed attempt.
    Rejected,
}

/// Everything that is known of a turn from the agent's side. Claims, all of it: the repository
/// decides whether anything happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentReport {
    /// The session, if a later turn can continue it.
    pub session_id: Option<String>,
    /// The final message of this turn only.
    pub final_message: Option<String>,
    /// Whether the beginning of the final message was cut off (only a tail was kept).
    pub final_message_cut: bool,
    /// The agent's own list, as it last stood.
    pub todo: Vec<TodoItem>,
    /// Tokens and cost.
    pub usage: Usage,
    /// What `usage` counts.
    pub usage_basis: UsageBasis,
    /// The API error that ended the turn.
    pub api_error: Option<ApiError>,
    /// The agent's own reason for stopping without a result (`error_max_turns`).
    pub stopped_by: Option<String>,
    /// Tool calls that the agent was not allowed to make.
    pub permission_denials: u32,
    /// Number of tool calls, where the agent shows them.
    pub tool_calls: u32,
    /// The value that the agent gave apart from its final message, where it was asked for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<serde_json::Value>,
    /// The last line that the agent wrote to stderr, for when it ends without a result.
    pub last_error_line: Option<String>,
}
