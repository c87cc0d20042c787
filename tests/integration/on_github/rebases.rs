//! `/sprag rebase`: the base branch merged into the branch of a pull request.

use super::{IS_FIXED, own_comments, with_pull};
use crate::support::github::{git, try_git};
use crate::support::has;
use crate::support::proc::{signal, wait_until};
use crate::support::runner::{Runner, Step};
use std::path::Path;
use std::process::Stdio;

/// Asks for it, with an agent that would be noticed and this check.
fn asked(runner: &mut Runner, check: &str, code: i32) -> Step {
    runner.say(1, "grace", "/sprag rebase");
    let step = runner.by("echo work > work.txt", &["--verify", check]);
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

/// A pull request whose branch and base both have a file `b.txt`, and one that asks for the rebase with this agent.
fn conflicting(runner: &mut Runner, agent: &str, check: &str, code: i32) -> Step {
    runner.say(1, "grace", "/sprag rebase");
    let agent = runner.project.agent(agent);
    let step = runner.step(&["--agent-command", &agent, "--verify", check]);
    step.expect(code)
}

#[test]
fn an_agent_resolves_conflicts_and_the_result_is_one_merge_of_both_sides() {
    let mut runner = with_pull();
    runner.push("main", "a.txt", "fixed");
    runner.push("main", "b.txt", "theirs");
    let (ours, theirs) = (runner.at("feature"), runner.at("main"));
    let agent = "grep -q '^<<<<<<< ' b.txt || exit 1
printf 'feature and theirs' > b.txt
echo 'SUGGESTED_COMMIT_MESSAGE: Take both
Both lines of b are wanted.
END_COMMIT_MESSAGE'";
    let check = "grep -q 'feature and theirs' b.txt && grep -q fixed a.txt";
    let step = conflicting(&mut runner, agent, check, 0);
    assert_eq!(runner.project.calls(), 1);
    assert_eq!(parents(&runner), [ours.clone(), theirs]);
    assert_eq!(runner.file("feature", "b.txt"), "feature and theirs");
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
    assert_eq!(runner.log("feature")[0], "Merge main into feature");
    let changed = git(&runner.bare(), &["diff", "--name-only", "main", "feature"]);
    assert_eq!(changed.trim(), "b.txt", "no more differs than before");
    let message = git(&runner.bare(), &["log", "-1", "--format=%B", "feature"]);
    assert!(message.contains("Both lines of b are wanted."), "{message}");
    assert_eq!(step.output("status"), "success");
    let prompt = runner.project.prompt(1);
    has(&prompt, "- `b.txt`: both sides added it");
    assert!(prompt.contains(&ours), "{prompt}");
    runner.checks();
}

#[test]
fn markers_that_are_left_fail_the_attempt_whatever_the_checks_say() {
    let mut runner = with_pull();
    runner.push("main", "b.txt", "theirs");
    let agent = "case $N in 1) sed -i '/^>>>>>>> /d' b.txt ;; *) printf both > b.txt ;; esac";
    conflicting(&mut runner, agent, "true", 0);
    assert_eq!(runner.project.calls(), 2);
    let retry = runner.project.prompt(2);
    has(&retry, "Conflict markers of the merge are left");
    assert!(retry.contains("b.txt:1: <<<<<<< "), "{retry}");
    assert_eq!(runner.file("feature", "b.txt"), "both");
    assert_eq!(parents(&runner).len(), 2);
}

#[test]
fn a_file_that_neither_side_changed_stays_as_it_is() {
    let mut runner = with_pull();
    runner.push("main", "b.txt", "theirs");
    let agent = "printf both > b.txt
case $N in 1) printf more >> a.txt; touch new.txt ;; *) printf broken > a.txt; rm new.txt ;; esac";
    conflicting(&mut runner, agent, "true", 0);
    let retry = runner.project.prompt(2);
    let names = "they were, and remove the ones that are new:\na.txt\nnew.txt";
    assert!(retry.contains(names), "{retry}");
    assert_eq!(runner.file("feature", "a.txt"), "broken");
    let changed = git(&runner.bare(), &["diff", "--name-only", "main", "feature"]);
    assert_eq!(changed.trim(), "b.txt");
}

