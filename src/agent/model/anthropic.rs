//! Anthropic's *messages*.

use super::assembly::{Assembly, count, error_in, list};
use super::speaker::{Speaker, speaker};
use super::{RequestInputs, arguments, kept, tool_name};
use crate::context::Message;
use crate::model_error::ModelError;
use crate::session::StopReason;
use crate::tool::{self, ToolCall};
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

#[derive(Serialize)]
pub(super) struct Start<'a> {
    model: &'a str,
    max_tokens: usize,
}

#[derive(Serialize)]
pub(super) struct Rest<'a> {
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Block<'a>; 1]>,
    tools: &'a Value,
}

#[derive(Serialize)]
pub(super) struct RequestMessage<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
struct Block<'a> {
    #[serde(flatten)]
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Own(Own<'a>),
    /// An unmodified object.
    ReasoningState(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Own<'a> {
    Text {
        text: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: Cow<'a, str>,
        input: Cow<'a, Value>,
    },
    ToolResult {
        tool_use_id: &'a str,
        is_error: bool,
        content: &'a str,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

/// The fields before the messages.
pub(super) fn start<'a>(inputs: &RequestInputs<'a>) -> Start<'a> {
    Start {
        model: &inputs.access.model,
        max_tokens: inputs.most_tokens.unwrap_or(inputs.access.response_tokens),
    }
}

/// The entry of these messages, unless nothing of them is one. A cache breakpoint is at the end of the newest.
pub(super) fn entry<'a>(
    messages: &[&'a Arc<Message>],
    is_newest: bool,
    inputs: &RequestInputs<'a>,
) -> Option<RequestMessage<'a>> {
    let role = match speaker(messages.first()?)? {
        Speaker::Model => "assistant",
        Speaker::User => "user",
    };
    let blocks = messages.iter().flat_map(|message| blocks(message, inputs));
    let mut content: Vec<Block<'a>> = blocks.collect();
    if let Some(block) = content.last_mut().filter(|_| is_newest) {
        block.cache_control = Some(CacheControl::Ephemeral);
    }
    Some(RequestMessage { role, content })
}

/// The fields after the messages. The other cache breakpoint is at the end of the system prompt.
pub(super) fn rest<'a>(inputs: &RequestInputs<'a>) -> Rest<'a> {
    let system = inputs.system().map(|text| Block {
        cache_control: Some(CacheControl::Ephemeral),
        ..block_of(Own::Text { text })
    });
    Rest {
        stream: inputs.stream,
        system: system.map(|block| [block]),
        tools: inputs.tools,
    }
}

/// The declarations of all tools.
pub(super) fn tools() -> Value {
    let declared = tool::all().map(
        |tool| json!({"name": tool.name, "description": tool.about, "input_schema": tool.schema()}),
    );
    declared.collect()
}

fn blocks<'a>(message: &'a Message, inputs: &RequestInputs<'a>) -> Vec<Block<'a>> {
    match message {
        Message::System { .. } => Vec::new(),
        Message::Task { text } | Message::Note { text } => vec![block_of(Own::Text { text })],
        Message::Assistant { text, calls } => {
            let kept = kept(inputs, calls);
            if !kept.is_empty() {
                return returned_blocks(kept, calls);
            }
            // The API refuses text that is only white space.
            let text = text.trim_end();
            let said = (!text.is_empty()).then(|| block_of(Own::Text { text }));
            let calls = calls.iter().map(tool_use);
            let mut blocks: Vec<Block<'_>> = said.into_iter().chain(calls).collect();
            if blocks.is_empty() {
                blocks.push(block_of(Own::Text { text: "(nothing)" }));
            }
            blocks
        }
        Message::ToolResult { id, ok, output, .. } => {
            let result = Own::ToolResult {
                tool_use_id: id,
                is_error: !ok,
                content: output,
            };
            vec![block_of(result)]
        }
    }
}

fn block_of(own: Own<'_>) -> Block<'_> {
    Block {
        content: Content::Own(own),
        cache_control: None,
    }
}

fn tool_use(call: &ToolCall) -> Block<'_> {
    block_of(Own::ToolUse {
        id: &call.id,
        name: tool_name(&call.name),
        input: arguments(call),
    })
}

