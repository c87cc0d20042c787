//! What becomes of a run's commits: on the branch, on a rescue branch, in a bundle.

use crate::support::git_http::{GitServer, Push};
use crate::support::github::git;
use crate::support::has;
use crate::support::project::Project;
use crate::support::runner::{
    REPOSITORY, Runner, Step, TOKEN, comment_event, commit, label_event, repository,
};
use serde_json::json;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;

const FIX: &str = "printf fixed > a.txt\necho 'SUGGESTED_COMMIT_MESSAGE: Say fixed'";

/// A repository that says broken, and a push to its `main`.
pub(super) fn on_push() -> Runner {
    let mut runner = Runner::new(&[("a.txt", "broken")]);
    quick(&mut runner);
    let payload = json!({ "ref": "refs/heads/main", "before": "0".repeat(40),
        "after": runner.at("main"), "deleted": false, "created": false, "forced": false,
        "repository": repository(), "sender": { "login": "grace", "type": "User" },
        "head_commit": { "id": runner.at("main"), "message": "base" }, "commits": [] });
    runner.event("push", "refs/heads/main", &payload);
    runner
}

/// The same repository with a pull request of `feature`, and a comment on it that asks for work.
/// Returns the pull request's number and the comment's id, too.
pub(super) fn on_pull() -> (Runner, u64, u64) {
    let mut runner = Runner::new(&[("a.txt", "broken")]);
    quick(&mut runner);
    runner.branch("feature", "b.txt", "feature");
    let body = "/sprag make a.txt say fixed";
    let (number, id) = {
        let mut state = runner.github.state();
        state.role("grace", "write");
        let number = state.open_pull("ada", "Add b", "feature", "main");
        (number, state.comment(number, "grace", body))
    };
    let payload = comment_event(number, true, id, "grace", body);
    runner.event("issue_comment", "refs/heads/main", &payload);
    (runner, number, id)
}

/// Waits for nothing that is only there to spare a real server.
fn quick(runner: &mut Runner) {
    runner.project.env("SPRAG_GITHUB_RETRY_MS", "1");
    runner.github.state().role("grace", "write");
}

/// What a step with the agent that mends `a.txt` left; of a comment the prompt is the event's.
pub(super) fn fix(runner: &mut Runner, args: &[&str]) -> Step {
    let agent = runner.project.agent(FIX);
    let check = runner.project.check("grep -q fixed a.txt");
    let all = ["--agent-command", &agent, "--verify", &check];
    runner.step(&[&all, args].concat())
}

/// The same with a prompt of the step's own.
pub(super) fn fix_on_push(runner: &mut Runner, args: &[&str]) -> Step {
    let prompt = ["--prompt", "Make a.txt say fixed"];
    fix(runner, &[&prompt, args].concat())
}

/// No check run is open, and no commit has two.
pub(super) fn assert_checks_over(runner: &Runner) {
    let state = runner.github.state();
    let mut heads = Vec::new();
    for check in &state.checks {
        assert_eq!(check.status, "completed", "{check:#?}");
        assert!(!heads.contains(&&check.head_sha), "{check:#?}");
        heads.push(&check.head_sha);
    }
    assert!(!heads.is_empty());
}

/// The conclusion of the one check run on a commit.
pub(super) fn conclusion(runner: &Runner, head: &str) -> String {
    let state = runner.github.state();
    let of: Vec<_> = state
        .checks
        .iter()
        .filter(|it| it.head_sha == head)
        .collect();
    assert_eq!(of.len(), 1, "{of:#?}");
    of[0].conclusion.clone().unwrap_or_default()
}

fn branches(runner: &Runner) -> Vec<String> {
    let text = git(
        &runner.bare(),
        &["for-each-ref", "--format=%(refname:short)", "refs/heads"],
    );
    text.lines().map(str::to_owned).collect()
}

