//! The messages of a session, and how they are kept within the model's window.
//!
//! Providers cache what a request has in common with the last one, from its beginning on. So
//! nothing is ever put in front, and what has to go is taken in large bites: the request then keeps
//! its beginning for many steps, instead of losing a little more of it at every step.

use super::tool::{Arguments, ToolCall};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Bytes that are taken for one token.
///
/// Code, paths and JSON come to between three and four bytes a token with the tokenizers in use,
/// prose to more than four. Three errs on the safe side without leaving much of the window unused;
/// where even that is too much, the API says so, and the session goes on with a smaller budget.
pub const BYTES_PER_TOKEN: usize = 3;

/// Bytes for the frame of a message or of a call: role, ids, separators.
const FRAME: usize = 16;

/// Texts of up to so many bytes are not worth replacing.
const SHORT: usize = 200;

/// One message of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The model's window, in tokens.
    pub window_tokens: usize,
    /// Tokens of it that are kept for the response.
    pub response_tokens: usize,
}

impl Budget {
    /// Bytes of messages that fit. Each refusal by the API takes a quarter off.
    pub fn bytes(&self, refusals: u32) -> usize {
        let tokens = self.window_tokens.saturating_sub(self.response_tokens);
        let whole = tokens.saturating_mul(BYTES_PER_TOKEN);
        (0..refusals).fold(whole, |bytes, _| bytes - bytes / 4)
    }
}

/// Bytes that a list of messages takes.
pub fn size(messages: &[Message]) -> usize {
    messages.iter().map(message_size).sum()
}

/// The messages within `bytes`.
///
/// Outputs of tools and long arguments of calls are replaced by short notices, the oldest first,
/// a quarter of the budget at a time. The system prompt, the task, what the model wrote, its plan
/// and the session's own messages stay; with nothing else left the list may be longer than asked
/// for.
pub fn fit(messages: &[Message], bytes: usize) -> Vec<Message> {
    let over = size(messages).saturating_sub(bytes);
    let bite = (bytes / 4).max(1);
    let to_free = over.div_ceil(bite).saturating_mul(bite);
    let mut freed = 0;
    let shortened = messages.iter().map(|message| {
        if freed >= to_free {
            return message.clone();
        }
        let short = shorten(message);
        freed += message_size(message).saturating_sub(message_size(&short));
        short
    });
    shortened.collect()
}

fn message_size(message: &Message) -> usize {
    let inside = match message {
        Message::System { text } | Message::Task { text } | Message::Note { text } => text.len(),
        Message::Assistant { text, calls } => {
            text.len() + calls.iter().map(call_size).sum::<usize>()
        }
        Message::ToolResult {
            id, name, output, ..
        } => id.len() + name.len() + output.len(),
    };
    FRAME + inside
}

fn call_size(call: &ToolCall) -> usize {
    let arguments = match &call.arguments {
        Arguments::Given(value) => value_size(value),
        Arguments::Unreadable(why) => why.len(),
    };
    FRAME + call.id.len() + call.name.len() + arguments
}

/// About the size of a value as JSON.
fn value_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => text.len() + 2,
        Value::Array(values) => 2 + values.iter().map(|it| value_size(it) + 1).sum::<usize>(),
        Value::Object(fields) => {
            let fields = fields.iter();
            2 + fields
                .map(|(name, value)| name.len() + 4 + value_size(value))
                .sum::<usize>()
        }
    }
}