#[test]
fn a_file_that_one_side_deleted_is_shown_between_markers_and_can_go() {
    let mut runner = with_pull();
    runner.push("feature", "a.txt", "changed here");
    drop_file(&runner.bare(), "main", "a.txt");
    let agent = "grep -q 'changed here' a.txt && grep -q '^=======$' a.txt && rm a.txt";
    conflicting(&mut runner, agent, "! test -e a.txt", 0);
    let prompt = runner.project.prompt(1);
    let line = "- `a.txt`: feature changed it, main deleted it";
    assert!(prompt.contains(line), "{prompt}");
    assert_eq!(parents(&runner).len(), 2);
    let listed = git(&runner.bare(), &["ls-tree", "--name-only", "feature"]);
    assert!(!listed.contains("a.txt"), "{listed}");
}

/// Commits the deletion of a file on a branch of the remote.
pub(super) fn drop_file(bare: &Path, branch: &str, path: &str) {
    let listed = git(bare, &["ls-tree", branch]);
    let kept = listed
        .lines()
        .filter(|line| !line.ends_with(&format!("\t{path}")));
    let kept: String = kept.map(|line| format!("{line}\n")).collect();
    let tree = try_git(bare, &["mktree"], &[], kept.as_bytes()).unwrap();
    let who = ["AUTHOR", "COMMITTER"].map(|role| {
        let of = |what: &str| format!("GIT_{role}_{what}");
        [
            (of("NAME"), "Somebody"),
            (of("EMAIL"), "somebody@example.invalid"),
        ]
    });
    let who: Vec<(&str, &str)> = who
        .iter()
        .flatten()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    let args = ["commit-tree", tree.trim(), "-p", branch, "-m", "Drop it"];
    let commit = try_git(bare, &args, &who, b"").unwrap();
    let name = format!("refs/heads/{branch}");
    git(bare, &["update-ref", &name, commit.trim()]);
}

#[test]
fn a_conflict_that_nobody_resolves_is_told_with_its_files_and_nothing_is_pushed() {
    let mut runner = with_pull();
    runner.push("main", "b.txt", "theirs");
    let before = runner.at("feature");
    let step = conflicting(&mut runner, "echo more >> b.txt", "true", 3);
    assert!(runner.project.calls() > 1);
    assert_eq!(step.output("reason"), "conflict");
    assert_eq!(runner.at("feature"), before);
    let comment = runner.comment(1).unwrap();
    has(&comment, "changed the same lines in b.txt");
    assert_eq!(runner.project.head(), before);
    assert_eq!(runner.project.status(), "");
    let refs = git(&runner.bare(), &["for-each-ref", "refs/sprag/work"]);
    assert_eq!(refs, "", "a merge is made anew");
}

#[test]
fn a_merge_is_begun_anew_where_the_run_died_while_its_conflicts_were_resolved() {
    let mut runner = with_pull();
    runner.push("main", "b.txt", "theirs");
    let ours = runner.at("feature");
    runner.say(1, "grace", "/sprag rebase");
    let agent = "printf half > b.txt
case $N in 1) kill_sprag; sleep 60 ;; *) printf both > b.txt ;; esac";
    let agent = runner.project.agent(agent);
    let args = ["--agent-command", &agent, "--verify", "grep -q both b.txt"];
    let killed = runner.command(&args).output().unwrap();
    assert_eq!(killed.status.code(), None, "{killed:?}");
    let step = runner.step(&["--resume"]).expect(0);
    assert_eq!(step.output("status"), "success");
    assert_eq!(parents(&runner), [ours, runner.at("main")]);
    assert_eq!(runner.file("feature", "b.txt"), "both");
    assert_eq!(runner.project.status(), "");
}

#[test]
fn a_merge_that_the_run_had_made_before_it_died_is_its_work() {
    let mut runner = with_pull();
    runner.push("main", "a.txt", "fixed");
    let (ours, theirs) = (runner.at("feature"), runner.at("main"));
    runner.say(1, "grace", "/sprag rebase");
    let args = ["--agent-command", "false", "--verify", IS_FIXED];
    let (named, pid) = std::sync::mpsc::channel();
    runner
        .server
        .move_before_next_push(move |_| signal(pid.recv().unwrap(), "KILL"));
    let mut child = runner.command(&args).stdout(Stdio::null()).spawn().unwrap();
    named.send(child.id()).unwrap();
    assert_eq!(child.wait().unwrap().code(), None);
    let step = runner.step(&["--resume"]).expect(0);
    assert_eq!(parents(&runner), [ours, theirs]);
    let merge = runner.at("feature");
    assert_eq!(
        ["reason", "commits", "head-sha"].map(|it| step.output(it)),
        ["verified", &merge, &merge]
    );
}

