//! What keeps a run from beginning, and what keeps work from being committed.

use crate::support::has;
use crate::support::project::Project;
use crate::support::tasks::{
    FIX, assert_nothing_recorded, end, events, fixable, fixable_by, statuses, subjects, warnings,
};
use crate::support::user::User;
use std::fs;

#[test]
fn staged_changes_are_dirt() {
    let project = fixable();
    project.write("a.txt", "staged\n");
    project.git(&["add", "a.txt"]);
    let run = project.by(FIX, &[]).expect(2);
    assert!(run.stderr.contains("\n    a.txt\n"), "{}", run.stderr);
    assert_eq!(project.status(), "M  a.txt");
}

#[test]
fn pre_commit_rejects() {
    let project = fixable();
    let head = project.head();
    project.hook(
        "pre-commit",
        "grep -q 'with care' a.txt || { echo 'a.txt lacks care' >&2; exit 1; }",
    );
    let agent = project
        .agent("[ $N = 1 ] && echo fixed > a.txt || echo 'fixed with care' > a.txt; echo Done.");
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!(project.calls(), 2);
    let prompt = project.prompt(2);
    has(&prompt, "CRITICAL: The commit was rejected.");
    assert!(prompt.contains("a.txt lacks care"), "{prompt}");
    assert!(prompt.contains("This is retry attempt 1 of 3."), "{prompt}");
    let rejected = events(&run, "commit.rejected");
    assert_eq!(rejected.len(), 1);
    has(rejected[0]["reason"].as_str().unwrap(), "a.txt lacks care");
    assert_eq!(project.git(&["rev-parse", "HEAD~1"]), head);
    assert_eq!(run.task(0)["attempts"], 2);
}

#[test]
fn pre_commit_rejects_to_the_end() {
    let project = fixable();
    let head = project.head();
    project.hook("pre-commit", "echo never >&2; exit 1");
    let agent = project.agent("echo \"fixed $N\" > a.txt; echo Done.");
    let run = project.run(&agent, &["--max-retries", "1"]).expect(1);
    assert_eq!(project.calls(), 2);
    assert_eq!(end(run.task(0)), ("failed", "commit_rejected"));
    let message = run.task(0)["message"].as_str().unwrap();
    assert!(message.contains("never"), "{message}");
    assert_nothing_recorded(&project, &head);
    assert_eq!(project.status(), " M a.txt");
    assert_eq!(run.summary["commits"], serde_json::json!([]));
}

#[test]
fn another_message_is_enough_if_the_hook_refused_the_message() {
    let project = fixable();
    project.hook(
        "commit-msg",
        "grep -q '^Fix: ' \"$1\" || { echo 'begin with Fix:'; echo 'as in Fix: x'; exit 1; }",
    );
    let agent = project.agent("echo fixed > a.txt; [ $N = 1 ] && echo 'SUGGESTED_COMMIT_MESSAGE: The file' || echo 'SUGGESTED_COMMIT_MESSAGE: Fix: the file'");
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!((project.calls(), project.checks()), (2, 2));
    assert_eq!(subjects(&project)[0], "Fix: the file");
    let errors = serde_json::json!(["begin with Fix:", "as in Fix: x"]);
    assert_eq!(run.task(0)["history"][0]["errors"], errors);
    assert!(project.prompt(2).contains("  - begin with Fix:\n"));
}

#[test]
fn sprags_own_trailers_are_left_out_if_the_hook_refuses_them() {
    let project = fixable();
    project.hook(
        "commit-msg",
        "! grep -q '^Sprag-' \"$1\" || { echo 'unknown trailer'; exit 1; }",
    );
    let agent = project.agent(&format!("{FIX}; echo 'SUGGESTED_COMMIT_MESSAGE: The file'"));
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!((project.calls(), project.checks()), (1, 2));
    assert_eq!(
        project.git(&["log", "-1", "--format=%B"]).trim(),
        "The file"
    );
    let warned = "the commit-msg hook refuses the lines `Sprag-Task` and `Sprag-Run`, so the commit is without them";
    assert_eq!(warnings(&run), [warned]);
}

#[test]
fn no_line_of_sprags_in_a_message_is_longer_than_hooks_accept() {
    let (id, title) = ("p".repeat(120), "Fix it ".repeat(30));
    let plan = format!("id: {id}\ntasks: [{{ id: fix, title: {title} }}]\n");
    let mut project = Project::new(&[("plan.yaml", &plan)]);
    let repository = format!("owner/{}", "n".repeat(90));
    for (name, value) in [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_SERVER_URL", "https://github.example"),
        ("GITHUB_REPOSITORY", &repository),
        ("GITHUB_RUN_ID", "42"),
    ] {
        project.env(name, value);
    }
    let temp = project.outside("runner-temp");
    fs::create_dir(&temp).unwrap();
    project.env("RUNNER_TEMP", &temp);
    project.hook("commit-msg", "! grep -E '^.{101}' \"$1\"");
    project.by(FIX, &[]).expect(0);
    let message = project.git(&["log", "-1", "--format=%B"]);
    has(&message, "\nSprag-Task: ppp");
    has(&message, "p/fix\nSprag-Run: 0");
}

#[test]
fn the_same_message_is_not_tried_again() {
    let project = fixable();
    project.hook("commit-msg", "echo 'begin with Fix:'; exit 1");
    let agent = project.agent(&format!("{FIX}; echo 'SUGGESTED_COMMIT_MESSAGE: The file'"));
    let run = project.run(&agent, &[]).expect(1);
    assert_eq!((project.calls(), project.checks()), (2, 2));
    assert_eq!(end(run.task(0)), ("failed", "commit_rejected"));
    assert_eq!(
        run.task(0)["message"],
        "the commit-msg hook refused the commit (code 1): begin with Fix:"
    );
    has(
        &run.stdout,
        "make the commit hook pass, or change its rules",
    );
}

