//! Assembles a response from its parts, in the same way for every wire format.

use crate::model_error::ModelError;
use crate::session::StopReason;
use crate::tool::{Arguments, ToolCall};
use serde_json::Value;
use sprag_domain::agent::Usage;

/// Maximum size in bytes of a response's text, and maximum number of its calls.
const MAX_TEXT_BYTES: usize = 16 << 20;
const MAX_CALLS: usize = 256;

/// The types of parts that need not be sent back unmodified.
const PLAIN: &[&str] = &["text", "tool_use", "message", "function_call"];

/// The part of a response that has arrived.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) usage: Usage,
    /// The sent tokens that were written to a cache. They are included in those sent.
    pub(super) tokens_written: Option<u64>,
    /// The reason for its end, once known.
    pub(super) stop: Option<StopReason>,
    calls: Vec<OpenCall>,
    /// The parts that the provider requires back with the calls, by part number.
    kept: Vec<(u64, Value)>,
    size: usize,
}

/// A call that may be incomplete.
#[derive(Debug, Default)]
struct OpenCall {
    /// The number of the part in the response.
    index: u64,
    id: String,
    name: String,
    arguments: String,
    signature: Option<String>,
}

/// A complete response.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<ToolCall>,
    /// For each call, the signature that the provider requires back with it.
    pub(super) signatures: Vec<Option<String>>,
    /// The reasoning that the provider requires back, with the positions of text and calls in it.
    pub(super) thoughts: Vec<Value>,
    pub(super) usage: Usage,
    pub(super) tokens_written: Option<u64>,
    pub(super) stop: StopReason,
}

impl Assembly {
    /// Appends to the text.
    pub(super) fn text(&mut self, more: &str) -> Result<(), ModelError> {
        self.grow(more.len())?;
        self.text.push_str(more);
        Ok(())
    }

    /// Appends to the reasoning.
    pub(super) fn reason(&mut self, more: &str) -> Result<(), ModelError> {
        self.grow(more.len())?;
        self.reasoning.push_str(more);
        Ok(())
    }

    /// Appends to the call with this number. A different id starts a new call, because some servers give all
    /// calls of a response the same number.
    pub(super) fn call(
        &mut self,
        index: u64,
        id: Option<&str>,
        name: Option<&str>,
        arguments: &str,
    ) -> Result<(), ModelError> {
        let (id, name) = (id.unwrap_or_default(), name.unwrap_or_default());
        self.grow(id.len() + name.len() + arguments.len())?;
        let last = self.calls.iter().rposition(|call| call.index == index);
        let known = last.filter(|at| {
            let call = &self.calls[*at];
            id.is_empty() || call.id.is_empty() || call.id == id
        });
        let at = match known {
            Some(at) => at,
            None if self.calls.len() >= MAX_CALLS => {
                return Err(ModelError::network("the response makes too many calls"));
            }
            None => {
                self.calls.push(OpenCall {
                    index,
                    ..OpenCall::default()
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            call.id.push_str(id);
        }
        if call.name.is_empty() {
            call.name.push_str(name);
        }
        call.arguments.push_str(arguments);
        Ok(())
    }

    /// Adds a complete call.
    pub(super) fn whole_call(
        &mut self,
        id: Option<&str>,
        name: &str,
        arguments: &Value,
        signature: Option<&str>,
    ) -> Result<(), ModelError> {
        let text = argument_text(arguments);
        let index = u64::MAX - self.calls.len() as u64;
        self.call(index, id, Some(name), &text)?;
        if let Some(call) = self.calls.last_mut() {
            call.signature = signature.map(str::to_owned);
        }
        Ok(())
    }

    /// Stores a part that the provider requires back with the calls of the response.
    pub(super) fn keep(&mut self, index: u64, part: Value) -> Result<(), ModelError> {
        self.grow(part.to_string().len())?;
        self.kept.push((index, part));
        Ok(())
    }

    /// Appends to such a part.
    pub(super) fn keep_more(
        &mut self,
        index: u64,
        field: &str,
        more: &str,
    ) -> Result<(), ModelError> {
        self.grow(more.len())?;
        let part = self.kept.iter_mut().rev().find(|(at, _)| *at == index);
        let fields = part.and_then(|(_, part)| part.as_object_mut());
        match fields.map(|fields| fields.entry(field).or_insert(Value::Null)) {
            Some(Value::String(text)) => text.push_str(more),
            Some(value) => *value = Value::from(more),
            None => {}
        }
        Ok(())
    }

    /// Whether a part with this number and type has started.
    pub(super) fn has_kept(&self, index: u64, kind: &Value) -> bool {
        let mut kept = self.kept.iter();
        kept.any(|(known, part)| *known == index && part["type"] == *kind)
    }

    /// The response, if it is complete. `number` makes ids for calls that have none.
    pub(super) fn finish(self, number: u64) -> Result<Reply, ModelError> {
        let Some(stop) = self.stop else {
            return Err(ModelError::network("the response broke off"));
        };
        let mut reply = Reply {
            text: self.text,
            reasoning: self.reasoning,
            usage: self.usage,
            tokens_written: self.tokens_written,
            stop,
            ..Reply::default()
        };
        for (at, call) in self.calls.into_iter().enumerate() {
            let taken = reply.calls.iter().any(|other| other.id == call.id);
            let id = if call.id.is_empty() || taken {
                format!("call_{number}_{at}")
            } else {
                call.id
            };
            // Some models prefix the name with the namespace from their training.
            let name = call.name.strip_prefix("functions.").unwrap_or(&call.name);
            reply.calls.push(ToolCall {
                id,
                name: name.to_owned(),
                arguments: Arguments::from_json(&call.arguments),
            });
            reply.signatures.push(call.signature);
        }
        // Without any other part, the text and the calls alone are enough for the next request.
        let plain = |part: &Value| {
            let kind = part["type"].as_str();
            kind.is_some_and(|kind| PLAIN.contains(&kind))
        };
        let kept: Vec<Value> = self.kept.into_iter().map(|(_, part)| part).collect();
        if !kept.iter().all(plain) {
            reply.thoughts = kept;
        }
        Ok(reply)
    }

    /// Whether neither text nor a call has arrived yet.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty()
    }

    fn grow(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.size = self.size.saturating_add(bytes);
        if self.size > MAX_TEXT_BYTES {
            Err(ModelError::network("the response is too long"))
        } else {
            Ok(())
        }
    }
}

/// Updates a count if `value` is a number, and keeps the present one otherwise.
pub(super) fn count(into: &mut Option<u64>, value: &Value) {
    if let Some(number) = value.as_u64() {
        *into = Some(number);
    }
}

/// The arguments of a call as JSON text, which some servers send as a value.
pub(super) fn argument_text(arguments: &Value) -> String {
    match arguments {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The elements of a list, or none for any other value.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The error in a response or an event, if there is one.
pub(super) fn error_in(value: &Value) -> Option<ModelError> {
    let error = value.get("error").filter(|error| !error.is_null())?;
    let status = error["status"].as_u64().or(error["code"].as_u64());
    Some(match status.and_then(|status| u16::try_from(status).ok()) {
        Some(status @ 400..=599) => ModelError::of_answer(status, &error.to_string(), None),
        _ => ModelError::of_stream(&error.to_string()),
    })
}
