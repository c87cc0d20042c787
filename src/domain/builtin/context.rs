//! The messages of a session, and how they are kept within the model's window.
//!
//! Providers cache what a request has in common with the last one, from its beginning on. So
//! nothing is ever put in front, and what has to go is taken in large bites: the request then keeps
//! its beginning for many steps, instead of losing a little more of it at every step.

use super::tokens::estimate;
use super::tool::{self, Arguments, ToolCall};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// Tokens for the frame of a message or of a call: role, names of fields, separators, fences.
const FRAME: usize = 12;

/// Texts of up to so many bytes are not worth replacing.
const SHORT: usize = 200;

/// Tokens that the output of a tool may have however little room there is.
const LEAST_OUTPUT: usize = 100;

/// How much may be left out of a window that the estimate is true for: what a provider counts for
/// eight estimated tokens is at most this.
const MOST_EIGHTHS: usize = 16;

/// One message of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// How to work.
    System {
        /// The text.
        text: String,
    },
    /// What to do.
    Task {
        /// The text.
        text: String,
    },
    /// The model's response.
    Assistant {
        /// What it wrote, its plan included.
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
        /// Whether it did what it should.
        ok: bool,
        /// What it says.
        output: String,
    },
    /// A message of the session to the model.
    Note {
        /// The text.
        text: String,
    },
}

/// How much a request may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    /// The model's window, in tokens.
    pub window_tokens: usize,
    /// Tokens of it that are kept for the response.
    pub response_tokens: usize,
    /// Tokens of it that the declarations of the tools take.
    pub declared_tokens: usize,
}

impl Default for Budget {
    /// What most models have at least, with no tool declared.
    fn default() -> Self {
        Self {
            window_tokens: 128_000,
            response_tokens: 16_000,
            declared_tokens: 0,
        }
    }
}

/// Tokens that the declarations of all tools take.
pub fn declared_tokens() -> usize {
    let declared = tool::all().map(|tool| {
        FRAME + estimate(tool.name) + estimate(tool.about) + estimate(&tool.schema().to_string())
    });
    declared.sum()
}

/// What a message takes, in tokens.
#[derive(Debug, Clone, Copy)]
struct Size {
    whole: usize,
    /// With what can be left out of it left out.
    short: usize,
}

/// The transcript of a session, and what of it fits into a request.
#[derive(Debug, Clone)]
pub struct Context {
    budget: Budget,
    messages: Vec<Message>,
    sizes: Vec<Size>,
    /// The first messages as they are sent, where something is left out of them. Nothing is ever put
    /// back.
    cut: Vec<Option<Message>>,
    /// Tokens of the messages of the last request, as estimated.
    asked: usize,
    /// Tokens that the provider counts for eight estimated ones.
    eighths: usize,
    /// The most that a request may have since the API called one too long.
    most: Option<usize>,
}

impl Context {
    /// An empty transcript.
    pub fn new(budget: Budget) -> Self {
        Self {
            budget,
            messages: Vec::new(),
            sizes: Vec::new(),
            cut: Vec::new(),
            asked: 0,
            eighths: 8,
            most: None,
        }
    }

    /// An empty transcript for the same model, with what was learned of it.
    pub fn afresh(&self) -> Self {
        Self {
            eighths: self.eighths,
            most: self.most,
            ..Self::new(self.budget)
        }
    }

    /// Adds a message.
    pub fn push(&mut self, message: Message) {
        let whole = message_size(&message);
        let short = shorten(&message).map_or(whole, |short| message_size(&short));
        self.sizes.push(Size {
            whole,
            short: short.min(whole),
        });
        self.messages.push(message);
    }

    /// The whole transcript.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Tokens that the messages of a request may take, as estimated. A tenth of the window is kept
    /// for vocabularies that are not public.
    pub fn room(&self) -> usize {
        let Budget {
            window_tokens,
            response_tokens,
            declared_tokens,
        } = self.budget;
        let window = window_tokens.saturating_sub(response_tokens);
        let sure = (window - window / 10).saturating_mul(8) / self.eighths;
        let room = sure.saturating_sub(declared_tokens);
        self.most.map_or(room, |most| most.min(room))
    }

