use super::super::tests::{
    api_error, call, env, error, exit, file_change, message, raw_line, read, request, result,
    strings, todo, usage,
};
use super::super::{CliAgent, TurnRequest};
use super::*;
use crate::domain::agent::ApiErrorClass::{Rejected, Transient};
use crate::domain::agent::TodoStatus;
use proptest::prelude::*;

fn command(stdout: &str, exit: ExitFacts<'_>) -> (Vec<AgentEvent>, AgentReport) {
    read(
        &CliAgent::Command {
            command: "x".to_owned(),
        },
        stdout,
        exit,
    )
}

fn says(text: &str) -> AgentReport {
    AgentReport {
        final_message: Some(text.to_owned()),
        ..AgentReport::default()
    }
}

#[test]
fn the_transcript_is_the_final_message() {
    let (events, report) = command("\n  \n  \u{1b}[1mDone\u{1b}[0m:\ta\n\nb  \n\n", exit(0, ""));
    assert_eq!(
        events,
        [raw_line("  \u{1b}[1mDone\u{1b}[0m:\ta"), raw_line("b")]
    );
    assert_eq!(report, says("  Done:\ta\n\nb"));
}

#[test]
fn silence_is_no_message() {
    assert_eq!(
        command("", exit(0, "")),
        (Vec::new(), AgentReport::default())
    );
    assert_eq!(
        command(" \n\n", exit(1, "oops")),
        (Vec::new(), AgentReport::default())
    );
}

#[test]
fn events_are_taken_and_left_out_of_the_transcript() {
    let stdout = r#"starting
{"event":"agent.tool_call","id":"1","name":"shell","summary":"ls\n-l"}
{"event":"agent.tool_result","id":"1","ok":false,"exit_code":2,"summary":"no"}
{"event":"agent.file_change","path":"a.rs","kind":"add"}
{"event":"agent.todo","items":[{"text":"x","status":"completed"},{"text":"y"}]}
{"event":"agent.usage","tokens_in":10,"tokens_cached":4,"tokens_out":2,"cost_usd":0.5}
{"event":"agent.error","message":"reconnecting"}
{"event":"agent.raw","line":"kept"}
done"#;
    let items = vec![
        todo("x", TodoStatus::Completed),
        todo("y", TodoStatus::Pending),
    ];
    let (events, report) = command(stdout, exit(0, ""));
    assert_eq!(
        events,
        [
            raw_line("starting"),
            call("1", "shell", "ls -l"),
            result("1", false, Some(2), "no"),
            file_change("a.rs", "add"),
            AgentEvent::Todo {
                items: items.clone()
            },
            AgentEvent::Usage(usage(10, 4, 2, Some(0.5))),
            error("reconnecting", false),
            raw_line("kept"),
            raw_line("done"),
        ]
    );
    let expected = AgentReport {
        todo: items,
        usage: usage(10, 4, 2, Some(0.5)),
        tool_calls: 1,
        ..says("starting\ndone")
    };
    assert_eq!(report, expected);
}

#[test]
fn the_last_message_event_is_the_final_message() {
    let stdout = "noise\n{\"event\":\"agent.message\",\"text\":\"one\"}\n{\"event\":\"agent.message\",\"text\":\"two\"}\nmore noise";
    let (events, report) = command(stdout, exit(0, ""));
    assert_eq!(
        events,
        [
            raw_line("noise"),
            message("one"),
            message("two"),
            raw_line("more noise")
        ]
    );
    assert_eq!(report, says("two"));
}

#[test]
fn reasoning_is_neither_the_final_message_nor_transcript() {
    let stdout = r#"{"event":"agent.session","session_id":"s1"}
{"event":"agent.message","text":"done"}
{"event":"agent.message","text":"was that right?","reasoning":true}"#;
    let (events, report) = command(stdout, exit(0, ""));
    let expected = [
        AgentEvent::SessionStarted {
            session_id: "s1".into(),
        },
        message("done"),
        AgentEvent::Reasoning {
            text: "was that right?".into(),
        },
    ];
    assert_eq!(events, expected);
    assert_eq!(report, says("done"));
}

#[test]
fn the_file_wins_over_everything() {
    let stdout = "noise\n{\"event\":\"agent.message\",\"text\":\"one\"}";
    let file = ExitFacts {
        final_file: Some(b"FAILED: \xff\n"),
        ..exit(0, "")
    };
    assert_eq!(command(stdout, file).1, says("FAILED: \u{fffd}"));
    let empty = ExitFacts {
        final_file: Some(b"\n"),
        ..exit(0, "")
    };
    assert_eq!(command(stdout, empty).1, says("one"));
}

