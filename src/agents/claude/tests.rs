use super::super::tests::{
    api_error, call, env, error, exit, file_change, killed, message, raw_line, read, recorded,
    request, result, strings, todo, usage,
};
use super::super::{CliAgent, ExitFacts, OwnSandbox, TurnRequest};
use super::*;
use crate::agents::turn::TurnReader as _;
use crate::domain::agent::AgentEvent::{SessionStarted, Todo, Usage as Used};
use crate::domain::agent::ApiErrorClass::{Rejected, Transient, Unavailable};
use crate::domain::agent::{AgentEvent, AgentReport};
use crate::domain::agent::{TodoStatus, UsageBasis};

const HELLO: &str = "Hello from the fake model.";
const DONE: &str = "Done: hello.txt was written.";

fn claude(stdout: &str, exit: ExitFacts<'_>) -> (Vec<AgentEvent>, AgentReport) {
    read(&CliAgent::Known(&SPEC), stdout, exit)
}

fn report_of(stdout: &str, exit: ExitFacts<'_>) -> AgentReport {
    claude(stdout, exit).1
}

fn ended_well(session: &str, message: &str, usage: Usage, tool_calls: u32) -> AgentReport {
    AgentReport {
        session_id: Some(session.to_owned()),
        final_message: Some(message.to_owned()),
        usage,
        usage_basis: UsageBasis::Turn,
        tool_calls,
        ..AgentReport::default()
    }
}

fn failed(session: &str, error: ApiError) -> AgentReport {
    AgentReport {
        session_id: Some(session.to_owned()),
        usage: usage(0, 0, 0, Some(0.0)),
        api_error: Some(error),
        ..AgentReport::default()
    }
}

fn session(id: &str) -> AgentEvent {
    SessionStarted {
        session_id: id.to_owned(),
    }
}

#[test]
fn turns_that_end_well() {
    let one = || usage(1200, 0, 34, Some(0.00411));
    let two = || usage(2400, 0, 68, Some(0.00822));
    let with_title = usage(3600, 0, 102, Some(0.01233));
    for (stdout, expected) in [
        (
            recorded!("claude", "text_only"),
            ended_well("7a3f6fce-4407-4d47-9235-2bae8e56d74c", HELLO, one(), 0),
        ),
        (
            recorded!("claude", "resume"),
            ended_well("d32a077f-4c90-4fcb-9836-f93d11c7293f", HELLO, one(), 0),
        ),
        (
            recorded!("claude", "write_file"),
            ended_well("8d528572-e316-44a7-90bc-a4bab4c52143", DONE, with_title, 1),
        ),
        (
            recorded!("claude", "write_file_bare"),
            ended_well("859f756e-7a76-405c-a3de-dcead1e0a910", DONE, two(), 1),
        ),
        (
            recorded!("claude", "failing_command"),
            ended_well("6597f987-6fca-4dad-8184-c7963bef4c3a", DONE, two(), 1),
        ),
        (
            recorded!("claude", "write_file_denied"),
            AgentReport {
                permission_denials: 1,
                ..ended_well("d5adfcba-1d94-40fa-a327-eb499b664121", DONE, two(), 1)
            },
        ),
    ] {
        assert_eq!(report_of(stdout, exit(0, "")), expected);
    }
}