/// The rescue branch that holds the work; fails unless there is exactly one.
fn rescued(runner: &Runner) -> String {
    let mut all = branches(runner);
    all.retain(|name| name.starts_with("sprag/rescue/"));
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

/// Whether the bundle of the run directory holds a commit with this subject.
fn assert_bundled(runner: &Runner, step: &Step, subject: &str) {
    let bundle = step.dir.as_ref().unwrap().join("work.bundle");
    let heads = ["bundle", "list-heads", bundle.to_str().unwrap()];
    let heads = runner.project.git(&heads);
    let head = heads.split_whitespace().next().unwrap();
    let log = ["log", "-1", "--format=%s", head];
    assert_eq!(runner.project.git(&log), subject);
}

fn somebody_adds(bare: &Path, branch: &str, path: &str) {
    commit(bare, branch, branch, path, "theirs");
}

#[test]
fn a_step_on_a_push_pushes_with_its_own_credential() {
    let mut runner = on_push();
    let url = format!("http.{}/.extraheader", runner.github.url());
    runner
        .project
        .git(&["config", &url, "AUTHORIZATION: basic d3Jvbmc6d3Jvbmc="]);
    let before = runner.at("main");
    let step = fix_on_push(&mut runner, &[]).expect(0);
    assert_eq!(runner.log("main"), ["Say fixed", "base"]);
    let head = runner.at("main");
    assert_eq!(step.output("status"), "success");
    assert_eq!(step.output("head-sha"), head);
    assert_eq!(step.output("branch"), "main");
    assert_eq!(step.output("report-status"), "ok");
    assert_eq!(runner.project.head(), head);
    assert_eq!(conclusion(&runner, &before), "neutral");
    assert_eq!(conclusion(&runner, &head), "success");
    assert_checks_over(&runner);
    for request in runner.server.requests() {
        assert_eq!(request.token.as_deref(), Some(TOKEN), "{request:?}");
    }
}

#[test]
fn a_shallow_detached_checkout_is_pushed_to_its_branch() {
    let mut runner = on_push();
    runner.checkout_detached(&runner.at("main"));
    let step = fix_on_push(&mut runner, &[]).expect(0);
    assert_eq!(runner.log("main"), ["Say fixed", "base"]);
    assert_eq!(step.output("head-sha"), runner.at("main"));
    assert_checks_over(&runner);
}

#[test]
fn work_goes_on_top_of_what_somebody_pushed_meanwhile_and_is_verified_there() {
    let (mut runner, number, _) = on_pull();
    runner
        .server
        .move_before_next_push(|bare| somebody_adds(bare, "feature", "c.txt"));
    let step = fix(&mut runner, &[]).expect(0);
    let log = runner.log("feature");
    assert_eq!(
        log,
        ["Say fixed", "Somebody's work", "Somebody's work", "base"]
    );
    assert_eq!(runner.project.checks(), 3);
    let head = runner.at("feature");
    assert_eq!(step.output("head-sha"), head);
    assert_eq!(step.output("commits"), head);
    assert_eq!(runner.project.head(), head);
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains(&head), "{comment}");
    assert!(comment.contains("verified there again"), "{comment}");
    has(&comment, "The branch feature has moved to");
    assert_eq!(conclusion(&runner, &head), "success");
    assert_checks_over(&runner);
}

#[test]
fn a_branch_that_moves_again_and_again_leaves_the_work_on_a_rescue_branch() {
    fn keep_moving(server: &GitServer, left: u32) {
        let again = server.clone();
        server.move_before_next_push(move |bare| {
            somebody_adds(bare, "main", &format!("their-{left}"));
            if left > 1 {
                keep_moving(&again, left - 1);
            }
        });
    }
    let mut runner = on_push();
    keep_moving(&runner.server, 4);
    let step = fix_on_push(&mut runner, &[]).expect(4);
    assert_eq!(step.output("status"), "environment");
    assert_eq!(runner.log("main").len(), 5);
    let rescue = rescued(&runner);
    assert_eq!(runner.log(&rescue)[..2], ["Say fixed", "Somebody's work"]);
    assert_eq!(step.output("commits"), runner.at(&rescue));
    assert_eq!(runner.project.checks(), 5);
    assert!(step.run.stdout.contains(&rescue), "{}", step.run.stdout);
    assert_checks_over(&runner);
}

