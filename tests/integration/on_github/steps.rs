//! Runs that the workflow itself asks for: dispatches, pushes, and steps with a plan or a prompt.

use super::{FIX, IS_FIXED, own_comments, with_pull};
use crate::support::events;
use crate::support::github::{Access, Area, Token};
use crate::support::runner::{Runner, TOKEN, repository};
use serde_json::{Value, json};

const PLAN: &str =
    "title: Mend it\nverify: ['grep -q fixed a.txt']\ntasks:\n  - { id: only, title: Say fixed }\n";

fn dispatched(runner: &mut Runner, name: &str, inputs: &Value) {
    let (key, reference) = match name {
        "workflow_dispatch" => ("inputs", "ref"),
        _ => ("client_payload", "branch"),
    };
    let of = if key == "inputs" {
        "refs/heads/main"
    } else {
        "main"
    };
    let mut event =
        json!({ "repository": repository(), "sender": { "login": "ada", "type": "User" } });
    event[key] = inputs.clone();
    event[reference] = json!(of);
    runner.event(name, "refs/heads/main", &event);
}

#[test]
fn a_dispatch_brings_its_prompt_to_the_branch_it_was_started_on() {
    for name in ["workflow_dispatch", "repository_dispatch"] {
        let mut runner = with_pull();
        dispatched(
            &mut runner,
            name,
            &json!({ "prompt": "Make a.txt say fixed.", "other": 7 }),
        );
        let agent = runner.project.agent(FIX);
        let args = ["--agent-command", &agent, "--verify", IS_FIXED];
        let step = runner.step(&args).expect(0);
        assert_eq!(runner.log("main"), ["Say fixed", "base"], "{name}");
        assert_eq!(step.output("branch"), "main");
        assert_eq!(step.output("pull-request-number"), "");
        assert!(runner.project.prompt(1).contains("Make a.txt say fixed."));
        assert_eq!(own_comments(&runner), 0);
        assert_eq!(runner.checks().len(), 2);
    }
}

#[test]
fn a_dispatch_names_a_plan() {
    let mut runner = with_pull();
    runner.push("main", "plans/mend.yaml", PLAN);
    runner.checkout("main");
    dispatched(
        &mut runner,
        "workflow_dispatch",
        &json!({ "plan": "plans/mend.yaml", "prompt": "" }),
    );
    let agent = runner.project.agent(FIX);
    runner.step(&["--agent-command", &agent]).expect(0);
    assert_eq!(runner.log("main")[0], "Say fixed");
    assert!(
        runner
            .file("main", "plans/mend.yaml")
            .contains("status: done")
    );

    let outside = json!({ "plan": "plans/../../x.yaml" });
    dispatched(&mut runner, "workflow_dispatch", &outside);
    let step = runner.step(&["--agent-command", &agent]).expect(2);
    assert_eq!(step.output("status"), "invalid");
    dispatched(
        &mut runner,
        "workflow_dispatch",
        &json!({ "plan": "plans/mend.yaml", "prompt": "And this." }),
    );
    runner.step(&["--agent-command", &agent]).expect(2);
    dispatched(&mut runner, "workflow_dispatch", &json!({}));
    runner.step(&["--agent-command", &agent]).expect(2);
    assert_eq!(runner.project.calls(), 1);
    runner.checks();
}

/// This event of pull request 1.
fn of_pull(runner: &Runner, action: &str) -> Value {
    runner.merge_ref(1);
    let pull = events::pull(&runner.github.state(), 1);
    json!({ "action": action, "number": 1, "repository": repository(), "pull_request": pull,
        "sender": { "login": "ada", "type": "User" } })
}

fn scheduled(runner: &mut Runner) {
    let event = json!({ "repository": repository(), "schedule": "0 3 * * *" });
    runner.event("schedule", "refs/heads/main", &event);
}

#[test]
fn a_schedule_pushes_what_the_step_names_to_the_branch_that_is_checked_out() {
    for (branch, args) in [
        ("main", &["--plan", "plans/mend.yaml"][..]),
        ("feature", &["--prompt", "Say more.", "--verify", "true"]),
    ] {
        let mut runner = with_pull();
        runner.push(branch, "plans/mend.yaml", PLAN);
        runner.checkout(branch);
        scheduled(&mut runner);
        let before = runner.at(branch);
        let agent = runner.project.agent("echo fixed >> a.txt");
        let args = [args, &["--agent-command", &agent]].concat();
        let step = runner.step(&args).expect(0);
        assert_eq!(step.output("branch"), branch);
        assert_eq!(step.output("head-sha"), runner.at(branch));
        assert_ne!(runner.at(branch), before, "{args:?}");
    }
    let mut runner = with_pull();
    runner.push("main", "plans/mend.yaml", PLAN);
    let head = runner.at("main");
    runner.checkout_detached(&head);
    scheduled(&mut runner);
    let agent = runner.project.agent(FIX);
    let args = ["--plan", "plans/mend.yaml", "--agent-command", &agent];
    runner.step(&args).expect(0);
    assert_eq!(runner.log("main")[0], "Say fixed");
}

