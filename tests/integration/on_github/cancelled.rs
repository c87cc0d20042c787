//! A job that is cancelled, by the signals that GitHub's runner sends to the action's own step.

use super::pushes::{assert_checks_over, conclusion, on_pull};
use crate::action_file::{ROOT, started};
use crate::support::github::{CheckRun, Fault, Subject, Trouble};
use crate::support::proc::{assert_nothing_left, end_of, end_within, signal, wait_until};
use crate::support::runner::{Runner, Step, TOKEN};
use crate::support::time_limit::under_limit;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const SLOW: &str = "echo half > a.txt\ntouch \"$OUT/working\"\nsleep 1000 & wait";
const STUBBORN: &str = "trap ': > \"$OUT/asked\"' TERM\necho half > a.txt\n\
    touch \"$OUT/working\"\nuntil test -e \"$OUT/go\"; do sleep 0.1; done\nprintf fixed > a.txt";
const CHECK: &str = "grep -q fixed a.txt";

/// The action's step with this agent, at work, and its comment written.
fn working(runner: &mut Runner, number: u64, script: &str, more: &[(&str, &str)]) -> Child {
    let agent = runner.project.agent(script);
    // As GitHub advises, and as it is with GitHub.
    runner.project.env("SPRAG_GITHUB_SPACING_MS", "1000");
    // For the files of the step.
    drop(runner.command(&[]));
    let inputs = [
        ("binary", env!("CARGO_BIN_EXE_sprag")),
        ("github-token", TOKEN),
        ("agent-command", &agent),
        ("verify", CHECK),
    ];
    let inputs = [&inputs, more].concat();
    let child = started(&runner.project, Path::new(ROOT), "sprag", &inputs)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the agent", || runner.project.outside("working").exists());
    wait_until("the comment", || runner.comment(number).is_some());
    child
}

fn ended(runner: &Runner, child: &mut Child, code: i32) -> Step {
    let status = end_of(child);
    assert_eq!(status.code(), Some(code), "{:?}", status.signal());
    runner.ended(&Output {
        status,
        stdout: Vec::new(),
        stderr: Vec::new(),
    })
}

#[test]
fn a_cancelled_job_says_so_everywhere() {
    let (mut runner, number, asked) = on_pull();
    let mut child = working(&mut runner, number, SLOW, &[]);
    signal(child.id(), "INT");
    let step = ended(&runner, &mut child, 130);
    assert_nothing_left(&runner.project);
    assert_eq!(step.output("status"), "cancelled");
    assert_eq!(step.output("report-status"), "ok");
    assert_eq!(conclusion(&runner, &runner.at("feature")), "cancelled");
    assert_checks_over(&runner);
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains("cancelled"), "{comment}");
    let state = runner.github.state();
    let last = state.reactions_on(Subject::Comment(asked));
    assert_eq!(last.last(), Some(&("github-actions[bot]", "confused")));
}

#[test]
fn a_cancelled_job_ends_though_github_does_not_answer() {
    let (mut runner, number, _) = on_pull();
    runner.project.env("SPRAG_AFTER_SIGNAL_TIMES", "1");
    let mut child = working(&mut runner, number, SLOW, &[]);
    runner.github.fault(Fault::every("*", "/**", Trouble::Hang));
    signal(child.id(), "INT");
    let step = ended(&runner, &mut child, 130);
    assert_nothing_left(&runner.project);
    assert_eq!(step.output("status"), "cancelled");
    assert_eq!(step.output("report-status"), "degraded");
    assert!(!step.summary.is_empty());
}

#[test]
fn the_commits_of_a_cancelled_job_are_kept() {
    let (mut runner, number, _) = on_pull();
    let plan = "title: Two\ntasks:\n  - { id: one, title: One }\n  - { id: two, title: Two }\n";
    runner.push("feature", "plan.yaml", plan);
    let script = "[ $SPRAG_TASK_ID = one ] && printf fixed > a.txt && exit\n\
        touch \"$OUT/working\"; sleep 1000 & wait";
    let mut child = working(&mut runner, number, script, &[("plan", "plan.yaml")]);
    signal(child.id(), "INT");
    let step = ended(&runner, &mut child, 130);
    assert_eq!(step.output("tasks-done"), "1");
    let dir = step.dir.as_ref().unwrap();
    assert!(dir.join("work.bundle").is_file());
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains("not on the remote"), "{comment}");
    assert_checks_over(&runner);
}

