//! One commit a task: the verified tree and the plan's status in it.

use crate::support::project::Project;
use crate::support::tasks::{
    FIX, assert_nothing_recorded, assessments, end, ends, events, files_of, fixable, logged,
    plan_of, several, statuses, subjects, warnings,
};
use serde_json::json;

#[test]
fn executor_commits() {
    let project = fixable();
    let run = project.by(FIX, &[]).expect(0);
    assert_eq!(project.commits(), 3);
    assert_eq!(files_of(&project, "HEAD"), ["a.txt", "plan.yaml"]);
    let text = project.git(&["show", "HEAD:plan.yaml"]);
    assert_eq!(statuses(&text), ["done"]);
    assert!(text.contains("attempts: 1"), "{text}");
    let mut lines = text.lines().map(str::trim);
    let completed = lines.find_map(|line| line.strip_prefix("completed_at: "));
    let completed = completed.unwrap().trim_matches(['"', '\'']);
    let began = run.events[0]["ts"].as_str().unwrap();
    assert!(
        completed.get(..10) >= began.get(..10) && completed.ends_with('Z'),
        "{completed}"
    );
    assert_eq!(project.read("plan.yaml").trim_end(), text);
    assert_eq!(run.summary["commits"], json!([project.head()]));
    assert_eq!(run.task(0)["commit"], project.head().as_str());
    assert_eq!(project.status(), "");
    assert_eq!(project.git(&["fsck", "--no-dangling"]), "");
    assert_eq!(
        project.git(&["log", "-1", "--format=%an <%ae> %cn <%ce>"]),
        "Tester <tester@example.invalid> Tester <tester@example.invalid>"
    );
}

#[test]
fn completion_commit_is_at_most_one_more() {
    let project = several(&["one", "two", "three"]);
    let agent = project.agent("[ $SPRAG_TASK_ID = one ] && { touch one; echo Done.; exit; }; echo 'ALREADY_SATISFIED: nothing to do'");
    project.run(&agent, &[]).expect(0);
    assert_eq!(
        subjects(&project),
        [
            "[sprag] Record the status of plan",
            "[sprag] Complete task one: Make one",
            "plan",
            "base"
        ]
    );
    assert_eq!(files_of(&project, "HEAD"), ["plan.yaml"]);
    assert_eq!(
        statuses(&project.read("plan.yaml")),
        ["done", "done", "done"]
    );
    assert_eq!(project.status(), "");
}

#[test]
fn empty_commit_all() {
    let project = Project::new(&[("a.txt", "broken\n")]);
    let plan = project.outside("plan.yaml");
    std::fs::write(&plan, plan_of(&["fix"], "grep -q fixed a.txt")).unwrap();
    let agent =
        project.agent("echo fixed > a.txt; git commit --quiet --all --message own; echo Done.");
    let run = project
        .sprag(&[
            "run",
            "--plan",
            plan.to_str().unwrap(),
            "--agent-command",
            &agent,
            "--agent-commits",
            "accept",
        ])
        .expect(0);
    assert_eq!(subjects(&project), ["own", "base"]);
    assert_eq!(end(run.task(0)), ("done", "verified"));
    assert_eq!(
        run.task(0)["message"],
        "checks passed; nothing was left to commit"
    );
    assert_eq!(run.task(0)["commit"], json!(null));
    assert_eq!(run.summary["commits"], json!([project.head()]));
    assert_eq!(run.summary["head"], project.head().as_str());
    assert_eq!(run.summary["changed_files"], json!(["a.txt"]));
}

