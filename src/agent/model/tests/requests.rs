//! Complete requests in every format, for a session that covers everything that a format expresses in its own
//! way.

use super::*;

fn call(id: &str, arguments: Arguments) -> ToolCall {
    ToolCall {
        id: id.into(),
        name: "read_file".into(),
        arguments,
    }
}

fn session() -> Vec<Message> {
    let given = |path: &str| Arguments::Given(json!({"path": path}));
    let note = |text: &str| Message::Note { text: text.into() };
    let said = |text: &str, calls: Vec<ToolCall>| Message::Assistant {
        text: text.into(),
        calls,
    };
    let result = |id: &str, ok, output: &str| Message::ToolResult {
        id: id.into(),
        name: "read_file".into(),
        ok,
        output: output.into(),
    };
    vec![
        Message::System {
            text: "system".into(),
        },
        Message::Task {
            text: "task".into(),
        },
        said(
            "I look.\n",
            vec![
                call("1", given("\"é\"\n")),
                call("2", Arguments::Unreadable("cut".into())),
                call("3", Arguments::Given(json!("no object"))),
            ],
        ),
        result("1", true, "one\ntwo\n"),
        result("2", false, ""),
        result("3", false, "bad"),
        note("note"),
        said(" \n", Vec::new()),
        note("go on"),
        said("so", vec![call("4", given("b")), call("5", given("c"))]),
        result("4", true, "four"),
        result("5", true, "five"),
        said("", vec![call("6", given("d"))]),
        result("6", true, "six"),
        note("end"),
    ]
}

/// The parts that are sent back with the calls 4 and 5 in a format.
fn thoughts(wire: WireFormat) -> Vec<Value> {
    match wire {
        WireFormat::Chat => vec![
            json!({"reasoning_content": "hm"}),
            json!({"type": "reasoning.text", "index": 0, "text": "hm", "signature": "s"}),
            json!("strange"),
        ],
        WireFormat::Responses => vec![
            json!({"type": "reasoning", "summary": [], "encrypted_content": "e"}),
            json!({"type": "message"}),
            json!({"type": "function_call"}),
            json!({"type": "reasoning", "summary": [], "encrypted_content": "f"}),
            json!({"type": "function_call"}),
        ],
        WireFormat::Messages => vec![
            json!({"type": "thinking", "thinking": "hm", "signature": "s"}),
            json!({"type": "text", "text": " "}),
            json!({"type": "text", "text": "so", "citations": null}),
            json!({"type": "tool_use"}),
            json!({"type": "redacted_thinking", "data": "x"}),
            json!({"type": "tool_use"}),
        ],
        WireFormat::Gemini => Vec::new(),
    }
}

fn kept(wire: WireFormat) -> ReasoningState {
    let calls = ["4", "5"].map(|id| call(id, Arguments::Given(json!({}))));
    let mut reply = Reply {
        calls: calls.to_vec(),
        signatures: vec![Some("sig".into()), None],
        thoughts: thoughts(wire),
        ..Reply::default()
    };
    let mut kept = ReasoningState::default();
    kept.keep(&mut reply, 1000);
    kept
}

/// The text of a request.
fn written(model: &str, messages: &[Message]) -> String {
    with_pictures(model, messages, &[])
}

fn with_pictures(model: &str, messages: &[Message], pictures: &[Picture]) -> String {
    let access = access(model);
    let body = write_body(&RequestInputs {
        access: &access,
        messages: &messages.iter().collect::<Vec<_>>(),
        tools: &tools(access.wire, &[]),
        stream: true,
        most_tokens: Some(100),
        encrypted: true,
        pictures,
        kept: &kept(access.wire),
    });
    String::from_utf8(body).unwrap()
}

/// A request with one message per line. The declarations are tested elsewhere.
fn shown(model: &str) -> String {
    let text = written(model, &session());
    let body: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
    let mut lines = Vec::new();
    for (name, value) in body {
        match value {
            Value::Array(_) if name == "tools" => lines.push("tools".to_owned()),
            Value::Array(values) => {
                lines.push(name);
                lines.extend(values.iter().map(|value| format!("  {value}")));
            }
            value => lines.push(format!("{name} {value}")),
        }
    }
    lines.join("\n")
}