/// The unmodified blocks of a response with reasoning: each signature also covers the preceding blocks.
fn returned_blocks<'a>(kept: &'a [Value], calls: &'a [ToolCall]) -> Vec<Block<'a>> {
    let mut calls = calls.iter();
    let blocks = kept
        .iter()
        .filter_map(|block| match block["type"].as_str() {
            Some("tool_use") => calls.next().map(tool_use),
            Some("text")
                if block["text"]
                    .as_str()
                    .is_none_or(|text| text.trim().is_empty()) =>
            {
                None
            }
            _ => Some(Block {
                content: Content::ReasoningState(block),
                cache_control: None,
            }),
        });
    blocks.collect()
}

/// Adds an event or a complete response.
pub(super) fn take(value: &Value, into: &mut Assembly) -> Result<(), ModelError> {
    match value["type"].as_str() {
        Some("error") => {
            return Err(error_in(value).unwrap_or_else(|| ModelError::of_stream("unknown error")));
        }
        Some("message_start") => message(&value["message"], into)?,
        Some("content_block_start") => {
            block(value["index"].as_u64(), &value["content_block"], into)?;
        }
        Some("content_block_delta") => delta(value, into)?,
        Some("message_delta") => {
            usage(&value["usage"], into);
            stopped(&value["delta"], into);
        }
        Some("message") => message(value, into)?,
        _ => {}
    }
    Ok(())
}

fn message(message: &Value, into: &mut Assembly) -> Result<(), ModelError> {
    usage(&message["usage"], into);
    for (index, part) in list(&message["content"]).iter().enumerate() {
        block(Some(index as u64), part, into)?;
    }
    stopped(message, into);
    Ok(())
}

fn block(index: Option<u64>, block: &Value, into: &mut Assembly) -> Result<(), ModelError> {
    let kind = block["type"].as_str();
    let place = index.unwrap_or_default();
    match kind {
        Some("tool_use") => into.keep(place, json!({"type": "tool_use"}))?,
        Some("text" | "thinking" | "redacted_thinking") => into.keep(place, block.clone())?,
        _ => {}
    }
    match kind {
        Some("text") => into.text(block["text"].as_str().unwrap_or_default()),
        Some("thinking") => into.reason(block["thinking"].as_str().unwrap_or_default()),
        Some("tool_use") => {
            // In a stream, the input starts empty and arrives in deltas.
            let input = match block["input"].as_object() {
                Some(input) if !input.is_empty() => block["input"].to_string(),
                _ => String::new(),
            };
            let (id, name) = (block["id"].as_str(), block["name"].as_str());
            into.call(place, id, name, &input)
        }
        _ => Ok(()),
    }
}

fn delta(event: &Value, into: &mut Assembly) -> Result<(), ModelError> {
    let delta = &event["delta"];
    let of = |name: &str| delta[name].as_str().unwrap_or_default();
    let index = event["index"].as_u64().unwrap_or_default();
    match delta["type"].as_str() {
        Some("text_delta") => {
            into.keep_more(index, "text", of("text"))?;
            into.text(of("text"))
        }
        Some("thinking_delta") => {
            into.keep_more(index, "thinking", of("thinking"))?;
            into.reason(of("thinking"))
        }
        Some("signature_delta") => into.keep_more(index, "signature", of("signature")),
        Some("input_json_delta") => into.call(index, None, None, of("partial_json")),
        _ => Ok(()),
    }
}

/// The API does not count tokens read from and written to the cache as input tokens.
fn usage(usage: &Value, into: &mut Assembly) {
    if let Some(fresh) = usage["input_tokens"].as_u64() {
        let of = |name: &str| usage[name].as_u64().unwrap_or_default();
        let cached = of("cache_read_input_tokens");
        let written = of("cache_creation_input_tokens");
        into.usage.tokens_in = Some(fresh.saturating_add(cached).saturating_add(written));
        into.usage.tokens_cached = Some(cached);
        into.tokens_written = Some(written);
    }
    count(&mut into.usage.tokens_out, &usage["output_tokens"]);
}

fn stopped(of: &Value, into: &mut Assembly) {
    if let Some(reason) = of["stop_reason"].as_str() {
        into.stop = Some(match reason {
            "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
            "refusal" => StopReason::Filter,
            _ => StopReason::End,
        });
    }
}
