//! The messages of a session, and how they are kept within the model's context window.
//!
//! Providers cache the prefix that a request shares with the previous one. Messages are therefore never
//! inserted at the front, and content is removed in large portions: the prefix then stays the same for many
//! steps, instead of changing at every step.

use super::tokens::estimate;
use super::tool::{self, Arguments, Tool, ToolCall};
use serde::Serialize;
use serde_json::Value;

/// The overhead of a message or a call in tokens: role, field names, separators, fences.
const FRAME: usize = 12;

/// Texts of up to this many bytes are not replaced.
const SHORT: usize = 200;

/// The minimum number of tokens allowed for a tool's output.
const MIN_OUTPUT_TOKENS: usize = 100;

/// The upper limit of the correction factor for the estimate: the number of tokens that a provider counts for
/// eight estimated tokens.
const MAX_CORRECTION_EIGHTHS: usize = 16;

/// One message of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// The system prompt.
    System {
        /// The text.
        text: String,
    },
    /// The task.
    Task {
        /// The text.
        text: String,
    },
    /// The model's response.
    Assistant {
        /// Its text, including its plan.
        text: String,
        /// The tools that it called.
        calls: Vec<ToolCall>,
    },
    /// The result of a call.
    ToolResult {
        /// The id of the call.
        id: String,
        /// The tool's name.
        name: String,
        /// Whether it succeeded.
        ok: bool,
        /// The output.
        output: String,
    },
    /// A note of the session to the model.
    Note {
        /// The text.
        text: String,
    },
}

/// The size limits of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Budget {
    /// The model's context window, in tokens.
    pub window_tokens: usize,
    /// Tokens of the window that are reserved for the response.
    pub response_tokens: usize,
    /// Tokens of the window that the tool declarations use.
    pub declared_tokens: usize,
}

/// The number of tokens in the declarations of the agent's own tools and of those of servers.
pub fn declared_tokens(served: &[Tool]) -> usize {
    let declared = tool::all().chain(served).map(|tool| {
        FRAME + estimate(&tool.name) + estimate(&tool.about) + estimate(&tool.schema.to_string())
    });
    declared.sum()
}

/// A message of the transcript.
#[derive(Debug, Clone)]
struct Entry {
    message: Message,
    /// Its size in tokens.
    size: usize,
    /// The size of the message without the parts that can be left out, if that is smaller, and this message.
    short: Option<(usize, Message)>,
}

impl Entry {
    fn short_size(&self) -> usize {
        self.short.as_ref().map_or(self.size, |(size, _)| *size)
    }
}

/// The transcript of a session, and the part of it that fits into a request.
#[derive(Debug, Clone)]
pub struct Context {
    budget: Budget,
    entries: Vec<Entry>,
    /// How many of the first messages are sent in their short form. Parts that were left out never return.
    cut: usize,
    /// The estimated number of tokens in the messages of the last request.
    asked: usize,
    /// The number of tokens that the provider counts for eight estimated ones.
    eighths: usize,
    /// The maximum size of a request, once the API has rejected one as too long.
    most: Option<usize>,
}

impl Context {
    /// An empty transcript.
    pub fn new(budget: Budget) -> Self {
        Self {
            budget,
            entries: Vec::new(),
            cut: 0,
            asked: 0,
            eighths: 8,
            most: None,
        }
    }

    /// An empty transcript for the same model, with what was learned about its limits.
    pub fn afresh(&self) -> Self {
        Self {
            eighths: self.eighths,
            most: self.most,
            ..Self::new(self.budget)
        }
    }

    /// Adds a message.
    pub fn push(&mut self, message: Message) {
        let size = message_size(&message);
        let short = shorten(&message).map(|short| (message_size(&short), short));
        self.entries.push(Entry {
            message,
            size,
            short: short.filter(|(short, _)| *short < size),
        });
    }

