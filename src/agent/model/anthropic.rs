//! Anthropic's *messages*.

use super::assembly::{Assembly, count, error_in, list};
use super::entry::{entries, entry_of_speaker, is_of_same_speaker};
use super::{RequestInputs, arguments, kept, tool_name};
use crate::context::Message;
use crate::model_error::ModelError;
use crate::session::StopReason;
use crate::tool::{Tool, ToolCall};
use serde_json::{Value, json};

/// The body of a request. A cache breakpoint is at the end of the system prompt, another at the end of the newest
/// message.
pub(super) fn body(inputs: &RequestInputs<'_>) -> Value {
    let mut messages = entries(inputs, is_of_same_speaker, |group| {
        let blocks = group.iter().flat_map(|message| blocks(message, inputs));
        entry_of_speaker(group, "assistant", "content", blocks.collect())
    });
    let newest = messages.last_mut();
    let newest = newest.and_then(|message| message["content"].as_array_mut()?.last_mut());
    if let Some(block) = newest {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
    let mut body = json!({
        "model": inputs.access.model,
        "max_tokens": inputs.most_tokens.unwrap_or(inputs.access.response_tokens),
        "messages": messages,
        "stream": inputs.stream,
    });
    if let Some(text) = inputs.system() {
        let cache_control = json!({"type": "ephemeral"});
        body["system"] = json!([{"type": "text", "text": text, "cache_control": cache_control}]);
    }
    body["tools"] = inputs.tools.clone();
    body
}

/// The declaration of a tool.
pub(super) fn tool(tool: &Tool) -> Value {
    json!({"name": tool.name, "description": tool.about, "input_schema": tool.schema})
}

fn blocks(message: &Message, inputs: &RequestInputs<'_>) -> Vec<Value> {
    match message {
        Message::System { .. } => Vec::new(),
        Message::Task { text } | Message::Note { text } => vec![text_block(text)],
        Message::Assistant { text, calls } => {
            let kept = kept(inputs, calls);
            if !kept.is_empty() {
                return returned_blocks(kept, calls);
            }
            // The API refuses text that is only white space.
            let text = text.trim_end();
            let said = (!text.is_empty()).then(|| text_block(text));
            let mut blocks: Vec<Value> =
                said.into_iter().chain(calls.iter().map(tool_use)).collect();
            if blocks.is_empty() {
                blocks.push(text_block("(nothing)"));
            }
            blocks
        }
        Message::ToolResult { id, ok, output, .. } => vec![json!({
            "type": "tool_result", "tool_use_id": id, "is_error": !ok, "content": output,
        })],
    }
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn tool_use(call: &ToolCall) -> Value {
    let name = tool_name(&call.name);
    json!({"type": "tool_use", "id": call.id, "name": name, "input": arguments(call)})
}

/// The unmodified blocks of a response with reasoning: each signature also covers the preceding blocks.
fn returned_blocks(kept: &[Value], calls: &[ToolCall]) -> Vec<Value> {
    let mut calls = calls.iter();
    let is_blank = |block: &Value| block["text"].as_str().unwrap_or_default().trim().is_empty();
    let blocks = kept
        .iter()
        .filter_map(|block| match block["type"].as_str() {
            Some("tool_use") => calls.next().map(tool_use),
            Some("text") if is_blank(block) => None,
            _ => Some(block.clone()),
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
    let place = index.unwrap_or_default();
    match block["type"].as_str() {
        Some("redacted_thinking") => into.keep(place, block.clone()),
        Some("text") => {
            into.keep(place, block.clone())?;
            into.text(block["text"].as_str().unwrap_or_default())
        }
        Some("thinking") => {
            into.keep(place, block.clone())?;
            into.reason(block["thinking"].as_str().unwrap_or_default())
        }
        Some("tool_use") => {
            into.keep(place, json!({"type": "tool_use"}))?;
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
