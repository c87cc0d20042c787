//! Runs that a failed workflow, a failed check suite or a review asks for.

use super::{FIX, IS_FIXED, own_comments, with_pull};
use crate::support::events;
use crate::support::github::{Fault, Job, Line, Trouble, WorkflowRun};
use crate::support::runner::{Runner, Step, repository};
use serde_json::json;

const LOG: &str = "2026-11-21T10:00:00.0000000Z ##[group]Run make test\n2026-11-21T10:00:01.0000000Z assertion failed: a.txt says broken\n2026-11-21T10:00:02.0000000Z ##[error]Process completed with exit code 1.\n";

/// A failed run of the workflow `CI` on the head of this branch; the next step is for it.
fn failed(runner: &mut Runner, id: u64, branch: &str, pulls: &[u64]) {
    let sha = runner.at(branch);
    let job = |id: u64, name: &str, ended: &str, log: &str| Job {
        id,
        name: name.to_owned(),
        conclusion: Some(ended.to_owned()),
        steps: vec![("Test".to_owned(), ended.to_owned())],
        log: Some(log.to_owned()),
    };
    let run = WorkflowRun {
        name: "CI".to_owned(),
        path: ".github/workflows/ci.yml".to_owned(),
        event: "push".to_owned(),
        head_branch: branch.to_owned(),
        head_sha: sha,
        status: "completed".to_owned(),
        conclusion: Some("failure".to_owned()),
        attempt: 1,
        jobs: vec![
            job(id + 1, "lint", "success", "nothing wrong in lint"),
            job(id + 2, "test", "failure", LOG),
        ],
        pulls: pulls.to_vec(),
    };
    runner.github.state().runs.insert(id, run);
    let event = events::workflow_run(&runner.github.state(), id);
    runner.event("workflow_run", "refs/heads/main", &event);
}

fn step(runner: &mut Runner, script: &str, code: i32) -> Step {
    runner
        .by(script, &["--verify", IS_FIXED, "--max-retries", "0"])
        .expect(code)
}

#[test]
fn a_failed_workflow_is_mended_on_its_pull_request() {
    let mut runner = with_pull();
    failed(&mut runner, 900, "feature", &[1]);
    let before = runner.at("feature");
    let step = step(&mut runner, FIX, 0);
    let prompt = runner.project.prompt(1);
    assert!(
        prompt.contains("assertion failed: a.txt says broken"),
        "{prompt}"
    );
    assert!(prompt.contains("The checks of `CI` failed"), "{prompt}");
    assert!(!prompt.contains("nothing wrong in lint"), "{prompt}");
    assert_eq!(runner.log("feature")[..2], ["Say fixed", "Somebody's work"]);
    assert_eq!(step.output("branch"), "feature");
    let head = runner.at("feature");
    assert_eq!(
        runner.checks(),
        [(before, "neutral".to_owned()), (head, "success".to_owned())]
    );
    assert_eq!(own_comments(&runner), 1);
    assert!(runner.comment(1).is_some());
    assert_eq!(runner.github.state().pulls.len(), 1);
}

#[test]
fn runs_that_no_person_started_end_after_two_in_a_row() {
    let mut runner = with_pull();
    for id in [900, 910] {
        runner.checkout("main");
        failed(&mut runner, id, "feature", &[1]);
        step(&mut runner, "echo more >> a.txt\nprintf fixed >> a.txt", 0);
    }
    runner.checkout("main");
    failed(&mut runner, 920, "feature", &[1]);
    let blocked = step(&mut runner, FIX, 3);
    assert_eq!(blocked.output("status"), "blocked");
    assert_eq!(runner.project.calls(), 2);
    let told = runner.comment(1).unwrap();
    assert!(told.contains("started by machines"), "{told}");
    // A person starts the next one, and the count with it.
    runner.say(1, "grace", "/sprag go on");
    step(&mut runner, "echo another >> a.txt", 0);
    runner.checkout("main");
    failed(&mut runner, 930, "feature", &[1]);
    step(&mut runner, "echo yet another >> a.txt", 0);
    assert_eq!(runner.project.calls(), 4);
    runner.checks();
}

#[test]
fn a_branch_without_a_pull_request_is_mended_once() {
    let mut runner = with_pull();
    runner.branch("alone", "c.txt", "c");
    failed(&mut runner, 900, "alone", &[]);
    step(&mut runner, FIX, 0);
    assert_eq!(runner.log("alone")[..2], ["Say fixed", "Somebody's work"]);
    assert_eq!(runner.checks().len(), 2);
    runner.checkout("main");
    failed(&mut runner, 910, "alone", &[]);
    let second = step(&mut runner, FIX, 0);
    assert_eq!(second.output("status"), "no_work");
    assert_eq!(runner.project.calls(), 1);
    assert_eq!(own_comments(&runner), 0);
}

