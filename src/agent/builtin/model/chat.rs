//! OpenAI's *chat completions*, as many servers speak it.

use super::assembly::{Assembly, count, error_in, list};
use super::{Ask, arguments_text, tools};
use crate::domain::builtin::context::Message;
use crate::domain::builtin::model_error::ModelError;
use crate::domain::builtin::session::StopReason;
use serde_json::{Value, json};

/// The body of a request.
pub(super) fn body(ask: &Ask<'_>) -> Value {
    let messages: Vec<Value> = ask.messages.iter().map(message).collect();
    let mut body = json!({
        "model": ask.access.model,
        "messages": messages,
        "stream": ask.stream,
    });
    if ask.stream {
        body["stream_options"] = json!({"include_usage": true});
    }
    if let Some(most) = ask.most_tokens {
        body["max_tokens"] = json!(most);
    }
    if ask.tools {
        body["tools"] = tools(|tool| {
            json!({"type": "function", "function": {
                "name": tool.name, "description": tool.about, "parameters": tool.schema(),
            }})
        });
    }
    body
}

fn message(message: &Message) -> Value {
    match message {
        Message::System { text } => json!({"role": "system", "content": text}),
        Message::Task { text } | Message::Note { text } => json!({"role": "user", "content": text}),
        Message::Assistant { text, calls } if calls.is_empty() => {
            json!({"role": "assistant", "content": text})
        }
        Message::Assistant { text, calls } => {
            let calls: Vec<Value> = calls
                .iter()
                .map(|call| {
                    json!({"id": call.id, "type": "function", "function": {
                        "name": call.name, "arguments": arguments_text(call),
                    }})
                })
                .collect();
            let content = match text.is_empty() {
                true => Value::Null,
                false => json!(text),
            };
            json!({"role": "assistant", "content": content, "tool_calls": calls})
        }
        Message::ToolResult { id, output, .. } => {
            json!({"role": "tool", "tool_call_id": id, "content": output})
        }
    }
}

/// Takes a chunk in, or a whole response, which differs by one name.
pub(super) fn take(value: &Value, into: &mut Assembly) -> Result<(), ModelError> {
    if let Some(error) = error_in(value) {
        return Err(error);
    }
    let usage = &value["usage"];
    count(&mut into.usage.tokens_in, &usage["prompt_tokens"]);
    count(&mut into.usage.tokens_out, &usage["completion_tokens"]);
    let cached = &usage["prompt_tokens_details"]["cached_tokens"];
    count(&mut into.usage.tokens_cached, cached);
    let choice = &value["choices"][0];
    let said = match choice.get("delta") {
        Some(delta) => delta,
        None => &choice["message"],
    };
    if let Some(text) = said["content"].as_str() {
        into.text(text)?;
    }
    for part in list(&said["content"]) {
        into.text(part["text"].as_str().unwrap_or_default())?;
    }
    into.text(said["refusal"].as_str().unwrap_or_default())?;
    let reasoning = ["reasoning_content", "reasoning"];
    let reasoning = reasoning.iter().find_map(|name| said[*name].as_str());
    into.reason(reasoning.unwrap_or_default())?;
    for (position, call) in list(&said["tool_calls"]).iter().enumerate() {
        let function = &call["function"];
        let arguments = match &function["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        into.call(
            call["index"].as_u64().unwrap_or(position as u64),
    let written = &usage["prompt_tokens_details"]["cache_write_tokens"];
    count(&mut into.tokens_written, written);
            call["id"].as_str(),
            function["name"].as_str(),
            &arguments,
        )?;
    }
    if let Some(reason) = choice["finish_reason"].as_str() {
        into.stop = Some(match reason {
            "length" => StopReason::Length,
            "content_filter" => StopReason::Filter,
            _ => StopReason::End,
        });
    }
    Ok(())
}