#[test]
fn a_conflict_leaves_the_work_on_a_rescue_branch_and_names_the_file() {
    let (mut runner, number, _) = on_pull();
    runner
        .server
        .move_before_next_push(|bare| somebody_adds(bare, "feature", "a.txt"));
    let step = fix(&mut runner, &[]).expect(4);
    assert_eq!(runner.file("feature", "a.txt"), "theirs");
    let rescue = rescued(&runner);
    assert_eq!(runner.file(&rescue, "a.txt"), "fixed");
    assert_eq!(step.output("commits"), runner.at(&rescue));
    let comment = runner.comment(number).unwrap();
    has(&comment, "a.txt");
    has(&comment, &rescue);
    let log = runner.at("feature");
    assert!(comment.contains(&log[..7]), "{comment}");
    assert_checks_over(&runner);
}

#[test]
fn work_that_fails_on_top_of_somebody_elses_is_not_pushed_there() {
    let mut runner = on_push();
    runner
        .server
        .move_before_next_push(|bare| somebody_adds(bare, "main", "poison"));
    let agent = runner.project.agent(FIX);
    let check = "grep -q fixed a.txt && test ! -e poison";
    let args = [
        "--prompt",
        "Fix",
        "--agent-command",
        &agent,
        "--verify",
        check,
    ];
    let step = runner.step(&args).expect(4);
    assert_eq!(runner.log("main"), ["Somebody's work", "base"]);
    let rescue = rescued(&runner);
    assert_eq!(runner.log(&rescue), ["Say fixed", "base"]);
    assert_eq!(runner.project.head(), runner.at(&rescue));
    assert_eq!(runner.project.status(), "");
    has(&step.run.stdout, "these checks fail");
}

#[test]
fn a_protected_branch_leaves_the_work_on_a_rescue_branch() {
    let (mut runner, number, _) = on_pull();
    runner.server.protect("feature");
    let step = fix(&mut runner, &[]).expect(4);
    let rescue = rescued(&runner);
    assert_eq!(runner.log(&rescue)[0], "Say fixed");
    assert_eq!(step.output("status"), "environment");
    assert_eq!(step.output("tasks-done"), "1");
    let comment = runner.comment(number).unwrap();
    assert!(
        comment.contains("the branch is protected") || comment.contains("The branch is protected"),
        "{comment}"
    );
    assert!(comment.contains(&rescue), "{comment}");
    assert_eq!(conclusion(&runner, &runner.at("feature")), "failure");
    assert_checks_over(&runner);
}

#[test]
fn a_push_that_lacks_signatures_names_the_setting_for_them() {
    let mut runner = on_push();
    let push = Push::numbered("GH013", "Commits must have verified signatures.");
    runner.server.next_push(push);
    let step = fix_on_push(&mut runner, &[]).expect(4);
    let said = "takes signed commits only (`commit-via: api` lets GitHub sign them)";
    assert!(step.run.stdout.contains(said), "{}", step.run.stdout);
    assert_eq!(runner.log(&rescued(&runner)), ["Say fixed", "base"]);
    assert_checks_over(&runner);
}

#[test]
fn a_rescue_branch_is_pushed_through_what_passes() {
    let mut runner = on_push();
    runner.server.next_push(Push::protected("main"));
    runner
        .server
        .next_push(Push::Status(502, "Bad gateway".to_owned()));
    fix_on_push(&mut runner, &[]).expect(4);
    assert_eq!(runner.log("main"), ["base"]);
    assert_eq!(runner.log(&rescued(&runner)), ["Say fixed", "base"]);
    assert_checks_over(&runner);
}

