//! Requests and responses of the four formats in small samples.

mod requests;

use super::*;
use crate::access::choose;
use crate::model_error::ModelErrorKind;
use crate::session::StopReason;

const MODELS: &[&str] = &["openrouter/m", "openai/m", "anthropic/m", "gemini/m"];

fn access(model: &str) -> Access {
    choose(Some(model), &|name| {
        name.ends_with("_API_KEY").then(|| "key".to_owned())
    })
    .unwrap()
}

fn request(model: &str) -> Value {
    let call = |id: &str, path: &str| ToolCall {
        id: id.into(),
        name: "read_file".into(),
        arguments: Arguments::Given(json!({"path": path})),
    };
    let result = |id: &str, ok| Message::ToolResult {
        id: id.into(),
        name: "read_file".into(),
        ok,
        output: format!("of {id}"),
    };
    let messages = [
        Message::System {
            text: "system".into(),
        },
        Message::Task {
            text: "task".into(),
        },
        Message::Assistant {
            text: "said".into(),
            calls: vec![call("1", "a"), call("2", "b")],
        },
        result("1", true),
        result("2", false),
        Message::Note {
            text: "note".into(),
        },
    ];
    let mut kept = ReasoningState::default();
    let mut earlier = Reply {
        calls: vec![call("2", "b")],
        signatures: vec![Some("sig".to_owned())],
        ..Reply::default()
    };
    kept.keep(&mut earlier, 1000);
    let access = access(model);
    let body = write_body(&RequestInputs {
        access: &access,
        messages: &messages.iter().collect::<Vec<_>>(),
        tools: &tools(access.wire, &[]),
        stream: true,
        most_tokens: Some(100),
        encrypted: true,
        pictures: &[],
        kept: &kept,
    });
    let mut body: Value = serde_json::from_slice(&body).unwrap();
    let declared = body["tools"].take().to_string();
    assert!(declared.contains("run_command") && declared.contains("finish"));
    body
}

#[test]
fn a_request_for_chat_completions() {
    let call = |id: &str, path: &str| {
        json!({"id": id, "type": "function",
               "function": {"name": "read_file", "arguments": json!({"path": path}).to_string()}})
    };
    assert_eq!(
        request("openrouter/m"),
        json!({
            "model": "m", "stream": true, "stream_options": {"include_usage": true},
            "max_tokens": 100, "tools": null,
            "messages": [
                {"role": "system", "content": "system"},
                {"role": "user", "content": "task"},
                {"role": "assistant", "content": "said", "tool_calls": [call("1", "a"), call("2", "b")]},
                {"role": "tool", "tool_call_id": "1", "content": "of 1"},
                {"role": "tool", "tool_call_id": "2", "content": "of 2\n\nnote"},
            ],
        })
    );
}

#[test]
fn a_request_for_messages_has_roles_in_turn_and_marks_what_may_be_cached() {
    let ephemeral = json!({"type": "ephemeral"});
    let call = |id: &str, path: &str| json!({"type": "tool_use", "id": id, "name": "read_file", "input": {"path": path}});
    let result = |id: &str, is_error: bool| {
        json!({"type": "tool_result", "tool_use_id": id, "is_error": is_error,
               "content": format!("of {id}")})
    };
    assert_eq!(
        request("anthropic/m"),
        json!({
            "model": "m", "max_tokens": 100, "stream": true, "tools": null,
            "system": [{"type": "text", "text": "system", "cache_control": ephemeral}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "task"}]},
                {"role": "assistant", "content":
                    [{"type": "text", "text": "said"}, call("1", "a"), call("2", "b")]},
                {"role": "user", "content": [result("1", false), result("2", true),
                    {"type": "text", "text": "note", "cache_control": ephemeral}]},
            ],
        })
    );
}

#[test]
fn a_request_for_responses_keeps_nothing_at_the_provider() {
    let body = request("openai/m");
    assert_eq!(
        [
            &body["store"],
            &body["instructions"],
            &body["max_output_tokens"]
        ],
        [&json!(false), &json!("system"), &json!(100)]
    );
    let kinds = body["input"].as_array().unwrap().iter();
    let kinds: Vec<&str> = kinds
        .map(|item| item["type"].as_str().or(item["role"].as_str()).unwrap())
        .collect();
    let call = ["function_call"; 2];
    let output = ["function_call_output"; 2];
    let expected = [&["user", "assistant"][..], &call, &output, &["user"]].concat();
    assert_eq!(kinds, expected);
}

