//! The two wire formats of [`super::model_api`]: replies as server-sent events, or as one JSON
//! object for a client that does not stream.

use serde_json::{Value, json};

/// Tokens that every reply says it took in, of these from a cache (OpenAI only), and gave out.
pub const TOKENS_IN: u64 = 1200;
pub const TOKENS_CACHED: u64 = 1000;
pub const TOKENS_OUT: u64 = 34;

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFormat {
    /// OpenAI's `POST /v1/responses`.
    Responses,
    /// Anthropic's `POST /v1/messages`.
    Messages,
    /// OpenAI's `POST /v1/chat/completions`.
    Chat,
    /// Google's `POST /v1beta/models/M:generateContent`, and the same as a stream.
    Gemini,
}

/// A response of the server.
pub struct Answer {
    pub status: u16,
    pub content_type: &'static str,
    /// Seconds of a `retry-after` header.
    pub retry_after: Option<u32>,
    pub body: String,
}

impl Answer {
    /// A JSON object.
    pub fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            content_type: "application/json",
            retry_after: None,
            body: body.to_string(),
        }
    }
}

/// A call of a tool.
struct ToolCall {
    name: &'static str,
    input: Input,
}

/// What a tool is called with.
enum Input {
    /// Arguments, as most tools take them.
    Arguments(Value),
    /// Plain text, as OpenAI's *custom* tools take it.
    Text(String),
}

impl ToolCall {
    /// A call of the first shell tool among those offered.
    fn of_a_shell(offered: &[&str], command: &str) -> Option<Self> {
        let script = format!(
            "text(await tools.exec_command({}));",
            json!({ "cmd": command })
        );
        let known = [
            ("exec_command", Input::Arguments(json!({ "cmd": command }))),
            (
                "shell_command",
                Input::Arguments(json!({ "command": command })),
            ),
            (
                "shell",
                Input::Arguments(json!({ "command": ["bash", "-lc", command] })),
            ),
            (
                "Bash",
                Input::Arguments(json!({ "command": command, "description": "scripted" })),
            ),
            // Gemini CLI and Qwen Code, which wants to know all three.
            (
                "run_shell_command",
                Input::Arguments(
                    json!({ "command": command, "description": "scripted", "is_background": false }),
                ),
            ),
            // opencode.
            (
                "bash",
                Input::Arguments(json!({ "command": command, "description": "scripted" })),
            ),
            ("exec", Input::Text(script)),
        ];
        let call = known.into_iter().find(|(name, _)| offered.contains(name));
        call.map(|(name, input)| Self { name, input })
    }
}

/// The names of the tools that a request offers; those without a name go by their type. Some of
/// OpenAI's models are offered theirs as an item of the input, grouped by namespace.
pub fn tool_names(body: &Value) -> Vec<&str> {
    let items = list(body, "input")
        .iter()
        .filter(|item| item["type"] == "additional_tools");
    items
        .chain([body])
        .flat_map(|holder| list(holder, "tools"))
        .flat_map(names)
        .collect()
}

/// Whether a request asks for more after the model's own words, which newer models refuse.
pub fn ends_with_the_models_words(body: &Value) -> bool {
    let all = ["messages", "input", "contents"].map(|field| list(body, field).last());
    let last = all.into_iter().flatten().next();
    let role = last.and_then(|last| last["role"].as_str());
    matches!(role, Some("assistant" | "model"))
}