#[test]
fn turns_that_fail() {
    let remedy =
        "(set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN from a secret, or log claude in)";
    let refused = format!("Failed to authenticate. API Error: 401 fake 401 from fake-llm {remedy}");
    let no_key = format!("Not logged in · Please run /login {remedy}");
    let limited = "API Error: Request rejected (429) · fake 429 from fake-llm";
    let server = "API Error: 500 fake 500 from fake-llm. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:33447).";
    for (stdout, expected) in [
        (
            recorded!("claude", "api_error_400"),
            failed(
                "d349d9c3-34bc-499f-89ae-09f1673f9a0b",
                api_error(Rejected, Some(400), "API Error: 400 fake 400 from fake-llm"),
            ),
        ),
        (
            recorded!("claude", "api_error_401"),
            failed(
                "13933f4a-c083-4d83-8888-02ec1535210d",
                api_error(Unavailable, Some(401), &refused),
            ),
        ),
        (
            recorded!("claude", "api_error_429"),
            failed(
                "e172fb03-9dfe-4b62-bfd5-7615a063e455",
                api_error(Transient, Some(429), limited),
            ),
        ),
        (
            recorded!("claude", "api_error_429_default_retries"),
            failed(
                "0dc48ceb-da90-4ecb-bf4f-6e6593e639eb",
                api_error(Transient, Some(429), limited),
            ),
        ),
        (
            recorded!("claude", "api_error_500"),
            failed(
                "50f45cf6-eb8d-42da-8359-ee82c33f1ac6",
                api_error(Transient, Some(500), server),
            ),
        ),
        (
            recorded!("claude", "no_api_key"),
            failed(
                "acc1aa04-7a3a-4c36-a0ef-98062173af39",
                api_error(Unavailable, None, &no_key),
            ),
        ),
    ] {
        assert_eq!(report_of(stdout, exit(1, "")), expected);
    }
}

#[test]
fn turns_that_claude_stopped_at_a_limit() {
    for (stdout, session, stopped_by, text) in [
        (
            recorded!("claude", "max_turns"),
            "f311e062-8660-431e-9148-283bc0cc2359",
            "error_max_turns",
            "Reached maximum number of turns (1)",
        ),
        (
            recorded!("claude", "max_budget"),
            "518cca9d-0b5e-4660-904f-fb07c0513f88",
            "error_max_budget_usd",
            "Reached maximum budget ($0.001)",
        ),
    ] {
        let (events, report) = claude(stdout, exit(1, ""));
        let expected = AgentReport {
            stopped_by: Some(stopped_by.to_owned()),
            ..ended_well(
                session,
                "I will write the file.",
                usage(1200, 0, 34, Some(0.00411)),
                1,
            )
        };
        assert_eq!(report, expected);
        assert_eq!(events.last(), Some(&error(text, true)));
    }
}

#[test]
fn a_recorded_list() {
    let expected = AgentReport {
        todo: vec![todo("read the code", TodoStatus::Pending)],
        ..ended_well(
            "143812c4-5708-4b29-9612-3629f14f4372",
            DONE,
            usage(2400, 0, 68, Some(0.00822)),
            1,
        )
    };
    assert_eq!(
        report_of(recorded!("claude", "task_create"), exit(0, "")),
        expected
    );
}

#[test]
fn a_turn_that_was_killed_while_it_retried_has_that_error() {
    let expected = AgentReport {
        session_id: Some("786973b6-1b9a-4c3e-9468-c5e5e4a4e1c6".to_owned()),
        api_error: Some(api_error(Transient, None, "connection failed: unknown")),
        ..AgentReport::default()
    };
    let terminated = ExitFacts {
        code: Some(143),
        killed_by_us: true,
        ..ExitFacts::default()
    };
    assert_eq!(
        report_of(recorded!("claude", "api_conn_drop"), terminated),
        expected
    );
}

#[test]
fn a_turn_that_was_killed_at_work_has_no_error() {
    let stdout = recorded!("claude", "write_file")
        .lines()
        .take(4)
        .collect::<Vec<_>>()
        .join("\n");
    let expected = AgentReport {
        usage: Usage::default(),
        ..ended_well(
            "8d528572-e316-44a7-90bc-a4bab4c52143",
            "I will write the file.",
            Usage::default(),
            1,
        )
    };
    assert_eq!(report_of(&stdout, killed()), expected);
}