#[test]
fn a_request_for_gemini_gives_signatures_back() {
    let body = request("gemini/m");
    assert_eq!(
        body["contents"][1]["parts"][2],
        json!({"functionCall": {"id": "2", "name": "read_file", "args": {"path": "b"}}, "thoughtSignature": "sig"})
    );
    assert_eq!(
        body["contents"][2]["parts"][1],
        json!({"functionResponse": {"id": "2", "name": "read_file", "response": {"error": "of 2"}}})
    );
    assert_eq!(body["generationConfig"], json!({"maxOutputTokens": 100}));
}

fn decode(model: &str, events: &[Value]) -> Result<Reply, ModelError> {
    let wire = access(model).wire;
    let mut assembly = Assembly::default();
    for value in events {
        event(wire, value.to_string().as_bytes(), &mut assembly)?;
    }
    assembly.finish(7)
}

#[test]
fn calls_with_one_number_and_two_ids_are_two_calls() {
    let chunk = |id: &str, path: &str| {
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": id, "function":
            {"name": "read_file", "arguments": format!("{{\"path\":\"{path}\"}}")}}]}}]})
    };
    let end = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
    let reply = decode("openrouter/m", &[chunk("x", "a"), chunk("y", "b"), end]).unwrap();
    let calls: Vec<(&str, Arguments)> = reply
        .calls
        .iter()
        .map(|call| (call.id.as_str(), call.arguments.clone()))
        .collect();
    let given = |path: &str| Arguments::Given(json!({"path": path}));
    assert_eq!(calls, [("x", given("a")), ("y", given("b"))]);
}

#[test]
fn a_call_without_an_id_gets_one_and_unreadable_arguments_are_told() {
    let call = json!({"function": {"name": "read_file", "arguments": "{\"path\":"}});
    let whole = json!({"choices": [{"message": {"content": null, "tool_calls": [call]},
                                    "finish_reason": "length"}]});
    let reply = decode("openrouter/m", &[whole]).unwrap();
    assert_eq!(
        (reply.calls[0].id.as_str(), reply.stop),
        ("call_7_0", StopReason::Length)
    );
    assert!(matches!(reply.calls[0].arguments, Arguments::Unreadable(_)));
}

#[test]
fn a_namespace_in_front_of_the_name_of_a_tool_goes() {
    let named = |name: &str| {
        let call = json!({"index": 0, "id": "a", "function": {"name": name, "arguments": "{}"}});
        let events = [
            json!({"choices": [{"delta": {"tool_calls": [call]}}]}),
            json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        ];
        decode("openrouter/m", &events).unwrap().calls[0]
            .name
            .clone()
    };
    assert_eq!(named("functions.read_file"), "read_file");
    assert_eq!(named("read_file"), "read_file");
    assert_eq!(named("my.functions.x"), "my.functions.x");
}

#[test]
fn a_response_without_an_end_broke_off() {
    for model in MODELS {
        let error = decode(model, &[json!({})]).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Network, "{model}");
    }
}

#[test]
fn an_error_in_a_stream_is_an_error() {
    let error =
        json!({"error": {"type": "overloaded_error", "message": "Overloaded"}, "type": "error"});
    for model in MODELS {
        let found = decode(model, std::slice::from_ref(&error)).unwrap_err();
        assert_eq!(found.kind, ModelErrorKind::Overloaded, "{model}");
    }
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}});
    let found = decode("gemini/m", &[blocked]).unwrap_err();
    assert_eq!(found.kind, ModelErrorKind::ContentFilter);
}