#[test]
fn chat_completions() {
    insta::assert_snapshot!(shown("openrouter/m"), @r##"
    model "m"
    messages
      {"role":"system","content":"system"}
      {"role":"user","content":"task"}
      {"role":"assistant","content":"I look.\n","tool_calls":[{"id":"1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"\\\"é\\\"\\n\"}"}},{"id":"2","type":"function","function":{"name":"read_file","arguments":"{}"}},{"id":"3","type":"function","function":{"name":"read_file","arguments":"{}"}}]}
      {"role":"tool","tool_call_id":"1","content":"one\ntwo\n"}
      {"role":"tool","tool_call_id":"2","content":""}
      {"role":"tool","tool_call_id":"3","content":"bad\n\nnote"}
      {"role":"assistant","content":"(nothing)"}
      {"role":"user","content":"go on"}
      {"role":"assistant","content":"so","tool_calls":[{"id":"4","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"b\"}"}},{"id":"5","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"c\"}"}}],"reasoning_content":"hm","reasoning_details":[{"type":"reasoning.text","index":0,"text":"hm","signature":"s"},"strange"]}
      {"role":"tool","tool_call_id":"4","content":"four"}
      {"role":"tool","tool_call_id":"5","content":"five"}
      {"role":"assistant","content":null,"tool_calls":[{"id":"6","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"d\"}"}}]}
      {"role":"tool","tool_call_id":"6","content":"six\n\nend"}
    stream true
    stream_options {"include_usage":true}
    max_tokens 100
    tools
    "##);
}

#[test]
fn chat_completions_of_mistral_and_deepseek() {
    let lines = |model: &str| {
        let text = shown(model);
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("  ") || line.contains("\"id\""));
        lines.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(lines("mistral/m"), @r##"
    model "m"
    messages
      {"role":"assistant","content":"I look.\n","tool_calls":[{"id":"1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"\\\"é\\\"\\n\"}"}},{"id":"2","type":"function","function":{"name":"read_file","arguments":"{}"}},{"id":"3","type":"function","function":{"name":"read_file","arguments":"{}"}}]}
      {"role":"assistant","content":"so","tool_calls":[{"id":"4","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"b\"}"}},{"id":"5","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"c\"}"}}],"reasoning_content":"hm","reasoning_details":[{"type":"reasoning.text","index":0,"text":"hm","signature":"s"},"strange"]}
      {"role":"assistant","content":null,"tool_calls":[{"id":"6","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"d\"}"}}]}
    stream true
    max_tokens 100
    tools
    "##);
    insta::assert_snapshot!(lines("deepseek/m"), @r##"
    model "m"
    messages
      {"role":"assistant","content":"I look.\n","tool_calls":[{"id":"1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"\\\"é\\\"\\n\"}"}},{"id":"2","type":"function","function":{"name":"read_file","arguments":"{}"}},{"id":"3","type":"function","function":{"name":"read_file","arguments":"{}"}}],"reasoning_content":""}
      {"role":"assistant","content":"so","tool_calls":[{"id":"4","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"b\"}"}},{"id":"5","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"c\"}"}}],"reasoning_content":"hm","reasoning_details":[{"type":"reasoning.text","index":0,"text":"hm","signature":"s"},"strange"]}
      {"role":"assistant","content":null,"tool_calls":[{"id":"6","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"d\"}"}}],"reasoning_content":""}
    stream true
    stream_options {"include_usage":true}
    max_tokens 100
    tools
    "##);
}

