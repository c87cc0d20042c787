//! Runs that a comment on a pull request asks for.

use crate::support::runner::{Runner, comment_event};

const FIX: &str = "printf fixed > a.txt\necho 'SUGGESTED_COMMIT_MESSAGE: Say fixed'";

/// A pull request of `feature` onto `main`, and a comment on it that asks for work.
fn asked(runner: &mut Runner, body: &str) -> (u64, u64) {
    runner.branch("feature", "b.txt", "feature");
    let (number, id) = {
        let mut state = runner.github.state();
        state.role("grace", "write");
        let number = state.open_pull("ada", "Add b", "feature", "main");
        let id = state.comment(number, "grace", body);
        (number, id)
    };
    let payload = comment_event(number, true, id, "grace", body);
    runner.event("issue_comment", "refs/heads/main", &payload);
    (number, id)
}

#[test]
fn a_comment_brings_commits_a_check_run_one_comment_and_reactions() {
    let mut runner = Runner::new(&[("a.txt", "broken")]);
    let (number, id) = asked(&mut runner, "/sprag make a.txt say fixed");
    let before = runner.at("feature");
    let agent = runner.project.agent(FIX);
    let step = runner
        .step(&["--agent-command", &agent, "--verify", "grep -q fixed a.txt"])
        .expect(0);
    assert_eq!(runner.log("feature")[..2], ["Say fixed", "Somebody's work"]);
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
    let head = runner.at("feature");
    assert_eq!(step.output("status"), "success");
    assert_eq!(step.output("head-sha"), head);
    assert_eq!(step.output("branch"), "feature");
    let comment = runner.comment(number).unwrap();
    println!("{comment}");
    let state = runner.github.state();
    let checks: Vec<_> = state.checks.iter().collect();
    assert_eq!(checks.len(), 2);
    assert_eq!(
        (checks[0].head_sha.as_str(), checks[0].conclusion.as_deref()),
        (before.as_str(), Some("neutral"))
    );
    assert_eq!(
        (checks[1].head_sha.as_str(), checks[1].conclusion.as_deref()),
        (head.as_str(), Some("success"))
    );
    println!("{:?} {id}", state.reactions);
}
