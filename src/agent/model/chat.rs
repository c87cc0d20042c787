//! OpenAI's *chat completions*, as many servers implement it.

use super::assembly::{Assembly, argument_text, count, error_in, list};
use super::entry::entries;
use super::{RequestInputs, arguments, kept, tool_name};
use crate::context::Message;
use crate::model_error::ModelError;
use crate::models;
use crate::session::StopReason;
use crate::tool::{Tool, ToolCall};
use serde_json::{Value, json};
use sprag_domain::text::add_paragraph;

/// The field with reasoning as text. Servers that send it require it back with the calls.
const WHOLE: &str = "reasoning_content";
/// OpenRouter's field with reasoning in parts, signed by the provider of the model.
const DETAILS: &str = "reasoning_details";
/// The part number of reasoning as text. The numbers of other parts start at zero.
const WHOLE_INDEX: u64 = u64::MAX;

/// The body of a request.
pub(super) fn body(inputs: &RequestInputs<'_>) -> Value {
    let mut body = json!({
        "model": inputs.access.model,
        "messages": entries(inputs, joins, |group| entry(group, inputs)),
        "stream": inputs.stream,
    });
    // Mistral reports the usage without being asked, and refuses the option.
    if inputs.stream && inputs.access.provider != "mistral" {
        body["stream_options"] = json!({"include_usage": true});
    }
    if let Some(most) = inputs.most_tokens {
        let is_reasoning = models::is_reasoning(&inputs.access.model);
        let field = if is_reasoning {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        body[field] = most.into();
    }
    body["tools"] = inputs.tools.clone();
    body
}

/// Whether two messages in a row become one entry: Mistral, and similar templates, refuse a user message after the
/// result of a call.
fn joins(first: &Message, next: &Message) -> bool {
    let is_of_tools = matches!(first, Message::ToolResult { .. } | Message::Note { .. });
    is_of_tools && matches!(next, Message::Note { .. })
}

fn entry(group: &[&Message], inputs: &RequestInputs<'_>) -> Vec<Value> {
    let Some((first, notes)) = group.split_first() else {
        return Vec::new();
    };
    let mut entry = sent(first, inputs);
    for note in notes {
        if let (Message::Note { text }, Value::String(content)) = (note, &mut entry["content"]) {
            add_paragraph(content, text);
        }
    }
    vec![entry]
}

/// The declaration of a tool.
pub(super) fn tool(tool: &Tool) -> Value {
    json!({"type": "function", "function": {
        "name": tool.name, "description": tool.about, "parameters": tool.schema,
    }})
}

fn sent(message: &Message, inputs: &RequestInputs<'_>) -> Value {
    match message {
        Message::System { text } => json!({"role": "system", "content": text}),
        Message::Task { text } | Message::Note { text } => json!({"role": "user", "content": text}),
        Message::Assistant { text, calls } if calls.is_empty() => {
            // Some servers refuse a message with neither text nor calls.
            let text = Some(text.as_str()).filter(|text| !text.trim_end().is_empty());
            json!({"role": "assistant", "content": text.unwrap_or("(nothing)")})
        }
        Message::Assistant { text, calls } => {
            let text = Some(text).filter(|text| !text.is_empty());
            let tool_calls: Vec<Value> = calls.iter().map(called).collect();
            let mut entry = json!({"role": "assistant", "content": text, "tool_calls": tool_calls});
            add_thoughts(&mut entry, inputs, calls);
            entry
        }
        Message::ToolResult { id, output, .. } => {
            json!({"role": "tool", "tool_call_id": id, "content": output})
        }
    }
}

fn called(call: &ToolCall) -> Value {
    let arguments = arguments(call).to_string();
    let function = json!({"name": tool_name(&call.name), "arguments": arguments});
    json!({"id": call.id, "type": "function", "function": function})
}

/// Adds the reasoning before these calls, which is sent back with them: the text, and the parts. DeepSeek refuses
/// calls without the text, even if it is empty.
fn add_thoughts(entry: &mut Value, inputs: &RequestInputs<'_>, calls: &[ToolCall]) {
    let kept = kept(inputs, calls);
    let (whole, details): (Vec<&Value>, Vec<&Value>) = kept
        .iter()
        .partition(|thought| thought.get(WHOLE).is_some());
    if let Some(thought) = whole.last() {
        entry[WHOLE] = thought[WHOLE].clone();
    } else if kept.is_empty() && inputs.access.provider == "deepseek" {
        entry[WHOLE] = "".into();
    }
    if !details.is_empty() {
        entry[DETAILS] = json!(details);
    }
}

/// Adds a chunk or a complete response, which differs in one field name.
pub(super) fn take(value: &Value, into: &mut Assembly) -> Result<(), ModelError> {
    if let Some(error) = error_in(value) {
        return Err(error);
    }
    let usage = &value["usage"];
    count(&mut into.usage.tokens_in, &usage["prompt_tokens"]);
    count(&mut into.usage.tokens_out, &usage["completion_tokens"]);
    // Some servers count reasoning only in the total.
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
    let reasoning = [WHOLE, "reasoning"]
        .iter()
        .find_map(|name| said[*name].as_str());
    into.reason(reasoning.unwrap_or_default())?;
    for (position, call) in list(&said["tool_calls"]).iter().enumerate() {
        let function = &call["function"];
        into.call(
            call["index"].as_u64().unwrap_or(position as u64),
            call["id"].as_str(),
            function["name"].as_str(),
            &argument_text(&function["arguments"]),
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

/// Stores what must be sent back with the calls. In a stream, its parts arrive in pieces.
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
