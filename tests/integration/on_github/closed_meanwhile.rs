//! Pull requests that somebody closes or merges while a run works for them.

use super::{FIX, IS_FIXED, with_pull};
use crate::support::events;
use crate::support::github::git;
use crate::support::proc::wait_until;
use crate::support::runner::{Runner, Step, repository};
use serde_json::json;
use std::fs;
use std::process::Stdio;

/// Somebody closes the pull request, or merges it.
pub fn close(runner: &Runner, merged: bool) {
    let head = runner.at("feature");
    let mut state = runner.github.state();
    "closed".clone_into(&mut state.issues.get_mut(&1).unwrap().state);
    let pull = state.pulls.get_mut(&1).unwrap();
    (pull.merged, pull.head_sha) = (merged, head);
}

/// The branches below `sprag/rescue/`.
pub fn rescues(runner: &Runner) -> Vec<String> {
    let format = "--format=%(refname:lstrip=2)";
    let refs = git(
        &runner.bare(),
        &["for-each-ref", format, "refs/heads/sprag/rescue/"],
    );
    refs.lines().map(str::to_owned).collect()
}

/// A run during whose turn the pull request is closed, and that cannot push its work.
fn closed_during(merged: bool, more: &[&str]) -> (Runner, Step) {
    let (runner, step) = closed_while(FIX, merged, more);
    (runner, step.expect(4))
}

/// A run of this agent, during whose turn the pull request is closed.
fn closed_while(agent: &str, merged: bool, more: &[&str]) -> (Runner, Step) {
    let mut runner = with_pull();
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    let script =
        format!("touch $OUT/working\nuntil test -e $OUT/closed; do sleep 0.02; done\n{agent}");
    let agent = runner.project.agent(&script);
    let args = ["--agent-command", &agent, "--verify", IS_FIXED];
    let mut command = runner.command(&[&args, more].concat());
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let working = runner.project.outside("working");
    wait_until("the agent works", || working.exists());
    close(&runner, merged);
    fs::write(runner.project.outside("closed"), "").unwrap();
    let output = child.unwrap().wait_with_output().unwrap();
    let step = runner.ended(&output);
    (runner, step)
}

#[test]
fn a_run_without_work_to_push_tells_that_the_pull_request_was_closed() {
    let again = "comment `/sprag retry` to try the unfinished tasks again, with new retries, once the \
                 pull request is open again";
    for (merged, how) in [(true, "merged"), (false, "closed")] {
        let (runner, step) = closed_while("echo 'FAILED: cannot'", merged, &[]);
        let step = step.expect(3);
        for text in [&step.summary, &runner.comment(1).unwrap()] {
            let told = format!("he pull request was {how} during the run");
            assert!(text.contains(&told), "{text}");
            assert_eq!(
                text.contains(again.trim_start_matches('c')),
                !merged,
                "{text}"
            );
            assert_eq!(text.contains("/sprag"), !merged, "{text}");
        }
        assert_eq!(step.output("reason"), "failed_report");
    }
}

#[test]
fn a_step_with_a_prompt_does_not_begin_for_a_closed_pull_request_that_it_would_push_to() {
    for (more, code) in [(&[][..], 3), (&["--no-push"], 0)] {
        let mut runner = with_pull();
        runner.merge_ref(1);
        close(&runner, true);
        let pull = events::pull(&runner.github.state(), 1);
        let event = json!({ "action": "closed", "number": 1, "pull_request": pull,
            "repository": repository(), "sender": { "login": "grace", "type": "User" } });
        runner.event("pull_request", "refs/pull/1/merge", &event);
        let agent = runner.project.agent(FIX);
        let args = [
            "--prompt",
            "Fix it",
            "--agent-command",
            &agent,
            "--verify",
            IS_FIXED,
        ];
        let step = runner.step(&[&args, more].concat()).expect(code);
        assert_eq!(runner.project.calls() == 0, code == 3);
        assert_eq!(
            step.output("summary")
                .contains("the pull request is closed"),
            code == 3
        );
    }
}

#[test]
fn work_for_a_merged_pull_request_is_on_a_branch_of_its_own_and_the_report_says_why() {
    for more in [&[][..], &["--commit-via", "api"]] {
        let (runner, step) = closed_during(true, more);
        let before = runner.at("main~0");
        assert_eq!(runner.log("feature")[0], "Somebody's work");
        let rescues = rescues(&runner);
        assert_eq!(rescues.len(), 1, "{more:?}");
        assert_eq!(runner.file(&rescues[0], "a.txt"), "fixed");
        assert_eq!(runner.at("main"), before);
        let told = runner.comment(1).unwrap();
        let asks = format!("pen another pull request for {}", rescues[0]);
        for text in [&step.summary, &told] {
            assert!(
                text.contains("he pull request was merged during the run"),
                "{text}"
            );
            assert!(text.contains(&asks), "{text}");
            assert!(!text.contains("Pushed to"), "{text}");
            assert!(!text.contains("/sprag continue"), "{text}");
        }
        assert_eq!(step.output("status"), "environment");
        assert_eq!(
            runner.checks().len(),
            1,
            "none on a commit of the closed pull request"
        );
    }
}

#[test]
fn work_for_a_closed_pull_request_is_pushed_once_it_is_open_again() {
    let (mut runner, step) = closed_during(false, &[]);
    assert_eq!(runner.log("feature")[0], "Somebody's work");
    let told = runner.comment(1).unwrap();
    let asks = format!(
        "eopen the pull request, or open another pull request for {}",
        rescues(&runner)[0]
    );
    for text in [&step.summary, &told] {
        assert!(text.contains(&asks), "{text}");
        assert!(text.contains("/sprag continue"), "{text}");
    }
    "open".clone_into(&mut runner.github.state().issues.get_mut(&1).unwrap().state);
    runner.checkout("main");
    runner.say(1, "grace", "/sprag continue");
    let calls = runner.project.calls();
    runner
        .step(&["--agent-command", "false", "--verify", IS_FIXED])
        .expect(0);
    assert_eq!(runner.project.calls(), calls);
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
    assert!(runner.comment(1).unwrap().contains("Pushed to"));
}
