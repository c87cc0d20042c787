//! Lines of agents' output: recorded ones, long ones, and arbitrary ones.

use super::*;

#[test]
fn no_recorded_line_is_unknown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/agent-events");
    let mut all = 0;
    for spec in CLIS {
        let (agent, dir) = (CliAgent::Known(spec), spec.name);
        let mut recordings = 0;
        for entry in std::fs::read_dir(root.join(dir)).expect("a directory of recordings") {
            let path = entry.expect("an entry").path();
            if path
                .extension()
                .is_some_and(|extension| extension == "jsonl")
            {
                recordings += 1;
                let stdout = std::fs::read_to_string(&path).expect("a recording");
                let (events, _) = read(&agent, &stdout, exit(0, ""));
                let unknown: Vec<_> = events
                    .iter()
                    .filter(|e| matches!(e, AgentEvent::Raw { .. }))
                    .collect();
                assert_eq!(unknown, Vec::<&AgentEvent>::new(), "{}", path.display());
            }
        }
        assert!(recordings > 0, "{dir}");
        all += recordings;
    }
    assert!(all > 20, "{all}");
}

#[test]
fn a_line_of_a_megabyte_is_read() {
    let text = "x".repeat(1 << 20);
    for (agent, line) in [
        (
            CliAgent::Known(&codex::SPEC),
            format!(
                r#"{{"type":"item.completed","item":{{"id":"i","type":"agent_message","text":"{text}"}}}}"#
            ),
        ),
        (
            CliAgent::Known(&claude::SPEC),
            format!(
                r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
            ),
        ),
        (
            CliAgent::Command {
                command: String::new(),
            },
            format!(r#"{{"event":"agent.message","text":"{text}"}}"#),
        ),
    ] {
        let (events, report) = read(&agent, &line, exit(0, ""));
        assert!(events == [message(&text)], "{agent:?}");
        assert!(
            report.final_message.as_deref() == Some(text.as_str()),
            "{agent:?}"
        );
    }
}

#[test]
fn a_raw_line_of_a_megabyte_is_cut() {
    let text = "é".repeat(1 << 19);
    for agent in agents() {
        let (events, _) = read(&agent, &text, exit(0, ""));
        assert_eq!(
            events,
            [raw_line(&format!(
                "{}…",
                "é".repeat(text::EXCERPT_CHARS - 1)
            ))]
        );
    }
}

#[test]
fn json_that_is_nested_too_deep_is_only_a_line() {
    let deep = "{\"type\":".to_owned() + &"[".repeat(100_000);
    for agent in agents() {
        let (events, _) = read(&agent, &deep, exit(0, ""));
        assert!(
            matches!(events.as_slice(), [AgentEvent::Raw { .. }]),
            "{agent:?}"
        );
    }
}

/// Words that the parsers look for, and others.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "type",
            "item",
            "id",
            "message",
            "content",
            "text",
            "error",
            "event",
            "usage",
            "status",
            "result",
            "subtype",
            "is_error",
            "errors",
            "name",
            "input",
            "changes",
            "items",
            "todos",
            "session_id",
            "thread_id",
            "modelUsage",
            "tool_use_result",
            "exit_code",
            "ok",
            "item.started",
            "item.updated",
            "item.completed",
            "turn.completed",
            "turn.failed",
            "thread.started",
            "agent_message",
            "command_execution",
            "file_change",
            "todo_list",
            "mcp_tool_call",
            "system",
            "init",
            "api_retry",
            "assistant",
            "user",
            "tool_use",
            "tool_result",
            "tool_use_id",
            "TodoWrite",
            "TaskCreate",
            "TaskUpdate",
            "Bash",
            "Write",
            "success",
            "error_max_turns",
            "error_during_execution",
            "agent.message",
            "agent.todo",
            "agent.usage",
            "agent.error",
            "agent.tool_call",
            "agent.tool_result",
            "jsonrpc",
            "method",
            "params",
            "session/update",
            "session/request_permission",
            "update",
            "sessionUpdate",
            "tool_call",
            "toolCallId",
            "tool_name",
            "tool_id",
            "parameters",
            "role",
            "delta",
            "stats",
            "todo_write",
            "write_file",
            "text",
            "step_finish",
            "part",
            "tokens",
            "state",
            "sessionID",
            "tool",
            "todowrite",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,6}",
    ]
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        any_json().prop_map(|json| json.to_string().into_bytes()),
        (word(), prop::collection::vec((word(), any_json()), 0..6)).prop_map(|(kind, fields)| {
            let mut object: serde_json::Map<_, _> = fields.into_iter().collect();
            object.insert("type".to_owned(), kind.clone().into());
            object.insert("event".to_owned(), kind.into());
            serde_json::Value::Object(object).to_string().into_bytes()
        }),
    ]
}

proptest! {
    #[test]
    fn nothing_that_an_agent_prints_is_ever_an_error(
        lines in prop::collection::vec(any_line(), 0..12),
        code in any::<Option<i32>>(),
        killed_by_us in any::<bool>(),
        stderr in "\\PC{0,60}",
        file in prop::option::of(prop::collection::vec(any::<u8>(), 0..60)),
    ) {
        for agent in agents() {
            let mut parser = agent.reader(&request(), "");
            for line in &lines {
                let events = parser.line(line);
                let blank = String::from_utf8_lossy(line).trim().is_empty();
                prop_assert!(!blank || events.is_empty());
            }
            let exit = ExitFacts {
                code,
                killed_by_us,
                stderr_tail: &stderr,
                final_file: file.as_deref(),
                ..ExitFacts::default()
            };
            let report = parser.finish(exit);
            prop_assert!(report.session_id.as_deref().is_none_or(is_session_id));
        }
    }

    #[test]
    fn what_is_no_session_id_is_left_out_of_the_command_line(
        id in prop_oneof!["\\PC{0,20}", "-{0,2}[a-z0-9.:_ -]{0,40}"],
    ) {
        for agent in CLIS.iter().copied().map(CliAgent::Known) {
            let args = |resume| agent.invocation(&TurnRequest { resume, ..request() }).args;
            prop_assert_eq!(args(Some(&id)) != args(None), is_session_id(&id));
        }
    }
}
