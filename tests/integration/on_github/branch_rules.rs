//! Rules of branches that would refuse the push, which are known before the first turn.

use super::pushes::{assert_checks_over, fix, fix_on_push, on_pull, on_push};
use crate::support::github::{Fault, Trouble};
use crate::support::runner::{Runner, Step};
use serde_json::{Value, json};

const SIGNED: &str = "commits must be signed (ruleset `rules 7`)";

/// Puts a branch under a rule of a ruleset that the token bypasses like this.
fn rule(runner: &Runner, branch: &str, mut rule: Value, bypass: Option<&str>) {
    for (key, value) in [
        ("ruleset_source_type", json!("Repository")),
        ("ruleset_source", json!("acme/widget")),
        ("ruleset_id", json!(7)),
    ] {
        rule[key] = value;
    }
    let mut state = runner.github.state();
    state.bypasses.insert(7, bypass.map(str::to_owned));
    state.rules.entry(branch.to_owned()).or_default().push(rule);
}

fn log(step: &Step) -> String {
    format!("{}{}", step.run.stdout, step.run.stderr)
}

fn assert_not_started(runner: &Runner, step: &Step, said: &[&str]) {
    assert_eq!(runner.project.calls(), 0);
    assert_eq!(step.output("status"), "environment");
    for words in said {
        assert!(log(step).contains(words), "{}", log(step));
    }
    assert_checks_over(runner);
}

#[test]
fn a_branch_with_signed_commits_costs_nothing_and_takes_those_of_github() {
    let (mut runner, number, _) = on_pull();
    let signatures = json!({ "type": "required_signatures" });
    rule(&runner, "feature", signatures, Some("never"));
    let step = fix(&mut runner, &[]).expect(4);
    assert_not_started(&runner, &step, &[SIGNED, "set `commit-via: api`"]);
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains("commits must be signed"), "{comment}");

    let (mut runner, _, _) = on_pull();
    let signatures = json!({ "type": "required_signatures" });
    rule(&runner, "feature", signatures, Some("never"));
    fix(&mut runner, &["--commit-via", "api"]).expect(0);
    assert_eq!(runner.log("feature")[0], "Say fixed");
}

#[test]
fn a_rule_that_may_be_bypassed_stops_nothing() {
    for (bypass, is_named) in [(Some("always"), false), (None, true)] {
        let (mut runner, _, _) = on_pull();
        let signatures = json!({ "type": "required_signatures" });
        rule(&runner, "feature", signatures, bypass);
        let step = fix(&mut runner, &[]).expect(0);
        let output = log(&step);
        assert_eq!(output.contains(SIGNED), is_named, "{output}");
        assert_eq!(runner.log("feature")[0], "Say fixed");
    }
}

#[test]
fn a_branch_that_only_takes_pull_requests_asks_for_one() {
    let mut runner = on_push();
    let pull_request = json!({ "type": "pull_request" });
    rule(&runner, "main", pull_request, Some("pull_requests_only"));
    let step = fix_on_push(&mut runner, &[]).expect(4);
    let said = [
        "push to main: changes must come by a pull request",
        "set `pull-request: draft`",
    ];
    assert_not_started(&runner, &step, &said);
    let step = fix_on_push(&mut runner, &["--pull-request", "draft"]).expect(0);
    assert_ne!(step.output("pull-request-number"), "");
}

#[test]
fn what_is_unknown_before_the_work_is_only_named() {
    let mut runner = on_push();
    let pattern = json!({ "operator": "regex", "pattern": "[A-Z]+-[0-9]+" });
    let messages = json!({ "type": "commit_message_pattern", "parameters": pattern });
    rule(&runner, "main", messages, Some("never"));
    let said = "commit messages must match `[A-Z]+-[0-9]+` on main (ruleset `rules 7`)";
    let step = fix_on_push(&mut runner, &[]).expect(0);
    assert!(log(&step).contains(said), "{}", log(&step));
}

