//! The common parts of the readers of agents' output.

use super::{json, text};
use crate::domain::agent::{
    AgentEvent, AgentReport, ApiError, ApiErrorClass, TodoItem, TodoStatus, Usage,
};
use serde_json::Value;

/// Maximum number of tool calls that wait for their result, so that an agent that sends no results does not
/// use up memory.
const MAX_OPEN_CALLS: usize = 256;

/// The tool calls whose results have not arrived, each with the data that its result needs.
#[derive(Debug, Default)]
pub(super) struct OpenCalls<T>(Vec<(String, T)>);

impl<T> OpenCalls<T> {
    /// Stores a call that has an id. If there are too many, the oldest is dropped.
    pub(super) fn open(&mut self, id: Option<&str>, call: T) {
        let Some(id) = id else { return };
        if self.0.len() == MAX_OPEN_CALLS {
            self.0.remove(0);
        }
        self.0.push((id.to_owned(), call));
    }

    /// Whether a call with this id is open.
    pub(super) fn has(&self, id: &str) -> bool {
        self.0.iter().any(|(known, _)| known == id)
    }

    /// Removes the call whose result has arrived and returns it, if it is known.
    pub(super) fn close(&mut self, id: Option<&str>) -> Option<T> {
        let at = self.0.iter().position(|(known, _)| Some(&**known) == id)?;
        Some(self.0.remove(at).1)
    }
}

/// Whether an agent's session id is safe to use on its command line.
pub(super) fn is_session_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 128
        && !id.starts_with('-')
        && id
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'))
}

/// The event for a line outside of the agent's protocol, or none for an empty line.
pub(super) fn raw(line: &[u8]) -> Vec<AgentEvent> {
    // A character has at most four bytes, so this is more than an excerpt shows.
    let shown = line.len().min(4 * (text::EXCERPT_CHARS + 1));
    let text = String::from_utf8_lossy(&line[..shown]);
    let text = Some(text.trim_end()).filter(|text| !text.is_empty());
    let event = text.map(|text| AgentEvent::Raw {
        line: text::excerpt(text),
    });
    event.into_iter().collect()
}

/// The event for an error of the agent.
pub(super) fn error(message: &str, is_final: bool) -> AgentEvent {
    AgentEvent::Error {
        message: text::cut(message, text::ERROR_CHARS),
        is_final,
    }
}

/// An error after which the agent is of no use until a person does something.
pub(super) fn unavailable(message: String) -> ApiError {
    ApiError {
        status: None,
        message,
        retry_after_ms: None,
        class: ApiErrorClass::Unavailable,
    }
}

/// Counts a tool call, and returns its event.
pub(super) fn tool_call(
    report: &mut AgentReport,
    id: Option<&str>,
    name: &str,
    summary: &str,
) -> AgentEvent {
    report.tool_calls = report.tool_calls.saturating_add(1);
    AgentEvent::ToolCall {
        id: id.map(str::to_owned),
        name: name.to_owned(),
        summary: text::one_line(summary),
    }
}

/// Stores the agent's plan, and returns its event.
pub(super) fn todo(report: &mut AgentReport, items: Vec<TodoItem>) -> AgentEvent {
    report.todo.clone_from(&items);
    AgentEvent::Todo { items }
}

/// The event for the result of a tool call.
pub(super) fn tool_result(
    id: Option<&str>,
    ok: bool,
    exit_code: Option<i32>,
    said: &str,
) -> AgentEvent {
    AgentEvent::ToolResult {
        id: id.map(str::to_owned),
        ok,
        exit_code,
        summary: text::excerpt(said),
    }
}

/// The event for a file that the agent changed.
pub(super) fn file_change(path: String, kind: &str) -> AgentEvent {
    let kind = kind.to_owned();
    AgentEvent::FileChange { path, kind }
}

/// The counts of tokens at these JSON pointers: sent, read from a cache, received.
pub(super) fn usage(event: &Value, counts: &str) -> Usage {
    let mut counts = counts.split(' ').map(|place| json::count(event, place));
    Usage {
        tokens_in: counts.next().flatten(),
        tokens_cached: counts.next().flatten(),
        tokens_out: counts.next().flatten(),
        cost_usd: None,
    }
}

/// The text of an API error in the form of Gemini CLI and its fork.
pub(super) fn api_error_in(message: &str) -> Option<&str> {
    let rest = message.trim().strip_prefix("[API Error: ")?;
    rest.strip_suffix(']')
}

/// The argument of a tool call that is most informative for a person.
pub(super) fn summary_of(input: &Value) -> String {
    const FIELDS: &str = "/command /file_path /filePath /notebook_path /pattern
        /query /url /subject /description /skill /path /prompt";
    let mut fields = FIELDS.split_whitespace();
    match fields.find_map(|field| json::text(input, field)) {
        Some(told) => told.to_owned(),
        None if input.is_null() => String::new(),
        None => input.to_string(),
    }
}

/// The exit code in a result that has only this sentence, as the agents based on Gemini CLI write it for a
/// command that failed without output.
pub(super) fn exit_code_in_words(said: &str) -> Option<i32> {
    let code = said.trim().strip_prefix("Command exited with code: ")?;
    code.parse().ok()
}

/// A to-do item with its text under `content` and one of the usual words for its status.
pub(super) fn todo_item(item: &Value) -> TodoItem {
    TodoItem {
        text: json::string(item, "/content"),
        status: match json::text(item, "/status") {
            Some("completed") => TodoStatus::Completed,
            Some("in_progress") => TodoStatus::InProgress,
            _ => TodoStatus::Pending,
        },
    }
}

/// The event for a session when it is first mentioned. Later mentions, and an unsafe id, give none.
pub(super) fn session(known: &mut Option<String>, id: Option<&str>) -> Option<AgentEvent> {
    let id = id.filter(|id| is_session_id(id))?;
    if known.as_deref() == Some(id) {
        return None;
    }
    *known = Some(id.to_owned());
    Some(AgentEvent::SessionStarted {
        session_id: id.to_owned(),
    })
}

/// The sum of the known counts.
pub(super) fn sum(counts: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
    let known = counts.into_iter().flatten();
    known.reduce(u64::saturating_add)
}

/// A message that arrives in chunks. A long one is returned in parts.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    text: String,
    in_parts: bool,
}

impl Chunks {
    /// Maximum length of a part in bytes.
    const MAX_PART_BYTES: usize = 1 << 20;

    /// Adds a chunk. Returns a part when it is full.
    pub(super) fn push(&mut self, piece: &str) -> Option<String> {
        self.text.push_str(piece);
        if self.text.len() < Self::MAX_PART_BYTES {
            return None;
        }
        self.in_parts = true;
        Some(std::mem::take(&mut self.text))
    }

    /// Takes the rest of the message, unless it is only white space. The next message can then start.
    pub(super) fn take(&mut self) -> Option<String> {
        let text = std::mem::take(&mut self.text);
        (!text.trim().is_empty()).then_some(text)
    }

    /// Whether a message was returned in parts, so that the last part may not be all of it.
    pub(super) fn is_cut(&self) -> bool {
        self.in_parts
    }
}
