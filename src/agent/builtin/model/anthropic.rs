//! Anthropic's *messages*.

use super::assembly::{Assembly, count, error_in, list};
use super::{Ask, arguments_value, kept, tools};
use crate::domain::builtin::context::Message;
use crate::domain::builtin::model_error::ModelError;
use crate::domain::builtin::session::StopReason;
use crate::domain::builtin::tool::ToolCall;
use serde_json::{Value, json};

/// The body of a request. The system prompt and the newest message end what the provider may cache.
pub(super) fn body(ask: &Ask<'_>) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    for message in ask.messages {
        let Some((role, blocks)) = blocks(message, ask) else {
            continue;
        };
        // Roles take turns, so the results of calls and what is said with them are one message.
        match messages.last_mut() {
            Some(last) if last["role"] == role => {
                if let Some(content) = last["content"].as_array_mut() {
                    content.extend(blocks);
                }
            }
            _ => messages.push(json!({"role": role, "content": blocks})),
        }
    }
    let newest = messages
        .last_mut()
        .and_then(|last| last["content"].as_array_mut());
    if let Some(block) = newest.and_then(|blocks| blocks.last_mut()) {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
    let mut body = json!({
        "model": ask.access.model,
        "max_tokens": ask.most_tokens.unwrap_or(ask.access.response_tokens),
        "messages": messages,
        "stream": ask.stream,
    });
    if let Some(Message::System { text }) = ask.messages.first() {
        body["system"] =
            json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
    }
    if ask.tools {
        body["tools"] = tools(
            |tool| json!({"name": tool.name, "description": tool.about, "input_schema": tool.schema()}),
        );
    }
    body
}

fn blocks(message: &Message, ask: &Ask<'_>) -> Option<(&'static str, Vec<Value>)> {
    Some(match message {
        Message::System { .. } => return None,
        Message::Task { text } | Message::Note { text } => {
            ("user", vec![json!({"type": "text", "text": text})])
        }
        Message::Assistant { calls, .. } if !kept(ask, calls).is_empty() => {
            ("assistant", given_back(kept(ask, calls), calls))
        }
        Message::Assistant { text, calls } => {
            // Text of nothing but white space is refused.
            let said = text.trim_end();
            let said = (!said.is_empty()).then(|| json!({"type": "text", "text": said}));
            let mut blocks: Vec<Value> =
                said.into_iter().chain(calls.iter().map(tool_use)).collect();
            if blocks.is_empty() {
                blocks.push(json!({"type": "text", "text": "(nothing)"}));
            }
            ("assistant", blocks)
        }
        Message::ToolResult { id, ok, output, .. } => (
            "user",
            vec![
                json!({"type": "tool_result", "tool_use_id": id, "is_error": !ok,
                        "content": output}),
            ],
        ),
    })
}

fn tool_use(call: &ToolCall) -> Value {
    json!({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_value(call)})
}

/// The blocks of a response in which the model thought, as they came: their signatures hold for what
/// stands before them.
fn given_back(kept: Vec<Value>, calls: &[ToolCall]) -> Vec<Value> {
    let mut calls = calls.iter();
    let blocks = kept
        .into_iter()
        .filter_map(|block| match block["type"].as_str() {
            Some("tool_use") => calls.next().map(tool_use),
            Some("text")
                if block["text"]
                    .as_str()
                    .is_none_or(|text| text.trim().is_empty()) =>
            {
                None
            }
            _ => Some(block),
        });
    blocks.collect()
}

/// Takes an event in, or a whole response.
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
            // In a stream the input begins empty and comes in deltas.
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

/// What was read from and written to the cache is not among the input tokens.
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
