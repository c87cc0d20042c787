//! Google's *generateContent*.

use super::assembly::{Assembly, count, error_in, list};
use super::{Ask, arguments_value, tools};
use crate::domain::builtin::context::Message;
use crate::domain::builtin::model_error::ModelError;
use crate::domain::builtin::session::StopReason;
use serde_json::{Value, json};

/// The body of a request.
pub(super) fn body(ask: &Ask<'_>) -> Value {
    let mut contents: Vec<Value> = Vec::new();
    for message in ask.messages {
        let Some((role, parts)) = parts(message, ask) else {
            continue;
        };
        match contents.last_mut() {
            Some(last) if last["role"] == role => {
                if let Some(known) = last["parts"].as_array_mut() {
                    known.extend(parts);
                }
            }
            _ => contents.push(json!({"role": role, "parts": parts})),
        }
    }
    let mut body = json!({"contents": contents});
    if let Some(Message::System { text }) = ask.messages.first() {
        body["systemInstruction"] = json!({"parts": [{"text": text}]});
    }
    if let Some(most) = ask.most_tokens {
        body["generationConfig"] = json!({"maxOutputTokens": most});
    }
    if ask.tools {
        let declarations = tools(
            |tool| json!({"name": tool.name, "description": tool.about, "parameters": tool.schema()}),
        );
        body["tools"] = json!([{"functionDeclarations": declarations}]);
    }
    body
}

fn parts(message: &Message, ask: &Ask<'_>) -> Option<(&'static str, Vec<Value>)> {
    Some(match message {
        Message::System { .. } => return None,
        Message::Task { text } | Message::Note { text } => ("user", vec![json!({"text": text})]),
        Message::Assistant { text, calls } => {
            let said = (!text.is_empty() || calls.is_empty()).then(|| json!({"text": text}));
            let calls = calls.iter().map(|call| {
                let mut part = json!({
                    "functionCall": {"id": call.id, "name": call.name, "args": arguments_value(call)},
                });
                if let Some(signature) = ask.kept.signature(&call.id) {
                    part["thoughtSignature"] = json!(signature);
                }
                part
            });
            ("model", said.into_iter().chain(calls).collect())
        }
        Message::ToolResult {
            id,
            name,
            ok,
            output,
        } => {
            let word = if *ok { "output" } else { "error" };
            (
                "user",
                vec![
                    json!({"functionResponse": {"id": id, "name": name, "response": {word: output}}}),
                ],
            )
        }
    })
}

/// Takes a chunk in, or a whole response: they look the same.
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