#[test]
fn a_refusal_of_root_is_told_by_stderr_alone() {
    let stderr = include_str!(
        "../../../tests/fixtures/agent-events/claude/root_skip_permissions_refused.stderr.txt"
    );
    let text = "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons (run as another user, set IS_SANDBOX=1 in a disposable container, or leave --dangerously-skip-permissions out)";
    let expected = AgentReport {
        api_error: Some(api_error(Unavailable, None, text)),
        ..AgentReport::default()
    };
    assert_eq!(
        report_of(
            recorded!("claude", "root_skip_permissions_refused"),
            exit(1, stderr)
        ),
        expected
    );
}

#[test]
fn events_of_a_write() {
    let path = "/home/runner/work/claude-write_file/hello.txt";
    let (events, _) = claude(recorded!("claude", "write_file"), exit(0, ""));
    let told = format!(
        "File created successfully at: {path} (file state is current in your context — no need to Read it back)"
    );
    assert_eq!(
        events,
        [
            session("8d528572-e316-44a7-90bc-a4bab4c52143"),
            message("I will write the file."),
            call("toolu_0002", "Write", path),
            result("toolu_0002", true, None, &told),
            file_change(path, "add"),
            message(DONE),
            Used(usage(3600, 0, 102, Some(0.01233))),
        ]
    );
}

#[test]
fn exit_codes_of_commands() {
    let results = |stdout| -> Vec<_> {
        let (events, _) = claude(stdout, exit(0, ""));
        events
            .into_iter()
            .filter(|e| matches!(e, AgentEvent::ToolResult { .. }))
            .collect()
    };
    assert_eq!(
        results(recorded!("claude", "failing_command")),
        [result("toolu_0001", false, Some(3), "Exit code 3\nhi")]
    );
    assert_eq!(
        results(recorded!("claude", "write_file_bare")),
        [result(
            "toolu_0001",
            true,
            Some(0),
            "(Bash completed with no output)"
        )]
    );
    let denied = "Claude requested permissions to write to /home/runner/work/claude-denied/hello.txt, but you haven't granted it yet.";
    assert_eq!(
        results(recorded!("claude", "write_file_denied")),
        [result("toolu_0001", false, None, denied)]
    );
}

#[test]
fn events_of_retries_are_not_final() {
    let (events, _) = claude(recorded!("claude", "api_error_429"), exit(1, ""));
    assert_eq!(
        events,
        [
            session("e172fb03-9dfe-4b62-bfd5-7615a063e455"),
            error("API error: 429 rate_limit; retry 1 of 1", false),
            Used(usage(0, 0, 0, Some(0.0))),
            error(
                "API Error: Request rejected (429) · fake 429 from fake-llm",
                true
            ),
        ]
    );
}

fn tool_use(id: &str, name: &str, input: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}]}}}}"#
    )
}

fn tool_result(id: &str, is_error: bool, text: &str, structured: &str) -> String {
    format!(
        r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}","is_error":{is_error},"content":"{text}"}}]}},"tool_use_result":{structured}}}"#
    )
}