fn shorten(message: &Message) -> Message {
    match message {
        Message::ToolResult {
            id,
            name,
            ok,
            output,
        } if output.len() > SHORT => Message::ToolResult {
            id: id.clone(),
            name: name.clone(),
            ok: *ok,
            output: format!(
                "({} bytes of output left out to save space; call the tool again if needed)",
                output.len()
            ),
        },
        Message::Assistant { text, calls } => Message::Assistant {
            text: text.clone(),
            calls: calls.iter().map(shorten_call).collect(),
        },
        other => other.clone(),
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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn result(output: impl Into<String>) -> Message {
        Message::ToolResult {
            id: "c".into(),
            name: "read_file".into(),
            ok: true,
            output: output.into(),
        }
    }

    fn wrote(name: &str, content: &str) -> Message {
        Message::Assistant {
            text: "```SPRAG_PLAN\n- [ ] a\n```".into(),
            calls: vec![ToolCall {
                id: "c".into(),
                name: name.into(),
                arguments: Arguments::Given(json!({"path": "a", "content": content})),
            }],
        }
    }

    #[test]
    fn the_oldest_outputs_go_first_and_the_rest_stays() {
        let long = "x".repeat(1_000);
        let messages = [
            Message::System { text: long.clone() },
            Message::Task { text: long.clone() },
            wrote("write_file", &long),
            result(long.clone()),
            wrote("update_plan", &long),
            result(long.clone()),
            result("short"),
            result(long.clone()),
        ];
        let fitted = fit(&messages, size(&messages) - 1_000);
        let expected = [
            messages[0].clone(),
            messages[1].clone(),
            wrote("write_file", "(1000 bytes left out to save space)"),
            result("(1000 bytes of output left out to save space; call the tool again if needed)"),
            messages[4].clone(),
            messages[5].clone(),
            messages[6].clone(),
            messages[7].clone(),
        ];
        assert_eq!(fitted, expected);
    }

    #[test]
    fn a_budget_is_the_window_without_the_response_and_shrinks_with_refusals() {
        let budget = Budget {
            window_tokens: 1_000,
            response_tokens: 200,
        };
        let bytes: Vec<usize> = (0..4).map(|refusals| budget.bytes(refusals)).collect();
        assert_eq!(bytes, [2_400, 1_800, 1_350, 1_013]);
        let none = Budget {
            window_tokens: 1,
            response_tokens: 2,
        };
        assert_eq!(none.bytes(0), 0);
    }

    fn message() -> impl Strategy<Value = Message> {
        let text = |max: usize| (0..max).prop_map(|len| "é".repeat(len));
        prop_oneof![
            text(50).prop_map(|text| Message::Note { text }),
            text(900).prop_map(result),
            text(300).prop_map(result),
            text(900).prop_map(|text| wrote("write_file", &text)),
            text(200).prop_map(|text| wrote("update_plan", &text)),
        ]
    }

    fn conversation() -> impl Strategy<Value = Vec<Message>> {
        prop::collection::vec(message(), 0..40).prop_map(|rest| {
            let task = Message::Task {
                text: "t".repeat(300),
            };
            std::iter::once(task).chain(rest).collect()
        })
    }

    fn role(message: &Message) -> &'static str {
        match message {
            Message::System { .. } => "system",
            Message::Task { .. } => "task",
            Message::Assistant { .. } => "assistant",
            Message::ToolResult { .. } => "result",
            Message::Note { .. } => "note",
        }
    }

    proptest! {
        #[test]
        fn the_budget_holds_unless_only_what_must_stay_is_left(
            messages in conversation(),
            bytes in 0usize..20_000,
        ) {
            let fitted = fit(&messages, bytes);
            let shortest: Vec<Message> = messages.iter().map(shorten).collect();
            prop_assert!(size(&fitted) <= bytes || fitted == shortest);
            let roles = |list: &[Message]| list.iter().map(role).collect::<Vec<_>>();
            prop_assert_eq!(roles(&fitted), roles(&messages));
            for (old, new) in messages.iter().zip(&fitted) {
                prop_assert!(new == old || *new == shorten(old));
                if matches!(role(old), "task" | "note" | "system") {
                    prop_assert_eq!(old, new);
                }
            }
            if size(&messages) <= bytes {
                prop_assert_eq!(&fitted, &messages);
            }
            prop_assert_eq!(fit(&fitted, bytes), fitted);
        }

        #[test]
        fn the_beginning_stays_for_many_steps(messages in conversation(), bytes in 4_000usize..12_000) {
            let mut changes = 0;
            for end in 1..messages.len() {
                let (last, next) = (fit(&messages[..end], bytes), fit(&messages[..=end], bytes));
                if next[..last.len()] != last[..] {
                    changes += 1;
                }
            }
            let bites = size(&messages).saturating_sub(bytes).div_ceil(bytes / 4);
            prop_assert!(changes <= bites, "{changes} changes for {bites} bites");
        }
    }
}