#[test]
fn responses() {
    insta::assert_snapshot!(shown("openai/gpt-6.1-sol"), @r##"
    model "gpt-6.1-sol"
    input
      {"role":"user","content":"task"}
      {"role":"assistant","content":"I look.\n"}
      {"type":"function_call","call_id":"1","name":"read_file","arguments":"{\"path\":\"\\\"é\\\"\\n\"}"}
      {"type":"function_call","call_id":"2","name":"read_file","arguments":"{}"}
      {"type":"function_call","call_id":"3","name":"read_file","arguments":"{}"}
      {"type":"function_call_output","call_id":"1","output":"one\ntwo\n"}
      {"type":"function_call_output","call_id":"2","output":""}
      {"type":"function_call_output","call_id":"3","output":"bad"}
      {"role":"user","content":"note"}
      {"role":"assistant","content":" \n"}
      {"role":"user","content":"go on"}
      {"type":"reasoning","summary":[],"encrypted_content":"e"}
      {"role":"assistant","content":"so"}
      {"type":"function_call","call_id":"4","name":"read_file","arguments":"{\"path\":\"b\"}"}
      {"type":"reasoning","summary":[],"encrypted_content":"f"}
      {"type":"function_call","call_id":"5","name":"read_file","arguments":"{\"path\":\"c\"}"}
      {"type":"function_call_output","call_id":"4","output":"four"}
      {"type":"function_call_output","call_id":"5","output":"five"}
      {"type":"function_call","call_id":"6","name":"read_file","arguments":"{\"path\":\"d\"}"}
      {"type":"function_call_output","call_id":"6","output":"six"}
      {"role":"user","content":"end"}
    store false
    stream true
    instructions "system"
    max_output_tokens 100
    include
      "reasoning.encrypted_content"
    tools
    "##);
}

#[test]
fn messages() {
    insta::assert_snapshot!(shown("anthropic/m"), @r##"
    model "m"
    max_tokens 100
    messages
      {"role":"user","content":[{"type":"text","text":"task"}]}
      {"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"1","name":"read_file","input":{"path":"\"é\"\n"}},{"type":"tool_use","id":"2","name":"read_file","input":{}},{"type":"tool_use","id":"3","name":"read_file","input":{}}]}
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","is_error":false,"content":"one\ntwo\n"},{"type":"tool_result","tool_use_id":"2","is_error":true,"content":""},{"type":"tool_result","tool_use_id":"3","is_error":true,"content":"bad"},{"type":"text","text":"note"}]}
      {"role":"assistant","content":[{"type":"text","text":"(nothing)"}]}
      {"role":"user","content":[{"type":"text","text":"go on"}]}
      {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"so","citations":null},{"type":"tool_use","id":"4","name":"read_file","input":{"path":"b"}},{"type":"redacted_thinking","data":"x"},{"type":"tool_use","id":"5","name":"read_file","input":{"path":"c"}}]}
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"4","is_error":false,"content":"four"},{"type":"tool_result","tool_use_id":"5","is_error":false,"content":"five"}]}
      {"role":"assistant","content":[{"type":"tool_use","id":"6","name":"read_file","input":{"path":"d"}}]}
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"6","is_error":false,"content":"six"},{"type":"text","text":"end","cache_control":{"type":"ephemeral"}}]}
    stream true
    system
      {"type":"text","text":"system","cache_control":{"type":"ephemeral"}}
    tools
    "##);
}