#[test]
fn what_was_read_from_and_written_to_the_cache_are_tokens_sent() {
    let message = json!({"type": "message", "content": [], "stop_reason": "end_turn", "usage": {
        "input_tokens": 10, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 3_000,
        "output_tokens": 5}});
    let reply = decode("anthropic/m", &[message]).unwrap();
    let usage = reply.usage;
    assert_eq!(reply.tokens_written, Some(3_000));
    let expected = Usage {
        tokens_in: Some(3_210),
        tokens_cached: Some(200),
        tokens_out: Some(5),
        cost_usd: None,
    };
    assert_eq!(usage, expected);
    let price = Price {
        input: 1.0,
        cached: 0.5,
        written: 1.25,
        output: 2.0,
    };
    let cost = |written| priced(usage, written, Some(price)).cost_usd.unwrap();
    for (written, expected) in [
        (None, 0.00312),
        (Some(3_000), 0.00387),
        (Some(9_000), 0.0038725),
    ] {
        let cost = cost(written);
        assert!((cost - expected).abs() < 1e-9, "{written:?}: {cost}");
    }
    assert_eq!(priced(Usage::default(), None, Some(price)).cost_usd, None);
}

/// The next request after a response, which is one call of `read_file` in each of these tests.
fn next_request(model: &str, events: &[Value]) -> Value {
    let mut reply = decode(model, events).unwrap();
    let mut kept = ReasoningState::default();
    kept.keep(&mut reply, 1000);
    let messages = [Message::Assistant {
        text: reply.text,
        calls: reply.calls,
    }];
    let body = write_body(&RequestInputs {
        access: &access(model),
        messages: &messages.iter().collect::<Vec<_>>(),
        tools: &Value::Null,
        stream: true,
        most_tokens: Some(100),
        encrypted: true,
        pictures: &[],
        kept: &kept,
    });
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn what_claude_thought_goes_back_as_it_came() {
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let body = next_request(
        "anthropic/m",
        &[
            start(
                0,
                json!({"type": "thinking", "thinking": "", "signature": ""}),
            ),
            delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
            delta(0, json!({"type": "signature_delta", "signature": "sig"})),
            start(1, json!({"type": "redacted_thinking", "data": "x"})),
            start(2, json!({"type": "text", "text": ""})),
            start(
                3,
                json!({"type": "tool_use", "id": "t", "name": "read_file", "input": {}}),
            ),
            delta(
                3,
                json!({"type": "input_json_delta", "partial_json": "{\"path\":\"a\"}"}),
            ),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        ],
    );
    let blocks = json!([
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "tool_use", "id": "t", "name": "read_file", "input": {"path": "a"},
         "cache_control": {"type": "ephemeral"}},
    ]);
    assert_eq!(body["messages"][0]["content"], blocks);
}

