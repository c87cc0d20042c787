//! The threads of a review become tasks, and each is told what became of it.

use super::{request_changes, with_pull};
use crate::support::github::Subject;
use crate::support::has;
use crate::support::runner::{Runner, Step};
use crate::support::tasks::end;
use serde_json::Value;
use std::fs;

/// Whose comments a job writes.
const BOT: &str = "github-actions[bot]";

/// Does what a thread asks for, and fails on one that says `impossible`.
const AGENT: &str = "grep -qx impossible \"$SPRAG_PROMPT_FILE\" && { echo 'FAILED: @team it cannot be done'; exit 0; }\n\
    echo $SPRAG_TASK_ID >> b.txt\n\
    echo \"SUGGESTED_COMMIT_MESSAGE: Do $SPRAG_TASK_ID\"";

/// A pull request that Sprag works on, with a review that requests changes on these lines; the ids of its
/// comments.
fn reviewed(body: &str, threads: &[(&str, &str)]) -> (Runner, u64, Vec<u64>) {
    let mut runner = with_pull();
    let (id, comments) = request_changes(&mut runner, body, threads);
    (runner, id, comments)
}

fn step(runner: &mut Runner, code: i32, more: &[&str]) -> Step {
    let agent = runner.project.agent(AGENT);
    let args = [
        "--agent-command",
        &agent,
        "--verify",
        "true",
        "--max-retries=0",
    ];
    runner.step(&[&args[..], more].concat()).expect(code)
}

/// The replies to a thread, and whether it is resolved.
fn told(runner: &Runner, thread: u64) -> (Vec<String>, bool) {
    let state = runner.github.state();
    let replies = state
        .review_comments
        .iter()
        .filter(|comment| {
            let line = comment.line.clone().unwrap_or_default();
            line.in_reply_to == Some(thread) && comment.author == BOT
        })
        .map(|comment| comment.body.clone())
        .collect();
    (replies, state.resolved.contains(&thread))
}

fn reply(runner: &Runner, thread: u64) -> String {
    let (replies, _) = told(runner, thread);
    assert_eq!(replies.len(), 1, "{replies:?}");
    replies[0].clone()
}

/// The tasks of the summary.
fn summary(step: &Step) -> Vec<Value> {
    let path = step.dir.as_ref().unwrap().join("summary.json");
    let summary: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    summary["tasks"].as_array().unwrap().clone()
}

fn tasks(step: &Step) -> Vec<String> {
    let tasks = summary(step).into_iter();
    tasks
        .map(|task| task["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn each_thread_is_a_task_and_is_answered_and_resolved() {
    let (mut runner, _, threads) = reviewed("", &[("b.txt", "Rename it."), ("a.txt", "And this.")]);
    let ended = step(&mut runner, 0, &[]);
    let expected = [
        format!("thread-{}", threads[0]),
        format!("thread-{}", threads[1]),
    ];
    assert_eq!(tasks(&ended), expected);
    let first = runner.project.prompt(1);
    assert!(
        first.contains("Rename it.") && !first.contains("```\nAnd this."),
        "{first}"
    );
    let commits = summary(&ended)
        .into_iter()
        .map(|task| task["commit"].clone());
    for (thread, commit) in threads.iter().zip(commits) {
        let fixed = format!("Fixed in {}", commit.as_str().unwrap());
        assert!(reply(&runner, *thread).contains(&fixed));
        assert!(told(&runner, *thread).1, "it is resolved");
    }
    assert_eq!(runner.github.state().reviewers[&1], ["grace"]);
    let subjects = [&expected[1], &expected[0]].map(|id| format!("Do {id}"));
    assert_eq!(runner.log("feature")[..2], subjects);
}

#[test]
fn after_a_failed_thread_the_others_are_told_that_they_are_left() {
    let all = [
        ("b.txt", "First."),
        ("b.txt", "impossible"),
        ("b.txt", "Third."),
    ];
    let (mut runner, _, threads) = reviewed(" ", &all);
    let ended = step(&mut runner, 3, &[]);
    assert_eq!(
        summary(&ended).iter().map(end).collect::<Vec<_>>(),
        [
            ("done", "verified"),
            ("blocked", "failed_report"),
            ("pending", "-")
        ]
    );
    assert!(reply(&runner, threads[0]).contains("Fixed in"));
    let failed = reply(&runner, threads[1]);
    has(&failed, "Not fixed: the agent reported:");
    assert!(!failed.contains("@team"), "nobody is mentioned: {failed}");
    let left = reply(&runner, threads[2]);
    has(&left, "Not done yet");
    has(&left, "/sprag continue");
    let resolved: Vec<bool> = threads
        .iter()
        .map(|thread| told(&runner, *thread).1)
        .collect();
    assert_eq!(resolved, [true, false, false]);

    // What is resolved is not done again, and each thread still has one reply.
    runner.say(1, "grace", "/sprag retry");
    let ended = step(&mut runner, 3, &["--keep-going"]);
    let left = [
        format!("thread-{}", threads[1]),
        format!("thread-{}", threads[2]),
    ];
    assert_eq!(tasks(&ended), left);
    assert!(reply(&runner, threads[2]).contains("Fixed in"));
    assert!(told(&runner, threads[2]).1);
    assert_eq!(told(&runner, threads[0]).0.len(), 1);
}

#[test]
fn the_text_of_a_review_is_a_task_and_the_threads_of_a_file_can_be_one() {
    let all = [
        ("b.txt", "First."),
        ("a.txt", "Second."),
        ("b.txt", "Third."),
    ];
    let (mut runner, _, threads) = reviewed("Rename all of it.", &all);
    let ended = step(&mut runner, 0, &["--review-threads", "file"]);
    let expected = [
        format!("file-{}", threads[0]),
        format!("file-{}", threads[1]),
        "review".to_owned(),
    ];
    assert_eq!(tasks(&ended), expected);
    assert!(threads.iter().all(|thread| told(&runner, *thread).1));
    assert!(runner.project.prompt(3).contains("Rename all of it."));
}

#[test]
fn a_retried_review_has_its_text_and_without_one_ends_with_its_last_thread() {
    let (mut runner, _, _) = reviewed("Rename all of it.", &[("b.txt", "First.")]);
    assert_eq!(tasks(&step(&mut runner, 0, &[])).len(), 2);
    let calls = runner.project.calls();
    runner.say(1, "grace", "/sprag retry");
    assert_eq!(tasks(&step(&mut runner, 0, &[])).len(), 1);
    let prompt = runner.project.prompt(calls + 1);
    assert!(prompt.contains("Rename all of it."), "{prompt}");

    let (mut runner, _, _) = reviewed("", &[("b.txt", "First.")]);
    step(&mut runner, 0, &[]);
    let calls = runner.project.calls();
    let asked = runner.say(1, "grace", "/sprag retry");
    let ended = step(&mut runner, 0, &[]);
    assert_eq!(ended.output("status"), "no_work");
    let told = "the review has no text, and all of its threads are resolved";
    assert!(ended.run.stdout.contains(told), "{}", ended.run.stdout);
    assert_eq!(runner.project.calls(), calls);
    assert_eq!(runner.reactions(Subject::Comment(asked)), ["rocket"]);
}