#[test]
fn what_no_branch_takes_is_kept_in_a_bundle() {
    for (push, word) in [
        (Push::forbidden(REPOSITORY), "contents: write"),
        (
            Push::numbered("GH013", "Push cannot contain secrets"),
            "secret",
        ),
    ] {
        let (mut runner, number, _) = on_pull();
        runner.server.next_push(push);
        let step = fix(&mut runner, &[]).expect(4);
        assert_eq!(branches(&runner), ["feature", "main"]);
        assert_eq!(runner.log("feature"), ["Somebody's work", "base"]);
        assert_bundled(&runner, &step, "Say fixed");
        let comment = runner.comment(number).unwrap();
        assert!(comment.contains(word), "{word}: {comment}");
        assert!(comment.contains("not on the remote"), "{comment}");
        assert_checks_over(&runner);
    }
}

#[test]
fn what_passes_is_tried_again_and_lands_once() {
    for push in [Push::cannot_lock("main"), Push::Lost, Push::Torn] {
        let mut runner = on_push();
        runner.server.next_push(push.clone());
        let step = fix_on_push(&mut runner, &[]).expect(0);
        assert_eq!(runner.log("main"), ["Say fixed", "base"], "{push:?}");
        assert_eq!(step.output("head-sha"), runner.at("main"));
        assert_eq!(branches(&runner), ["main"]);
        assert_checks_over(&runner);
    }
}

#[test]
fn a_server_that_stays_away_leaves_a_bundle() {
    let mut runner = on_push();
    for _ in 0..8 {
        runner
            .server
            .next_push(Push::Status(503, "Unavailable".to_owned()));
    }
    let step = fix_on_push(&mut runner, &[]).expect(4);
    assert_eq!(runner.log("main"), ["base"]);
    assert_bundled(&runner, &step, "Say fixed");
    assert_checks_over(&runner);
}

#[test]
fn without_a_push_the_commits_are_kept_for_another_job() {
    let (mut runner, number, _) = on_pull();
    let step = fix(&mut runner, &["--no-push"]).expect(0);
    assert_eq!(runner.log("feature"), ["Somebody's work", "base"]);
    assert_eq!(runner.server.pushes(), 0);
    assert_bundled(&runner, &step, "Say fixed");
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains("Nothing was pushed"), "{comment}");
    assert_eq!(conclusion(&runner, &runner.at("feature")), "success");
    assert_checks_over(&runner);
}

#[test]
fn dispatched_workflows_are_those_that_were_started() {
    let (mut runner, number, _) = on_pull();
    runner
        .github
        .state()
        .dispatchable
        .insert("ci.yml".to_owned());
    runner
        .project
        .env("INPUT_DISPATCH-WORKFLOWS", "ci.yml\ngone.yml");
    fix(&mut runner, &[]).expect(0);
    let comment = runner.comment(number).unwrap();
    has(&comment, "so Sprag started `ci.yml` for it");
    has(&comment, "The workflow gone.yml was not started");
    let state = runner.github.state();
    let started: Vec<_> = state
        .dispatches
        .iter()
        .map(|it| (it.workflow.as_str(), it.git_ref.as_str()))
        .collect();
    assert_eq!(started, [("ci.yml", "feature")]);
}

#[test]
fn a_pull_request_that_may_not_be_opened_leaves_the_work_on_its_branch() {
    let mut runner = Runner::new(&[("a.txt", "broken")]);
    quick(&mut runner);
    let (title, body) = ("Say fixed", "a.txt must say fixed");
    let number = {
        let mut state = runner.github.state();
        state.actions_may_open_pulls = false;
        state.open_issue("ada", title, body)
    };
    let payload = label_event(number, "grace", title, body);
    runner.event("issues", "refs/heads/main", &payload);
    let step = fix(&mut runner, &[]).expect(4);
    let branch = format!("sprag/issue-{number}");
    assert_eq!(runner.log(&branch)[0], "Say fixed");
    assert_eq!(step.output("status"), "environment");
    assert_eq!(step.output("pull-request-number"), "");
    let comment = runner.comment(number).unwrap();
    has(&comment, "allow GitHub Actions to create pull requests");
    assert!(comment.contains(&branch), "{comment}");
    assert_checks_over(&runner);
}