#[test]
fn a_classic_protection_is_named_before_the_work_and_stops_nothing() {
    let mut runner = on_push();
    runner.github.state().protected.insert("main".to_owned());
    let step = fix_on_push(&mut runner, &[]).expect(0);
    let said = "it has a branch protection, which requires the checks ci / test, whose other rules the token cannot read; set `pull-request: draft`";
    assert!(log(&step).contains(said), "{}", log(&step));

    let mut runner = on_push();
    let step = fix_on_push(&mut runner, &[]).expect(0);
    assert!(!log(&step).contains("branch protection"), "{}", log(&step));
}

#[test]
fn a_server_that_tells_no_rules_stops_nothing() {
    let mut runner = on_push();
    let rules = "/repos/*/*/rules/**";
    runner.project.env("SPRAG_GITHUB_REQUEST_MS", "100");
    let fault = Fault::every("GET", rules, Trouble::Hang);
    runner.github.fault(fault);
    fix_on_push(&mut runner, &[]).expect(0);
    assert_eq!(runner.log("main")[0], "Say fixed");
}

#[test]
fn a_template_names_the_branches_that_a_rule_asks_for() {
    let mut runner = on_push();
    let number = runner
        .github
        .state()
        .open_issue("grace", "Say fixed", "Make a.txt say fixed");
    let branch = format!("sprag/issue-{number}");
    let pattern = json!({ "operator": "starts_with", "pattern": "feature/" });
    let names = json!({ "type": "branch_name_pattern", "parameters": pattern });
    rule(&runner, &branch, names, Some("never"));
    runner.labelled(number, "grace");
    let step = fix(&mut runner, &[]).expect(4);
    let said = [
        "its name must start with `feature/`",
        "set `branch` to a template",
    ];
    assert_not_started(&runner, &step, &said);

    runner.labelled(number, "grace");
    let step = fix(&mut runner, &["--branch", "feature/{slug}"]).expect(0);
    let branch = format!("feature/issue-{number}");
    assert_eq!(step.output("branch"), branch);
    assert_eq!(runner.log(&branch)[0], "Say fixed");
    let state = runner.github.state();
    let pull = state.pulls.values().find(|pull| pull.head == branch);
    assert!(pull.is_some_and(|pull| pull.draft));
}

#[test]
fn a_template_also_names_the_branches_of_plans_and_runs() {
    let plan = "title: Mend\ntasks: [{ id: a, title: Fix }]\n";
    for (args, start) in [
        (["--plan", "plans/mend.yaml"], "bot/mend"),
        (["--prompt", "Make a.txt say fixed"], "bot/run-4711-"),
        (["--queue", "plans"], "bot/mend"),
    ] {
        let mut runner = on_push();
        runner.push("main", "plans/mend.yaml", plan);
        runner.project.env("INPUT_BRANCH", "bot/{slug}");
        runner.checkout("main");
        let args = [&args[..], &["--pull-request", "draft"]].concat();
        let step = fix(&mut runner, &args).expect(0);
        let branch = step.output("branch");
        assert!(branch.starts_with(start), "{branch}");
    }
}

#[test]
fn a_template_that_names_no_branch_is_refused_with_the_reason() {
    let mut runner = on_push();
    let step = fix_on_push(&mut runner, &["--branch", "a..b/{slug}"]).expect(2);
    let why = "`a..b/{slug}` has `..`";
    assert!(log(&step).contains(why), "{}", log(&step));
    assert_eq!(runner.project.calls(), 0);
}

#[test]
fn a_plan_comes_too_late_to_name_its_branch() {
    let mut runner = on_push();
    let plan = "branch: bot/{slug}\ntasks: [{ id: a, title: Fix }]\n";
    runner.push("main", "plan.yaml", plan);
    runner.checkout("main");
    let step = fix(&mut runner, &["--plan", "plan.yaml"]).expect(2);
    let said = "branch is set in the plan";
    assert!(log(&step).contains(said), "{}", log(&step));
    assert_eq!(runner.project.calls(), 0);
}
