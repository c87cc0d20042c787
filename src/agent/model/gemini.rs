//! Google's *generateContent*.

use super::assembly::{Assembly, count, error_in, list};
use super::entry::{entries, entry_of_speaker, is_of_same_speaker};
use super::{RequestInputs, arguments, tool_name};
use crate::context::Message;
use crate::model_error::ModelError;
use crate::session::StopReason;
use crate::tool::{SERVED, Tool};
use serde_json::{Value, json};

/// The body of a request.
pub(super) fn body(inputs: &RequestInputs<'_>) -> Value {
    let contents = entries(inputs, is_of_same_speaker, |group| {
        let parts = group.iter().flat_map(|message| parts(message, inputs));
        entry_of_speaker(group, "model", "parts", parts.collect())
    });
    let mut body = json!({ "contents": contents });
    if let Some(text) = inputs.system() {
        body["systemInstruction"] = json!({"parts": [{"text": text}]});
    }
    if let Some(most) = inputs.most_tokens {
        body["generationConfig"] = json!({ "maxOutputTokens": most });
    }
    body["tools"] = inputs.tools.clone();
    body
}

/// The declaration of a tool. Only a whole JSON schema may have all that the schemas of servers have.
pub(super) fn tool(tool: &Tool) -> Value {
    let is_served = tool.name.starts_with(SERVED);
    let schema = if is_served {
        "parametersJsonSchema"
    } else {
        "parameters"
    };
    json!({"name": tool.name, "description": tool.about, schema: tool.schema})
}

fn parts(message: &Message, inputs: &RequestInputs<'_>) -> Vec<Value> {
    match message {
        Message::System { .. } => Vec::new(),
        Message::Task { text } | Message::Note { text } => vec![json!({ "text": text })],
        Message::Assistant { text, calls } => {
            let said = (!text.is_empty() || calls.is_empty()).then(|| json!({ "text": text }));
            let calls = calls.iter().map(|call| {
                let name = tool_name(&call.name);
                let call_part = json!({"id": call.id, "name": name, "args": arguments(call)});
                let mut part = json!({ "functionCall": call_part });
                if let Some(signature) = inputs.kept.signature(&call.id) {
                    part["thoughtSignature"] = signature.into();
                }
                part
            });
            said.into_iter().chain(calls).collect()
        }
        Message::ToolResult {
            id,
            name,
            ok,
            output,
        } => {
            let field = if *ok { "output" } else { "error" };
            let name = tool_name(name);
            let response = json!({"id": id, "name": name, "response": { field: output }});
            vec![json!({ "functionResponse": response })]
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
    let sum = [said, thought]
        .into_iter()
        .flatten()
        .reduce(u64::saturating_add);
    into.usage.tokens_out = sum.or(into.usage.tokens_out);
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
