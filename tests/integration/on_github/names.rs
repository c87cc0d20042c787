//! Several workflows that work for one pull request, each told of under a name of its own.

use super::{FIX, IS_FIXED, own_comments, with_pull};
use crate::support::github::{CheckRun, WorkflowRun};
use crate::support::runner::{Runner, Step};

/// A step whose agent adds this file, in a job of this workflow.
fn step_of(runner: &mut Runner, workflow: &str, script: &str, more: &[&str]) -> Step {
    runner.checkout("main");
    runner.project.env("GITHUB_WORKFLOW", workflow);
    let agent = runner.project.agent(script);
    let args = ["--agent-command", &agent, "--verify", IS_FIXED];
    runner.step(&[&args[..], more].concat())
}

fn names(runner: &Runner) -> Vec<String> {
    let state = runner.github.state();
    let mut names: Vec<String> = state.checks.iter().map(|it| it.name.clone()).collect();
    names.dedup();
    names
}

/// The bodies of Sprag's comments, oldest first.
fn bodies(runner: &Runner) -> Vec<String> {
    let state = runner.github.state();
    let comments = state.comments.iter();
    comments
        .filter(|comment| comment.author == "github-actions[bot]")
        .map(|comment| comment.body.clone())
        .collect()
}

#[test]
fn two_workflows_answer_one_comment_and_leave_each_other_alone() {
    let mut runner = with_pull();
    let id = runner.say(1, "grace", "/sprag make a.txt say fixed");
    step_of(&mut runner, "Code", FIX, &[]).expect(0);
    let first = bodies(&runner);
    assert_eq!(first.len(), 1);

    runner.commented(id);
    let script = "printf docs > docs.txt\necho 'SUGGESTED_COMMIT_MESSAGE: Add docs'";
    let step = step_of(&mut runner, "Docs", script, &[]).expect(0);
    assert_eq!(step.output("status"), "success");
    assert_eq!(runner.project.calls(), 2);
    assert_eq!(runner.log("feature")[..2], ["Add docs", "Say fixed"]);
    let both = bodies(&runner);
    assert_eq!(both.len(), 2);
    assert_eq!(both[0], first[0]);
    assert_eq!(names(&runner), ["Sprag / Code / fix", "Sprag / Docs / fix"]);

    // Each knows what it has answered.
    for workflow in ["Code", "Docs"] {
        runner.commented(id);
        let step = step_of(&mut runner, workflow, FIX, &[]).expect(0);
        assert_eq!(step.output("status"), "no_work", "{workflow}");
    }
    assert_eq!(runner.project.calls(), 2);
    assert_eq!(bodies(&runner), both);
}

#[test]
fn a_chosen_name_is_in_the_check_run_and_keeps_its_own_comment() {
    let mut runner = with_pull();
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    step_of(&mut runner, "Code", FIX, &["--name", "house"]).expect(0);
    assert_eq!(names(&runner), ["Sprag / house"]);

    // The key of the configuration is the same name, in whichever workflow.
    runner.push("main", ".sprag/config.yaml", "name: house\n");
    let before = bodies(&runner);
    let again = runner.say(1, "grace", "/sprag add more");
    step_of(&mut runner, "Other", "echo more > more.txt", &[]).expect(0);
    assert_eq!(names(&runner), ["Sprag / house"]);
    assert_eq!(own_comments(&runner), 1);
    assert_ne!(bodies(&runner), before);

    // The input goes before the key.
    runner.project.env("INPUT_NAME", "garden");
    runner.commented(again);
    step_of(&mut runner, "Other", "echo yet more > more.txt", &[]).expect(0);
    assert_eq!(names(&runner), ["Sprag / house", "Sprag / garden"]);
    assert_eq!(own_comments(&runner), 2);
}

#[test]
fn a_name_can_not_end_the_line_that_nobody_sees() {
    let mut runner = with_pull();
    let id = runner.say(1, "grace", "/sprag make a.txt say fixed");
    let name = "a --> b\n::error::c <!-- sprag:state v2 ";
    step_of(&mut runner, "Code", FIX, &["--name", name]).expect(0);
    let body = runner.comment(1).unwrap();
    assert_eq!(body.lines().next().unwrap().matches("-->").count(), 1);
    runner.commented(id);
    let step = step_of(&mut runner, "Code", FIX, &["--name", name]).expect(0);
    assert_eq!(step.output("status"), "no_work");
}

#[test]
fn stop_ends_the_runs_of_its_own_name() {
    let mut runner = with_pull();
    let head = runner.at("feature");
    for (run, name) in [(70, "Sprag / Code / fix"), (71, "Sprag / Docs / fix")] {
        let server = runner.github.url().to_owned();
        let mut state = runner.github.state();
        state.runs.insert(
            run,
            WorkflowRun {
                status: "in_progress".to_owned(),
                ..WorkflowRun::default()
            },
        );
        state.checks.push(CheckRun {
            id: run,
            name: name.to_owned(),
            head_sha: head.clone(),
            status: "in_progress".to_owned(),
            conclusion: None,
            started_at: None,
            completed_at: None,
            details_url: Some(format!("{server}/acme/widget/actions/runs/{run}")),
            external_id: None,
            title: None,
            summary: None,
            text: None,
            annotations: Vec::new(),
            creator: "github-actions[bot]".to_owned(),
            updates: Vec::new(),
        });
    }
    runner.say(1, "grace", "/sprag stop");
    step_of(&mut runner, "Docs", FIX, &[]).expect(0);
    let state = runner.github.state();
    let status = [70, 71].map(|run| state.runs[&run].status.clone());
    assert_eq!(status, ["in_progress", "completed"]);
}
