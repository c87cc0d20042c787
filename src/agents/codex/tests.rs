use super::super::tests::{
    api_error, call, env, error, exit, file_change, killed, message, raw_line, read, recorded,
    request, result, strings, todo, usage,
};
use super::super::{CliAgent, ExitFacts, OwnSandbox, TurnRequest};
use super::*;
use crate::domain::agent::AgentEvent::{SessionStarted, Todo, Usage as Used};
use crate::domain::agent::ApiErrorClass::{Rejected, Transient, Unavailable};
use crate::domain::agent::{ApiError, Usage};

const HIGH_DEMAND: &str =
    "We’re currently experiencing high demand, which may cause temporary errors.";
const UNKNOWN_MODEL: &str = "Model metadata for `gpt-5-codex` not found. Defaulting to fallback \
                             metadata; this can degrade performance and cause issues.";

fn codex(stdout: &str, exit: ExitFacts<'_>) -> (Vec<AgentEvent>, AgentReport) {
    read(&CliAgent::Known(&SPEC), stdout, exit)
}

fn report_of(stdout: &str, exit: ExitFacts<'_>) -> AgentReport {
    codex(stdout, exit).1
}

/// The report of a successful turn in this session with this message.
fn ended_well(session: &str, message: &str, usage: Usage, tool_calls: u32) -> AgentReport {
    AgentReport {
        session_id: Some(session.to_owned()),
        final_message: Some(message.to_owned()),
        usage,
        usage_basis: UsageBasis::Session,
        tool_calls,
        ..AgentReport::default()
    }
}

/// The report of a turn that failed in this session.
fn failed(session: &str, error: ApiError) -> AgentReport {
    AgentReport {
        session_id: Some(session.to_owned()),
        usage_basis: UsageBasis::Session,
        api_error: Some(error),
        ..AgentReport::default()
    }
}

fn session(id: &str) -> AgentEvent {
    SessionStarted {
        session_id: id.to_owned(),
    }
}

const HELLO: &str = "Hello from the fake model.";
const DONE: &str = "Done: hello.txt was written.";

#[test]
fn turns_that_end_well() {
    let one = || usage(1200, 1000, 34, None);
    let two = || usage(2400, 2000, 68, None);
    for (stdout, expected) in [
        (
            recorded!("codex", "text_only"),
            ended_well("01a1f90d-0524-7ac0-a868-c3a20c2ef390", HELLO, one(), 0),
        ),
        (
            recorded!("codex", "api_error_500_then_ok"),
            ended_well("01a1f8fe-e9c1-72c3-93df-5a2d16fc7fb0", HELLO, one(), 0),
        ),
        (
            recorded!("codex", "builtin_provider_websocket_fallback"),
            ended_well("01a1f8ff-0017-7850-9859-7574702938ca", HELLO, one(), 0),
        ),
        (
            recorded!("codex", "resume"),
            ended_well("01a1f8fe-f108-73c1-9c34-7608864f4586", HELLO, two(), 0),
        ),
        (
            recorded!("codex", "write_file"),
            ended_well("01a1f90d-0885-7982-8681-64f2a4685500", DONE, two(), 1),
        ),
        (
            recorded!("codex", "file_change"),
            ended_well("01a1f8fd-fb66-78a1-bc25-c79fb566912f", DONE, two(), 1),
        ),
        (
            recorded!("codex", "failing_command"),
            ended_well("01a1f907-852e-7ea2-bfa1-3c2a8ee103a0", DONE, two(), 1),
        ),
        (
            recorded!("codex", "write_file_denied_readonly"),
            ended_well("01a1f907-930d-7e10-8394-5069512e2664", DONE, two(), 0),
        ),
        (
            recorded!("codex", "write_file_unknown_model_analytics_on"),
            ended_well("01a1f8f1-c9fc-7cc1-9ba2-86d05ccb04df", DONE, two(), 1),
        ),
    ] {
        assert_eq!(
            report_of(stdout, exit(0, "Reading additional input from stdin...")),
            expected
        );
    }
}

