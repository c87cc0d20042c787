//! What an agent did in one turn, in a vocabulary that all agents share.

use crate::text::{count, some_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An action or message of an agent during its turn. An unknown line becomes `Raw` and never fails a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event")]
pub enum AgentEvent {
    /// The agent opened or resumed a session.
    #[serde(rename = "agent.session")]
    SessionStarted {
        /// The agent's own id for the session.
        session_id: String,
    },
    /// Text for the user.
    #[serde(rename = "agent.message")]
    #[schemars(skip)]
    Message {
        /// The whole message.
        text: String,
    },
    /// The model's reasoning, where the agent shows it.
    #[serde(rename = "agent.reasoning")]
    #[schemars(skip)]
    Reasoning {
        /// The text shown.
        text: String,
    },
    /// The agent called a tool.
    #[serde(rename = "agent.tool_call")]
    ToolCall {
        /// The agent's id for the call.
        id: Option<String>,
        /// The tool's name.
        name: String,
        /// A one-line description: the command or the path.
        #[serde(default)]
        summary: String,
    },
    /// A tool call ended.
    #[serde(rename = "agent.tool_result")]
    ToolResult {
        /// The agent's id for the call.
        id: Option<String>,
        /// Whether it succeeded.
        ok: bool,
        /// The exit code, if the tool is a command.
        exit_code: Option<i32>,
        /// The beginning of the output.
        #[serde(default)]
        summary: String,
    },
    /// The agent reports that it changed a file. The repository decides.
    #[serde(rename = "agent.file_change")]
    FileChange {
        /// The path as the agent names it.
        path: String,
        /// `add`, `update`, `delete` …
        kind: String,
    },
    /// The agent's own complete to-do list.
    #[serde(rename = "agent.todo")]
    Todo {
        /// Every item.
        items: Vec<TodoItem>,
    },
    /// Tokens and cost so far; `null` means unknown, not zero.
    #[serde(rename = "agent.usage")]
    Usage(Usage),
    /// The agent reported an error.
    #[serde(rename = "agent.error")]
    Error {
        /// The agent's text.
        message: String,
        /// Whether the turn failed because of it.
        #[serde(default)]
        is_final: bool,
    },
    /// A line that is not part of the agent's protocol.
    #[serde(rename = "agent.raw")]
    Raw {
        /// The line, cut if it is very long.
        line: String,
    },
}

/// An item of an agent's to-do list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TodoItem {
    /// The text of the item.
    pub text: String,
    /// Its status.
    pub status: TodoStatus,
}

/// The status of an item of an agent's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not started.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done, according to the agent.
    Completed,
}

/// Tokens and cost; `null` is unknown, not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens sent to the model, cached ones included.
    pub tokens_in: Option<u64>,
    /// Of these, tokens served from a cache; absent if the agent does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_cached: Option<u64>,
    /// Tokens produced by the model, reasoning included.
    pub tokens_out: Option<u64>,
    /// Cost in US dollars as the agent reports it.
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// All tokens, if any are known.
    pub fn tokens(&self) -> Option<u64> {
        let (sent, got) = (self.tokens_in, self.tokens_out);
        let sum = sent.unwrap_or(0).saturating_add(got.unwrap_or(0));
        sent.or(got).map(|_| sum)
    }

    /// Adds further usage. A sum without any known part stays unknown.
    pub fn add(&mut self, more: &Self) {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or_default().saturating_add(b.unwrap_or_default())),
        };
        self.tokens_in = sum(self.tokens_in, more.tokens_in);
        self.tokens_cached = sum(self.tokens_cached, more.tokens_cached);
        self.tokens_out = sum(self.tokens_out, more.tokens_out);
        if let Some(cost) = more.cost_usd {
            // Sums of floating-point numbers have long fractions.
            let sum = self.cost_usd.unwrap_or_default() + cost;
            self.cost_usd = Some((sum * 1e9).round() / 1e9);
        }
    }
}

/// What the usage in a report covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageBasis {
    /// This turn alone.
    #[default]
    Turn,
    /// The whole session, including earlier turns (codex on `resume`): the turn's own usage is the difference
    /// from the session's previous report.
    Session,
}

/// An error of the model's API or of the agent's login, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiError {
    /// The HTTP status, if known.
    pub status: Option<u16>,
    /// The agent's text.
    pub message: String,
    /// The wait that the server asked for, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// The possible reaction to it.
    pub class: ApiErrorClass,
}

/// The possible reaction to an API error.
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

/// Everything that the agent reports about a turn. All of it is a claim: the repository decides whether
/// anything happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentReport {
    /// The session, if a later turn can continue it.
    pub session_id: Option<String>,
    /// The final message of this turn alone.
    pub final_message: Option<String>,
    /// Whether only the end of the final message was kept.
    pub final_message_cut: bool,
    /// The last state of the agent's to-do list.
    pub todo: Vec<TodoItem>,
    /// Tokens and cost.
    pub usage: Usage,
    /// What `usage` covers.
    pub usage_basis: UsageBasis,
    /// The API error that ended the turn.
    pub api_error: Option<ApiError>,
    /// The agent's own reason for stopping without a result (`error_max_turns`).
    pub stopped_by: Option<String>,
    /// The kind of that reason.
    #[serde(default)]
    pub stop: CutOff,
    /// Whether its plan alone shows that nothing needed doing.
    #[serde(default)]
    pub needed_no_change: bool,
    /// What a person should know about the turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Tool calls that the agent was not allowed to make.
    pub permission_denials: u32,
    /// Number of tool calls, where the agent shows them.
    pub tool_calls: u32,
    /// The value that the agent returned separately from its final message, if it was asked for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<serde_json::Value>,
    /// The last line that the agent wrote to stderr, used when it ends without a result.
    pub last_error_line: Option<String>,
    /// The API error in the last lines that it wrote to stderr before it exited with a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_error: Option<ApiError>,
}

/// What cut a turn off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutOff {
    /// One of the agent's own limits, such as its maximum number of model requests.
    #[default]
    OwnLimit,
    /// The agent itself, because it made no progress.
    NoProgress,
    /// The time limit of a turn.
    TimeLimit,
    /// The time limit for an agent without output.
    Silence,
    /// The model or the agent, which refused the request.
    Refused,
    /// The agent, which ended the turn without an answer.
    Unanswered,
}

/// Which turn of a run it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TurnName {
    /// The id of the task.
    pub task: String,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The turn, counted over the task, from 1.
    pub turn: u32,
    /// The purpose: `implement`, `nudge`, `retry`.
    pub purpose: String,
}

/// How many items of a list are done, and which are left: `4 of 6 items done; left: parse, test`.
pub fn progress(todo: &[TodoItem]) -> Option<String> {
    const NAMED: usize = 5;
    let mut left: Vec<&TodoItem> = todo.iter().collect();
    left.retain(|item| item.status != TodoStatus::Completed);
    let left: Vec<&str> = left.iter().map(|item| item.text.as_str()).collect();
    let (done, all) = (todo.len() - left.len(), count(todo.len() as u64, "item"));
    match left.as_slice() {
        _ if todo.is_empty() => None,
        [] => Some(format!("{done} of {all} done")),
        left => Some(format!(
            "{done} of {all} done; left: {}",
            some_of(left, NAMED)
        )),
    }
}
