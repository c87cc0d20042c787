//! Requests and responses of the four formats, by small samples.

use super::super::access::choose;
use super::*;
use crate::domain::builtin::model_error::ModelErrorKind;

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
    let signatures = HashMap::from([("2".to_owned(), "sig".to_owned())]);
    let mut body = body(&Ask {
        access: &access(model),
        messages: &messages,
        tools: true,
        stream: true,
        most_tokens: Some(100),
        signatures: &signatures,
    });
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
                {"role": "tool", "tool_call_id": "2", "content": "of 2"},
                {"role": "user", "content": "note"},
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
        json!({"functionCall": {"name": "read_file", "args": {"path": "b"}}, "thoughtSignature": "sig"})
    );
    assert_eq!(
        body["contents"][2]["parts"][1],
        json!({"functionResponse": {"name": "read_file", "response": {"error": "of 2"}}})
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