#[test]
fn nothing_that_the_agent_writes_into_the_configuration_redirects_a_push() {
    let mut runner = on_push();
    let sink = TcpListener::bind("127.0.0.1:0").unwrap();
    let (url, sunk) = (runner.github.url(), sink.local_addr().unwrap());
    let sunk = format!("http://{sunk}");
    let noted = runner.project.outside("canary");
    let program = format!("!touch {}", noted.display());
    let script = format!(
        "printf fixed > a.txt\n\
         git config url.{sunk}/.insteadOf {url}/\n\
         git config url.{sunk}/.pushInsteadOf {url}/\n\
         git config http.proxy {sunk}\n\
         git config credential.helper '{program}'\n\
         git config core.sshCommand '{program}'\n\
         git config core.hooksPath hooks\n\
         git remote add origin {sunk}/acme/widget.git\n\
         git config branch.main.pushRemote origin\n\
         printf '#!/bin/sh\\ntouch {noted}\\n' > .git/hooks/pre-push\n\
         chmod +x .git/hooks/pre-push",
        noted = noted.display()
    );
    let agent = runner.project.agent(&script);
    let check = "grep -q fixed a.txt";
    let args = [
        "--prompt",
        "Fix",
        "--agent-command",
        &agent,
        "--verify",
        check,
    ];
    let step = runner.step(&args).expect(0);
    has(&step.run.stdout, "changes to .git/config were undone");
    assert_eq!(step.output("head-sha"), runner.at("main"));
    assert_eq!(runner.log("main").len(), 2);
    sink.set_nonblocking(true).unwrap();
    let reached = sink.accept().unwrap_err();
    assert_eq!(reached.kind(), ErrorKind::WouldBlock);
    assert!(!noted.exists());
    assert_checks_over(&runner);
}

#[test]
fn of_two_runs_on_one_branch_both_works_arrive_and_there_is_one_comment() {
    let (mut runner, number, _) = on_pull();
    let here = runner.project.beside("agent");
    let mut children = Vec::new();
    for (own, other) in [("one", "two"), ("two", "one")] {
        let at = here.display();
        let agent = format!(
            "printf {own} > {own}.txt; touch {at}/{own}; until test -e {at}/{other}; do sleep 0.05; done"
        );
        let place = runner.project.beside(own);
        let (from, to) = (runner.project.repo(), place.join("repo"));
        std::fs::create_dir(&place).unwrap();
        let copied = std::process::Command::new("cp")
            .args(["-r", from.to_str().unwrap(), to.to_str().unwrap()])
            .status();
        assert!(copied.unwrap().success());
        let args = ["--agent-command", &agent, "--verify", "true"];
        let mut command = runner.command(&args);
        command
            .current_dir(&to)
            .env("RUNNER_TEMP", &place)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        children.push(command.spawn().unwrap());
    }
    for child in children {
        let output = child.wait_with_output().unwrap();
        let log = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{log}");
    }
    assert_eq!(runner.file("feature", "one.txt"), "one");
    assert_eq!(runner.file("feature", "two.txt"), "two");
    assert_eq!(runner.log("feature").len(), 4);
    assert!(runner.comment(number).is_some());
    let state = runner.github.state();
    assert!(state.checks.iter().all(|check| check.status == "completed"));
}

#[test]
fn a_push_without_a_token_says_what_is_missing() {
    let project = Project::new(&[("a.txt", "broken")]);
    let args = [
        "run",
        "--prompt",
        "Fix",
        "--agent-command",
        "true",
        "--push",
    ];
    let run = project.sprag(&args).expect(4);
    assert!(run.stderr.contains("--push needs GitHub"), "{}", run.stderr);
    assert!(run.stderr.contains("GITHUB_TOKEN"), "{}", run.stderr);
}
