//! Pull requests that somebody closes or merges while a run works for them.

use super::{FIX, IS_FIXED, with_pull};
use crate::support::github::git;
use crate::support::proc::wait_until;
use crate::support::runner::{Runner, Step};
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

/// A run during whose turn the pull request is closed.
fn closed_during(merged: bool, more: &[&str]) -> (Runner, Step) {
    let mut runner = with_pull();
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    let script =
        format!("touch $OUT/working\nuntil test -e $OUT/closed; do sleep 0.02; done\n{FIX}");
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
    let step = runner.ended(&output).expect(4);
    (runner, step)
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
