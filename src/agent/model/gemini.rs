//! Google's *generateContent*.

use super::assembly::{Assembly, count, error_in, list};
use super::speaker::{Speaker, speaker};
use super::{RequestInputs, arguments, tool_name};
use crate::context::Message;
use crate::model_error::ModelError;
use crate::session::StopReason;
use crate::tool;
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// The fields before the messages: there is none.
#[derive(Serialize)]
pub(super) struct Start {}
pub(super) const START: Start = Start {};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<Generation>,
    tools: &'a Value,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: [Part<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Generation {
    max_output_tokens: usize,
}

#[derive(Serialize)]
pub(super) struct Content<'a> {
    role: &'static str,
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Part<'a> {
    Text {
        text: &'a str,
    },
    #[serde(rename_all = "camelCase")]
    Call {
        function_call: Call<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'a str>,
    },
    #[serde(rename_all = "camelCase")]
    Response {
        function_response: Response<'a>,
    },
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    name: Cow<'a, str>,
    args: Cow<'a, Value>,
}

#[derive(Serialize)]
struct Response<'a> {
    id: &'a str,
    name: Cow<'a, str>,
    response: Outcome<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome<'a> {
    Output(&'a str),
    Error(&'a str),
}

/// The entry of these messages, unless nothing of them is one.
pub(super) fn entry<'a>(
    messages: &[&'a Arc<Message>],
    inputs: &RequestInputs<'a>,
) -> Option<Content<'a>> {
    let role = match speaker(messages.first()?)? {
        Speaker::Model => "model",
        Speaker::User => "user",
    };
    let parts = messages.iter().flat_map(|message| parts(message, inputs));
    Some(Content {
        role,
        parts: parts.collect(),
    })
}

/// The fields after the messages.
pub(super) fn rest<'a>(inputs: &RequestInputs<'a>) -> Rest<'a> {
    let system = inputs.system().map(|text| Instruction {
        parts: [Part::Text { text }],
    });
    Rest {
        system_instruction: system,
        generation_config: inputs
            .most_tokens
            .map(|max_output_tokens| Generation { max_output_tokens }),
        tools: inputs.tools,
    }
}

/// The declarations of all tools.
pub(super) fn tools() -> Value {
    let declared = tool::all().map(
        |tool| json!({"name": tool.name, "description": tool.about, "parameters": tool.schema()}),
    );
    json!([{"functionDeclarations": declared.collect::<Value>()}])
}

fn parts<'a>(message: &'a Message, inputs: &RequestInputs<'a>) -> Vec<Part<'a>> {
    match message {
        Message::System { .. } => Vec::new(),
        Message::Task { text } | Message::Note { text } => vec![Part::Text { text }],
        Message::Assistant { text, calls } => {
            let said = (!text.is_empty() || calls.is_empty()).then_some(Part::Text { text });
            let calls = calls.iter().map(|call| Part::Call {
                function_call: Call {
                    id: &call.id,
                    name: tool_name(&call.name),
                    args: arguments(call),
                },
                thought_signature: inputs.kept.signature(&call.id),
            });
            said.into_iter().chain(calls).collect()
        }
        Message::ToolResult {
            id,
            name,
            ok,
            output,
        } => {
            let response = if *ok {
                Outcome::Output(output)
            } else {
                Outcome::Error(output)
            };
            let name = tool_name(name);
            let function_response = Response { id, name, response };
            vec![Part::Response { function_response }]
        }
    }
}

/// Adds a chunk or a complete response, which have the same form.
pub(super) fn take(value: &Value, into: &mut Assembly) -> Result<(), ModelError> {
    if let Some(error) = error_in(value) {
        return Err(error);
    }
    if let Some(reason) = value["promptFeedback"]["blockReason"].as_str() {
        let refused = format!("content_filter: the prompt was blocked ({reason})");
        return Err(ModelError::of_stream(&refused));
    }
    let usage = &value["usageMetadata"];
    count(&mut into.usage.tokens_in, &usage["promptTokenCount"]);
    count(
        &mut into.usage.tokens_cached,
        &usage["cachedContentTokenCount"],
    );
    let of = |name: &str| usage[name].as_u64();
    let (said, thought) = (of("candidatesTokenCount"), of("thoughtsTokenCount"));
    if said.or(thought).is_some() {
        let sum = said
            .unwrap_or_default()
            .saturating_add(thought.unwrap_or_default());
        into.usage.tokens_out = Some(sum);
    }
    let candidate = &value["candidates"][0];
    for part in list(&candidate["content"]["parts"]) {
        let text = part["text"].as_str().unwrap_or_default();
        match part["thought"].as_bool() {
            Some(true) => into.reason(text)?,
            _ => into.text(text)?,
        }
        if let Some(call) = part.get("functionCall") {
            into.whole_call(
                call["id"].as_str(),
                call["name"].as_str().unwrap_or_default(),
                &call["args"],
                part["thoughtSignature"].as_str(),
            )?;
        }
    }
    if let Some(reason) = candidate["finishReason"].as_str() {
        into.stop = Some(match reason {
            "MAX_TOKENS" => StopReason::Length,
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => {
                StopReason::Filter
            }
            _ => StopReason::End,
        });
    }
    Ok(())
}
