//! OpenAI's *chat completions*, as many servers speak it.

use super::super::models;
use super::assembly::{Assembly, count, error_in, list};
use super::{Ask, arguments_text, kept, tools};
use crate::domain::builtin::context::Message;
use crate::domain::builtin::model_error::ModelError;
use crate::domain::builtin::session::StopReason;
use crate::domain::builtin::tool::ToolCall;
use serde_json::{Value, json};

/// The body of a request.
pub(super) fn body(ask: &Ask<'_>) -> Value {
    let messages: Vec<Value> = ask.messages.iter().map(|it| message(it, ask)).collect();
    let mut body = json!({
        "model": ask.access.model,
        "messages": messages,
        "stream": ask.stream,
    });
    // Mistral says how much was used anyway, and refuses to be asked for it.
    if ask.stream && ask.access.provider != "mistral" {
        body["stream_options"] = json!({"include_usage": true});
    }
    if let Some(most) = ask.most_tokens {
        let name = match models::is_reasoning(&ask.access.model) {
            true => "max_completion_tokens",
            false => "max_tokens",
        };
        body[name] = json!(most);
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

fn message(message: &Message, ask: &Ask<'_>) -> Value {
    match message {
        Message::System { text } => json!({"role": "system", "content": text}),
        Message::Task { text } | Message::Note { text } => json!({"role": "user", "content": text}),
        Message::Assistant { text, calls } if calls.is_empty() => {
            json!({"role": "assistant", "content": text})
        }
        Message::Assistant { text, calls } => {
            let reasoning = reasoning(ask, calls);
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
            let mut message = json!({"role": "assistant", "content": content, "tool_calls": calls});
            if let Some(reasoning) = reasoning {
                message["reasoning_content"] = json!(reasoning);
            }
            message
        }
        Message::ToolResult { id, output, .. } => {
            json!({"role": "tool", "tool_call_id": id, "content": output})
        }
    }
}

/// The reasoning that goes back with calls. DeepSeek refuses calls without it, were it empty.
fn reasoning(ask: &Ask<'_>, calls: &[ToolCall]) -> Option<String> {
    let kept = kept(ask, calls);
    let known = kept
        .first()
        .and_then(|part| part["reasoning_content"].as_str());
    let needed = ask.access.provider == "deepseek";
    known
        .map(str::to_owned)
        .or_else(|| needed.then(String::new))
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
    let written = &usage["prompt_tokens_details"]["cache_write_tokens"];
    count(&mut into.tokens_written, written);
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
    if let Some(more) = said["reasoning_content"].as_str() {
        into.keep_text("reasoning_content", more)?;
    }
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