#[test]
fn work_on_a_branch_that_only_the_job_has_or_on_none_is_not_pushed_and_that_is_told() {
    let mut runner = with_pull();
    let told =
        "the commits are only in this job, because the checkout is on no branch of the remote";
    let run = |runner: &mut Runner, further: &[&str]| {
        let agent = runner.project.agent("echo more >> a.txt");
        let args = [&["--prompt", "Say it.", "--agent-command", &agent], further].concat();
        runner.step(&args).expect(0)
    };
    let before = runner.at("main");
    runner.checkout("main");
    let branch = ["checkout", "--quiet", "-b", "bot/update"];
    runner.project.git(&branch);
    scheduled(&mut runner);
    let step = run(&mut runner, &[]);
    assert!(step.run.stdout.contains(told), "{}", step.run.stdout);
    assert!(step.summary.contains(told), "{}", step.summary);

    // A tag, whose commit is not that of a branch.
    runner.push("main", "c.txt", "c");
    let main = runner.at("main");
    runner.checkout_detached(&before);
    let event = json!({ "repository": repository(), "ref": "refs/tags/v1" });
    runner.event("workflow_dispatch", "refs/tags/v1", &event);
    let step = run(&mut runner, &[]);
    assert!(step.run.stdout.contains(told), "{}", step.run.stdout);
    assert_eq!(runner.at("main"), main);

    runner.checkout_detached(&before);
    let step = run(&mut runner, &["--no-push"]);
    assert!(!step.run.stdout.contains(told), "{}", step.run.stdout);
}

#[test]
fn a_wanted_pull_request_has_a_branch_of_its_own_which_the_next_run_continues() {
    let mut runner = with_pull();
    let plan = format!("{PLAN}  - {{ id: more, title: Say more }}\n");
    runner.push("main", "plans/mend.yaml", &plan);
    let run = |runner: &mut Runner, args: &[&str], branch: &str| {
        let main = runner.at("main");
        runner.checkout("main");
        scheduled(runner);
        let agent = runner
            .project
            .agent("echo \"fixed $SPRAG_TASK_ID\" >> a.txt");
        let args = [
            args,
            &["--pull-request", "ready", "--agent-command", &agent],
        ]
        .concat();
        let step = runner.step(&args).expect(0);
        assert_eq!(runner.at("main"), main);
        assert_eq!(step.output("branch"), branch);
        assert_eq!(step.output("head-sha"), runner.at(branch));
        let state = runner.github.state();
        let pulls = state.pulls.iter().filter(|(_, pull)| pull.head == branch);
        let numbers: Vec<String> = pulls.map(|(number, _)| number.to_string()).collect();
        assert_eq!(numbers, [step.output("pull-request-number")]);
    };
    let plan = ["--plan", "plans/mend.yaml"];
    run(
        &mut runner,
        &[&plan[..], &["--task", "only"]].concat(),
        "sprag/mend",
    );
    // Another plan of this name has another branch, and does not take this one.
    runner.push("main", "other/mend.yaml", PLAN);
    run(&mut runner, &plan, "sprag/mend");
    assert_eq!(runner.log("sprag/mend").len(), 4);
}

#[test]
fn pieces_of_work_of_one_workflow_run_have_branches_and_pull_requests_of_their_own() {
    let mut runner = with_pull();
    let main = runner.at("main");
    let run = |runner: &mut Runner, job: &str, prompt: &str| {
        runner.checkout("main");
        runner.project.env("GITHUB_JOB", job);
        scheduled(runner);
        let agent = runner.project.agent("echo \"$SPRAG_TASK_ID\" >> a.txt");
        let args = ["--prompt", prompt, "--pull-request", "draft"];
        let args = [&args[..], &["--agent-command", &agent]].concat();
        let step = runner.step(&args).expect(0);
        assert_eq!(runner.at("main"), main);
        let branch = step.output("branch").to_owned();
        assert!(branch.starts_with("sprag/run-4711-"), "{branch}");
        (branch, step.output("pull-request-number").to_owned())
    };
    let first = run(&mut runner, "docs", "Say it.");
    let of_another_job = run(&mut runner, "tests", "Say it.");
    let of_another_row = run(&mut runner, "docs", "Say it louder.");
    for (branch, number) in [&of_another_job, &of_another_row] {
        assert_ne!((branch, number), (&first.0, &first.1));
        assert_eq!(runner.log(branch).len(), 2);
    }
    assert_ne!(of_another_job, of_another_row);

    runner.project.env("GITHUB_RUN_ATTEMPT", "2");
    assert_eq!(run(&mut runner, "docs", "Say it."), first);
    assert_eq!(runner.log(&first.0).len(), 3);
}

