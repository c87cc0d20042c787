//! Runs that a person ends with Ctrl-C.

use crate::support::proc::{end_of, signal, wait_until};
use crate::support::project::{Project, plan};
use crate::support::tasks::{FIX, USAGE, fixable};
use serde_json::json;
use std::process::Command;
use std::time::Duration;

#[test]
fn a_turn_that_is_cut_short_keeps_what_it_left_and_goes_on_with_the_same_flags() {
    let project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan("true"))]);
    let agent = project.agent(
        "case $N in 1) echo half > a.txt; touch \"$OUT/began\"; sleep 1000 ;; *) echo fixed > a.txt ;; esac",
    );
    let args = ["run", "--plan", "plan.yaml", "--agent-command", &agent];
    let mut sprag = project.start(&args);
    while !project.outside("began").exists() {
        assert_eq!(sprag.try_wait().unwrap(), None, "it ended by itself");
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = sprag.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(sent.success());
    let run = project
        .finished(&sprag.wait_with_output().unwrap())
        .expect(130);

    let task = run.task(0);
    assert_eq!(
        json!([
            task["reason"],
            task["changes_made"],
            task["changed_files"],
            task["patch"]
        ]),
        json!(["cancelled", true, ["a.txt"], "patches/fix.patch"])
    );
    let kept = "the changes of fix are still in the work tree, not committed";
    assert!(run.stdout.contains(kept), "{}", run.stdout);
    assert_eq!(project.status(), " M a.txt");

    // As it is printed.
    let command = run
        .stdout
        .lines()
        .find_map(|line| line.trim().strip_prefix("sprag run --resume "));
    let id = command.unwrap_or_else(|| panic!("{}", run.stdout));
    project.sprag(&["run", "--resume", id]).expect(0);
    assert_eq!(project.read("a.txt"), "fixed\n");
    assert_eq!((project.commits(), project.status()), (2, String::new()));
}

#[test]
fn what_a_turn_had_used_up_counts_for_the_limit_of_the_run_that_goes_on() {
    let project = fixable();
    let agent = project.agent(&format!(
        "{USAGE}; test $N = 2 || {{ touch \"$OUT/began\"; sleep 1000; }}; {FIX}"
    ));
    let args = ["run", "--plan", "plan.yaml", "--agent-command", &agent];
    let mut sprag = project.start(&args);
    wait_until("the agent waits", || project.outside("began").exists());
    signal(sprag.id(), "INT");
    assert_eq!(end_of(&mut sprag).code(), Some(130));
    let run = project.finished(&sprag.wait_with_output().unwrap());
    let used = json!({"tokens_in": 90, "tokens_out": 30, "cost_usd": null});
    assert_eq!(run.summary["usage"], used);
    assert_eq!(run.task(0)["usage"], used);
    assert_eq!(run.task(0)["turns"], json!([]));

    let resumed = ["run", "--resume", "--max-tokens", "120"];
    let run = project.sprag(&resumed).expect(5);
    assert_eq!(
        (run.task(0)["reason"].as_str(), project.calls()),
        (Some("budget"), 1)
    );
    let message = "the token limit is reached: 120 of 120";
    assert_eq!(run.task(0)["message"], message);
    assert_eq!(run.summary["usage"], used);
}
