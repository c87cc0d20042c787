//! The files that configure an agent, on a pull request that changes them.

use super::{FIX, IS_FIXED, with_pull};
use crate::support::github::git;
use crate::support::runner::{Runner, Step};

/// Says what the agent finds of its configuration, and does its work.
const LOOK: &str = "cat CLAUDE.md .claude/settings.json > $OUT/seen 2>/dev/null || true\n";

/// A pull request that changes `CLAUDE.md` and adds hooks.
fn with_changed_config() -> Runner {
    let runner = with_pull();
    runner.push("main", "CLAUDE.md", "of the base");
    runner.push("feature", "CLAUDE.md", "of the head");
    runner.push("feature", ".claude/settings.json", "hooks of the head");
    runner
}

fn asked(runner: &mut Runner, script: &str, more: &[&str], code: i32) -> Step {
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    let agent = runner.project.agent(script);
    let args = ["--agent-command", &agent, "--verify", IS_FIXED];
    runner.step(&[&args[..], more].concat()).expect(code)
}

fn seen(runner: &Runner) -> String {
    std::fs::read_to_string(runner.project.outside("seen")).unwrap()
}

/// A run that ends before its first event.
#[test]
fn a_base_branch_that_is_gone_is_told_with_steps_for_a_job() {
    let mut runner = with_pull();
    runner.branch("next", "next.txt", "next");
    runner.github.state().pulls.get_mut(&1).unwrap().base = "next".to_owned();
    git(&runner.bare(), &["update-ref", "-d", "refs/heads/next"]);
    let step = asked(&mut runner, FIX, &[], 4);
    assert_eq!(step.output("status"), "environment");
    assert_eq!(runner.project.calls(), 0);
    let comment = runner.comment(1).unwrap();
    for text in [&step.run.stdout, &step.summary, &comment] {
        assert!(text.contains("base branch next is gone"), "{text}");
        assert!(text.contains("/sprag continue"), "{text}");
        assert!(!text.contains("--resume"), "{text}");
    }
}

#[test]
fn an_agent_works_by_the_configuration_of_the_base_and_the_heads_own_is_kept() {
    let mut runner = with_changed_config();
    let script = format!("{LOOK}{FIX}");
    let check = "grep -q 'of the head' CLAUDE.md && grep -q hooks .claude/settings.json";
    let step = asked(&mut runner, &script, &["--verify", check], 0);
    assert_eq!(seen(&runner), "of the base");
    assert_eq!(step.output("changed-files"), "a.txt");
    assert_eq!(runner.file("feature", "CLAUDE.md"), "of the head");
    let hooks = runner.file("feature", ".claude/settings.json");
    assert_eq!(hooks, "hooks of the head");
    let comment = runner.comment(1).unwrap();
    assert!(comment.contains(".claude/settings.json"), "{comment}");
    assert!(comment.contains("is taken from main"), "{comment}");
}

#[test]
fn head_and_none_are_as_they_say() {
    for (value, expected) in [("head", "of the headhooks of the head"), ("none", "")] {
        let mut runner = with_changed_config();
        let script = format!("{LOOK}{FIX}");
        asked(&mut runner, &script, &["--agent-config", value], 0);
        assert_eq!(seen(&runner), expected, "{value}");
        assert_eq!(runner.file("feature", "CLAUDE.md"), "of the head");
    }
}

#[test]
fn every_turn_sees_the_base_and_what_it_does_to_that_is_a_violation() {
    let mut runner = with_changed_config();
    let script = format!("cat CLAUDE.md >> $OUT/seen\nprintf mine > CLAUDE.md\n{FIX}");
    let block = ["--on-protected", "block"];
    let step = asked(&mut runner, &script, &block, 3);
    assert_eq!(seen(&runner), "of the base");
    assert_eq!(step.output("reason"), "policy_violation");
    assert_eq!(runner.server.pushes(), 0);
}

#[test]
fn what_an_agent_does_to_configuration_that_was_lent_to_it_is_said_and_not_kept() {
    let mut runner = with_changed_config();
    let script = format!("printf mine > CLAUDE.md\n{FIX}");
    let step = asked(&mut runner, &script, &[], 0);
    assert_eq!(step.output("changed-files"), "a.txt");
    assert_eq!(runner.file("feature", "CLAUDE.md"), "of the head");
    let comment = runner.comment(1).unwrap();
    assert!(
        comment.contains("changed its own configuration"),
        "{comment}"
    );
}