#[test]
fn agent_commits() {
    let project = fixable();
    let agent = project.agent(
        "echo one > b.txt; git add b.txt; git commit --quiet --message own; echo fixed > a.txt; echo 'Plan: I will edit a.txt.'",
    );
    let run = project
        .run(&agent, &["--agent-commits", "accept"])
        .expect(0);
    assert_eq!(assessments(run.task(0)), ["changed"]);
    assert_eq!(
        subjects(&project),
        [
            "[sprag] Complete task fix: Fix a.txt",
            "own",
            "plan",
            "base"
        ]
    );
    assert_eq!(files_of(&project, "HEAD"), ["a.txt", "plan.yaml"]);
    assert_eq!(files_of(&project, "HEAD~1"), ["b.txt"]);
    let own = project.git(&["rev-parse", "HEAD~1"]);
    assert_eq!(run.summary["commits"], json!([own, project.head()]));
    assert_eq!(
        project.git(&["log", "-1", "--format=%an", "HEAD~1"]),
        "Tester"
    );
    assert_eq!(run.task(0)["agent_commits"], 1);
    assert!(
        logged(&run, "the agent made 1 commit itself"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("Tester"), "{}", run.stdout);
    assert_eq!(project.status(), "");
}

/// What is kept of an agent's own commits is what Sprag could have made; all else becomes one commit of
/// Sprag's.
#[test]
fn agent_commits_that_are_not_what_sprag_makes_are_not_kept() {
    for (commit, told) in [
        (
            "git commit -qm own --author 'M <m@example.invalid>'",
            "has the author M <m@example.invalid>",
        ),
        (
            "git commit -qm 'own

Fixes #4'",
            "trailers or references that no agent may set",
        ),
        (
            "git commit -qm own; git checkout -qb side HEAD~1; git commit -q --allow-empty -m side; git checkout -q -; git merge -q --no-edit side",
            "it holds a merge",
        ),
    ] {
        let project = fixable();
        let agent = project.agent(&format!(
            "echo one > b.txt; git add b.txt; {commit}; git branch -q -D side; echo fixed > a.txt; echo 'SUGGESTED_COMMIT_MESSAGE: All'"
        ));
        let run = project
            .run(&agent, &["--agent-commits", "accept"])
            .expect(0);
        assert_eq!(subjects(&project), ["All", "plan", "base"], "{commit}");
        assert_eq!(files_of(&project, "HEAD"), ["a.txt", "b.txt", "plan.yaml"]);
        let warned = warnings(&run);
        assert!(
            warned.iter().any(|line| line
                .contains("the agent's own commits become one of Sprag's")
                && line.contains(told)),
            "{commit}: {warned:?}"
        );
    }
}

#[test]
fn agent_commits_squashed() {
    let project = fixable();
    let agent = project.agent(
        "echo one > b.txt; git add b.txt; git commit --quiet --message 'Add b

Fixes #4

Signed-off-by: M <m@example.invalid>'; echo fixed > a.txt; echo Done.",
    );
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!(subjects(&project), ["Add b", "plan", "base"]);
    let message = project.git(&["log", "-1", "--format=%B"]);
    assert!(
        message.starts_with(
            "Add b

Fixes issue 4

Sprag-Task: "
        ),
        "{message}"
    );
    assert_eq!(files_of(&project, "HEAD"), ["a.txt", "b.txt", "plan.yaml"]);
    assert_eq!(run.task(0)["agent_commits"], 1);
    assert_eq!(project.status(), "");
}

/// Commits that come to nothing leave the branch, as do those of a task that needed none.
#[test]
fn agent_commits_that_come_to_nothing_are_not_kept() {
    let project = Project::new(&[(
        "a.txt", "fixed
",
    )]);
    let plan = project.outside("plan.yaml");
    std::fs::write(&plan, plan_of(&["fix"], "grep -q fixed a.txt")).unwrap();
    let head = project.head();
    let agent = project.agent(
        "mkdir -p .github/workflows; echo x > .github/workflows/x.yml; git add .; git commit -qm add; git rm -q -r .github; git commit -qm remove; echo 'Nothing to do: already done.'",
    );
    let args = [
        "run",
        "--plan",
        plan.to_str().unwrap(),
        "--agent-command",
        &agent,
    ];
    // The tree is the one that the task began on, so nothing was done.
    let run = project.sprag(&args).expect(1);
    assert_eq!(run.task(0)["reason"], "no_progress");
    assert_eq!(project.head(), head, "{}", run.stdout);
    assert_eq!(subjects(&project), ["base"]);
    assert_eq!(run.summary["commits"], json!([]));
}

#[test]
fn agent_commits_rejected() {
    let project = fixable();
    let head = project.head();
    let agent =
        project.agent("echo fixed > a.txt; git commit --quiet --all --message own; echo Done.");
    let run = project
        .run(&agent, &["--agent-commits", "reject"])
        .expect(3);
    assert_eq!(end(run.task(0)), ("blocked", "policy_violation"));
    assert_eq!(run.task(0)["message"], "the agent made 1 commit itself");
    assert_eq!(project.checks(), 1);
    assert_nothing_recorded(&project, &head);
    assert_eq!(project.read("a.txt"), "fixed\n");
}

#[test]
fn agent_commits_of_a_failed_task() {
    let project = fixable();
    let head = project.head();
    let agent = project.agent(
        "echo \"wrong $N\" > a.txt; git commit --quiet --all --message \"own $N\"; echo loose > b.txt; echo Done.",
    );
    let run = project.run(&agent, &["--max-retries", "1"]).expect(1);
    assert_eq!(end(run.task(0)), ("failed", "verification_failed"));
    assert_nothing_recorded(&project, &head);
    assert_eq!(run.task(0)["agent_commits"], 2);
    let kept_under = format!("refs/sprag/{}/fix", run.summary["run_id"].as_str().unwrap());
    assert_eq!(
        project.git(&["log", "--format=%s", &kept_under]),
        "own 2\nown 1\nplan\nbase"
    );
    assert_eq!(project.read("a.txt"), "wrong 2\n");
    assert_eq!(project.status(), "M  a.txt\n?? b.txt");
    let patch = run.dir.as_ref().unwrap().join("patches/fix.patch");
    project.git(&["stash", "--quiet", "--include-untracked"]);
    project.git(&["apply", patch.to_str().unwrap()]);
    assert_eq!(project.read("a.txt"), "wrong 2\n");
    assert_eq!(project.read("b.txt"), "loose\n");
    assert!(
        warnings(&run).iter().any(|text| text.contains(&kept_under)),
        "{:?}",
        warnings(&run)
    );
}

#[test]
fn allow_dirty() {
    let project = fixable();
    let head = project.head();
    project.write("mine.txt", "mine\n");
    project.write("CLAUDE.md", "mine\n");
    project.write("sub/AGENTS.md", "mine\n");
    let agent = project.agent(FIX);
    let evil = "echo .envrc >> .gitignore; echo x > .envrc; echo theirs >> sub/AGENTS.md";
    let run = project.agent(&format!("{FIX}; {evil}"));
    let run = project.run(&run, &["--allow-dirty"]).expect(0);
    assert_eq!(end(run.task(0)), ("done", "verified"));
    // What was changed before the run stays, and what the agent does to protected paths does not.
    assert!(!project.repo().join(".envrc").exists());
    for path in ["CLAUDE.md", "sub/AGENTS.md"] {
        let text = std::fs::read_to_string(project.repo().join(path)).unwrap();
        assert_eq!(text, "mine\n", "{path}");
        std::fs::remove_file(project.repo().join(path)).unwrap();
    }
    std::fs::remove_file(project.repo().join(".gitignore")).unwrap();
    let said = "checks passed; the changes are left uncommitted";
    assert!(logged(&run, said), "{}", run.stdout);
    assert_eq!(run.task(0)["message"], said);
    assert_eq!(run.task(0)["commit"], json!(null));
    assert_nothing_recorded(&project, &head);
    assert_eq!(project.status(), " M a.txt\n?? mine.txt");
    assert_eq!(run.summary["commits"], json!([]));
    let both = project
        .run(&agent, &["--allow-dirty", "--keep-going"])
        .expect(2);
    assert!(
        both.stderr.contains("keep-going") || both.stderr.contains("keep_going"),
        "{}",
        both.stderr
    );
}

#[test]
fn task_failure() {
    let project = fixable();
    let head = project.head();
    let agent = project.agent("printf 'wrong\\n' > a.txt; printf '\\0bin' > new.bin; echo Done.");
    let run = project.run(&agent, &["--max-retries", "0"]).expect(1);
    assert_nothing_recorded(&project, &head);
    assert_eq!(project.status(), " M a.txt\n?? new.bin");
    assert_eq!(run.task(0)["patch"], "patches/fix.patch");
    assert_eq!(run.summary["commits"], json!([]));
    assert_eq!(run.task(0)["changed_files"], json!(["a.txt", "new.bin"]));
    let patch = run.dir.as_ref().unwrap().join("patches/fix.patch");
    project.git(&["stash", "--quiet", "--include-untracked"]);
    assert_eq!(project.status(), "");
    project.git(&["apply", "--index", patch.to_str().unwrap()]);
    assert_eq!(project.status(), "M  a.txt\nA  new.bin");
    assert_eq!(
        std::fs::read(project.repo().join("new.bin")).unwrap(),
        b"\0bin"
    );
}

#[test]
fn gitignore() {
    let project = Project::new(&[(".gitignore", "*.log\n"), ("a.txt", "broken\n")]);
    project.write("plan.yaml", &plan_of(&["fix"], "grep -q fixed a.txt"));
    project.commit_all("plan");
    project.write("old.log", "old\n");
    let agent = project.agent(
        "echo .env >> .gitignore; echo KEY=1 > .env; mkdir -p sub; echo KEY=2 > sub/.env; echo fixed > a.txt; echo Done.",
    );
    project.run(&agent, &[]).expect(0);
    let committed = [".gitignore", "a.txt", "plan.yaml"];
    assert_eq!(files_of(&project, "HEAD"), committed);
    assert_eq!(project.status(), "");
    assert_eq!(project.read(".env"), "KEY=1\n");
    assert_eq!(
        project.git(&["log", "--all", "--format=%h", "--", ".env", "sub/.env"]),
        ""
    );
}

#[test]
fn work_that_git_ignores_is_named_with_the_rule() {
    let files = [(".gitignore", "*.log\n\nlib/\n"), ("a.txt", "broken\n")];
    let project = Project::new(&files);
    project.write("plan.yaml", &plan_of(&["fix"], "grep -q fixed a.txt"));
    project.commit_all("plan");
    let agent = project.agent(
        "[ $N = 2 ] && { echo fixed > a.txt; exit; }; mkdir -p lib; echo 'x = 1' > lib/util.py; echo Done.",
    );
    let run = project.run(&agent, &[]).expect(0);
    let said = "the agent wrote lib/util.py, which .gitignore line 3 ignores";
    assert!(project.prompt(2).contains(said), "{}", project.prompt(2));
    assert!(warnings(&run).contains(&format!("task fix: {said}").as_str()));
    assert_eq!(project.calls(), 2);
}

#[test]
fn what_was_ignored_and_is_committed_is_named() {
    let project = Project::new(&[("a.txt", "broken\n"), (".gitignore", "*.env\n/own/\n")]);
    project.write("own.env", "secret\n");
    project.write("own/x", "x\n");
    let agent = project.agent("echo $N > a.txt; [ $N = 1 ] || rm .gitignore; echo Done.");
    let once = ["run", "--agent-command", &agent, "--prompt", "Fix a.txt"];
    let none = project.sprag(&once).expect(0);
    assert!(!none.summary["warnings"].to_string().contains("ignored"));
    let named = project.sprag(&once).expect(0);
    let warnings = named.summary["warnings"].to_string();
    let part = "contains what git ignored when the task started: own.env, own/x";
    assert!(warnings.contains(part), "{warnings}");
}

#[test]
fn metadata_events() {
    let project = several(&["one", "two", "three"]);
    let agent =
        project.agent("[ $SPRAG_TASK_ID = two ] && touch bad; touch $SPRAG_TASK_ID; echo Done.");
    let run = project.run(&agent, &["--max-retries", "0"]).expect(1);
    assert_eq!(project.calls(), 2);
    assert_eq!(run.task(2)["message"], "not reached");
    assert_eq!(
        run.event_names(),
        [
            "run.started",
            "task.started",
            "proof.started",
            "check.started",
            "check.ended",
            "proof.ended",
            "turn.started",
            "agent.raw",
            "turn.ended",
            "turn.assessed",
            "check.started",
            "check.ended",
            "proof.started",
            "check.started",
            "check.ended",
            "proof.ended",
            "commit.created",
            "task.ended",
            "task.started",
            "proof.started",
            "proof.ended",
            "turn.started",
            "agent.raw",
            "turn.ended",
            "turn.assessed",
            "check.started",
            "check.ended",
            "proof.started",
            "check.started",
            "check.ended",
            "proof.ended",
            "task.ended",
            "run.ended",
        ]
    );
    let told = events(&run, "task.ended").into_iter().map(end);
    assert_eq!(told.collect::<Vec<_>>(), ends(&run)[..2]);
    let created = events(&run, "commit.created")[0];
    assert_eq!(created["commit"], project.head().as_str());
    assert_eq!(created["subject"], "[sprag] Complete task one: Make one");
    assert_eq!(events(&run, "run.ended")[0]["exit_code"], 1);
    assert!(run.events.iter().all(|event| event["v"] == 1));
    assert_eq!(assessments(run.task(0)), ["changed"]);
    assert_eq!(
        ends(&run),
        [
            ("done", "verified"),
            ("failed", "verification_failed"),
            ("pending", "-")
        ]
    );
    assert_eq!(
        statuses(&project.git(&["show", "HEAD:plan.yaml"])),
        ["done", "-", "-"]
    );
    assert_eq!(project.commits(), 3);
    assert_eq!(project.status(), "?? bad\n?? two");
    assert_eq!(end(&run.summary), ("partial", "verification_failed"));
}
