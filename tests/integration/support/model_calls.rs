//! Replies with any number of calls in the four wire formats that the built-in agent speaks. Streams
//! come in small pieces, so that nothing in them is whole by luck.

use super::model_wire::{Answer, TOKENS_CACHED, TOKENS_IN, TOKENS_OUT, WireFormat, server_sent};
use serde_json::{Value, json};

/// A call by its tool's name and arguments.
pub type Call = (&'static str, Value);

/// The `number`th reply.
pub fn answer(wire: WireFormat, number: u32, text: &str, calls: &[Call], streams: bool) -> Answer {
    let (whole, events) = reply(wire, number, text, calls);
    if streams {
        stream(events.iter().map(server_sent).collect())
    } else {
        Answer::json(200, &whole)
    }
}

/// A stream that lacks its last events.
pub fn cut(wire: WireFormat, number: u32) -> Answer {
    let calls = [("write_file", json!({"path": "cut.txt", "content": "x"}))];
    let (_, events) = reply(wire, number, "I begin", &calls);
    let kept = match wire {
        WireFormat::Gemini => &events[..1],
        _ => &events[..events.len() - 3],
    };
    stream(kept.iter().map(server_sent).collect())
}

fn stream(body: String) -> Answer {
    Answer {
        status: 200,
        content_type: "text/event-stream",
        retry_after: None,
        body,
    }
}

/// A reply whole, and as the events of a stream.
pub fn reply(wire: WireFormat, number: u32, text: &str, calls: &[Call]) -> (Value, Vec<Value>) {
    match wire {
        WireFormat::Chat => chat(number, text, calls),
        WireFormat::Responses => responses(number, text, calls),
        WireFormat::Messages => messages(number, text, calls),
        WireFormat::Gemini => gemini(text, calls),
    }
}

/// A text in two pieces.
fn halves(text: &str) -> [&str; 2] {
    let mut middle = text.len() / 2;
    while !text.is_char_boundary(middle) {
        middle += 1;
    }
    let (one, two) = text.split_at(middle);
    [one, two]
}

fn chat(number: u32, text: &str, calls: &[Call]) -> (Value, Vec<Value>) {
    let usage = json!({
        "prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT,
        "prompt_tokens_details": {"cached_tokens": TOKENS_CACHED},
    });
    let id = |at: usize| format!("call_{number}_{at}");
    let whole_calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(at, (name, arguments))| {
            json!({"id": id(at), "type": "function",
                   "function": {"name": name, "arguments": arguments.to_string()}})
        })
        .collect();
    let reason = if calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    let whole = json!({
        "choices": [{"index": 0, "finish_reason": reason,
                     "message": {"role": "assistant", "content": text, "tool_calls": whole_calls}}],
        "usage": usage,
    });
    let chunk =
        |delta: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}))];
    events.extend(halves(text).map(|half| chunk(json!({"content": half}))));
    for (at, (name, _)) in calls.iter().enumerate() {
        let begin = json!({"index": at, "id": id(at), "type": "function",
                           "function": {"name": name, "arguments": ""}});
        events.push(chunk(json!({"tool_calls": [begin]})));
    }
    // The pieces of parallel calls may come in turns.
    let pieces: Vec<String> = calls
        .iter()
        .map(|(_, arguments)| arguments.to_string())
        .collect();
    for half in 0..2 {
        for (at, arguments) in pieces.iter().enumerate() {
            let more = json!({"index": at, "function": {"arguments": halves(arguments)[half]}});
            events.push(chunk(json!({"tool_calls": [more]})));
        }
    }
    events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}));
    events.push(json!({"choices": [], "usage": usage}));
    (whole, events)
}

fn responses(number: u32, text: &str, calls: &[Call]) -> (Value, Vec<Value>) {
    let message = json!({"type": "message", "role": "assistant",
                         "content": [{"type": "output_text", "text": text}]});
    let items = calls.iter().enumerate().map(|(at, (name, arguments))| {
        json!({"type": "function_call", "id": format!("fc_{at}"), "call_id": format!("call_{number}_{at}"),
               "name": name, "arguments": arguments.to_string()})
    });
    let items: Vec<Value> = std::iter::once(message).chain(items).collect();
    let whole = json!({
        "object": "response", "status": "completed", "error": null, "output": items,
        "usage": {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT,
                  "input_tokens_details": {"cached_tokens": TOKENS_CACHED}},
    });
    let mut events =
        vec![json!({"type": "response.created", "response": {"status": "in_progress"}})];
    events.extend(
        halves(text).map(|half| json!({"type": "response.output_text.delta", "delta": half})),
    );
    events.extend(
        items
            .iter()
            .map(|item| json!({"type": "response.output_item.done", "item": item})),
    );
    events.push(json!({"type": "response.completed", "response": whole}));
    (whole, events)
}

fn messages(number: u32, text: &str, calls: &[Call]) -> (Value, Vec<Value>) {
    let usage = json!({"input_tokens": TOKENS_IN - TOKENS_CACHED, "output_tokens": TOKENS_OUT,
                       "cache_read_input_tokens": TOKENS_CACHED, "cache_creation_input_tokens": 0});
    let id = |at: usize| format!("toolu_{number}_{at}");
    let tools = calls.iter().enumerate().map(|(at, (name, input))| {
        json!({"type": "tool_use", "id": id(at), "name": name, "input": input})
    });
    let said = json!({"type": "text", "text": text});
    let blocks: Vec<Value> = std::iter::once(said).chain(tools).collect();
    let reason = if calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    };
    let whole = json!({"type": "message", "role": "assistant", "content": blocks,
                       "stop_reason": reason, "usage": usage});
    let begin = json!({"type": "message", "content": [], "stop_reason": null, "usage": usage});
    let mut events = vec![
        json!({"type": "message_start", "message": begin}),
        json!({"type": "ping"}),
    ];
    let delta = |index: usize, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let start = |index: usize, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    events.push(start(0, json!({"type": "text", "text": ""})));
    events.extend(halves(text).map(|half| delta(0, json!({"type": "text_delta", "text": half}))));
    for (at, (name, input)) in calls.iter().enumerate() {
        let block = json!({"type": "tool_use", "id": id(at), "name": name, "input": {}});
        events.push(start(at + 1, block));
        events.extend(halves(&input.to_string()).map(|half| {
            delta(
                at + 1,
                json!({"type": "input_json_delta", "partial_json": half}),
            )
        }));
        events.push(json!({"type": "content_block_stop", "index": at + 1}));
    }
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": reason},
                       "usage": {"output_tokens": TOKENS_OUT}}),
    );
    events.push(json!({"type": "message_stop"}));
    (whole, events)
}

fn gemini(text: &str, calls: &[Call]) -> (Value, Vec<Value>) {
    let usage = json!({"promptTokenCount": TOKENS_IN, "cachedContentTokenCount": TOKENS_CACHED,
                       "candidatesTokenCount": TOKENS_OUT});
    let parts = calls.iter().map(|(name, arguments)| {
        json!({"functionCall": {"name": name, "args": arguments}, "thoughtSignature": "sig"})
    });
    let parts: Vec<Value> = std::iter::once(json!({"text": text}))
        .chain(parts)
        .collect();
    let whole = json!({"candidates": [{"content": {"role": "model", "parts": parts},
                                       "finishReason": "STOP"}], "usageMetadata": usage});
    let chunk =
        |part: &Value| json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]});
    let mut events: Vec<Value> = parts.iter().map(chunk).collect();
    events.push(
        json!({"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}],
                       "usageMetadata": usage}),
    );
    (whole, events)
}
