//! GitHub Enterprise Server below a path of its host: the API below `/api/v3`, GraphQL beside it or not at all, and answers without
//! what newer versions add.

use super::{FIX, IS_FIXED, request_changes, with_pull};
use crate::support::github::{Fault, PREFIX, Trouble};
use crate::support::runner::{Runner, Step};

fn on_enterprise() -> Runner {
    let mut runner = with_pull();
    runner.github.state().enterprise = true;
    let url = format!("{}{PREFIX}", runner.github.url());
    for (name, path) in [
        ("GITHUB_API_URL", "/api/v3"),
        ("GITHUB_GRAPHQL_URL", "/api/graphql"),
        ("GITHUB_SERVER_URL", ""),
    ] {
        runner.project.env(name, format!("{url}{path}"));
    }
    runner
}

fn step(runner: &mut Runner, more: &[&str]) -> Step {
    let agent = runner.project.agent(FIX);
    let args = [
        "--agent-command",
        &agent,
        "--verify",
        IS_FIXED,
        "--max-retries=0",
    ];
    runner.step(&[&args[..], more].concat()).expect(0)
}

fn without_graphql(runner: &Runner) {
    let missing = Trouble::status(404, "Not Found");
    runner
        .github
        .fault(Fault::every("POST", "/graphql", missing));
}

#[test]
fn a_comment_becomes_a_pushed_commit_a_check_run_and_a_comment() {
    let mut runner = on_enterprise();
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    let ended = step(&mut runner, &[]);
    assert_eq!(runner.log("feature")[0], "Say fixed");
    let checks: Vec<String> = runner.checks().into_iter().map(|check| check.1).collect();
    assert_eq!(checks, ["neutral", "success"]);
    let comment = runner.comment(1).unwrap();
    assert!(
        comment.contains(&runner.github.url()),
        "links lead to the server: {comment}"
    );
    assert_eq!(ended.output("report-status"), "ok");
}

#[test]
fn threads_are_resolved_where_there_is_graphql() {
    let mut runner = on_enterprise();
    let thread = request_changes(&mut runner, "", &[("a.txt", "Say fixed.")]).1[0];
    step(&mut runner, &[]);
    assert!(runner.github.state().resolved.contains(&thread));
}

#[test]
fn what_needs_graphql_is_left_out_with_a_reason() {
    let mut runner = on_enterprise();
    without_graphql(&runner);
    let thread = request_changes(&mut runner, "", &[("a.txt", "Say fixed.")]).1[0];
    let ended = step(&mut runner, &["--commit-via", "api"]);
    assert_eq!(runner.log("feature")[0], "Say fixed");
    {
        let state = runner.github.state();
        assert!(!state.resolved.contains(&thread));
        let reply = state.review_comments.last().unwrap();
        assert!(reply.body.contains("Fixed in"), "{}", reply.body);
        let checks = state.checks.iter().map(|check| check.conclusion.as_deref());
        assert_eq!(
            checks.collect::<Vec<_>>(),
            [Some("neutral"), Some("success")]
        );
    }
    let warned = &ended.run.stdout;
    for reason in [
        "fixed threads could not be resolved: GraphQL is not available here",
        "the commits are pushed without GitHub's signature",
    ] {
        assert!(warned.contains(reason), "{reason}: {warned}");
    }
}
