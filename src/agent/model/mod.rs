//! A model behind an API: messages in, a response out.

mod anthropic;
mod assembly;
mod chat;
mod entry;
mod gemini;
mod meter;
mod pictures;
mod reasoning_state;
mod responses;
pub mod sse;
mod transport;

#[cfg(test)]
mod tests;

use super::access::{Access, WireFormat};
use super::models::Price;
use super::options::Options;
use crate::context::Message;
use crate::model_error::ModelError;
use crate::session::Response;
use crate::tool::{self, Arguments, Tool, ToolCall};
use assembly::{Assembly, Reply};
pub use meter::{Meter, Metered, cost_of_sending, is_priced, longest_response};
pub use pictures::Picture;
use reasoning_state::ReasoningState;
use serde_json::{Value, json};
use sprag_domain::agent::Usage;
use sprag_domain::text::one_line;
use std::borrow::Cow;
pub use transport::{Answer, Transport};

/// A model, and the state that is kept between requests.
#[derive(Debug)]
pub struct Model<T> {
    access: Access,
    transport: T,
    /// The tool declarations for the API.
    tools: Value,
    stream: bool,
    most_tokens: Option<usize>,
    price: Option<Price>,
    /// Number of responses so far.
    number: u64,
    /// Whether the API is asked for encrypted reasoning, to be sent back.
    encrypted: bool,
    /// The pictures of the task, until the model refuses them.
    pictures: Vec<Picture>,
    kept: ReasoningState,
}

/// Words in errors about the parts that were sent back.
const REASONING_WORDS: &[&str] = &["thinking", "signature", "reasoning", "encrypted_content"];

/// The inputs for the body of a request.
struct RequestInputs<'a> {
    access: &'a Access,
    messages: &'a [&'a Message],
    tools: &'a Value,
    stream: bool,
    most_tokens: Option<usize>,
    encrypted: bool,
    pictures: &'a [Picture],
    kept: &'a ReasoningState,
}

impl<'a> RequestInputs<'a> {
    /// The system prompt.
    fn system(&self) -> Option<&'a str> {
        match self.messages.first() {
            Some(Message::System { text }) => Some(text),
            _ => None,
        }
    }
}

impl<T: Transport> Model<T> {
    /// A model that is reached by this transport.
    pub fn new(access: &Access, options: &Options, transport: T) -> Self {
        Self {
            transport,
            tools: tools(access.wire, &[]),
            stream: !options.no_stream,
            most_tokens: options.max_output_tokens,
            price: options.price.or(access.price),
            access: access.clone(),
            number: 0,
            encrypted: true,
            pictures: Vec::new(),
            kept: ReasoningState::default(),
        }
    }

    /// The same with the tools of servers.
    #[must_use]
    pub fn with_tools(self, served: &[Tool]) -> Self {
        let tools = tools(self.access.wire, served);
        Self { tools, ..self }
    }

    /// The same with the pictures of the task.
    #[must_use]
    pub fn with_pictures(self, pictures: Vec<Picture>) -> Self {
        Self { pictures, ..self }
    }

    /// Requests one response. Dropping the future ends the request.
    ///
    /// # Errors
    /// A failed connection, a refusal, or an interrupted response. Nothing of such a response counts.
    pub async fn ask(&mut self, messages: &[&Message]) -> Result<Response, ModelError> {
        loop {
            match self.ask_once(messages).await {
                Err(error) if self.encrypted && has_no_thoughts(&error) => self.encrypted = false,
                Err(error) if !self.pictures.is_empty() && pictures::are_refused(&error) => {
                    self.pictures.clear();
                }
                // A provider may refuse what it signed after an earlier message was shortened.
                Err(error) if self.kept.any() && refuses_reasoning(&error) => self.kept.clear(),
                outcome => return outcome,
            }
        }
    }

    async fn ask_once(&mut self, messages: &[&Message]) -> Result<Response, ModelError> {
        self.number += 1;
        let body = self.body(messages);
        let (url, headers) = address(&self.access, self.stream);
        let answer = self.transport.post(&url, &headers, body);
        let mut reply = read(self.access.wire, self.number, answer.await?).await?;
        // A quarter of the window, at one byte per token: encrypted reasoning is hardly longer.
        self.kept.keep(&mut reply, self.access.window_tokens / 4);
        Ok(Response {
            text: reply.text,
            reasoning: reply.reasoning,
            calls: reply.calls,
            usage: priced(reply.usage, reply.tokens_written, self.price),
            stop: reply.stop,
            elapsed_ms: 0,
        })
    }

    fn body(&self, messages: &[&Message]) -> Vec<u8> {
        write_body(&RequestInputs {
            access: &self.access,
            messages,
            tools: &self.tools,
            stream: self.stream,
            most_tokens: self.most_tokens,
            encrypted: self.encrypted,
            pictures: &self.pictures,
            kept: &self.kept,
        })
    }
}

/// The body of a request. It begins with the messages, which begin with those of the session's last request, as far
/// as nothing was shortened since, so that the provider's cache holds most of it.
fn write_body(inputs: &RequestInputs<'_>) -> Vec<u8> {
    let body = match inputs.access.wire {
        WireFormat::Chat => chat::body(inputs),
        WireFormat::Responses => responses::body(inputs),
        WireFormat::Messages => anthropic::body(inputs),
        WireFormat::Gemini => gemini::body(inputs),
    };
    body.to_string().into_bytes()
}

/// Whether the API refused a request because of the parts that were sent back with its calls.
fn refuses_reasoning(error: &ModelError) -> bool {
    error.status == Some(400) && error.says(REASONING_WORDS)
}

