//! Every way in which an agent's turn can end.

use crate::support::has;
use crate::support::project::{Project, Run};
use crate::support::tasks::{fixable_by, run};
use crate::support::time_limit::turns_under_limit;
use serde_json::{Value, json};

const CHECK: &str = "grep -qx fixed a.txt";

fn project() -> Project {
    fixable_by(CHECK)
}

fn assessments(run: &Run) -> Vec<&str> {
    let turns = run.task(0)["turns"].as_array().unwrap();
    turns
        .iter()
        .map(|turn| turn["assessment"].as_str().unwrap())
        .collect()
}

fn retries(run: &Run) -> &Value {
    &run.summary["totals"]["retries"]
}

fn assert_untouched(project: &Project, head: &str) {
    assert_eq!(
        (project.head().as_str(), project.status().as_str()),
        (head, "")
    );
}

#[test]
fn a_missing_program_is_named_with_its_remedy() {
    let project = project();
    let head = project.head();
    let run = project.run("no-such-agent --flag", &[]).expect(4);
    assert_eq!(run.summary["status"], "environment");
    assert_eq!(run.task(0)["reason"], "agent_unavailable");
    let message = run.task(0)["message"].as_str().unwrap();
    assert_eq!(
        message,
        "command was not found (exit 127): sh: 1: no-such-agent: not found; install it or name another agent with --agent or --agent-command"
    );
    has(&run.stdout, "no-such-agent: not found");
    assert_eq!((retries(&run), project.checks()), (&json!(0), 1));
    assert_untouched(&project, &head);
}

#[test]
fn a_program_that_cannot_be_executed_is_named_with_its_remedy() {
    let project = project();
    let path = project.outside("agent.bin");
    std::fs::write(&path, "not a program\n").unwrap();
    let run = project.run(path.to_str().unwrap(), &[]).expect(4);
    let message = run.task(0)["message"].as_str().unwrap();
    assert!(
        message.starts_with("command is not executable (exit 126): ")
            && message.contains("agent.bin: Permission denied"),
        "{message}"
    );
}

#[test]
fn a_refused_login_ends_the_run() {
    let project = project();
    let head = project.head();
    let run = run(
        &project,
        "echo 'API Error: 401 Invalid API key. Please run /login'; exit 1",
        &[],
    )
    .expect(4);
    assert_eq!(project.calls(), 1);
    assert_eq!((retries(&run), project.checks()), (&json!(0), 1));
    assert_eq!(assessments(&run), ["agent_unavailable"]);
    let message = run.task(0)["message"].as_str().unwrap();
    has(message, "401 Invalid API key. Please run /login");
    assert_untouched(&project, &head);
}

#[test]
fn a_rate_limit_is_waited_out_in_the_same_attempt() {
    let project = project();
    let agent = "test $N = 1 && { echo 'API Error: 429 Too many requests, retry after 1 seconds'; exit 1; }; echo fixed > a.txt; echo Done.";
    let run = run(&project, agent, &["--max-retries", "0"]).expect(0);
    assert_eq!(project.calls(), 2);
    assert_eq!(assessments(&run), ["agent_transient", "changed"]);
    assert_eq!(
        (retries(&run), &run.task(0)["attempts"]),
        (&json!(0), &json!(1))
    );
    let waits: Vec<_> = run
        .events
        .iter()
        .filter(|event| event["event"] == "retry.scheduled")
        .map(|event| {
            (
                event["kind"].as_str().unwrap(),
                ["attempt", "delay_ms", "n", "of"].map(|key| event[key].as_u64().unwrap()),
            )
        })
        .collect();
    assert_eq!(waits, [("wait", [1, 1000, 1, 5])]);
    assert_eq!(project.prompt(2), project.prompt(1));
}

#[test]
fn prose_about_a_rate_limit_in_a_changed_turn_is_no_error() {
    let project = project();
    let agent = "echo fixed > a.txt; echo 'The client now waits after a 429 Too many requests.'";
    let run = run(&project, agent, &[]).expect(0);
    assert_eq!((project.calls(), assessments(&run)), (1, vec!["changed"]));
}

