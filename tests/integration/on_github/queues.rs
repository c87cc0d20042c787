//! Runs by the clock, over a directory of plans.

use super::own_comments;
use crate::support::has;
use crate::support::runner::{Runner, Step, repository};
use serde_json::json;

const TASK: &str = "tasks:\n  - { id: only, title: The only task }\n";
/// An agent that writes the plan's name to a file of the plan's own.
const WORK: &str = "name=$(grep -o 'Plan [a-z]*' $OUT/prompt-$N | head -n 1 | cut -d' ' -f2)\necho $name >> $name.txt";

fn queue(plans: &[(&str, &str)]) -> Runner {
    let files: Vec<(String, String)> = plans
        .iter()
        .map(|(name, head)| {
            let text = format!("title: Plan {name}\nmax_retries: 0\n{head}{TASK}");
            (format!("plans/{name}.yaml"), text)
        })
        .collect();
    let mut all: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    all.push(("a.txt", "broken"));
    let mut runner = Runner::new(&all);
    let event = json!({ "repository": repository(), "schedule": "0 4 * * *" });
    runner.event("schedule", "refs/heads/main", &event);
    runner
}

fn scheduled(runner: &mut Runner, script: &str, args: &[&str]) -> Step {
    runner.checkout("main");
    let agent = runner.project.agent(script);
    let mut all = vec!["--queue", "plans", "--agent-command", &agent];
    all.extend_from_slice(args);
    runner.step(&all)
}

fn pulls(runner: &Runner) -> Vec<(String, String, bool)> {
    let state = runner.github.state();
    let pulls = state.pulls.values();
    pulls
        .map(|pull| (pull.head.clone(), pull.base.clone(), pull.draft))
        .collect()
}

#[test]
fn each_run_takes_the_next_plan_to_a_branch_and_a_pull_request_of_its_own() {
    let mut runner = queue(&[
        ("alpha", "priority: low\n"),
        ("beta", "depends_on: [gamma]\npriority: high\n"),
        ("gamma", ""),
    ]);
    let main = runner.at("main");
    for (name, done) in [("gamma", 1), ("alpha", 2)] {
        let step = scheduled(&mut runner, WORK, &["--verify", "test -e a.txt"]).expect(0);
        let branch = format!("sprag/{name}");
        assert_eq!(step.output("branch"), branch);
        assert_eq!(step.output("status"), "success");
        assert_eq!(
            runner.file(&branch, &format!("{name}.txt")),
            format!("{name}\n")
        );
        has(
            &runner.file(&branch, &format!("plans/{name}.yaml")),
            "status: done",
        );
        assert_eq!(
            runner.log(&branch),
            ["[sprag] Complete task only: The only task", "base"]
        );
        assert_eq!(
            pulls(&runner).last().unwrap(),
            &(branch, "main".to_owned(), true)
        );
        assert_eq!(pulls(&runner).len(), done);
        assert_eq!(runner.project.calls(), u32::try_from(done).unwrap());
        assert_eq!(runner.checks().len(), 2 * done);
    }
    let step = scheduled(&mut runner, WORK, &[]).expect(0);
    assert_eq!(step.output("status"), "no_work");
    let why = "beta: waits until the work of gamma is in the base branch";
    assert!(step.output("summary").contains(why));
    assert_eq!(runner.at("main"), main);
    // It begins with the work on which it depends.
    merge(&runner, "sprag/gamma");
    let present = "test -e gamma.txt";
    scheduled(&mut runner, WORK, &["--verify", present]).expect(0);
    assert_eq!(runner.file("sprag/beta", "beta.txt"), "beta\n");
    assert_eq!(runner.file("sprag/beta", "gamma.txt"), "gamma\n");
    let step = scheduled(&mut runner, WORK, &[]).expect(0);
    assert_eq!(step.output("status"), "no_work");
    assert_eq!(runner.project.calls(), 3);
    assert_eq!(own_comments(&runner), 0);
}

/// Merges a branch into `main` as its pull request would.
fn merge(runner: &Runner, branch: &str) {
    let work = runner.at(branch);
    let bare = runner.bare();
    let args = ["update-ref", "refs/heads/main", &work];
    runner
        .project
        .git(&[&["--git-dir", bare.to_str().unwrap()], &args[..]].concat());
    let mut state = runner.github.state();
    state.pulls.retain(|_, pull| pull.head != branch);
}