#[test]
fn turns_that_fail() {
    // codex prints the complete JSON of the response.
    let json_400 = "fake 400 from fake-llm";
    let with_key = "unexpected status 401 Unauthorized: fake 401 from fake-llm, url: http://127.0.0.1:41231/v1/responses (set CODEX_API_KEY or OPENAI_API_KEY from a secret, or log codex in)";
    for (stdout, expected) in [
        (
            recorded!("codex", "api_error_400"),
            failed(
                "01a1f8f3-08a1-77d2-8722-d73c21056488",
                api_error(Rejected, None, json_400),
            ),
        ),
        (
            recorded!("codex", "api_error_401"),
            failed(
                "01a1f8fe-ca6b-7993-bc16-0982ac8fd366",
                api_error(Unavailable, Some(401), with_key),
            ),
        ),
        (
            recorded!("codex", "api_error_429"),
            failed(
                "01a1f8fe-c62a-7740-9d35-70e42d4d3aae",
                api_error(
                    Transient,
                    Some(429),
                    "exceeded retry limit, last status: 429 Too Many Requests",
                ),
            ),
        ),
        (
            recorded!("codex", "api_error_500"),
            failed(
                "01a1f8f2-a38f-7cf2-b5cf-7dcbabc89ec1",
                api_error(Transient, None, HIGH_DEMAND),
            ),
        ),
        (
            recorded!("codex", "api_error_500_noretry"),
            failed(
                "01a1f8fe-e634-77e0-bb35-429acef1a3af",
                api_error(Transient, None, HIGH_DEMAND),
            ),
        ),
        (
            recorded!("codex", "api_conn_drop"),
            failed(
                "01a1f8ee-f73b-7a62-9753-069450690635",
                api_error(
                    Transient,
                    None,
                    "stream disconnected before completion: error sending request",
                ),
            ),
        ),
    ] {
        assert_eq!(
            report_of(stdout, exit(1, "Reading additional input from stdin...")),
            expected
        );
    }
}

#[test]
fn a_refusal_to_start_is_told_by_stderr_alone() {
    let stderr =
        include_str!("../../../tests/fixtures/agent-events/codex/not_a_git_repo.stderr.txt");
    let report = report_of(recorded!("codex", "not_a_git_repo"), exit(1, stderr));
    let expected = AgentReport {
        usage_basis: UsageBasis::Session,
        api_error: Some(api_error(
            Unavailable,
            None,
            "Reading additional input from stdin...\nNot inside a trusted directory and --skip-git-repo-check was not specified.",
        )),
        ..AgentReport::default()
    };
    assert_eq!(report, expected);
}

#[test]
fn events_of_a_command_that_fails() {
    let (events, _) = codex(recorded!("codex", "failing_command"), exit(0, ""));
    assert_eq!(
        events,
        [
            session("01a1f907-852e-7ea2-bfa1-3c2a8ee103a0"),
            message("I will write the file."),
            call("item_1", "shell", "echo hi; exit 3"),
            result("item_1", false, Some(3), "hi"),
            message(DONE),
            Used(usage(2400, 2000, 68, None)),
        ]
    );
}

#[test]
fn events_of_a_patch() {
    let path = "/home/runner/work/codex-file_change/hello.txt";
    let (events, _) = codex(recorded!("codex", "file_change"), exit(0, ""));
    assert_eq!(
        events,
        [
            session("01a1f8fd-fb66-78a1-bc25-c79fb566912f"),
            message("I will write the file."),
            call("item_1", "apply_patch", path),
            result("item_1", true, None, ""),
            file_change(path, "add"),
            message(DONE),
            Used(usage(2400, 2000, 68, None)),
        ]
    );
}

#[test]
fn events_of_reconnections_are_not_final() {
    let (events, _) = codex(recorded!("codex", "api_error_500"), exit(1, ""));
    let mut expected = vec![
        session("01a1f8f2-a38f-7cf2-b5cf-7dcbabc89ec1"),
        error(UNKNOWN_MODEL, false),
    ];
    expected
        .extend((1..=5).map(|n| error(&format!("Reconnecting... {n}/5 ({HIGH_DEMAND})"), false)));
    expected.extend([error(HIGH_DEMAND, false), error(HIGH_DEMAND, true)]);
    assert_eq!(events, expected);
}

#[test]
fn a_sandbox_that_lets_no_command_run_is_not_taken_for_an_idle_agent() {
    let words = "bwrap: Creating new namespace failed: nesting depth or \
                 /proc/sys/user/max_*_namespaces exceeded (ENOSPC)";
    let text = format!("{words} ({SANDBOX_REMEDY})");
    let expected = AgentReport {
        api_error: Some(api_error(Unavailable, None, &text)),
        ..ended_well(
            "01a1f9b0-b9c5-7f70-87fc-e90741889cf8",
            DONE,
            usage(2400, 2000, 68, None),
            1,
        )
    };
    assert_eq!(
        report_of(recorded!("codex", "sandbox_unavailable"), exit(0, "")),
        expected
    );
}

