//! What runs may cost: one of them, and all of the repository in a day.

use super::{IS_FIXED, with_pull};
use crate::support::github::{Access, Area, Token, git};
use crate::support::has;
use crate::support::runner::{Runner, Step, TOKEN, repository};

/// An agent that says what it cost, and does a part of the work in every turn.
fn costly(usd: &str) -> String {
    format!(
        "echo '{{\"event\":\"agent.usage\",\"tokens_in\":1,\"tokens_out\":1,\"cost_usd\":{usd}}}'\n\
         echo $SPRAG_TASK_ID >> done.txt; printf fixed > a.txt"
    )
}

fn run(runner: &mut Runner, usd: &str, more: &[&str], code: i32) -> Step {
    runner.checkout("main");
    let agent = runner.project.agent(&costly(usd));
    let args = ["--agent-command", &agent, "--verify", IS_FIXED];
    runner.step(&[&args[..], more].concat()).expect(code)
}

fn spends(runner: &Runner) -> Vec<String> {
    let refs = git(
        &runner.bare(),
        &["for-each-ref", "--format=%(refname)", "refs/sprag/spend/"],
    );
    refs.lines().map(str::to_owned).collect()
}

#[test]
fn runs_add_up_to_the_limit_of_the_day_and_the_next_one_does_not_begin() {
    let mut runner = with_pull();
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    let step = run(&mut runner, "1.5", &["--max-cost-usd-per-day", "2"], 0);
    let limits = "cost limit: $2.00 for this run, $2.00 a day ($0.00 spent)";
    assert!(step.run.stdout.contains(limits), "{}", step.run.stdout);
    assert!(runner.comment(1).unwrap().contains("$2.00 a day"));
    assert_eq!(spends(&runner).len(), 1, "{:?}", spends(&runner));
    assert!(spends(&runner)[0].ends_with("-15000"));

    // What is left of the day is the limit of the next run.
    runner.say(1, "grace", "/sprag go on with it");
    let step = run(&mut runner, "0.6", &["--max-cost-usd-per-day", "2"], 0);
    has(&step.run.stdout, "cost limit: $0.50 for this run");
    let calls = runner.project.calls();
    let id = runner.say(1, "grace", "/sprag more still");
    let step = run(&mut runner, "1", &["--max-cost-usd-per-day", "2"], 5);
    assert_eq!(step.output("status"), "budget");
    assert_eq!(runner.project.calls(), calls, "no agent was asked");
    let comment = runner.comment(1).unwrap();
    assert!(comment.contains("/sprag continue"), "{comment}");
    runner.checks();

    // Another day, or a higher limit, and it goes on.
    let _ = id;
    runner.say(1, "grace", "/sprag continue");
    let step = run(&mut runner, "0.1", &["--max-cost-usd-per-day", "9"], 0);
    assert_eq!(step.output("status"), "success");
    has(&runner.project.prompt(runner.project.calls()), "more still");
}

#[test]
fn a_cap_keeps_the_finished_tasks_and_continue_goes_on() {
    let mut runner = with_pull();
    let plan = "title: Two\nverify: ['grep -q fixed a.txt']\ntasks:\n  - { id: one, title: First }\n  - { id: two, title: Second }\n";
    runner.push("feature", "plans/two.yaml", plan);
    runner.say(1, "grace", "/sprag run plans/two.yaml");
    let step = run(&mut runner, "11", &[], 5);
    has(&step.run.stdout, "cost limit: $10.00 for this run");
    assert_eq!(step.output("reason"), "budget");
    assert_eq!(runner.file("feature", "done.txt"), "one\n");
    runner.say(1, "grace", "/sprag continue");
    run(&mut runner, "1", &[], 0);
    assert_eq!(runner.file("feature", "done.txt"), "one\ntwo\n");
}

#[test]
fn a_day_that_cannot_be_known_or_counted_is_said_and_the_runs_own_limit_holds() {
    let mut runner = with_pull();
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    let token = Token::job().may(Area::Contents, Access::Read);
    runner.github.token(TOKEN, token);
    let step = run(&mut runner, "1", &["--no-push"], 0);
    has(&step.run.stdout, "not counted for max_cost_usd_per_day");
    assert_eq!(spends(&runner).len(), 0);
}

#[test]
fn what_is_older_than_a_day_counts_no_more_and_is_removed() {
    let mut runner = with_pull();
    let head = runner.at("main");
    let old = "refs/sprag/spend/1000000000/0192-old-990000";
    git(&runner.bare(), &["update-ref", old, &head]);
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    let step = run(&mut runner, "0.25", &[], 0);
    assert!(step.run.stdout.contains("($0.00 spent)"));
    assert!(
        !spends(&runner).contains(&old.to_owned()),
        "{:?}",
        spends(&runner)
    );
    assert!(spends(&runner)[0].ends_with("-2500"));
}

#[test]
fn the_job_that_brings_shards_together_counts_what_they_cost_and_nothing_twice() {
    let mut runner = with_pull();
    let plan =
        "title: Two\ntasks:\n  - { id: one, title: First }\n  - { id: two, title: Second }\n";
    runner.push("main", "plan.yaml", plan);
    let payload = serde_json::json!({ "ref": "refs/heads/main", "inputs": null,
        "repository": repository(), "sender": { "login": "grace", "type": "User" } });
    let mut shards = Vec::new();
    // The first job may write nothing and the second counts itself.
    for (task, usd, access) in [("one", "0.5", Access::Read), ("two", "0.25", Access::Write)] {
        let token = Token::job().may(Area::Contents, access);
        runner.github.token(TOKEN, token);
        let agent = runner
            .project
            .agent(&format!("{}; echo x > $SPRAG_TASK_ID", costly(usd)));
        let run_dir = runner.project.beside(&format!("shard-{task}"));
        let at = run_dir.display().to_string();
        runner.checkout("main");
        runner.event("workflow_dispatch", "refs/heads/main", &payload);
        let args = [
            "--plan",
            "plan.yaml",
            "--task",
            task,
            "--no-push",
            "--run-dir",
            &at,
        ];
        let args = [&args[..], &["--agent-command", &agent]].concat();
        runner.step(&args).expect(0);
        shards.push(at);
    }
    assert_eq!(spends(&runner).len(), 1, "{:?}", spends(&runner));
    runner.checkout("main");
    runner.event("workflow_dispatch", "refs/heads/main", &payload);
    let args = ["--plan", "plan.yaml", &shards[0], &shards[1]];
    let output = runner.command_of("integrate", &args).output().unwrap();
    runner.ended(&output);
    let counted = spends(&runner);
    assert_eq!(counted.len(), 2, "{counted:?}");
    for parts in ["-5000", "-2500"] {
        let of_shard = counted.iter().filter(|name| name.ends_with(parts));
        assert_eq!(of_shard.count(), 1, "{counted:?}");
    }
}
