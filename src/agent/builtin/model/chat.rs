//! OpenAI's *chat completions*, as many servers speak it.

use super::super::models;
use super::assembly::{Assembly, count, error_in, list};
use super::{Ask, arguments_text, kept, tools};
use crate::domain::builtin::context::Message;
use crate::domain::builtin::model_error::ModelError;
use crate::domain::builtin::session::StopReason;
use crate::domain::builtin::tool::ToolCall;
use serde_json::{Value, json};

/// The field of thoughts as text. Servers that have it want it back with the calls.
const WHOLE: &str = "reasoning_content";
/// The field of OpenRouter's, which has them in parts, signed by whoever made them.
const DETAILS: &str = "reasoning_details";
/// The number of the thoughts as text; parts count from zero.
const WHOLE_INDEX: u64 = u64::MAX;

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
            let thoughts = thoughts_before(ask, calls);
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
            let mut said = json!({"role": "assistant", "content": content, "tool_calls": calls});
            for thought in thoughts {
                match thought.get(WHOLE) {
                    Some(text) => said[WHOLE] = text.clone(),
                    None => match &mut said[DETAILS] {
                        Value::Array(details) => details.push(thought),
                        other => *other = json!([thought]),
                    },
                }
            }
            said
        }
        Message::ToolResult { id, output, .. } => {
            json!({"role": "tool", "tool_call_id": id, "content": output})
        }
    }
}

/// What was thought before these calls, which goes back with them. DeepSeek refuses calls without it,
/// were it empty.
fn thoughts_before(ask: &Ask<'_>, calls: &[ToolCall]) -> Vec<Value> {
    let mut thoughts = kept(ask, calls);
    if thoughts.is_empty() && ask.access.provider == "deepseek" {
        thoughts.push(json!({WHOLE: ""}));
    }
    thoughts
}

/// Takes a chunk in, or a whole response, which differs by one name.
pub(super) fn take(value: &Value, into: &mut Assembly) -> Result<(), ModelError> {
    if let Some(error) = error_in(value) {
        return Err(error);
    }
    let usage = &value["usage"];
    count(&mut into.usage.tokens_in, &usage["prompt_tokens"]);
    count(&mut into.usage.tokens_out, &usage["completion_tokens"]);
    // Some count thoughts in the total alone.
    let of = |name: &str| usage[name].as_u64();
    if let (Some(sent), Some(total)) = (of("prompt_tokens"), of("total_tokens")) {
        let rest = total.saturating_sub(sent);
        into.usage.tokens_out = into.usage.tokens_out.map(|said| said.max(rest));
    }
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
    thoughts(said, into)?;
    let reasoning = [WHOLE, "reasoning"];
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

/// What has to go back with the calls. The parts come in pieces in a stream.
fn thoughts(said: &Value, into: &mut Assembly) -> Result<(), ModelError> {
    if let Some(text) = said[WHOLE].as_str() {
        if !into.has_kept(WHOLE_INDEX, &Value::Null) {
            into.keep(WHOLE_INDEX, json!({WHOLE: ""}))?;
        }
        into.keep_more(WHOLE_INDEX, WHOLE, text)?;
    }
    for (position, part) in list(&said[DETAILS]).iter().enumerate() {
        let index = part["index"].as_u64().unwrap_or(position as u64);
        if !into.has_kept(index, &part["type"]) {
            into.keep(index, part.clone())?;
            continue;
        }
        for field in ["text", "summary", "data", "signature"] {
            if let Some(more) = part[field].as_str() {
                into.keep_more(index, field, more)?;
            }
        }
    }
    Ok(())
}
