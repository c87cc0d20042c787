//! OpenAI's *responses*.

use super::assembly::{Assembly, count, error_in, list};
use super::entry::entries;
use super::{RequestInputs, arguments, kept, tool_name};
use crate::context::Message;
use crate::model_error::ModelError;
use crate::models;
use crate::session::StopReason;
use crate::tool::{Tool, ToolCall};
use serde_json::{Value, json};

/// The body of a request. The provider is asked to store nothing.
pub(super) fn body(inputs: &RequestInputs<'_>) -> Value {
    let of_group = |group: &[&Message]| -> Vec<Value> {
        let items = group.iter().flat_map(|message| items(message, inputs));
        items.collect()
    };
    let items = entries(inputs, |_, _| false, of_group);
    let mut body = json!({
        "model": inputs.access.model,
        "input": items,
        "store": false,
        "stream": inputs.stream,
    });
    if let Some(text) = inputs.system() {
        body["instructions"] = text.into();
    }
    if let Some(most) = inputs.most_tokens {
        body["max_output_tokens"] = most.into();
    }
    // A model without reasoning refuses the option.
    if inputs.encrypted && models::is_reasoning(&inputs.access.model) {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    body["tools"] = inputs.tools.clone();
    body
}

/// The declaration of a tool.
pub(super) fn tool(tool: &Tool) -> Value {
    json!({"type": "function", "name": tool.name, "description": tool.about,
           "parameters": tool.schema, "strict": false})
}

/// The items of a message.
fn items(message: &Message, inputs: &RequestInputs<'_>) -> Vec<Value> {
    let said = |role: &str, content: &str| json!({"role": role, "content": content});
    match message {
        Message::System { .. } => Vec::new(),
        Message::Task { text } | Message::Note { text } => vec![said("user", text)],
        Message::Assistant { text, calls } => {
            let mut said = (!text.is_empty()).then(|| said("assistant", text));
            let mut calls = calls.iter();
            let kept = kept(inputs, calls.as_slice());
            if kept.is_empty() {
                return said.into_iter().chain(calls.map(called)).collect();
            }
            // A reasoning item must be followed by the item that originally followed it.
            let items = kept.iter().filter_map(|item| match item["type"].as_str() {
                Some("message") => said.take(),
                Some("function_call") => calls.next().map(called),
                _ => Some(item.clone()),
            });
            items.collect()
        }
        Message::ToolResult { id, output, .. } => {
            vec![json!({"type": "function_call_output", "call_id": id, "output": output})]
        }
    }
}

fn called(call: &ToolCall) -> Value {
    let name = tool_name(&call.name);
    let arguments = arguments(call).to_string();
    json!({"type": "function_call", "call_id": call.id, "name": name, "arguments": arguments})
}

/// Adds an event or a complete response.
pub(super) fn take(value: &Value, into: &mut Assembly) -> Result<(), ModelError> {
    match value["type"].as_str() {
        Some("response.output_item.done") => item(&value["item"], into),
        Some("response.completed" | "response.incomplete" | "response.failed") => {
            ended(&value["response"], into)
        }
        Some("error") => {
            Err(error_in(value).unwrap_or_else(|| ModelError::of_stream(&value.to_string())))
        }
        Some(_) => Ok(()),
        None => ended(value, into),
    }
}

fn ended(response: &Value, into: &mut Assembly) -> Result<(), ModelError> {
    if let Some(error) = error_in(response) {
        return Err(error);
    }
    let usage = &response["usage"];
    count(&mut into.usage.tokens_in, &usage["input_tokens"]);
    count(&mut into.usage.tokens_out, &usage["output_tokens"]);
    let cached = &usage["input_tokens_details"]["cached_tokens"];
    count(&mut into.usage.tokens_cached, cached);
    let written = &usage["input_tokens_details"]["cache_write_tokens"];
    count(&mut into.tokens_written, written);
    // In a stream, the items have already arrived one by one.
    if into.is_empty() {
        for part in list(&response["output"]) {
            item(part, into)?;
        }
    }
    into.stop = match response["status"].as_str() {
        Some("completed") => Some(StopReason::End),
        Some("incomplete") => Some(match response["incomplete_details"]["reason"].as_str() {
            Some("content_filter") => StopReason::Filter,
            _ => StopReason::Length,
        }),
        Some("failed") => return Err(ModelError::of_stream("server error: the response failed")),
        _ => None,
    };
    Ok(())
}

fn item(item: &Value, into: &mut Assembly) -> Result<(), ModelError> {
    match item["type"].as_str() {
        Some("message") => {
            into.keep(0, json!({"type": "message"}))?;
            for part in list(&item["content"]) {
                let text = part["text"].as_str().or(part["refusal"].as_str());
                into.text(text.unwrap_or_default())?;
            }
        }
        Some("reasoning") => {
            for part in list(&item["summary"]) {
                into.reason(part["text"].as_str().unwrap_or_default())?;
            }
            // Nothing is stored at the provider, so the item's id is useless. Without its content it has no
            // use at all.
            if let Some(content) = item["encrypted_content"].as_str() {
                let summary = json!(list(&item["summary"]));
                into.keep(
                    0,
                    json!({"type": "reasoning", "summary": summary, "encrypted_content": content}),
                )?;
            }
        }
        Some("function_call") => {
            into.keep(0, json!({"type": "function_call"}))?;
            into.whole_call(
                item["call_id"].as_str(),
                item["name"].as_str().unwrap_or_default(),
                &item["arguments"],
                None,
            )?;
        }
        _ => {}
    }
    Ok(())
}