#[test]
fn a_push_works_off_the_configured_plan_and_not_for_its_own_commits() {
    let mut runner = with_pull();
    runner.push("main", "plans/mend.yaml", PLAN);
    runner.checkout("main");
    let event = |runner: &Runner, message: &str| {
        json!({ "ref": "refs/heads/main", "after": runner.at("main"), "deleted": false,
            "head_commit": { "message": message }, "repository": repository(),
            "sender": { "login": "ada", "type": "User" } })
    };
    let pushed = event(&runner, "Add a plan");
    runner.event("push", "refs/heads/main", &pushed);
    let agent = runner.project.agent(FIX);
    let args = ["--plan", "plans/mend.yaml", "--agent-command", &agent];
    let before = runner.at("main");
    let step = runner.step(&args).expect(0);
    assert_eq!(runner.log("main")[0], "Say fixed");
    assert_eq!(step.output("branch"), "main");
    let head = runner.at("main");
    assert_eq!(
        runner.checks(),
        [(before, "neutral".to_owned()), (head, "success".to_owned())]
    );

    runner.checkout("main");
    let own = event(&runner, "Say fixed\n\nSprag-Run: 1");
    runner.event("push", "refs/heads/main", &own);
    let step = runner.step(&args).expect(0);
    assert_eq!(step.output("status"), "no_work");
    assert_eq!(runner.project.calls(), 1);
}

#[test]
fn a_step_with_a_plan_on_a_pull_request_works_on_the_head_and_not_on_the_merge() {
    let mut runner = with_pull();
    runner.push("feature", "plans/mend.yaml", PLAN);
    runner.push("main", "only-on-main.txt", "main");
    let head = runner.at("feature");
    let merge = runner.merge_ref(1);
    let event = of_pull(&runner, "synchronize");
    runner.event("pull_request", "refs/pull/1/merge", &event);
    let agent = runner.project.agent(&format!("ls > $OUT/listed\n{FIX}"));
    let args = ["--plan", "plans/mend.yaml", "--agent-command", &agent];
    let step = runner.step(&args).expect(0);
    assert_eq!(runner.log("feature")[..2], ["Say fixed", "Somebody's work"]);
    let parent = crate::support::github::git(&runner.bare(), &["rev-parse", "feature^"]);
    assert_eq!(parent.trim(), head);
    assert_ne!(parent.trim(), merge);
    assert!(
        !runner
            .project
            .notes("listed")
            .contains(&"only-on-main.txt".to_owned())
    );
    assert_eq!(step.output("branch"), "feature");
    let pushed = runner.at("feature");
    assert_eq!(
        runner.checks(),
        [(head, "neutral".to_owned()), (pushed, "success".to_owned())]
    );
    assert!(own_comments(&runner) <= 1);
}

#[test]
fn a_repository_with_another_name_than_in_the_event_is_no_fork() {
    let mut runner = with_pull();
    let mut event = of_pull(&runner, "synchronize");
    for side in ["head", "base"] {
        event["pull_request"][side]["repo"]["full_name"] = json!("acme/gadget");
    }
    runner.event("pull_request", "refs/pull/1/merge", &event);
    runner
        .by(FIX, &["--prompt", "Make a.txt say fixed"])
        .expect(0);
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
}

#[test]
fn a_step_with_a_plan_keeps_what_the_comment_knows() {
    let mut runner = with_pull();
    let id = runner.say(1, "grace", "/sprag make a.txt say fixed");
    runner.by(FIX, &["--verify", IS_FIXED]).expect(0);
    let event = of_pull(&runner, "synchronize");
    runner.event("pull_request", "refs/pull/1/merge", &event);
    let more = runner.project.agent("echo more > more.txt");
    runner
        .step(&["--prompt", "Write more.txt", "--agent-command", &more])
        .expect(0);
    assert_eq!(runner.file("feature", "more.txt"), "more\n");
    runner.checkout("main");
    runner.commented(id);
    let step = runner.step(&["--agent-command", &more]).expect(0);
    assert_eq!(step.output("status"), "no_work");
    assert_eq!(runner.project.calls(), 2);
    assert_eq!(own_comments(&runner), 1);
}

#[test]
fn a_pull_request_alone_starts_nothing() {
    let mut runner = with_pull();
    let event = of_pull(&runner, "opened");
    runner.event("pull_request", "refs/pull/1/merge", &event);
    let step = runner.step(&["--agent-command", "true"]).expect(0);
    assert_eq!(step.output("status"), "no_work");
    runner.assert_untouched();
    assert_eq!(own_comments(&runner), 0);
}

#[test]
fn a_token_that_may_not_read_the_repository_is_told_what_it_needs() {
    let mut runner = with_pull();
    let token = Token::job().may(Area::Contents, Access::None);
    runner.github.token(TOKEN, token);
    dispatched(
        &mut runner,
        "workflow_dispatch",
        &json!({ "prompt": "Make a.txt say fixed." }),
    );
    let step = runner.by(FIX, &[]).expect(4);
    let told = "give the job the permission `contents: write`";
    assert!(step.run.stderr.contains(told), "{}", step.run.stderr);
    assert!(step.summary.contains(told), "{}", step.summary);
}