    /// The complete transcript.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.entries.iter().map(|entry| &entry.message)
    }

    /// The estimated number of tokens available for the messages of a request. A tenth of the window is
    /// reserved, because not all vocabularies are public.
    pub fn room(&self) -> usize {
        let budget = self.budget;
        let window = budget.window_tokens.saturating_sub(budget.response_tokens);
        let sure = (window - window / 10).saturating_mul(8) / self.eighths;
        let room = sure.saturating_sub(budget.declared_tokens);
        self.most.map_or(room, |most| most.min(room))
    }

    /// Decides what the next request leaves out: tool outputs and long call arguments, oldest first, a
    /// quarter of the room at a time. The system prompt, the task, the model's text, its plan and the
    /// session's own messages stay. If nothing else can be left out, the request may exceed the room.
    pub fn prepare(&mut self) {
        let room = self.room();
        self.asked = self.size();
        let over = self.asked.saturating_sub(room);
        let bite = (room / 4).max(1);
        let to_free = over.div_ceil(bite).saturating_mul(bite);
        let mut freed = 0;
        for entry in self.entries.iter().skip(self.cut) {
            if freed >= to_free {
                break;
            }
            freed += entry.size - entry.short_size();
            self.cut += 1;
        }
        self.asked -= freed;
    }

    /// The messages of the prepared request.
    pub fn request(&self) -> Vec<&Message> {
        let sent = self.entries.iter().enumerate().map(|(index, entry)| {
            let short = entry.short.as_ref().filter(|_| index < self.cut);
            short.map_or(&entry.message, |(_, short)| short)
        });
        sent.collect()
    }

    /// Records the provider's token count of the last request. A small request is ignored, because the
    /// provider's fixed overhead would distort the ratio.
    pub fn counted(&mut self, tokens: u64) {
        let estimated = self.asked.saturating_add(self.budget.declared_tokens);
        if estimated == 0 || self.asked < self.room() / 4 {
            return;
        }
        let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
        let eighths = tokens.saturating_mul(8).div_ceil(estimated);
        self.eighths = self.eighths.max(eighths.min(MAX_CORRECTION_EIGHTHS));
    }

    /// Records that the API rejected the last request as too long: the next one is a quarter smaller.
    pub fn refused(&mut self) {
        self.most = Some(self.asked - self.asked.div_ceil(4));
    }

    /// Adds the results of the calls of one response. One output may take at most a quarter of the room, and
    /// all of them together half of it, so that the newest results always fit.
    pub fn push_results(&mut self, results: impl IntoIterator<Item = Message>) {
        let each = self.room() / 4;
        let mut left = self.room() / 2;
        for mut message in results {
            if let Message::ToolResult { output, .. } = &mut message {
                let (cut, tokens) = within(output, each.min(left).max(MIN_OUTPUT_TOKENS));
                *output = cut;
                left = left.saturating_sub(tokens);
            }
            self.push(message);
        }
    }

    fn size(&self) -> usize {
        let (cut, whole) = self.entries.split_at(self.cut);
        let cut: usize = cut.iter().map(Entry::short_size).sum();
        cut + whole.iter().map(|entry| entry.size).sum::<usize>()
    }
}

/// A text of at most this many tokens, and how many it has. The middle of a longer text is left out.
fn within(text: &str, tokens: usize) -> (String, usize) {
    let all = estimate(text);
    if all <= tokens {
        return (text.to_owned(), all);
    }
    let mut keep = text.len() / all.div_ceil(tokens.max(1)).max(1);
    // The ratio above is rounded down: start with twice the size, and shrink it.
    keep = keep.saturating_mul(2).min(text.len());
    loop {
        let (head, tail) = ends(text, keep / 2);
        let omitted = text.len() - head.len() - tail.len();
        let line_end = if head.ends_with('\n') { "" } else { "\n" };
        let cut = format!(
            "{head}{line_end}[{omitted} bytes left out here to save space; ask for less at a time]\n{tail}"
        );
        let left = estimate(&cut);
        if keep == 0 || left <= tokens {
            return (cut, left);
        }
        keep -= keep.div_ceil(10);
    }
}

/// The first and last `bytes` of a text, cut at line boundaries if there are any.
fn ends(text: &str, bytes: usize) -> (&str, &str) {
    let (head, _) = text.split_at(text.floor_char_boundary(bytes));
    let (_, tail) = text.split_at(text.ceil_char_boundary(text.len().saturating_sub(bytes)));
    let head = match head.rfind('\n') {
        Some(at) => head.split_at(at + 1).0,
        None => head,
    };
    let tail = match tail.find('\n') {
        Some(at) if at + 1 < tail.len() => tail.split_at(at + 1).1,
        _ => tail,
    };
    (head, tail)
}

fn message_size(message: &Message) -> usize {
    let inside = match message {
        Message::System { text } | Message::Task { text } | Message::Note { text } => {
            estimate(text)
        }
        Message::Assistant { text, calls } => {
            estimate(text) + calls.iter().map(call_size).sum::<usize>()
        }
        Message::ToolResult {
            id, name, output, ..
        } => estimate(id) + estimate(name) + estimate(output),
    };
    FRAME + inside
}

fn call_size(call: &ToolCall) -> usize {
    let arguments = match &call.arguments {
        Arguments::Given(value) => estimate(&value.to_string()),
        Arguments::Unreadable(why) => estimate(why),
    };
    FRAME + estimate(&call.id) + estimate(&call.name) + arguments
}

/// A message without the parts that can be left out; `None` if there are none.
fn shorten(message: &Message) -> Option<Message> {
    match message {
        Message::ToolResult {
            id,
            name,
            ok,
            output,
        } if output.len() > SHORT => Some(Message::ToolResult {
            id: id.clone(),
            name: name.clone(),
            ok: *ok,
            output: format!(
                "({} bytes of output left out to save space; call the tool again if needed)",
                output.len()
            ),
        }),
        Message::Assistant { text, calls } if !calls.is_empty() => Some(Message::Assistant {
            text: text.clone(),
            calls: calls.iter().map(shorten_call).collect(),
        }),
        _ => None,
    }
}

/// A call without its long arguments. A plan is never shortened.
fn shorten_call(call: &ToolCall) -> ToolCall {
    let mut call = call.clone();
    if matches!(call.name.as_str(), "update_plan" | "finish") {
        return call;
    }
    if let Arguments::Given(Value::Object(fields)) = &mut call.arguments {
        for (_, value) in fields.iter_mut() {
            let long = value.as_str().map(str::len).filter(|len| *len > SHORT);
            if let Some(len) = long {
                *value = format!("({len} bytes left out to save space)").into();
            }
        }
    }
    call
}

#[cfg(test)]
mod tests;