#[test]
fn a_crash_without_changes_is_a_failed_attempt() {
    for (end, exit) in [("kill -9 $$", "SIGKILL"), ("exit 3", "code 3")] {
        let project = project();
        let agent = format!(
            "case $N in 1) {end} ;; 2) echo 'Plan: I will fix it.' ;; *) echo fixed > a.txt; echo Done. ;; esac"
        );
        let run = run(&project, &agent, &[]).expect(0);
        assert_eq!(
            assessments(&run),
            ["agent_crashed", "planning_only", "changed"],
            "{end}"
        );
        assert_eq!((retries(&run), project.checks()), (&json!(1), 2), "{end}");
        assert_eq!(run.task(0)["turns"][0]["exit"], exit);
        has(
            &project.prompt(2),
            "Your last turn was cut off before it was finished",
        );
        let (retry, nudge) = (project.prompt(2), project.prompt(3));
        assert!(nudge.starts_with(retry.trim_end()), "{nudge}");
        for untrue in ["still there", "Do NOT repeat", "Tests are failing"] {
            assert!(!retry.contains(untrue), "{untrue}: {retry}");
        }
    }
}

#[test]
fn what_a_crash_left_is_kept_and_told() {
    let project = project();
    let agent = "case $N in 1) echo half > half.txt; kill -9 $$ ;; *) test -e half.txt && echo fixed > a.txt; echo Done. ;; esac";
    let run = run(&project, agent, &[]).expect(0);
    assert_eq!(assessments(&run), ["agent_crashed", "changed"]);
    assert_eq!(project.checks(), 2, "half-work is not verified");
    let prompt = project.prompt(2);
    for part in [
        "Your last turn was cut off before it was finished: command was killed by SIGKILL. Continue where it stopped.",
        "Your uncommitted changes are still there",
        "This is retry attempt 1 of 3.",
    ] {
        assert!(prompt.contains(part), "{part} in:\n{prompt}");
    }
    let files = project.git(&["show", "--format=", "--name-only", "HEAD"]);
    assert_eq!(files, "a.txt\nhalf.txt\nplan.yaml");
}

#[test]
fn a_turn_over_its_limit_is_a_failed_attempt() {
    let agent = "case $N in 1) echo half > half.txt; echo $$ > \"$OUT/pid\"; sleep 600 & wait ;; *) echo fixed > a.txt; echo Done. ;; esac";
    let mut given = 0;
    let (project, run) = turns_under_limit(&["turn_timeout", "changed"], |limit| {
        given = limit;
        let project = project();
        let run = run(&project, agent, &["--turn-timeout", &format!("{limit}s")]);
        (project, run)
    });
    let run = run.expect(0);
    let exit = &run.task(0)["turns"][0]["exit"];
    assert_eq!(exit, &format!("timed out after {given} s"));
    assert_eq!((retries(&run), project.checks()), (&json!(1), 2));
    let told = format!("command reached the time limit of {given} s. Continue where it stopped.");
    let prompt = project.prompt(2);
    assert!(prompt.contains(&told), "{prompt}");
    let pid = project.notes("pid").remove(0);
    assert!(!std::path::Path::new("/proc").join(pid).exists());
}

#[test]
fn silence_past_the_stall_limit_is_transient() {
    let agent = "test $N = 1 && sleep 600; echo fixed > a.txt; echo Done.";
    let mut given = 0;
    let (_, run) = turns_under_limit(&["agent_transient", "changed"], |limit| {
        given = limit;
        let project = project();
        let run = run(&project, agent, &["--stall-timeout", &format!("{limit}s")]);
        (project, run)
    });
    let run = run.expect(0);
    let exit = &run.task(0)["turns"][0]["exit"];
    assert_eq!(exit, &format!("silent for {given} s"));
    assert_eq!(
        (retries(&run), &run.task(0)["attempts"]),
        (&json!(0), &json!(1))
    );
}

