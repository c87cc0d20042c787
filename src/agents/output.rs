//! What the readers of agents' output have in common.

use super::{json, text};
use crate::domain::agent::{AgentEvent, TodoItem, TodoStatus};
use serde_json::Value;

/// Most tool calls that are remembered until their result comes: an agent that never gives the
/// results must not grow the executor.
const MAX_OPEN_CALLS: usize = 256;

/// The tool calls whose results have not come, each with what its result needs.
#[derive(Debug)]
pub(super) struct OpenCalls<T>(Vec<(String, T)>);

impl<T> Default for OpenCalls<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> OpenCalls<T> {
    /// Remembers a call. Of too many the oldest is forgotten.
    pub(super) fn open(&mut self, id: &str, call: T) {
        if self.0.len() == MAX_OPEN_CALLS {
            self.0.remove(0);
        }
        self.0.push((id.to_owned(), call));
    }

    /// Whether a call of this id is open.
    pub(super) fn has(&self, id: &str) -> bool {
        self.0.iter().any(|(known, _)| known == id)
    }

    /// The call whose result has come, if it is known. It is forgotten.
    pub(super) fn close(&mut self, id: Option<&str>) -> Option<T> {
        let at = self.0.iter().position(|(known, _)| Some(&**known) == id)?;
        Some(self.0.remove(at).1)
    }
}

/// Whether an agent's session id may be given back to it on its command line.
pub(super) fn is_session_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 128
        && !id.starts_with('-')
        && id
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'))
}

/// The events that `read` makes of the object in a line. A line that holds none, or one that it does not know, is
/// passed on as it is.
pub(super) fn events_of(
    line: &[u8],
    read: impl FnOnce(&Value) -> Option<Vec<AgentEvent>>,
) -> Vec<AgentEvent> {
    let object = json::object(line);
    let events = object.and_then(|object| read(&object));
    events.unwrap_or_else(|| raw(line))
}

/// The event for a line that is not of the agent's protocol; none for an empty one.
pub(super) fn raw(line: &[u8]) -> Vec<AgentEvent> {
    // A character takes at most four bytes, so that this is more than an excerpt shows.
    let shown = line.len().min(4 * (text::EXCERPT_CHARS + 1));
    let text = String::from_utf8_lossy(&line[..shown]);
    let text = text.trim_end();
    if text.is_empty() {
        Vec::new()
    } else {
        vec![AgentEvent::Raw {
            line: text::excerpt(text),
        }]
    }
}

/// What a tool was called with, by the field that tells a person most.
pub(super) fn summary_of(input: &Value) -> String {
    const FIELDS: &[&str] = &[
        "/command",
        "/file_path",
        "/filePath",
        "/notebook_path",
        "/pattern",
        "/query",
        "/url",
        "/subject",
        "/description",
        "/skill",
        "/path",
        "/prompt",
    ];
    let told = FIELDS.iter().find_map(|field| json::text(input, field));
    match told {
        Some(told) => told.to_owned(),
        None if input.is_null() => String::new(),
        None => input.to_string(),
    }
}

/// The exit code of a command of which a result has nothing but this sentence, as the agents made from
/// Gemini CLI write it where a command failed without output.
pub(super) fn exit_code_in_words(said: &str) -> Option<i32> {
    let code = said.trim().strip_prefix("Command exited with code: ")?;
    code.parse().ok()
}

/// An item of a list of things to do that has its text under `content` and the usual words for its status.
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

/// The event of a session, at its first mention: later ones, and an id that cannot be given back, make none.
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

/// The sum of what is known.
pub(super) fn sum(counts: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
    let known = counts.into_iter().flatten();
    known.reduce(u64::saturating_add)
}

/// A message that comes in pieces. One that grows too long is given out in parts.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    text: String,
    in_parts: bool,
}

impl Chunks {
    /// The longest part that is gathered, in bytes.
    const MOST: usize = 64 << 10;

    /// Adds a piece. Returns a part that is full.
    pub(super) fn push(&mut self, piece: &str) -> Option<String> {
        self.text.push_str(piece);
        if self.text.len() < Self::MOST {
            return None;
        }
        self.in_parts = true;
        Some(std::mem::take(&mut self.text))
    }

    /// The message, unless it is only white space, and the beginning of the next one.
    pub(super) fn take(&mut self) -> Option<String> {
        let text = std::mem::take(&mut self.text);
        (!text.trim().is_empty()).then_some(text)
    }

    /// Whether a message was given out in parts, so that what was last taken need not be all of it.
    pub(super) fn is_cut(&self) -> bool {
        self.in_parts
    }
}