fn names(tool: &Value) -> Vec<&str> {
    let declared = list(tool, "functionDeclarations");
    if !declared.is_empty() {
        return declared.iter().flat_map(names).collect();
    }
    match list(tool, "tools") {
        [] => tool
            .get("name")
            .or_else(|| tool.pointer("/function/name"))
            .or_else(|| tool.get("type"))
            .and_then(Value::as_str)
            .into_iter()
            .collect(),
        nested => nested.iter().flat_map(names).collect(),
    }
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value
        .get(field)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

impl WireFormat {
    /// The format that is spoken at a path.
    pub fn of_path(path: &str) -> Option<Self> {
        match path {
            _ if path.ends_with("/responses") => Some(Self::Responses),
            _ if path.ends_with("/messages") => Some(Self::Messages),
            _ if path.ends_with("/chat/completions") => Some(Self::Chat),
            _ if path.ends_with("enerateContent") => Some(Self::Gemini),
            _ => None,
        }
    }

    /// The `number`th reply, in which the model runs a command, if the request offers a shell.
    pub fn shell_reply(
        self,
        number: u32,
        body: &Value,
        streams: bool,
        command: &str,
    ) -> Option<Answer> {
        let call = ToolCall::of_a_shell(&tool_names(body), command)?;
        Some(self.reply(number, body, streams, "I will run a command.", Some(call)))
    }

    /// The `number`th reply, in which the model says something and does no more.
    pub fn text_reply(self, number: u32, body: &Value, streams: bool, text: &str) -> Answer {
        self.reply(number, body, streams, text, None)
    }

    fn reply(
        self,
        number: u32,
        body: &Value,
        streams: bool,
        text: &str,
        call: Option<ToolCall>,
    ) -> Answer {
        let model = body.get("model").cloned().unwrap_or(Value::Null);
        let (whole, events) = match self {
            Self::Responses => responses(number, &model, text, call),
            Self::Messages => messages(number, &model, text, call),
            Self::Chat | Self::Gemini => {
                let calls = call.map(|call| match call.input {
                    Input::Arguments(arguments) => (call.name, arguments),
                    Input::Text(text) => (call.name, json!({ "input": text })),
                });
                super::model_calls::reply(self, number, text, calls.as_slice())
            }
        };
        if streams {
            Answer {
                status: 200,
                content_type: "text/event-stream",
                retry_after: None,
                body: events.iter().map(server_sent).collect(),
            }
        } else {
            Answer::json(200, &whole)
        }
    }

    /// A refusal.
    pub fn error(self, status: u16, message: &str) -> Answer {
        let kind = match status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        let error = json!({ "type": kind, "message": message });
        let body = match self {
            Self::Responses | Self::Chat | Self::Gemini => json!({ "error": error }),
            Self::Messages => json!({ "type": "error", "error": error }),
        };
        Answer::json(status, &body)
    }
}

/// An event as it goes over the wire, named by its type where it has one.
pub fn server_sent(event: &Value) -> String {
    let name = event.get("type").and_then(Value::as_str);
    let name = name.map_or_else(String::new, |name| format!("event: {name}\n"));
    format!("{name}data: {event}\n\n")
}

fn responses(
    number: u32,
    model: &Value,
    text: &str,
    call: Option<ToolCall>,
) -> (Value, Vec<Value>) {
    let message = json!({
        "type": "message", "id": format!("msg_{number}"), "role": "assistant",
        "status": "completed",
        "content": [{ "type": "output_text", "text": text, "annotations": [] }],
    });
    let tool_call = call.map(|call| tool_call_item(number, call));
    let items: Vec<Value> = std::iter::once(message).chain(tool_call).collect();
    let response = |status: &str, output: &[Value]| {
        json!({
            "id": format!("resp_{number}"), "object": "response", "created_at": 1,
            "model": model, "status": status, "output": output,
            "usage": {
                "input_tokens": TOKENS_IN,
                "input_tokens_details": { "cached_tokens": TOKENS_CACHED },
                "output_tokens": TOKENS_OUT,
                "output_tokens_details": { "reasoning_tokens": 0 },
                "total_tokens": TOKENS_IN + TOKENS_OUT,
            },
        })
    };
    let completed = response("completed", &items);
    let started = response("in_progress", &[]);
    let mut events = vec![json!({ "type": "response.created", "response": started })];
    for (index, item) in items.iter().enumerate() {
        for kind in ["response.output_item.added", "response.output_item.done"] {
            events.push(json!({ "type": kind, "output_index": index, "item": item }));
        }
    }
    events.push(json!({ "type": "response.completed", "response": completed }));
    (completed, events)
}

fn tool_call_item(number: u32, call: ToolCall) -> Value {
    let (id, call_id) = (format!("fc_{number}"), format!("call_{number}"));
    match call.input {
        Input::Arguments(arguments) => json!({
            "type": "function_call", "id": id, "call_id": call_id, "name": call.name,
            "arguments": arguments.to_string(),
        }),
        Input::Text(input) => json!({
            "type": "custom_tool_call", "id": id, "call_id": call_id, "name": call.name,
            "input": input,
        }),
    }
}

fn messages(number: u32, model: &Value, text: &str, call: Option<ToolCall>) -> (Value, Vec<Value>) {
    let stop_reason = if call.is_some() {
        "tool_use"
    } else {
        "end_turn"
    };
    let text_block = json!({ "type": "text", "text": text });
    let tool_block = call.map(|call| {
        json!({
            "type": "tool_use", "id": format!("toolu_{number}"), "name": call.name,
            "input": match call.input {
                Input::Arguments(arguments) => arguments,
                Input::Text(text) => json!({ "input": text }),
            },
        })
    });
    let blocks: Vec<Value> = std::iter::once(text_block).chain(tool_block).collect();
    let message = |content: &[Value], stop_reason: Option<&str>, tokens_out: u64| {
        json!({
            "id": format!("msg_{number}"), "type": "message", "role": "assistant",
            "model": model, "content": content, "stop_reason": stop_reason,
            "stop_sequence": null,
            "usage": {
                "input_tokens": TOKENS_IN, "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0, "output_tokens": tokens_out,
            },
        })
    };
    let whole = message(&blocks, Some(stop_reason), TOKENS_OUT);
    let mut events = vec![json!({ "type": "message_start", "message": message(&[], None, 1) })];
    for (index, block) in blocks.iter().enumerate() {
        events.extend(block_events(index, block));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": { "stop_reason": stop_reason, "stop_sequence": null },
        "usage": { "output_tokens": TOKENS_OUT },
    }));
    events.push(json!({ "type": "message_stop" }));
    (whole, events)
}

/// A content block, which begins empty and is filled by one delta.
fn block_events(index: usize, block: &Value) -> [Value; 3] {
    let mut empty = block.clone();
    let delta = match block.get("input") {
        Some(input) => {
            empty["input"] = json!({});
            json!({ "type": "input_json_delta", "partial_json": input.to_string() })
        }
        None => {
            empty["text"] = json!("");
            json!({ "type": "text_delta", "text": block["text"] })
        }
    };
    [
        json!({ "type": "content_block_start", "index": index, "content_block": empty }),
        json!({ "type": "content_block_delta", "index": index, "delta": delta }),
        json!({ "type": "content_block_stop", "index": index }),
    ]
}
