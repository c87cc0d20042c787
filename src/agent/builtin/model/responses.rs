//! OpenAI's *responses*.

use super::super::models;
use super::assembly::{Assembly, count, error_in, list};
use super::{Ask, arguments_text, kept, tools};
use crate::domain::builtin::context::Message;
use crate::domain::builtin::model_error::ModelError;
use crate::domain::builtin::session::StopReason;
use crate::domain::builtin::tool::ToolCall;
use serde_json::{Value, json};

/// The body of a request. Nothing is kept at the provider.
pub(super) fn body(ask: &Ask<'_>) -> Value {
    let input: Vec<Value> = ask
        .messages
        .iter()
        .flat_map(|message| items(message, ask))
        .collect();
    let mut body = json!({
        "model": ask.access.model,
        "input": input,
        "store": false,
        "stream": ask.stream,
    });
    if let Some(Message::System { text }) = ask.messages.first() {
        body["instructions"] = json!(text);
    }
    if let Some(most) = ask.most_tokens {
        body["max_output_tokens"] = json!(most);
    }
    // A model that does not reason refuses to be asked for it.
    if ask.encrypted && models::is_reasoning(&ask.access.model) {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    if ask.tools {
        body["tools"] = tools(|tool| {
            json!({"type": "function", "name": tool.name, "description": tool.about,
                   "parameters": tool.schema(), "strict": false})
        });
    }
    body
}

fn items(message: &Message, ask: &Ask<'_>) -> Vec<Value> {
    match message {
        Message::System { .. } => Vec::new(),
        Message::Task { text } | Message::Note { text } => {
            vec![json!({"role": "user", "content": text})]
        }
        Message::Assistant { text, calls } => {
            let said = (!text.is_empty()).then(|| json!({"role": "assistant", "content": text}));
            let kept = kept(ask, calls);
            if kept.is_empty() {
                return said
                    .into_iter()
                    .chain(calls.iter().map(call_item))
                    .collect();
            }
            // A reasoning item must be followed by what followed it.
            let (mut said, mut calls) = (said, calls.iter());
            let items = kept
                .into_iter()
                .filter_map(|item| match item["type"].as_str() {
                    Some("message") => said.take(),
                    Some("function_call") => calls.next().map(call_item),
                    _ => Some(item),
                });
            items.collect()
        }
        Message::ToolResult { id, output, .. } => {
            vec![json!({"type": "function_call_output", "call_id": id, "output": output})]
        }
    }
}

fn call_item(call: &ToolCall) -> Value {
    json!({"type": "function_call", "call_id": call.id, "name": call.name,
           "arguments": arguments_text(call)})
}

/// Takes an event in, or a whole response.
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
    // The items of a stream have come one by one.
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
            // Nothing is stored, so it has no id there; without its content it says nothing.
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