#[test]
fn the_list_is_kept_whole() {
    let stdout = [
        tool_use("1", "TodoWrite", r#"{"todos":[{"content":"read","status":"completed","activeForm":"Reading"},{"content":"write","status":"in_progress"},{"content":"test","status":"?"}]}"#),
        tool_result("1", false, "Todos have been modified", "{}"),
        tool_use("2", "TodoWrite", r#"{"todos":[]}"#),
        tool_result("2", true, "no", "{}"),
    ]
    .join("\n");
    let items = vec![
        todo("read", TodoStatus::Completed),
        todo("write", TodoStatus::InProgress),
        todo("test", TodoStatus::Pending),
    ];
    let (events, report) = claude(&stdout, exit(0, ""));
    assert_eq!(
        events[2],
        Todo {
            items: items.clone()
        }
    );
    assert_eq!(events.len(), 5);
    assert_eq!(report.todo, items);
}

#[test]
fn the_list_is_kept_item_by_item() {
    let stdout = [
        tool_use("a", "TaskCreate", r#"{"subject":"read","description":"…"}"#),
        tool_use("b", "TaskCreate", r#"{"subject":"write"}"#),
        tool_use("c", "TaskCreate", r#"{"subject":"test"}"#),
        tool_result(
            "a",
            false,
            "Task #7 created successfully: read",
            r#"{"task":{"id":"7","subject":"read"}}"#,
        ),
        tool_result("b", false, "Task #8 created successfully: write", "null"),
        tool_result("c", false, "created", "null"),
        tool_use("d", "TaskUpdate", r#"{"taskId":"7","status":"completed"}"#),
        tool_result("d", false, "Updated task #7 status", "null"),
        tool_use(
            "e",
            "TaskUpdate",
            r#"{"taskId":8,"subject":"write it","status":"in_progress"}"#,
        ),
        tool_result("e", false, "Updated", "null"),
        tool_use("f", "TaskUpdate", r#"{"taskId":"3","status":"deleted"}"#),
        tool_result("f", false, "Deleted", "null"),
        tool_use("g", "TaskUpdate", r#"{"taskId":"99","status":"completed"}"#),
        tool_result("g", false, "Updated", "null"),
    ]
    .join("\n");
    let report = report_of(&stdout, exit(0, ""));
    assert_eq!(
        report.todo,
        [
            todo("read", TodoStatus::Completed),
            todo("write it", TodoStatus::InProgress)
        ]
    );
}

#[test]
fn what_a_subagent_says_is_not_the_final_message() {
    let stdout = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"mine"},{"type":"thinking","thinking":"hm"}]},"parent_tool_use_id":null}
{"type":"assistant","message":{"content":[{"type":"text","text":"the subagent's"}]},"parent_tool_use_id":"toolu_1"}"#;
    let (events, report) = claude(stdout, killed());
    let thought = AgentEvent::Reasoning {
        text: "hm".to_owned(),
    };
    assert_eq!(
        events,
        [message("mine"), thought, message("the subagent's")]
    );
    assert_eq!(report.final_message.as_deref(), Some("mine"));
}

#[test]
fn a_session_that_is_gone_is_not_given_back() {
    let stdout = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"abc","errors":["No conversation found with session ID: abc"]}"#;
    let (events, report) = claude(stdout, exit(1, ""));
    let text = "No conversation found with session ID: abc";
    assert_eq!(events, [Used(Usage::default()), error(text, true)]);
    let expected = AgentReport {
        stopped_by: Some("error_during_execution".to_owned()),
        api_error: Some(api_error(Rejected, None, text)),
        ..AgentReport::default()
    };
    assert_eq!(report, expected);
}

#[test]
fn other_lines_are_kept() {
    let stdout = "node: a warning\n{\"type\":\"something_new\"}\n\n{\"type\":\"stream_event\"}\n{\"type\":\"system\",\"subtype\":\"status\"}";
    let (events, report) = claude(stdout, exit(0, ""));
    assert_eq!(
        events,
        [
            raw_line("node: a warning"),
            raw_line("{\"type\":\"something_new\"}")
        ]
    );
    assert_eq!(report, AgentReport::default());
}

#[test]
fn the_command_line() {
    let invocation = invocation(&request());
    assert_eq!(
        strings(&invocation.args),
        [
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-mode=acceptEdits",
            "--allowedTools=Bash",
            "--disallowedTools=AskUserQuestion,EnterPlanMode,EnterWorktree,ScheduleWakeup,CronCreate",
            "--exclude-dynamic-system-prompt-sections",
        ]
    );
    let added = env(&[
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("CLAUDE_CODE_MAX_RETRIES", "3"),
    ]);
    let rest = (
        invocation.program,
        invocation.env,
        invocation.final_message_file,
    );
    assert_eq!(rest, ("claude".into(), added, None));
}

#[test]
fn what_follows_the_format_depends_on_the_request() {
    let after_format = |request: &TurnRequest<'_>| -> Vec<String> {
        let invocation = invocation(request);
        strings(&invocation.args)[4..]
            .iter()
            .map(|arg| (*arg).to_owned())
            .collect()
    };
    let extra = ["--tools=Bash".to_owned()];
    let full = TurnRequest {
        model: Some("m"),
        resume: Some("abc"),
        extra_args: &extra,
        own_sandbox: OwnSandbox::Off,
        max_cost_usd: Some(0.25),
        ..request()
    };
    assert_eq!(
        after_format(&full),
        [
            "--permission-mode=bypassPermissions",
            "--exclude-dynamic-system-prompt-sections",
            "--model=m",
            "--max-budget-usd=0.25",
            "--resume=abc",
            "--tools=Bash"
        ]
    );
    let theirs = [
        "--dangerously-skip-permissions",
        "--model",
        "n",
        "--max-budget-usd=9",
        "--tools=Bash",
        "--exclude-dynamic-system-prompt-sections",
    ]
    .map(str::to_owned);
    let overridden = TurnRequest {
        model: Some("m"),
        max_cost_usd: Some(1.0),
        extra_args: &theirs,
        ..request()
    };
    assert_eq!(after_format(&overridden), theirs);
    for (repository_files, sources) in [
        (RepositoryFiles::OfTheBase, "--setting-sources=user,project"),
        (RepositoryFiles::Absent, "--setting-sources=user"),
    ] {
        let of_a_pull_request = TurnRequest {
            repository_files,
            extra_args: &extra,
            own_sandbox: OwnSandbox::Off,
            ..request()
        };
        assert_eq!(
            after_format(&of_a_pull_request)[2..],
            [sources, "--strict-mcp-config", "--tools=Bash"]
        );
    }
    let reviewer = TurnRequest {
        may_write: false,
        own_sandbox: OwnSandbox::Off,
        max_cost_usd: Some(f64::NAN),
        extra_args: &extra,
        ..request()
    };
    assert_eq!(
        after_format(&reviewer),
        [
            READ_ONLY[0],
            READ_ONLY[1],
            "--exclude-dynamic-system-prompt-sections",
            "--tools=Bash"
        ]
    );
}

#[test]
fn root_is_told_of_the_outer_sandbox_and_nobody_else_is() {
    let sandbox_env = |own_sandbox, is_root, base: &[(&str, &str)]| {
        let base_env = env(base);
        let request = TurnRequest {
            own_sandbox,
            is_root,
            base_env: &base_env,
            ..request()
        };
        let added = invocation(&request).env;
        added
            .into_iter()
            .find(|(name, _)| name == "IS_SANDBOX")
            .map(|(_, value)| value)
    };
    assert_eq!(sandbox_env(OwnSandbox::Off, true, &[]), Some("1".into()));
    assert_eq!(sandbox_env(OwnSandbox::Off, false, &[]), None);
    assert_eq!(sandbox_env(OwnSandbox::On, true, &[]), None);
    assert_eq!(
        sandbox_env(OwnSandbox::Off, true, &[("IS_SANDBOX", "0")]),
        None
    );
}

#[test]
fn the_users_settings_are_left_alone() {
    let base_env = env(&[("CLAUDE_CODE_MAX_RETRIES", "9")]);
    let added = invocation(&TurnRequest {
        base_env: &base_env,
        ..request()
    })
    .env;
    let expected = env(&[
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
    ]);
    assert_eq!(added, expected);
}

#[test]
fn a_value_that_claude_gives_apart_from_its_message_is_reported() {
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"0192","structured_output":{"ok":true}}"#;
    let mut reader = Box::new(Reader::of(&DIALECT));
    reader.line(result.as_bytes());
    let report = reader.finish(ExitFacts::default());
    let value = serde_json::json!({"ok": true});
    assert_eq!(report.structured_output, Some(value));
    assert_eq!(report.final_message.as_deref(), Some("Done."));
}