#[test]
fn a_failed_check_suite_is_mended() {
    let mut runner = with_pull();
    let sha = runner.at("feature");
    let suite = u64::from_str_radix(&sha[..8], 16).unwrap();
    let event = json!({ "action": "completed", "repository": repository(),
        "check_suite": { "id": suite, "head_sha": sha, "head_branch": "feature", "conclusion": "failure",
            "app": { "name": "Other CI" }, "pull_requests": [{ "number": 1 }] },
        "sender": { "login": "ada", "type": "User" } });
    runner.event("check_suite", "refs/heads/main", &event);
    step(&mut runner, FIX, 0);
    assert!(runner.project.prompt(1).contains("`Other CI`"));
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
    assert_eq!(runner.checks().len(), 2);
    assert_eq!(own_comments(&runner), 1);
}

fn reviewed(runner: &mut Runner, number: u64, login: &str, state: &str, body: &str) {
    let id = {
        let mut github = runner.github.state();
        let id = github.review(number, login, state, body);
        let line = Line {
            path: "b.txt".to_owned(),
            line: 1,
            diff_hunk: "@@ -0,0 +1 @@\n+feature of the hunk".to_owned(),
            review: Some(id),
            in_reply_to: None,
        };
        github.review_comment(number, login, "This word is wrong.", line);
        id
    };
    let event = events::review(&runner.github.state(), id);
    runner.event("pull_request_review", "refs/pull/1/merge", &event);
}

#[test]
fn requested_changes_become_work_on_pull_requests_of_its_own() {
    let mut runner = with_pull();
    runner.merge_ref(1);
    reviewed(&mut runner, 1, "grace", "CHANGES_REQUESTED", "Not yet.");
    let ended = step(&mut runner, FIX, 0);
    assert_eq!(ended.output("status"), "no_work");
    runner.assert_untouched();

    runner.github.state().issues.get_mut(&1).unwrap().labels = vec!["sprag".to_owned()];
    reviewed(
        &mut runner,
        1,
        "grace",
        "CHANGES_REQUESTED",
        "Not yet, a.txt.",
    );
    runner.project.env("INPUT_REVIEW-THREADS", "all");
    let before = runner.at("feature");
    step(&mut runner, FIX, 0);
    let prompt = runner.project.prompt(1);
    for text in [
        "Not yet, a.txt.",
        "This word is wrong.",
        "+feature of the hunk",
    ] {
        assert!(prompt.contains(text), "{text}: {prompt}");
    }
    assert_eq!(runner.log("feature")[..2], ["Say fixed", "Somebody's work"]);
    let head = runner.at("feature");
    assert_eq!(
        runner.checks(),
        [(before, "neutral".to_owned()), (head, "success".to_owned())]
    );
    assert_eq!(own_comments(&runner), 1);

    reviewed(&mut runner, 1, "eve", "CHANGES_REQUESTED", "Do more.");
    let refused = step(&mut runner, FIX, 0);
    assert_eq!(refused.output("reason"), "refused");
    assert_eq!(runner.project.calls(), 1);
}

#[test]
fn a_review_that_says_nothing_starts_nothing() {
    let mut runner = with_pull();
    super::request_changes(&mut runner, " \n", &[]);
    let ended = step(&mut runner, FIX, 0);
    assert_eq!(ended.output("status"), "no_work");
    let told = "the review has neither a text nor comments on lines";
    assert!(ended.run.stdout.contains(told), "{}", ended.run.stdout);
    runner.assert_untouched();
    assert_eq!(runner.project.calls(), 0);
    // What could not be read is not taken for nothing.
    let comments = "/repos/*/*/pulls/1/reviews/*/comments";
    runner.github.fault(Fault::every(
        "GET",
        comments,
        Trouble::status(404, "Not Found"),
    ));
    step(&mut runner, FIX, 0);
    assert_eq!(runner.project.calls(), 1);
}

#[test]
fn a_phrase_in_a_review_is_an_instruction() {
    let mut runner = with_pull();
    runner.merge_ref(1);
    reviewed(
        &mut runner,
        1,
        "grace",
        "COMMENTED",
        "/sprag make a.txt say fixed",
    );
    step(&mut runner, FIX, 0);
    assert!(runner.project.prompt(1).contains("make a.txt say fixed"));
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
}