#[test]
fn one_command_that_ran_shows_that_the_sandbox_works() {
    let command = |command: &str, output: &str, code: i32| {
        format!(
            r#"{{"type":"item.completed","item":{{"id":"i","type":"command_execution","command":"{command}","aggregated_output":"{output}","exit_code":{code},"status":"x"}}}}"#
        )
    };
    let error_of = |lines: &[String]| report_of(&lines.join("\n"), exit(0, "")).api_error;
    let refused = command("ls", "bwrap: No permissions\\n", 1);
    assert!(error_of(&[refused.clone(), refused.clone()]).is_some());
    assert_eq!(error_of(&[refused, command("ls", "README.md", 0)]), None);
    assert_eq!(
        error_of(&[command("bwrap ls", "bwrap: No permissions", 1)]),
        None
    );
    assert_eq!(
        error_of(&[command("cat log", "bwrap: No permissions", 0)]),
        None
    );
    assert_eq!(
        error_of(&[command("./test", "bwrap: 1\\nfailed: 2", 1)]),
        None
    );
}

#[test]
fn a_turn_that_was_cut_off_while_reconnecting_has_that_error() {
    let stdout = recorded!("codex", "api_conn_drop")
        .lines()
        .take(5)
        .collect::<Vec<_>>()
        .join("\n");
    let expected = failed(
        "01a1f8ee-f73b-7a62-9753-069450690635",
        api_error(
            Transient,
            None,
            "Reconnecting... 2/5 (stream disconnected before completion: error sending request)",
        ),
    );
    assert_eq!(report_of(&stdout, killed()), expected);
}

#[test]
fn a_turn_that_was_cut_off_after_reconnecting_has_none() {
    let stdout = recorded!("codex", "builtin_provider_websocket_fallback");
    let stdout = stdout.lines().take(8).collect::<Vec<_>>().join("\n");
    let expected = AgentReport {
        session_id: Some("01a1f8ff-0017-7850-9859-7574702938ca".to_owned()),
        final_message: Some(HELLO.to_owned()),
        usage_basis: UsageBasis::Session,
        ..AgentReport::default()
    };
    assert_eq!(report_of(&stdout, killed()), expected);
}

#[test]
fn the_list_is_the_last_one_shown() {
    let stdout = r#"{"type":"item.started","item":{"id":"item_0","type":"todo_list","items":[{"text":"read","completed":false},{"text":"write","completed":false}]}}
{"type":"item.updated","item":{"id":"item_0","type":"todo_list","items":[{"text":"read","completed":true},{"text":"write","completed":false}]}}"#;
    let before = vec![
        todo("read", TodoStatus::Pending),
        todo("write", TodoStatus::Pending),
    ];
    let after = vec![
        todo("read", TodoStatus::Completed),
        todo("write", TodoStatus::Pending),
    ];
    let (events, report) = codex(stdout, exit(0, ""));
    assert_eq!(
        events,
        [
            Todo { items: before },
            Todo {
                items: after.clone()
            }
        ]
    );
    assert_eq!(report.todo, after);
    assert_eq!(report.tool_calls, 0);
}