#[test]
fn a_final_error_ends_the_turn() {
    let error_of = |text: &str| {
        let line = format!(r#"{{"event":"agent.error","message":"{text}","is_final":true}}"#);
        command(&line, exit(1, "")).1.api_error
    };
    assert_eq!(
        error_of("status 503"),
        Some(api_error(Transient, Some(503), "status 503"))
    );
    assert_eq!(
        error_of("lost my way"),
        Some(api_error(Rejected, None, "lost my way"))
    );
}

#[test]
fn json_that_does_not_follow_the_schema_is_transcript() {
    for line in [
        r#"{"event":"run.ended"}"#,
        r#"{"event":"agent.unheard_of"}"#,
        r#"{"event":"agent.message"}"#,
        r#"{"event":"agent.message","text":5}"#,
        r#"{"event":"agent.todo","items":[{"text":"x","status":"?"}]}"#,
        r#"{"event":"agent.tool_result","id":"1"}"#,
        r#"{"text":"x"}"#,
        r#"[{"event":"agent.message","text":"x"}]"#,
    ] {
        assert_eq!(
            command(line, exit(0, "")),
            (vec![raw_line(line)], says(line))
        );
    }
}

#[test]
fn only_the_end_of_a_long_transcript_is_kept() {
    let lines: Vec<String> = (0..100_000).map(|n| format!("line {n}")).collect();
    let (_, report) = command(&lines.join("\n"), exit(0, ""));
    let text = report.final_message.unwrap_or_default();
    assert!(report.final_message_cut);
    assert!(text.len() < FINAL_MESSAGE_BYTES && text.len() > FINAL_MESSAGE_BYTES - 100);
    assert!(lines.join("\n").ends_with(&text));
}

#[test]
fn a_long_line_is_cut_between_characters() {
    let (_, report) = command(&"é".repeat(FINAL_MESSAGE_BYTES), exit(0, ""));
    let kept = report.final_message.unwrap_or_default();
    assert!(kept.ends_with(&"é".repeat(FINAL_MESSAGE_BYTES / 2 - 1)));
    assert!(kept.len() < FINAL_MESSAGE_BYTES + 1100);
    assert!(report.final_message_cut);
}

#[test]
fn a_transcript_that_just_fits_is_whole() {
    let fits = "x".repeat(FINAL_MESSAGE_BYTES - 1);
    assert!(command(&fits, exit(0, "")).1 == says(&fits));
    let (_, report) = command(&format!("y\n{fits}"), exit(0, ""));
    assert!(report.final_message_cut);
    assert!(report.final_message == Some(format!("y\n{fits}")));
}

#[test]
fn the_command_line() {
    let expected = Invocation {
        program: "sh".into(),
        args: vec!["-c".into(), "my-agent \"$@\"".into()],
        env: Vec::new(),
        final_message_file: Some("/s/final-message.md".into()),
        files: Vec::new(),
    };
    assert_eq!(invocation("my-agent \"$@\"", &request()), expected);
    let extra = ["--fast".to_owned()];
    let with_args = invocation(
        "a",
        &TurnRequest {
            extra_args: &extra,
            ..request()
        },
    );
    assert_eq!(strings(&with_args.args), ["-c", "a", "agent", "--fast"]);
}

#[test]
fn the_turns_variables() {
    let turn = TurnName {
        task: "t1".into(),
        attempt: 2,
        turn: 5,
        purpose: "implement".into(),
    };
    let [prompt, message] = ["/s/prompt.md", "/s/final-message.md"].map(Path::new);
    assert_eq!(
        turn_env(&turn, "implementer", prompt, message).to_vec(),
        env(&[
            ("SPRAG_PROMPT_FILE", "/s/prompt.md"),
            ("SPRAG_FINAL_FILE", "/s/final-message.md"),
            ("SPRAG_TASK_ID", "t1"),
            ("SPRAG_ATTEMPT", "2"),
            ("SPRAG_TURN", "5"),
            ("SPRAG_PURPOSE", "implement"),
            ("SPRAG_ROLE", "implementer"),
        ])
    );
}

proptest! {
    #[test]
    fn a_short_plain_transcript_is_taken_as_it_is(text in "[a-zé]([a-z é.\n]{0,80}[a-zé])?") {
        prop_assert_eq!(command(&text, exit(0, "")).1, says(&text));
    }
}
