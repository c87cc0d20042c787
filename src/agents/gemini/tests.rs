use super::super::CliAgent;
use super::super::tests::{
    call, env, exit, file_change, killed, message, read, recorded, request, result, strings, usage,
};
use super::*;
use crate::domain::agent::ApiErrorClass::{Rejected, Transient, Unavailable};
use std::path::Path;

fn gemini(stdout: &str, exit: ExitFacts<'_>) -> (Vec<AgentEvent>, AgentReport) {
    read(&CliAgent::Known(&SPEC), stdout, exit)
}

#[test]
fn a_turn_that_writes_a_file() {
    let (events, report) = gemini(recorded!("gemini", "write_file"), exit(0, ""));
    let path = "/home/runner/work/gemini-write_file/hello.txt";
    let AgentEvent::ToolCall { id: Some(id), .. } = &events[2] else {
        panic!("{events:?}")
    };
    assert_eq!(
        events[1..],
        [
            message("I will write the file."),
            call(id, "write_file", path),
            result(id, true, None, ""),
            file_change(path, "update"),
            message("Done: hello.txt was written."),
            AgentEvent::Usage(usage(2400, 0, 68, None)),
        ]
    );
    assert_eq!(
        report.final_message.as_deref(),
        Some("Done: hello.txt was written.")
    );
    assert_eq!((report.tool_calls, report.api_error), (1, None));
    assert_eq!(report.usage, usage(2400, 0, 68, None));
    assert!(report.session_id.is_some());
}

#[test]
fn a_command_that_fails_is_a_failed_call() {
    let (events, _) = gemini(recorded!("gemini", "failing_command"), exit(0, ""));
    let failed = events.iter().find_map(|event| match event {
        AgentEvent::ToolResult { ok, exit_code, .. } => Some((*ok, *exit_code)),
        _ => None,
    });
    assert_eq!(failed, Some((false, Some(3))));
}

#[test]
fn an_exit_code_that_is_a_status_is_no_signal_and_the_status_is_told() {
    let (_, report) = gemini(recorded!("gemini", "api_error_401"), exit(145, ""));
    let error = report.api_error.expect("an error");
    assert_eq!((error.status, error.class), (Some(401), Unavailable));
    assert!(
        error.message.contains("fake 401 from fake-llm"),
        "{}",
        error.message
    );
    assert!(
        error.message.contains("set GEMINI_API_KEY from a secret"),
        "{}",
        error.message
    );
    assert_eq!(report.final_message, None);
}

#[test]
fn a_turn_that_was_ended_has_what_was_said_and_one_that_never_began_its_reason() {
    let cut = recorded!("gemini", "write_file")
        .lines()
        .take(3)
        .collect::<Vec<_>>()
        .join("\n");
    let (_, report) = gemini(&cut, killed());
    assert_eq!(
        report.final_message.as_deref(),
        Some("I will write the file.")
    );
    assert_eq!(report.api_error, None);
    let (_, report) = gemini("", exit(41, "Invalid auth method selected.\n"));
    let error = report.api_error.expect("an error");
    assert_eq!(error.class, Unavailable);
    assert!(
        error.message.contains("Invalid auth method selected."),
        "{}",
        error.message
    );
}

#[test]
fn the_pieces_of_a_message_are_one_and_what_was_said_before_a_tool_is_not() {
    let said = |text: &str| {
        format!(
            "{{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"{text}\",\"delta\":true}}"
        )
    };
    let tool = "{\"type\":\"tool_use\",\"tool_name\":\"glob\",\"tool_id\":\"x\",\"parameters\":{\"pattern\":\"*\"}}";
    let stdout = [said("First."), tool.to_owned(), said("Now "), said("done.")].join("\n");
    let (events, report) = gemini(&stdout, exit(0, ""));
    assert_eq!(events[0], message("First."));
    assert_eq!(report.final_message.as_deref(), Some("Now done."));
}

#[test]
fn the_command_line_has_no_prompt_and_what_the_user_decides_is_not_decided_twice() {
    let plain = invocation(&request());
    assert_eq!(
        strings(&plain.args),
        ["--output-format", "stream-json", "--approval-mode=yolo"]
    );
    let trusted = ("GEMINI_CLI_TRUST_WORKSPACE", "true");
    let file = "/s/gemini-defaults.json";
    let defaults = ("GEMINI_CLI_SYSTEM_DEFAULTS_PATH", file);
    assert_eq!(plain.env, env(&[trusted, defaults]));
    assert_eq!(plain.files[0].0, Path::new(file));
    let args = [
        "--approval-mode=auto_edit".to_owned(),
        "-m".to_owned(),
        "x".to_owned(),
    ];
    let own = invocation(&TurnRequest {
        model: Some("gemini-2.5-pro"),
        extra_args: &args,
        resume: Some("2aa12e50-6e23"),
        base_env: &env(&[("GEMINI_CLI_TRUST_WORKSPACE", "false")]),
        ..request()
    });
    assert_eq!(
        strings(&own.args),
        [
            "--output-format",
            "stream-json",
            "--resume=2aa12e50-6e23",
            "--approval-mode=auto_edit",
            "-m",
            "x"
        ]
    );
    assert_eq!(own.env, env(&[defaults]));
    let reads = invocation(&TurnRequest {
        may_write: false,
        model: Some("m"),
        ..request()
    });
    assert_eq!(
        strings(&reads.args)[2..],
        ["--approval-mode=default", "--model=m"]
    );
}

/// Without this choice, gemini takes an API URL for a gateway's and refuses to log in.
#[test]
fn a_key_is_chosen_as_the_way_to_log_in_where_nothing_else_chooses() {
    let chosen = |set: &[(&str, &str)]| {
        let set = env(set);
        let how = invocation(&TurnRequest {
            base_env: &set,
            ..request()
        });
        let settings: Value = serde_json::from_str(&how.files[0].1).expect("JSON");
        json::text(&settings, "/security/auth/selectedType").map(str::to_owned)
    };
    let key = ("GEMINI_API_KEY", "k");
    assert_eq!(chosen(&[key]).as_deref(), Some("gemini-api-key"));
    assert_eq!(chosen(&[key, (VERTEX, "true")]), None);
    assert_eq!(chosen(&[]), None);
}

#[test]
fn a_limit_of_turns_is_no_error_of_the_api() {
    let stdout = r#"{"type":"result","status":"error","error":{"type":"FatalTurnLimitedError","message":"Reached max session turns for this session."},"stats":{}}"#;
    let (_, report) = gemini(stdout, exit(53, ""));
    assert_eq!(
        (report.api_error, report.stopped_by.as_deref()),
        (None, Some("FatalTurnLimitedError"))
    );
}

#[test]
fn a_status_that_the_message_lacks_is_read_from_the_exit_code() {
    let stdout = r#"{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: {\"error\":{\"message\":\"no\"}}]"},"stats":{}}"#;
    let told = |code| {
        let (_, report) = gemini(stdout, exit(code, ""));
        let error = report.api_error.expect("an error");
        (error.status, error.class)
    };
    assert_eq!(told(145), (Some(401), Unavailable));
    assert_eq!(told(173), (Some(429), Transient));
    assert_eq!(told(1), (None, Rejected));
}
