//! `/sprag rebase`: the base branch merged into the branch of a pull request.

use super::{IS_FIXED, own_comments, with_pull};
use crate::support::github::git;
use crate::support::runner::{Runner, Step};

/// Asks for it, with an agent that would be noticed and this check.
fn asked(runner: &mut Runner, check: &str, code: i32) -> Step {
    runner.say(1, "grace", "/sprag rebase");
    let agent = runner.project.agent("echo work > work.txt");
    let step = runner.step(&["--agent-command", &agent, "--verify", check]);
    assert_eq!(runner.project.calls(), 0, "no agent works");
    step.expect(code)
}

fn parents(runner: &Runner) -> Vec<String> {
    let parents = git(&runner.bare(), &["log", "-1", "--format=%P", "feature"]);
    parents.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_base_is_merged_verified_and_pushed_without_an_agent() {
    let mut runner = with_pull();
    runner.push("main", "a.txt", "fixed");
    let (ours, theirs) = (runner.at("feature"), runner.at("main"));
    let step = asked(&mut runner, IS_FIXED, 0);
    assert_eq!(parents(&runner), [ours, theirs]);
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
    assert_eq!(runner.file("feature", "b.txt"), "feature");
    assert_eq!(runner.log("feature")[0], "Merge main into feature");
    assert_eq!(step.output("status"), "success");
    assert_eq!(step.output("head-sha"), runner.at("feature"));
    assert_eq!(own_comments(&runner), 1);
    runner.checks();
}

#[test]
fn what_the_checks_do_not_pass_is_not_pushed() {
    let mut runner = with_pull();
    runner.push("main", "c.txt", "new");
    let before = runner.at("feature");
    let step = asked(&mut runner, "! test -e c.txt", 1);
    assert_eq!(step.output("reason"), "verification_failed");
    assert_eq!(runner.at("feature"), before);
}

#[test]
fn a_conflict_is_told_with_its_files_and_nothing_is_pushed() {
    let mut runner = with_pull();
    runner.push("main", "b.txt", "theirs");
    let before = runner.at("feature");
    let step = asked(&mut runner, "true", 3);
    assert_eq!(step.output("reason"), "conflict");
    assert_eq!(runner.at("feature"), before);
    let comment = runner.comment(1).unwrap();
    assert!(comment.contains("b.txt"), "{comment}");
}

#[test]
fn a_branch_that_has_everything_already_stays_as_it_is() {
    let mut runner = with_pull();
    let before = runner.at("feature");
    let step = asked(&mut runner, "true", 0);
    assert_eq!(step.output("reason"), "already_satisfied");
    assert_eq!(runner.at("feature"), before);
}

#[test]
fn on_an_issue_it_is_refused() {
    let mut runner = with_pull();
    let number = runner.github.state().open_issue("ada", "Wish", "Do it");
    runner.say(number, "grace", "/sprag rebase");
    let agent = runner.project.agent("true");
    let step = runner.step(&["--agent-command", &agent]).expect(2);
    assert_eq!(step.output("reason"), "invalid");
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains("is for a pull request"), "{comment}");
    assert_eq!(runner.project.calls(), 0);
}
