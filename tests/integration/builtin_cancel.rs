//! The built-in agent is cancelled, wherever it is. What it waits for comes only long after the test
//! would have been given up.

use crate::support::http::Reply;
use crate::support::model_calls;
use crate::support::model_wire::{TOKENS_CACHED, TOKENS_IN, TOKENS_OUT, WireFormat, server_sent};
use crate::support::proc::{assert_nothing_left, end_of, signal, wait_until};
use crate::support::project::{Project, Run, plan};
use crate::support::scripted::{Scripted, answer};
use crate::support::tasks::builtin;
use serde_json::{Value, json};
use std::time::Duration;

/// Sends SIGTERM as soon as `began` holds, and sees that everything is told and nothing is left.
fn cancelled(script: Vec<Reply>, began: impl Fn(&Project, &Scripted) -> bool) -> Run {
    let api = Scripted::start(script);
    let mut project = Project::new(&[
        ("a.txt", "broken\n"),
        ("plan.yaml", &plan("grep -q fixed a.txt")),
    ]);
    let args = builtin(&mut project, &api.url(), "openai/m", &[]);
    let mut sprag = project.start(&args);
    wait_until("it is where it is to be cancelled", || {
        began(&project, &api)
    });
    let asked = api.requests().len();
    signal(sprag.id(), "TERM");
    assert_eq!(end_of(&mut sprag).code(), Some(143));
    assert_nothing_left(&project);
    let run = project.finished(&sprag.wait_with_output().unwrap());
    assert_eq!(run.summary["status"], "cancelled");
    assert_eq!(run.task(0)["reason"], "cancelled");
    assert_eq!(api.requests().len(), asked, "nothing more is asked");
    let dir = run.dir.as_ref().unwrap();
    assert!(dir.join("report.md").is_file());
    let last = transcript(&project).pop().unwrap();
    assert_eq!(last["intent"], json!({"step": "end", "exit": "cancelled"}));
    assert_eq!(
        (project.commits(), project.read("a.txt").as_str()),
        (1, "broken\n")
    );
    run
}

/// The records of the first turn so far.
fn transcript(project: &Project) -> Vec<Value> {
    let dir = project.run_dirs().pop();
    let log = dir
        .and_then(|dir| std::fs::read_to_string(dir.join("turns/01-builtin.jsonl")).ok())
        .unwrap_or_default();
    let whole = log
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    whole
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn within_a_request_without_an_answer() {
    cancelled(vec![Reply::Hang], |_, api| api.requests().len() == 1);
}

#[test]
fn within_a_slow_stream() {
    let body = ": still there\n\n".repeat(1000);
    let slow = answer(200, "text/event-stream", body);
    let slow = Reply::Drip(slow, Duration::from_secs(1));
    cancelled(vec![slow], |_, api| api.requests().len() == 1);
}

#[test]
fn within_the_wait_that_the_provider_asked_for() {
    let mut later = answer(429, "application/json", "{}");
    later.headers.push(("retry-after".into(), "290".into()));
    cancelled(vec![Reply::Answer(later)], |project, _| {
        let waits = |record: &Value| record["intent"] == json!({"step": "wait", "ms": 290_000});
        transcript(project).last().is_some_and(waits)
    });
}

#[test]
fn within_a_command() {
    let command = "echo > $TMPDIR/began; trap '' TERM; (setsid sleep 1000 &); sleep 1000";
    let call = [(
        "run_command",
        json!({"command": command, "timeout_seconds": 500}),
    )];
    let (_, events) = model_calls::reply(WireFormat::Chat, 1, "I wait.", &call);
    let body: String = events.iter().map(server_sent).collect();
    let call = Reply::Answer(answer(200, "text/event-stream", body));
    let run = cancelled(vec![call], |project, _| {
        project.beside("tmp").join("began").exists()
    });
    let used = json!({"tokens_in": TOKENS_IN, "tokens_cached": TOKENS_CACHED, "tokens_out": TOKENS_OUT, "cost_usd": null});
    assert_eq!(run.summary["usage"], used);
}
