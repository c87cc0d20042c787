use super::super::CliAgent;
use super::super::tests::{
    call, env, exit, file_change, killed, message, read, recorded, request, result, strings,
    todo as item, usage,
};
use super::*;
use crate::domain::agent::ApiErrorClass::Unavailable;
use crate::domain::agent::TodoStatus;

fn opencode(stdout: &str, exit: ExitFacts<'_>) -> (Vec<AgentEvent>, AgentReport) {
    read(&CliAgent::Known(&SPEC), stdout, exit)
}

#[test]
fn a_turn_that_writes_a_file_and_the_sum_of_its_steps() {
    let (events, report) = opencode(recorded!("opencode", "write_file"), exit(0, ""));
    let path = "/home/runner/work/opencode-write_file/hello.txt";
    assert_eq!(
        events[1..],
        [
            message("I will write the file."),
            call("call_0002", "write", path),
            result("call_0002", true, None, "Wrote file successfully."),
            file_change(path, "add"),
            AgentEvent::Usage(usage(1200, 0, 34, Some(0.001268))),
            message("Done: hello.txt was written."),
            AgentEvent::Usage(usage(2400, 0, 68, Some(0.002536))),
        ]
    );
    assert_eq!(
        report.final_message.as_deref(),
        Some("Done: hello.txt was written.")
    );
    assert_eq!((report.tool_calls, report.api_error), (1, None));
    assert!(report.session_id.is_some_and(|id| id.starts_with("ses_")));
}

#[test]
fn a_command_that_fails_is_a_failed_call() {
    let (events, _) = opencode(recorded!("opencode", "failing_command"), exit(0, ""));
    assert!(
        events.contains(&result("call_0002", false, Some(3), "(no output)")),
        "{events:?}"
    );
}

#[test]
fn an_error_of_the_api_has_its_status() {
    let (_, report) = opencode(recorded!("opencode", "api_error_401"), exit(1, ""));
    let error = report.api_error.expect("an error");
    assert_eq!((error.status, error.class), (Some(401), Unavailable));
    assert!(
        error
            .message
            .contains("set ANTHROPIC_API_KEY or OPENAI_API_KEY"),
        "{}",
        error.message
    );
}

#[test]
fn what_was_said_before_a_denied_tool_is_no_final_message() {
    let cut = recorded!("opencode", "write_file")
        .lines()
        .take(3)
        .collect::<Vec<_>>()
        .join("\n");
    let (_, report) = opencode(&cut, killed());
    assert_eq!(report.final_message, None);
    let (_, report) = opencode("", exit(1, "Error: no such model\n"));
    assert!(report.api_error.is_some());
}

#[test]
fn its_list_of_things_to_do_is_told() {
    let line = r#"{"type":"tool_use","sessionID":"s","part":{"tool":"todowrite","callID":"c","state":{"status":"completed","input":{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"in_progress"},{"content":"c","status":"pending"}]},"output":"ok"}}}"#;
    let items = vec![
        item("a", TodoStatus::Completed),
        item("b", TodoStatus::InProgress),
        item("c", TodoStatus::Pending),
    ];
    let (events, report) = opencode(line, exit(0, ""));
    assert_eq!(
        events.last(),
        Some(&AgentEvent::Todo {
            items: items.clone()
        })
    );
    assert_eq!(report.todo, items);
}

#[test]
fn the_command_line_has_no_prompt() {
    let plain = invocation(&request());
    assert_eq!(strings(&plain.args), ["run", "--format", "json"]);
    assert_eq!(plain.env, env(&[("OPENCODE_DISABLE_AUTOUPDATE", "1")]));
    let args = ["--agent=build".to_owned()];
    let reads = invocation(&TurnRequest {
        model: Some("openai/gpt-5"),
        extra_args: &args,
        resume: Some("ses_1"),
        may_write: false,
        base_env: &env(&[("OPENCODE_DISABLE_AUTOUPDATE", "0")]),
        ..request()
    });
    assert_eq!(
        strings(&reads.args)[3..],
        ["--model=openai/gpt-5", "--session=ses_1", "--agent=build"]
    );
    assert_eq!(reads.env, env(&[("OPENCODE_PERMISSION", READ_ONLY)]));
}