#[test]
fn other_items_are_told_too() {
    let stdout = r#"{"type":"item.completed","item":{"id":"r","type":"reasoning","text":"hm"}}
{"type":"item.completed","item":{"id":"w","type":"web_search","query":"rust"}}
{"type":"item.started","item":{"id":"m","type":"mcp_tool_call","server":"s","tool":"t","arguments":{"a":1},"status":"in_progress"}}
{"type":"item.completed","item":{"id":"m","type":"mcp_tool_call","server":"s","tool":"t","arguments":{"a":1},"error":{"message":"no"},"status":"failed"}}
{"type":"item.completed","item":{"id":"f","type":"file_change","changes":[{"path":"a","kind":"update"}],"status":"failed"}}
{"type":"item.completed","item":{"id":"x","type":"something_new","text":"?"}}
{"type":"item.completed"}
warning: not JSON
"#;
    let (events, report) = codex(stdout, exit(0, ""));
    assert_eq!(
        events,
        [
            AgentEvent::Reasoning {
                text: "hm".to_owned()
            },
            call("w", "web_search", "rust"),
            result("w", true, None, ""),
            call("m", "s.t", r#"{"a":1}"#),
            result("m", false, None, "no"),
            call("f", "apply_patch", "a"),
            result("f", false, None, ""),
            raw_line(
                r#"{"type":"item.completed","item":{"id":"x","type":"something_new","text":"?"}}"#
            ),
            raw_line(r#"{"type":"item.completed"}"#),
            raw_line("warning: not JSON"),
        ]
    );
    assert_eq!(report.tool_calls, 3);
}

#[test]
fn the_file_of_the_final_message_wins() {
    let file = |bytes| ExitFacts {
        final_file: Some(bytes),
        ..exit(0, "")
    };
    let message = |exit| report_of(recorded!("codex", "text_only"), exit).final_message;
    assert_eq!(
        message(file(b"from the file\n")).as_deref(),
        Some("from the file")
    );
    assert_eq!(message(file(b" \n")).as_deref(), Some(HELLO));
    let cut = ExitFacts {
        final_file_cut: true,
        ..file(b"the end")
    };
    assert!(report_of("", cut).final_message_cut);
}

#[test]
fn the_command_line() {
    let invocation = invocation(&request());
    assert_eq!(
        strings(&invocation.args),
        [
            "exec",
            "--json",
            "--color",
            "never",
            "--skip-git-repo-check",
            "--cd",
            "/w",
            "--output-last-message",
            "/s/final-message.md",
            "-c",
            "analytics.enabled=false",
            "-c",
            "check_for_update_on_startup=false",
            "-c",
            "approval_policy=\"never\"",
            "-c",
            "shell_environment_policy.exclude=[\"CODEX_API_KEY\",\"OPENAI_API_KEY\"]",
            "--sandbox",
            "workspace-write",
            "-",
        ]
    );
    let rest = (
        invocation.program,
        invocation.env,
        invocation.final_message_file,
    );
    assert_eq!(
        rest,
        (
            "codex".into(),
            Vec::new(),
            Some("/s/final-message.md".into())
        )
    );
}

#[test]
fn what_follows_the_configuration_depends_on_the_request() {
    let after_config = |request: &TurnRequest<'_>| -> Vec<String> {
        let invocation = invocation(request);
        strings(&invocation.args)[17..]
            .iter()
            .map(|arg| (*arg).to_owned())
            .collect()
    };
    let extra = ["-c".to_owned(), "x=1".to_owned()];
    let full = TurnRequest {
        model: Some("m"),
        resume: Some("abc"),
        extra_args: &extra,
        own_sandbox: OwnSandbox::Off,
        max_cost_usd: Some(1.0),
        ..request()
    };
    assert_eq!(
        after_config(&full),
        [
            "--dangerously-bypass-approvals-and-sandbox",
            "--model=m",
            "-c",
            "x=1",
            "resume",
            "abc",
            "-"
        ]
    );
    let reviewer = TurnRequest {
        may_write: false,
        resume: Some("--last"),
        ..request()
    };
    assert_eq!(after_config(&reviewer), ["--sandbox", "read-only", "-"]);
    let theirs = [
        "--sandbox=danger-full-access".to_owned(),
        "-m".to_owned(),
        "n".to_owned(),
    ];
    let overridden = TurnRequest {
        model: Some("m"),
        extra_args: &theirs,
        ..request()
    };
    assert_eq!(
        after_config(&overridden),
        ["--sandbox=danger-full-access", "-m", "n", "-"]
    );
}

#[test]
fn the_common_name_of_the_key_is_enough() {
    let added = |base: &[(&str, &str)]| {
        invocation(&TurnRequest {
            base_env: &env(base),
            ..request()
        })
        .env
    };
    assert_eq!(
        added(&[("OPENAI_API_KEY", "k")]),
        env(&[("CODEX_API_KEY", "k")])
    );
    assert_eq!(
        added(&[("OPENAI_API_KEY", "k"), ("CODEX_API_KEY", "c")]),
        []
    );
    assert_eq!(added(&[("OPENAI_API_KEY", "")]), []);
}

#[test]
fn scripts_are_shown_without_their_shell() {
    assert_eq!(script_of("/bin/bash -lc 'a b'"), "a b");
    assert_eq!(script_of("bash -c ls"), "ls");
    assert_eq!(script_of("ls -l"), "ls -l");
    assert_eq!(script_of("bash -lc 'unclosed"), "bash -lc 'unclosed");
}