#[test]
fn a_conflict_that_no_markers_can_show_or_no_check_judges_is_left_to_people() {
    for (content, check) in [("the\0irs", "true"), ("theirs", "")] {
        let mut runner = with_pull();
        runner.push("main", "b.txt", content);
        let before = runner.at("feature");
        let mut args = vec!["--agent-command", "touch called"];
        if !check.is_empty() {
            args.extend(["--verify", check]);
        }
        runner.say(1, "grace", "/sprag rebase");
        let step = runner.step(&args).expect(3);
        assert_eq!(step.output("reason"), "conflict");
        assert_eq!(runner.at("feature"), before);
        assert!(!runner.project.repo().join("called").exists());
        let comment = runner.comment(1).unwrap();
        has(&comment, "the agent was not asked to resolve them");
    }
}

#[test]
fn a_conflict_in_what_configures_the_agent_is_left_to_people_who_are_told_why() {
    for (value, instead) in [
        ("base", "works with that of main"),
        ("none", "works without it"),
    ] {
        let mut runner = with_pull();
        runner.push("feature", "CLAUDE.md", "ours");
        runner.push("main", "CLAUDE.md", "theirs");
        runner.project.env("SPRAG_PROTECTED_PATHS", ".github/**");
        runner.project.env("SPRAG_AGENT_CONFIG", value);
        let before = runner.at("feature");
        let step = asked(&mut runner, "true", 3);
        assert_eq!(step.output("reason"), "conflict");
        assert_eq!(runner.at("feature"), before);
        let comment = runner.comment(1).unwrap();
        let told = format!("CLAUDE.md configures the agent, and it {instead}");
        assert!(comment.contains(&told), "{comment}");
        assert!(comment.contains("merge main by hand"), "{comment}");
    }
}

#[test]
fn a_merge_that_was_stopped_is_made_anew_when_it_is_continued() {
    let mut runner = with_pull();
    runner.push("main", "b.txt", "theirs");
    let (ours, theirs) = (runner.at("feature"), runner.at("main"));
    runner.say(1, "grace", "/sprag rebase");
    let agent = "case $N in
1) printf half > b.txt; touch $OUT/working; sleep 1000 & wait ;;
*) grep -q '^<<<<<<< ' b.txt && printf both > b.txt ;;
esac";
    let agent = runner.project.agent(agent);
    let args = ["--agent-command", &agent, "--verify", "grep -q both b.txt"];
    let mut child = runner.command(&args);
    let child = child
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the agent", || runner.project.outside("working").exists());
    signal(child.id(), "TERM");
    let output = child.wait_with_output().unwrap();
    runner.ended(&output).expect(143);
    let comment = runner.comment(1).unwrap();
    let told = "`/sprag continue` to have the merge repeated";
    assert!(comment.contains(told), "{comment}");
    assert_eq!(runner.project.head(), ours);
    assert_eq!(runner.project.status(), "");
    runner.checkout("feature");
    runner.say(1, "grace", "/sprag continue");
    let step = runner.step(&args).expect(0);
    assert_eq!(step.output("status"), "success");
    assert_eq!(parents(&runner), [ours, theirs]);
    assert_eq!(runner.file("feature", "b.txt"), "both");
}

#[test]
fn what_failed_before_the_merge_is_known_and_taken_where_the_settings_say_so() {
    for (policy, code, told) in [
        ("tolerate", 0, "its only failures existed before the task"),
        ("fail", 1, "was red before"),
    ] {
        let mut runner = with_pull();
        runner.project.env("SPRAG_BASELINE", "on-failure");
        runner.push("main", "c.txt", "new");
        let before = runner.at("feature");
        runner.say(1, "grace", "/sprag rebase");
        let args = ["--agent-command", "false", "--verify", "echo old; exit 1"];
        let args = [&args[..], &["--known-failures", policy]].concat();
        let step = runner.step(&args).expect(code);
        assert_eq!(runner.at("feature") == before, code == 1);
        assert!(step.summary.contains(told), "{}", step.summary);
    }
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
    let step = runner.by("true", &[]).expect(2);
    assert_eq!(step.output("reason"), "invalid");
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains("is for a pull request"), "{comment}");
    assert_eq!(runner.project.calls(), 0);
}