    /// Decides what the next request leaves out: outputs of tools and long arguments of calls, the
    /// oldest first, a quarter of the room at a time. The system prompt, the task, what the model
    /// wrote, its plan and the session's own messages stay; with nothing else left the request may
    /// be longer than there is room for.
    pub fn prepare(&mut self) {
        let room = self.room();
        self.asked = self.size();
        let over = self.asked.saturating_sub(room);
        let bite = (room / 4).max(1);
        let to_free = over.div_ceil(bite).saturating_mul(bite);
        let mut freed = 0;
        let whole = self.messages.iter().zip(&self.sizes);
        for (message, size) in whole.skip(self.cut.len()) {
            if freed >= to_free {
                break;
            }
            freed += size.whole - size.short;
            self.cut.push(shorten(message));
        }
        self.asked -= freed;
    }

    /// The messages of the request that was prepared. A session sends all of them with every request,
    /// so they are not copied.
    pub fn request(&self) -> Vec<&Message> {
        let cut = self.cut.iter().map(Option::as_ref);
        let cut = cut.chain(std::iter::repeat(None));
        let messages = self.messages.iter().zip(cut);
        messages
            .map(|(message, cut)| cut.unwrap_or(message))
            .collect()
    }

    /// Takes in what the provider counted for the last request. Only one that takes much of the
    /// room tells something: what a provider adds of its own is the same for all.
    pub fn counted(&mut self, tokens: u64) {
        let estimated = self.asked.saturating_add(self.budget.declared_tokens);
        if estimated == 0 || self.asked < self.room() / 4 {
            return;
        }
        let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
        let eighths = tokens.saturating_mul(8).div_ceil(estimated);
        self.eighths = self.eighths.max(eighths.min(MOST_EIGHTHS));
    }

    /// Takes in that the last request was too long for the API: the next has a quarter less.
    pub fn refused(&mut self) {
        self.most = Some(self.asked - self.asked.div_ceil(4));
    }

    /// Adds the results of the calls of one response. One output takes a quarter of the room at
    /// most, and all together half of it, so that the newest need never be left out.
    pub fn push_results(&mut self, results: impl IntoIterator<Item = Message>) {
        let each = self.room() / 4;
        let mut left = self.room() / 2;
        for mut message in results {
            if let Message::ToolResult { output, .. } = &mut message {
                if let Cow::Owned(cut) = within(output, each.min(left).max(LEAST_OUTPUT)) {
                    *output = cut;
                }
                left = left.saturating_sub(estimate(output));
            }
            self.push(message);
        }
    }

    fn size(&self) -> usize {
        let sizes = self.sizes.iter().enumerate();
        let sizes = sizes.map(|(index, size)| match index < self.cut.len() {
            true => size.short,
            false => size.whole,
        });
        sizes.sum()
    }
}

/// A text in so many tokens: with its middle left out if it has more.
fn within(text: &str, tokens: usize) -> Cow<'_, str> {
    let all = estimate(text);
    if all <= tokens {
        return text.into();
    }
    let mut keep = text.len() / all.div_ceil(tokens.max(1)).max(1);
    // The share by which the text is too long is a fraction: begin with the whole part of it, from
    // above.
    keep = keep.saturating_mul(2).min(text.len());
    loop {
        let (head, tail) = ends(text, keep / 2);
        let omitted = text.len() - head.len() - tail.len();
        let line_end = if head.ends_with('\n') { "" } else { "\n" };
        let cut = format!(
            "{head}{line_end}[{omitted} bytes left out here to save space; ask for less at a time]\n{tail}"
        );
        if keep == 0 || estimate(&cut) <= tokens {
            return cut.into();
        }
        keep -= keep.div_ceil(10);
    }
}

/// The first and the last `bytes` of a text, in whole lines where there are any.
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

/// A message with what can be left out of it left out; `None` if that is nothing.
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

/// A call with its long arguments left out. A plan is never shortened.
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