#[test]
fn an_agent_that_exits_with_an_error_after_a_change_is_asked_to_go_on() {
    let project = project();
    let base = project.head();
    let half = "test $N = 1 && { echo half > a.txt; echo 'I wrote half.'; exit 7; }; cat a.txt > $OUT/seen; echo fixed > a.txt; echo Done.";
    let first = run(&project, half, &["--max-retries", "0"]).expect(0);
    assert_eq!(assessments(&first), ["changed", "changed"]);
    assert_eq!(first.task(0)["turns"][0]["exit"], "code 7");
    assert_eq!(project.notes("seen"), ["half"]);
    let prompt = project.prompt(2);
    let told = "Your last turn ended with an error.";
    has(&prompt, told);
    has(&prompt, "What it changed is kept (");
    has(&prompt, ", changed files: a.txt).");
    assert_eq!(first.task(0)["checks"].as_array().unwrap().len(), 1);
    assert_ne!(project.head(), base);
    assert!(!first.stdout.contains("exit code 7, and the checks"));
    assert!(!first.stdout.contains("resolved on attempt"));
}

#[test]
fn the_checks_judge_the_work_of_an_agent_that_always_ends_with_an_error() {
    let error = "prompt is too long: 210000 tokens > 200000 maximum";
    for (end, what, name) in [
        ("echo 'All done.'; exit 7", "exit code 7", "7"),
        ("exit 7", "exit code 7", "7"),
        (&*format!("echo '{error}'"), error, error),
    ] {
        let project = project();
        let run = run(&project, &format!("echo fixed > a.txt; {end}"), &[]).expect(0);
        assert_eq!(run.task(0)["turns"].as_array().unwrap().len(), 2, "{end}");
        assert_eq!(run.task(0)["reason"], "verified", "{end}");
        let said = format!("the agent ended with {what}, and the checks judged its work");
        assert!(run.stdout.contains(&said), "{}", run.stdout);
        let evidence = run.task(0)["evidence"].as_array().unwrap().clone();
        let line = json!({"kind": "agent_failed", "names": [name]});
        assert!(evidence.contains(&line), "{evidence:?}");
    }
}

#[test]
fn the_checks_judge_the_work_of_a_killed_turn_that_nobody_adds_to() {
    let project = project();
    let agent = "test $N = 1 && { echo fixed > a.txt; kill -9 $$; }; true";
    let run = run(&project, agent, &["--nudges", "0"]).expect(0);
    assert_eq!(assessments(&run), ["agent_crashed", "empty"]);
    assert_eq!(run.task(0)["reason"], "verified");
    assert_eq!(run.task(0)["changes_made"], true);
}

#[test]
fn a_change_that_ends_in_an_error_of_the_model_is_kept_and_not_committed() {
    let overloaded = "API Error: 529 Overloaded";
    let no_credit = "Credit balance is too low";
    for (first, then, exit, code, reason) in [
        (no_credit, no_credit, 0, 4, "agent_unavailable"),
        // Sprag waits after the first error, and continues the turn.
        (overloaded, no_credit, 0, 4, "agent_unavailable"),
        (overloaded, no_credit, 1, 4, "agent_unavailable"),
        (
            "Error: context window exceeded",
            "Error: context window exceeded",
            0,
            1,
            "agent_crashed",
        ),
    ] {
        let project = project();
        let base = project.head();
        let agent = format!(
            "date +%N > a.txt; echo 'I began.'
            if [ $N = 1 ]; then echo '{first}'; else echo '{then}'; fi; exit {exit}"
        );
        let run = run(
            &project,
            &agent,
            &["--max-retries", "0", "--verify", "true"],
        )
        .expect(code);
        assert_eq!(run.task(0)["reason"], reason, "{first}, {then}");
        if first == overloaded {
            assert_eq!(assessments(&run)[0], "agent_transient");
        }
        assert_eq!(project.head(), base, "{first}, {then}");
    }
}
