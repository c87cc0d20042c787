use super::super::tests::{
    call, env, exit, file_change, killed, message, read, recorded, request, result, strings,
    todo as item, usage,
};
use super::super::{CliAgent, ExitFacts};
use super::*;
use crate::domain::agent::ApiErrorClass::Unavailable;
use crate::domain::agent::TodoStatus;
use crate::domain::agent::{AgentEvent, AgentReport};

fn qwen(stdout: &str, exit: ExitFacts<'_>) -> (Vec<AgentEvent>, AgentReport) {
    read(&CliAgent::Known(&SPEC), stdout, exit)
}

#[test]
fn a_turn_that_writes_a_file() {
    let (events, report) = qwen(recorded!("qwen", "write_file"), exit(0, ""));
    let path = "/home/runner/work/qwen-write_file/hello.txt";
    let said = format!("Successfully created and wrote to new file: {path}.");
    assert_eq!(
        events[1..],
        [
            message("I will write the file."),
            call("call_0001", "write_file", path),
            result("call_0001", true, None, &said),
            file_change(path, "add"),
            message("Done: hello.txt was written."),
            AgentEvent::Usage(usage(2400, 0, 68, None)),
        ]
    );
    assert_eq!(
        report.final_message.as_deref(),
        Some("Done: hello.txt was written.")
    );
    assert_eq!((report.tool_calls, report.api_error), (1, None));
    assert!(report.session_id.is_some());
    assert_eq!(report.usage_basis, UsageBasis::Session);
}

#[test]
fn a_command_that_fails_is_a_failed_call() {
    let (events, _) = qwen(recorded!("qwen", "failing_command"), exit(0, ""));
    let failed = result("call_0001", false, Some(3), "Command exited with code: 3");
    assert!(events.contains(&failed), "{events:?}");
}

#[test]
fn an_error_of_the_api_is_found_though_the_turn_is_said_to_have_succeeded() {
    let (_, report) = qwen(recorded!("qwen", "api_error_401"), exit(0, ""));
    let error = report.api_error.expect("an error");
    assert_eq!((error.status, error.class), (Some(401), Unavailable));
    assert!(
        error.message.contains("401 fake 401 from fake-llm"),
        "{}",
        error.message
    );
    assert_eq!(report.final_message, None);
    let quoted =
        r#"{"type":"result","subtype":"success","result":"It printed [API Error: 401 x]"}"#;
    let (_, report) = qwen(quoted, exit(0, ""));
    assert_eq!(
        report.final_message.as_deref(),
        Some("It printed [API Error: 401 x]")
    );
}

#[test]
fn a_turn_that_was_ended_has_what_was_said_last() {
    let cut = recorded!("qwen", "write_file")
        .lines()
        .take(2)
        .collect::<Vec<_>>()
        .join("\n");
    let (_, report) = qwen(&cut, killed());
    assert_eq!(
        report.final_message.as_deref(),
        Some("I will write the file.")
    );
}

#[test]
fn its_list_of_things_to_do_is_told() {
    let stdout = concat!(
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"c","name":"todo_write","input":{"todos":[{"id":"1","content":"a","status":"completed"},{"id":"2","content":"b","status":"pending"}]}}]}}"#,
        "\n",
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c","is_error":false,"content":"ok"}]}}"#,
    );
    let items = vec![
        item("a", TodoStatus::Completed),
        item("b", TodoStatus::Pending),
    ];
    assert_eq!(qwen(stdout, exit(0, "")).1.todo, items);
}

#[test]
fn the_command_line_names_the_way_to_log_in_where_there_is_a_key() {
    let plain = invocation(&request());
    assert_eq!(
        strings(&plain.args),
        ["--output-format", "stream-json", "--approval-mode=yolo"]
    );
    let args = ["--yolo".to_owned()];
    let with_key = invocation(&TurnRequest {
        model: Some("qwen3-coder"),
        extra_args: &args,
        resume: Some("b2f535e8"),
        base_env: &env(&[("OPENAI_API_KEY", "k")]),
        ..request()
    });
    assert_eq!(
        strings(&with_key.args)[2..],
        [
            "--auth-type=openai",
            "--model=qwen3-coder",
            "--resume=b2f535e8",
            "--yolo"
        ]
    );
    let reads = invocation(&TurnRequest {
        may_write: false,
        ..request()
    });
    assert_eq!(strings(&reads.args)[2..], ["--approval-mode=default"]);
}