#[test]
fn a_second_signal_ends_at_once_and_the_run_is_taken_up_with_its_check_run() {
    let (mut runner, number, _) = on_pull();
    let mut child = working(&mut runner, number, STUBBORN, &[]);
    signal(child.id(), "INT");
    wait_until("the agent is asked to end", || {
        runner.project.outside("asked").exists()
    });
    signal(child.id(), "TERM");
    ended(&runner, &mut child, 130);
    wait_until("nothing is left", || {
        crate::support::proc::left_in(&runner.project, &[]).is_empty()
    });
    fs::write(runner.project.outside("go"), "").unwrap();
    let agent = runner.project.agent(STUBBORN);
    let args = ["--resume", "--agent-command", &agent, "--verify", CHECK];
    runner.step(&args).expect(0);
    assert_eq!(conclusion(&runner, &runner.at("feature")), "success");
    assert_checks_over(&runner);
    assert!(runner.comment(number).is_some());
}

#[test]
fn what_is_done_by_the_deadline_is_pushed() {
    let (runner, number, step) = under_limit(|limit| {
        let (mut runner, number, _) = on_pull();
        let plan = "title: Two\ntasks:\n  - { id: one, title: One }\n  - { id: two, title: Two }\n";
        runner.push("feature", "plan.yaml", plan);
        let script =
            "[ $SPRAG_TASK_ID = two ] && touch \"$OUT/hangs\" && sleep 1000\nprintf fixed > a.txt";
        let agent = runner.project.agent(script);
        let args = [
            ["--plan", "plan.yaml"],
            ["--agent-command", &agent],
            ["--verify", CHECK],
            ["--deadline", &format!("{limit}s")],
        ];
        let step = runner.step(args.as_flattened());
        let is_one_done = runner.project.outside("hangs").exists();
        is_one_done.then_some((runner, number, step))
    });
    let step = step.expect(5);
    assert_eq!(step.output("status"), "deadline");
    assert_eq!(step.output("tasks-done"), "1");
    let head = runner.at("feature");
    assert_eq!(runner.log("feature").len(), 4);
    assert_eq!(step.output("commits"), head);
    assert_eq!(conclusion(&runner, &head), "timed_out");
    assert_checks_over(&runner);
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains(&head), "{comment}");
}

#[test]
fn a_signal_after_the_last_task_does_not_wait_for_a_github_that_hangs() {
    for hangs in ["/repos/*/*/check-runs/**", "/**"] {
        let (mut runner, number, _) = on_pull();
        runner.project.env("SPRAG_GITHUB_REQUEST_MS", "3600000");
        runner.project.env("SPRAG_AFTER_SIGNAL_TIMES", "1");
        let mut child = working(&mut runner, number, STUBBORN, &[]);
        runner.github.fault(Fault::every("*", hangs, Trouble::Hang));
        fs::write(runner.project.outside("go"), "").unwrap();
        wait_until("the end of the tasks", || {
            let events = runner
                .run_dir()
                .map(|dir| dir.join("events.jsonl"))
                .and_then(|path| fs::read_to_string(path).ok());
            events.is_some_and(|events| events.contains("task.ended"))
        });
        signal(child.id(), "TERM");
        // The reports' own patience with GitHub is longer.
        let status = end_within(&mut child, Duration::from_secs(60));
        assert!(
            matches!(status.code(), Some(0 | 143)),
            "{hangs}: {status:?}"
        );
        assert_nothing_left(&runner.project);
    }
}

#[test]
fn a_cancelled_job_says_so_before_it_saves_what_it_leaves() {
    let (mut runner, number, _) = on_pull();
    let mut child = working(&mut runner, number, SLOW, &[]);
    let (go, waits) = mpsc::channel::<()>();
    runner
        .server
        .move_before_next_push(move |_| waits.recv().unwrap_or_default());
    signal(child.id(), "INT");
    wait_until("the check run is over", || {
        let state = runner.github.state();
        let ended = |check: &CheckRun| check.conclusion.as_deref() == Some("cancelled");
        state.checks.iter().all(ended)
    });
    wait_until("the comment says it", || {
        let comment = runner.comment(number).unwrap();
        comment.contains("cancelled")
    });
    let dir = runner.run_dir().unwrap();
    let summary = fs::read_to_string(dir.join("summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(
        (&summary["status"], &summary["exit_code"]),
        (&json!("cancelled"), &json!(130))
    );
    assert!(
        child.try_wait().unwrap().is_none(),
        "it still saves its work"
    );
    drop(go);
    let step = ended(&runner, &mut child, 130);
    assert_eq!(step.output("status"), "cancelled");
    assert_checks_over(&runner);
    assert!(runner.comment(number).unwrap().contains("cancelled"));
}