// A hook that formats gives a new tree, which is verified once more and committed.
#[test]
fn post_commit_dirt() {
    let project = fixable();
    project.hook(
        "pre-commit",
        "grep -q formatted a.txt || echo formatted >> a.txt",
    );
    let run = project.by(FIX, &[]).expect(0);
    assert_eq!(end(run.task(0)), ("done", "verified"));
    assert_eq!(project.checks(), 3);
    assert_eq!(project.git(&["show", "HEAD:a.txt"]), "fixed\nformatted");
    assert_eq!(project.status(), "");
    assert_eq!(project.calls(), 1);
}

#[test]
fn post_commit_dirt_without_end() {
    let project = fixable();
    let head = project.head();
    project.hook("pre-commit", "echo again >> a.txt");
    let run = project.by(FIX, &[]).expect(1);
    assert_eq!(end(run.task(0)), ("failed", "commit_rejected"));
    assert_eq!(project.checks(), 3);
    assert_nothing_recorded(&project, &head);
}

/// Root reads every file.
#[test]
fn a_new_file_that_cannot_be_read_is_told_and_tried_again() {
    let project = fixable();
    let agent = project.agent(
        "echo fixed > a.txt; test $N = 2 && chmod 644 new.txt || { echo new > new.txt; chmod 0 new.txt; }; echo Done.",
    );
    let args = ["run", "--plan", "plan.yaml", "--agent-command", &agent];
    let user = *User::all().last().unwrap();
    let Some(run) = user.sprag(&project, &args) else {
        return;
    };
    let run = run.expect(0);
    assert_eq!(project.calls(), 2, "{}", run.stdout);
    let prompt = project.prompt(2);
    has(&prompt, "cannot read new.txt; make it readable");
    assert_eq!(events(&run, "commit.rejected")[0]["by_hook"], false);
    assert_eq!(run.task(0)["reason"], "verified");
}

#[test]
fn post_commit_hooks_do_not_run() {
    let project = fixable();
    project.hook("post-commit", "echo dirt > dirt.txt");
    project.hook("prepare-commit-msg", "echo dirt > dirt.txt");
    let doctor = project.sprag(&["doctor"]).stdout;
    let idle = "only pre-commit and commit-msg run, and not prepare-commit-msg, post-commit";
    assert!(doctor.contains(idle), "{doctor}");
    let run = project.by(FIX, &[]).expect(0);
    let said = "hooks that do not run: prepare-commit-msg, post-commit";
    assert_eq!(run.stdout.matches(said).count(), 1, "{}", run.stdout);
    assert_eq!(project.status(), "");
}

// A format that breaks the checks is no success.
#[test]
fn a_hook_that_breaks_the_work() {
    let project = fixable_by("grep -qx fixed a.txt && ! grep -q broken a.txt");
    let head = project.head();
    project.hook("pre-commit", "grep -q broken a.txt || echo broken >> a.txt");
    let run = project.by(FIX, &["--max-retries", "0"]).expect(1);
    assert_eq!(end(run.task(0)), ("failed", "verification_failed"));
    assert_nothing_recorded(&project, &head);
}

#[test]
fn git_add_fails() {
    let project = fixable();
    let head = project.head();
    let lock = project.repo().join(".git/index.lock");
    // Another git holds the index for good.
    project.hook("pre-commit", &format!("touch {}", lock.display()));
    let run = project.by(FIX, &[]).expect(1);
    assert_eq!(end(run.task(0)), ("failed", "commit_rejected"));
    let message = run.task(0)["message"].as_str().unwrap();
    assert!(message.contains("index.lock"), "{message}");
    assert_eq!(project.calls(), 1, "another turn would not help");
    fs::remove_file(lock).unwrap();
    assert_nothing_recorded(&project, &head);
    assert_eq!(project.status(), " M a.txt");
    assert_eq!(statuses(&project.read("plan.yaml")), ["-"]);
    assert_eq!(run.summary["commits"], serde_json::json!([]));
}

#[test]
fn a_commit_that_nobody_verified_does_not_stay_in_the_branch() {
    let project = fixable();
    let repo = project.repo();
    project.hook(
        "pre-commit",
        &format!(
            "env -i PATH=\"$PATH\" git -c user.name=Other -c user.email=other@example.invalid -C {} commit --quiet --no-verify --allow-empty --message theirs",
            repo.display()
        ),
    );
    let run = project.by(FIX, &[]).expect(1);
    assert_eq!(end(run.task(0)), ("failed", "commit_rejected"));
    assert_eq!(subjects(&project), ["plan", "base"]);
    let kept = format!("refs/sprag/{}/fix", run.summary["run_id"].as_str().unwrap());
    assert_eq!(project.git(&["log", "-1", "--format=%s", &kept]), "theirs");
    assert_eq!(project.status(), " M a.txt");
}

#[test]
fn a_hook_without_its_interpreter_costs_no_turn() {
    let project = fixable();
    project.hook("pre-commit", "");
    let hook = project.repo().join(".git/hooks/pre-commit");
    fs::write(&hook, "#!/usr/bin/env no-such-program\n").unwrap();
    let run = project.by(FIX, &[]).expect(4);
    let said =
        "the pre-commit hook of the repository needs `no-such-program`, which is not installed";
    assert!(run.stderr.contains(said), "{}", run.stderr);
    assert_eq!(project.calls(), 0);
}

#[test]
fn a_hook_that_refuses_a_commit_without_changes_is_not_asked_before_there_is_one() {
    let project = fixable();
    project.hook("pre-commit", "! git diff --cached --quiet");
    project.by(FIX, &[]).expect(0);
    assert_eq!(project.calls(), 1);
}
