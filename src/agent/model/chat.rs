//! OpenAI's *chat completions*, as many servers implement it.

use super::assembly::{Assembly, argument_text, count, error_in, list};
use super::{AsText, RequestInputs, arguments, kept, tool_name};
use crate::context::Message;
use crate::model_error::ModelError;
use crate::models;
use crate::session::StopReason;
use crate::tool::{self, ToolCall};
use serde::Serialize;
use serde_json::{Value, json};
use sprag_domain::text::add_paragraph;
use std::borrow::Cow;
use std::sync::Arc;

/// The field with reasoning as text. Servers that send it require it back with the calls.
const WHOLE: &str = "reasoning_content";
/// OpenRouter's field with reasoning in parts, signed by the provider of the model.
const DETAILS: &str = "reasoning_details";
/// The part number of reasoning as text. The numbers of other parts start at zero.
const WHOLE_INDEX: u64 = u64::MAX;

#[derive(Serialize)]
pub(super) struct Start<'a> {
    model: &'a str,
}

#[derive(Serialize)]
pub(super) struct Rest<'a> {
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<usize>,
    tools: &'a Value,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
pub(super) struct RequestMessage<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    /// `null` for calls without text.
    content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none", rename = "reasoning_content")]
    whole: Option<Cow<'a, Value>>,
    #[serde(skip_serializing_if = "Vec::is_empty", rename = "reasoning_details")]
    details: Vec<&'a Value>,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: AsText<'a>,
}

/// The fields before the messages.
pub(super) fn start<'a>(inputs: &RequestInputs<'a>) -> Start<'a> {
    Start {
        model: &inputs.access.model,
    }
}

/// Whether a message belongs to the entry that begins with `first`: Mistral, and similar templates, refuse a user
/// message after the result of a call.
pub(super) fn joins(first: &Message, next: &Message) -> bool {
    matches!(
        (first, next),
        (Message::ToolResult { .. }, Message::Note { .. })
    )
}

/// The entry of these messages.
pub(super) fn entry<'a>(
    messages: &[&'a Arc<Message>],
    inputs: &RequestInputs<'a>,
) -> Option<RequestMessage<'a>> {
    let (first, notes) = messages.split_first()?;
    let mut entry = sent(first, inputs);
    for note in notes {
        if let Message::Note { text } = &***note {
            let content = entry.content.get_or_insert_default();
            add_paragraph(content.to_mut(), text);
        }
    }
    Some(entry)
}

/// The fields after the messages.
pub(super) fn rest<'a>(inputs: &RequestInputs<'a>) -> Rest<'a> {
    let reasoning = models::is_reasoning(&inputs.access.model);
    // Mistral reports the usage without being asked, and refuses the option.
    let counted = inputs.stream && inputs.access.provider != "mistral";
    Rest {
        stream: inputs.stream,
        stream_options: counted.then_some(StreamOptions {
            include_usage: true,
        }),
        max_tokens: inputs.most_tokens.filter(|_| !reasoning),
        max_completion_tokens: inputs.most_tokens.filter(|_| reasoning),
        tools: inputs.tools,
    }
}

/// The declarations of all tools.
pub(super) fn tools() -> Value {
    let declared = tool::all().map(|tool| {
        json!({"type": "function", "function": {
            "name": tool.name, "description": tool.about, "parameters": tool.schema(),
        }})
    });
    declared.collect()
}

fn sent<'a>(message: &'a Message, inputs: &RequestInputs<'a>) -> RequestMessage<'a> {
    match message {
        Message::System { text } => plain("system", text),
        Message::Task { text } | Message::Note { text } => plain("user", text),
        Message::Assistant { text, calls } if calls.is_empty() => {
            // Some servers refuse a message with neither text nor calls.
            let text = Some(text.as_str()).filter(|text| !text.trim_end().is_empty());
            plain("assistant", text.unwrap_or("(nothing)"))
        }
        Message::Assistant { text, calls } => {
            let (whole, details) = thoughts_before(inputs, calls);
            RequestMessage {
                content: Some(Cow::from(text)).filter(|text| !text.is_empty()),
                tool_calls: calls.iter().map(called).collect(),
                whole,
                details,
                ..plain("assistant", text)
            }
        }
        Message::ToolResult { id, output, .. } => RequestMessage {
            tool_call_id: Some(id),
            ..plain("tool", output)
        },
    }
}

fn plain<'a>(role: &'static str, content: &'a str) -> RequestMessage<'a> {
    RequestMessage {
        role,
        tool_call_id: None,
        content: Some(Cow::Borrowed(content)),
        tool_calls: Vec::new(),
        whole: None,
        details: Vec::new(),
    }
}

fn called(call: &ToolCall) -> Call<'_> {
    Call {
        id: &call.id,
        r#type: "function",
        function: Function {
            name: tool_name(&call.name),
            arguments: AsText(arguments(call)),
        },
    }
}

/// The reasoning before these calls, which is sent back with them: the text, and the parts. DeepSeek refuses
/// calls without the text, even if it is empty.
fn thoughts_before<'a>(
    inputs: &RequestInputs<'a>,
    calls: &[ToolCall],
) -> (Option<Cow<'a, Value>>, Vec<&'a Value>) {
    let kept = kept(inputs, calls);
    if kept.is_empty() && inputs.access.provider == "deepseek" {
        return (Some(Cow::Owned(json!(""))), Vec::new());
    }
    let whole = kept.iter().rev().find_map(|thought| thought.get(WHOLE));
    let details = kept.iter().filter(|thought| thought.get(WHOLE).is_none());
    (whole.map(Cow::Borrowed), details.collect())
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