/// The declarations of the agent's own tools and of those of servers.
fn tools(wire: WireFormat, served: &[Tool]) -> Value {
    let declared = tool::all().chain(served).map(|tool| match wire {
        WireFormat::Chat => chat::tool(tool),
        WireFormat::Responses => responses::tool(tool),
        WireFormat::Messages => anthropic::tool(tool),
        WireFormat::Gemini => gemini::tool(tool),
    });
    let declared: Value = declared.collect();
    match wire {
        WireFormat::Gemini => json!([{ "functionDeclarations": declared }]),
        _ => declared,
    }
}

fn take(wire: WireFormat, value: &Value, into: &mut Assembly) -> Result<(), ModelError> {
    match wire {
        WireFormat::Chat => chat::take(value, into),
        WireFormat::Responses => responses::take(value, into),
        WireFormat::Messages => anthropic::take(value, into),
        WireFormat::Gemini => gemini::take(value, into),
    }
}

/// The URL of a request, and its headers.
fn address(access: &Access, stream: bool) -> (String, Vec<(&'static str, String)>) {
    let model = &access.model;
    let (path, header) = match access.wire {
        WireFormat::Chat => ("chat/completions".to_owned(), "authorization"),
        WireFormat::Responses => ("responses".to_owned(), "authorization"),
        WireFormat::Messages => ("messages".to_owned(), "x-api-key"),
        WireFormat::Gemini if stream => (
            format!("models/{model}:streamGenerateContent?alt=sse"),
            "x-goog-api-key",
        ),
        WireFormat::Gemini => (format!("models/{model}:generateContent"), "x-goog-api-key"),
    };
    let key = access.key.as_ref().map(|key| match header {
        "authorization" => (header, format!("Bearer {}", key.reveal())),
        _ => (header, key.reveal().to_owned()),
    });
    let version = ("anthropic-version", "2023-06-01".to_owned());
    let version = (access.wire == WireFormat::Messages).then_some(version);
    (
        format!("{}/{path}", access.base),
        key.into_iter().chain(version).collect(),
    )
}

async fn read(wire: WireFormat, number: u64, mut answer: impl Answer) -> Result<Reply, ModelError> {
    let mut assembly = Assembly::default();
    if !answer.streams() {
        let mut whole = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            whole.extend_from_slice(&chunk);
        }
        if serde_json::from_slice::<serde::de::IgnoredAny>(&whole).is_err() {
            return Err(ModelError::network(&no_response(answer.kind(), &whole)));
        }
        event(wire, &whole, &mut assembly)?;
        return assembly.finish(number);
    }
    let mut events = sse::Events::default();
    while let Some(chunk) = answer.chunk().await? {
        let complete = events.push(&chunk);
        for data in complete.map_err(|_| ModelError::network("an event is too long"))? {
            event(wire, &data, &mut assembly)?;
        }
    }
    if let Some(data) = events.finish() {
        event(wire, &data, &mut assembly)?;
    }
    assembly.finish(number)
}

/// A description of a response that is not a model's, such as the page of a gateway.
fn no_response(kind: &str, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    match (text.trim(), kind) {
        ("", _) => "the response is empty".to_owned(),
        (text, "") => format!("not a model's response: {}", one_line(text, 200)),
        (text, kind) => format!("not a model's response but {kind}: {}", one_line(text, 200)),
    }
}

fn event(wire: WireFormat, data: &[u8], into: &mut Assembly) -> Result<(), ModelError> {
    if data.trim_ascii() == b"[DONE]" || data.trim_ascii().is_empty() {
        return Ok(());
    }
    let value: Value = serde_json::from_slice(data).map_err(|error| {
        ModelError::network(&format!("the response is not valid JSON: {error}"))
    })?;
    take(wire, &value, into)
}

/// The arguments of a call, always as an object.
fn arguments(call: &ToolCall) -> Cow<'_, Value> {
    match &call.arguments {
        Arguments::Given(value @ Value::Object(_)) => Cow::Borrowed(value),
        _ => Cow::Owned(json!({})),
    }
}

/// The name of a tool in a form that can be sent. Models also call tools that do not exist, with names that
/// providers refuse in the next request: they accept 1 to 64 of these characters.
fn tool_name(name: &str) -> String {
    const MAX_NAME_BYTES: usize = 64;
    let may_be = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() {
        return "unknown".to_owned();
    }
    let sent = name.chars().take(MAX_NAME_BYTES);
    sent.map(|c| if may_be(c) { c } else { '_' }).collect()
}

/// The parts that must be sent back with these calls.
fn kept<'a>(inputs: &RequestInputs<'a>, calls: &[ToolCall]) -> &'a [Value] {
    let first = calls.first().map(|call| call.id.as_str());
    inputs.kept.thoughts(first)
}

/// Whether the API refused a request because its model has no reasoning to encrypt.
fn has_no_thoughts(error: &ModelError) -> bool {
    matches!(error.status, Some(400 | 422)) && error.says(&["encrypted", "\"include\""])
}

/// The usage with its cost, if tokens and price are known.
fn priced(usage: Usage, written: Option<u64>, price: Option<Price>) -> Usage {
    let (Some(price), Some(sent), Some(received)) = (price, usage.tokens_in, usage.tokens_out)
    else {
        return usage;
    };
    let cached = usage.tokens_cached.unwrap_or_default().min(sent);
    let written = written.unwrap_or_default().min(sent - cached);
    let fresh = (sent - cached - written) as f64 * price.input;
    let kept = cached as f64 * price.cached + written as f64 * price.written;
    let cost = fresh + kept + received as f64 * price.output;
    Usage {
        cost_usd: Some(cost / 1e6),
        ..usage
    }
}