#[test]
fn gemini() {
    insta::assert_snapshot!(shown("gemini/m"), @r##"
    contents
      {"role":"user","parts":[{"text":"task"}]}
      {"role":"model","parts":[{"text":"I look.\n"},{"functionCall":{"id":"1","name":"read_file","args":{"path":"\"é\"\n"}}},{"functionCall":{"id":"2","name":"read_file","args":{}}},{"functionCall":{"id":"3","name":"read_file","args":{}}}]}
      {"role":"user","parts":[{"functionResponse":{"id":"1","name":"read_file","response":{"output":"one\ntwo\n"}}},{"functionResponse":{"id":"2","name":"read_file","response":{"error":""}}},{"functionResponse":{"id":"3","name":"read_file","response":{"error":"bad"}}},{"text":"note"}]}
      {"role":"model","parts":[{"text":" \n"}]}
      {"role":"user","parts":[{"text":"go on"}]}
      {"role":"model","parts":[{"text":"so"},{"functionCall":{"id":"4","name":"read_file","args":{"path":"b"}},"thoughtSignature":"sig"},{"functionCall":{"id":"5","name":"read_file","args":{"path":"c"}}}]}
      {"role":"user","parts":[{"functionResponse":{"id":"4","name":"read_file","response":{"output":"four"}}},{"functionResponse":{"id":"5","name":"read_file","response":{"output":"five"}}}]}
      {"role":"model","parts":[{"functionCall":{"id":"6","name":"read_file","args":{"path":"d"}}}]}
      {"role":"user","parts":[{"functionResponse":{"id":"6","name":"read_file","response":{"output":"six"}}},{"text":"end"}]}
    systemInstruction {"parts":[{"text":"system"}]}
    generationConfig {"maxOutputTokens":100}
    tools
    "##);
}

/// Providers cache the common prefix of two requests.
#[test]
fn the_next_request_begins_with_all_of_the_one_before_it() {
    let messages = session();
    for (model, after) in [
        ("openrouter/m", "],\"stream\""),
        ("openai/gpt-6.1-sol", "],\"store\""),
        ("gemini/m", "]}],\"systemInstruction\""),
        (
            "anthropic/m",
            ",\"cache_control\":{\"type\":\"ephemeral\"}}]}],\"stream\"",
        ),
    ] {
        for count in 2..messages.len() {
            let text = |count: usize| written(model, &messages[..count]);
            let (last, next) = (text(count), text(count + 1));
            let (beginning, _) = last.split_once(after).unwrap();
            // A note is appended to the preceding result.
            let results = matches!(messages[count - 1], Message::ToolResult { .. });
            let beginning = if model == "openrouter/m" && results {
                beginning.strip_suffix("\"}").unwrap()
            } else {
                beginning
            };
            assert!(next.starts_with(beginning), "{model}: {last}\n{next}");
        }
    }
}

/// Providers refuse every later request with such a name.
#[test]
fn names_of_tools_that_do_not_exist_are_sent_as_names() {
    let long = "é".repeat(70);
    let cut = "_".repeat(64);
    let names = [
        ("read_file", "read_file"),
        ("Functions.read-file", "Functions_read-file"),
        ("bad tool name!", "bad_tool_name_"),
        ("", "unknown"),
        (long.as_str(), cut.as_str()),
    ];
    for (name, sent) in names {
        let messages = [
            Message::Assistant {
                text: String::new(),
                calls: vec![ToolCall {
                    name: name.into(),
                    ..call("1", Arguments::Given(json!({})))
                }],
            },
            Message::ToolResult {
                id: "1".into(),
                name: name.into(),
                ok: false,
                output: "none".into(),
            },
        ];
        for (model, times) in [
            ("openrouter/m", 1),
            ("openai/gpt-6.1-sol", 1),
            ("anthropic/m", 1),
            ("gemini/m", 2),
        ] {
            let text = written(model, &messages);
            let (text, _) = text.split_once("\"tools\":").unwrap();
            let field = format!("\"name\":\"{sent}\"");
            assert_eq!(text.matches(&field).count(), times, "{model}: {text}");
            assert_eq!(text.matches("\"name\":").count(), times, "{model}: {text}");
        }
    }
}

#[test]
fn pictures_precede_the_text_of_the_task() {
    let picture = Picture {
        media_type: "image/png",
        base64: "QUJD".into(),
    };
    let url = "data:image/png;base64,QUJD";
    for (model, list, parts, expected) in [
        (
            "openrouter/m",
            "messages",
            "content",
            json!([{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "task"}]),
        ),
        (
            "openai/m",
            "input",
            "content",
            json!([{"type": "input_image", "image_url": url}, {"type": "input_text", "text": "task"}]),
        ),
        (
            "anthropic/m",
            "messages",
            "content",
            json!([
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
                {"type": "text", "text": "task"},
            ]),
        ),
        (
            "gemini/m",
            "contents",
            "parts",
            json!([{"inlineData": {"mimeType": "image/png", "data": "QUJD"}}, {"text": "task"}]),
        ),
    ] {
        let text = with_pictures(model, &session(), std::slice::from_ref(&picture));
        let body: Value = serde_json::from_str(&text).unwrap();
        let mut entries = body[list].as_array().unwrap().iter();
        let task = entries.find(|entry| entry["role"] == "user").unwrap();
        assert_eq!(task[parts], expected, "{model}");
        assert_eq!(text.matches("QUJD").count(), 1);
    }
}