#[test]
fn encrypted_reasoning_goes_back_before_its_calls() {
    let item = |item: Value| json!({"type": "response.output_item.done", "item": item});
    let events = [
        item(json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e"})),
        item(json!({"type": "message", "content": [{"type": "output_text", "text": "said"}]})),
        item(
            json!({"type": "function_call", "call_id": "c", "name": "read_file", "arguments": "{}"}),
        ),
        json!({"type": "response.completed", "response": {"status": "completed"}}),
    ];
    let body = next_request("openai/gpt-6.1-sol", &events);
    let input = json!([
        {"type": "reasoning", "summary": [], "encrypted_content": "e"},
        {"role": "assistant", "content": "said"},
        {"type": "function_call", "call_id": "c", "name": "read_file", "arguments": "{}"},
    ]);
    assert_eq!(body["input"], input);
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(request("openai/gpt-4.1").get("include"), None);
}

#[test]
fn reasoning_content_goes_back_where_it_came_from() {
    let call = json!({"id": "c", "function": {"name": "read_file", "arguments": "{}"}});
    let chunk = |delta: Value| json!({"choices": [{"delta": delta}]});
    let end = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
    let thought = [
        chunk(json!({"reasoning_content": "h"})),
        chunk(json!({"reasoning_content": "m"})),
        chunk(json!({"tool_calls": [call]})),
        end,
    ];
    let without = &thought[2..];
    for (model, events, expected) in [
        ("openrouter/m", &thought[..], Some("hm")),
        ("openrouter/m", without, None),
        ("deepseek/m", without, Some("")),
    ] {
        let body = next_request(model, events);
        let found = body["messages"][0]["reasoning_content"].as_str();
        assert_eq!(found, expected, "{model}");
    }
}

#[test]
fn parameters_that_are_refused_are_not_sent() {
    assert_eq!(request("mistral/m").get("stream_options"), None);
    let body = request("xai/gpt-6.1-sol");
    assert_eq!(
        [body.get("max_tokens"), body.get("max_completion_tokens")],
        [None, Some(&json!(100))]
    );
}

#[test]
fn an_error_about_what_was_given_back_is_known() {
    for (status, text, expected) in [
        (400, "Corrupted thought signature.", true),
        (
            400,
            "messages.1.content.0: Invalid `signature` in `thinking` block",
            true,
        ),
        (400, "the model does not exist", false),
        (500, "thinking failed", false),
    ] {
        let error = ModelError::of_answer(status, text, None);
        assert_eq!(refuses_reasoning(&error), expected, "{text}");
    }
}

#[test]
fn thoughts_of_chat_completions_go_back_where_they_came_from() {
    let chunk = |delta: Value| json!({"choices": [{"delta": delta, "finish_reason": null}]});
    let call =
        json!([{"index": 0, "id": "c1", "function": {"name": "list_files", "arguments": "{}"}}]);
    let part = |text: &str, signature: Value| json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": text, "signature": signature}]});
    let events = [
        chunk(json!({"reasoning_content": "I "})),
        chunk(json!({"reasoning_content": "look."})),
        chunk(part("I ", Value::Null)),
        chunk(part("look.", json!("c2ln"))),
        chunk(
            json!({"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "xyz"}]}),
        ),
        chunk(json!({"reasoning_details": ["strange", 7, {"text": "x"}, {"text": "y"}]})),
        chunk(json!({"tool_calls": call})),
        json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
    ];
    let message = next_request("openrouter/m", &events)["messages"][0].take();
    assert_eq!(message["reasoning_content"], "I look.");
    let details = message["reasoning_details"].as_array().unwrap();
    assert_eq!(
        details[..2],
        [
            json!({"type": "reasoning.text", "index": 0, "text": "I look.", "signature": "c2ln"}),
            json!({"type": "reasoning.encrypted", "index": 1, "data": "xyz"}),
        ]
    );
    // Servers that send no reasoning get none back.
    let plain = next_request("openrouter/m", &events[6..])["messages"][0].take();
    assert!(plain.get("reasoning_content").is_none() && plain.get("reasoning_details").is_none());
}

#[test]
fn old_thoughts_go_before_they_fill_the_window() {
    let mut kept = ReasoningState::default();
    for number in 0..20 {
        let call = ToolCall {
            id: format!("c{number}"),
            name: "list_files".into(),
            arguments: Arguments::Given(json!({})),
        };
        let mut reply = Reply {
            calls: vec![call],
            thoughts: vec![json!("x".repeat(98))],
            ..Reply::default()
        };
        kept.keep(&mut reply, 1_000);
        let id = format!("c{number}");
        assert_eq!(kept.thoughts(Some(&id)).len(), 1, "the newest is there");
        let there = (0..20).filter(|n| !kept.thoughts(Some(&format!("c{n}"))).is_empty());
        assert!(there.count() <= 10);
    }
    assert!(kept.thoughts(None).is_empty());
}

#[test]
fn thoughts_are_tokens_received_wherever_a_provider_counts_them() {
    let gemini = |usage: Value| {
        let whole = json!({"candidates": [{"finishReason": "MAX_TOKENS"}], "usageMetadata": usage});
        decode("gemini/m", &[whole]).unwrap().usage
    };
    let thought = gemini(json!({"promptTokenCount": 7, "thoughtsTokenCount": 90}));
    assert_eq!((thought.tokens_in, thought.tokens_out), (Some(7), Some(90)));
    let both = gemini(json!({"candidatesTokenCount": 10, "thoughtsTokenCount": 90}));
    assert_eq!(both.tokens_out, Some(100));
    assert_eq!(gemini(json!({})).tokens_out, None);
    let chat = json!({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 32, "completion_tokens": 9, "total_tokens": 141}});
    assert_eq!(
        decode("openrouter/m", &[chat]).unwrap().usage.tokens_out,
        Some(109)
    );
}