#[test]
fn a_task_added_to_a_merged_plan_is_not_taken_for_done() {
    let mut runner = queue(&[("alpha", "")]);
    scheduled(&mut runner, WORK, &[]).expect(0);
    merge(&runner, "sprag/alpha");
    let more = format!("title: Plan alpha\n{TASK}  - {{ id: more, title: More }}\n");
    runner.push("main", "plans/alpha.yaml", &more);
    let step = scheduled(&mut runner, WORK, &[]).expect(3);
    assert!(step.output("summary").contains("delete that branch"));
    assert_eq!(runner.project.calls(), 1);
    let args = ["update-ref", "-d", "refs/heads/sprag/alpha"];
    let bare = runner.bare();
    runner
        .project
        .git(&[&["--git-dir", bare.to_str().unwrap()], &args[..]].concat());
    scheduled(&mut runner, WORK, &[]).expect(0);
    has(&runner.file("sprag/alpha", "plans/alpha.yaml"), "more");
    assert_eq!(runner.project.calls(), 3);
}

#[test]
fn a_plan_is_given_up_after_three_failed_runs_and_the_next_one_goes_on() {
    let mut runner = queue(&[("alpha", "priority: high\n"), ("beta", "")]);
    let fails = "printf worse > a.txt";
    for _ in 0..3 {
        let step = scheduled(&mut runner, fails, &["--verify", "grep -q fixed a.txt"]).expect(1);
        assert_eq!(step.output("status"), "failed");
    }
    assert_eq!(runner.project.calls(), 3);
    let step = scheduled(&mut runner, WORK, &["--verify", "test -e beta.txt"]).expect(0);
    assert_eq!(step.output("branch"), "sprag/beta");
    let step = scheduled(&mut runner, WORK, &[]).expect(3);
    assert_eq!(step.output("status"), "blocked");
    has(step.output("summary"), "gave up after 3 failed runs");
    assert_eq!(runner.project.calls(), 4);
    // Who edits the plan gives it new tries.
    let edited = format!("title: Plan alpha\nmax_retries: 0\ndetails: Another way\n{TASK}");
    runner.push("main", "plans/alpha.yaml", &edited);
    let step = scheduled(&mut runner, WORK, &[]).expect(0);
    assert_eq!(step.output("branch"), "sprag/alpha");
    assert_eq!(runner.file("sprag/alpha", "alpha.txt"), "alpha\n");
    assert_eq!(
        scheduled(&mut runner, WORK, &[]).expect(0).output("status"),
        "no_work"
    );
    runner.checks();
}

#[test]
fn a_plan_that_has_begun_goes_on_where_it_ended_and_once_edited_as_its_branch_has_it() {
    let mut runner = queue(&[("alpha", "verify: ['! test -e broken']\n")]);
    let text = |more: &str| {
        format!(
            "title: Plan alpha\nmax_retries: 0\nverify: ['! test -e broken']\n{TASK}  - {{ id: more, title: More{more} }}\n"
        )
    };
    runner.push("main", "plans/alpha.yaml", &text(""));
    let fails = "test $SPRAG_TASK_ID = only || touch broken\necho $SPRAG_TASK_ID >> done.txt";
    let step = scheduled(&mut runner, fails, &[]).expect(1);
    assert_eq!(step.output("status"), "partial");
    assert_eq!(runner.file("sprag/alpha", "done.txt"), "only\n");
    for _ in 0..2 {
        scheduled(&mut runner, fails, &[]);
    }
    scheduled(&mut runner, fails, &[]).expect(3);
    let calls = runner.project.calls();
    assert_eq!(calls, 4, "the first task was done once");
    runner.push("main", "plans/alpha.yaml", &text(" but in another way"));
    scheduled(&mut runner, "echo $SPRAG_TASK_ID >> done.txt", &[]).expect(0);
    assert_eq!(runner.project.calls(), calls + 1);
    let summary = runner
        .github
        .state()
        .checks
        .last()
        .unwrap()
        .summary
        .clone()
        .unwrap();
    assert!(summary.contains("merge main into"), "{summary}");
    assert_eq!(runner.file("sprag/alpha", "done.txt"), "only\nmore\n");
    assert_eq!(pulls(&runner).len(), 1);
    runner.checks();
}

#[test]
fn a_queue_without_a_ready_plan_says_why() {
    let mut runner = queue(&[("alpha", "depends_on: [nothing]\n")]);
    let step = scheduled(&mut runner, WORK, &[]).expect(3);
    has(step.output("summary"), "`nothing`");
    runner.assert_untouched();
    let step = runner
        .step(&["--queue", "elsewhere", "--agent-command", "true"])
        .expect(2);
    assert_eq!(step.output("status"), "invalid");
    runner
        .step(&["--queue", "../plans", "--agent-command", "true"])
        .expect(2);
    runner.assert_untouched();
}
