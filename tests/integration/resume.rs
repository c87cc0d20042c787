//! Runs that are taken up again: where they stopped, with what they know.

use crate::support::project::{Project, Run};
use crate::support::{due, has};

fn one_task() -> Project {
    let plan = "title: Example\nverify:\n  - { name: test, run: 'grep -q fixed a.txt', kind: test }\ntasks:\n  - id: fix\n    title: Fix a.txt\n    description: the whole description\n";
    Project::new(&[("a.txt", "broken\n"), ("plan.yaml", plan)])
}

fn resume(project: &Project, agent: &str, more: &[&str]) -> Run {
    let mut args = vec!["run", "--resume", "--agent-command", agent];
    args.extend_from_slice(more);
    project.sprag(&args)
}

#[test]
fn a_failed_run_goes_on_with_its_dirty_tree_and_fresh_counts() {
    let project = one_task();
    let wrong = project.agent("echo \"wrong $N\" > a.txt; echo Done.");
    let failed = project.run(&wrong, &["--max-retries", "1"]);
    assert_eq!(failed.code, 1, "{}", failed.stdout);
    assert_eq!(failed.task(0)["attempts"], 2);
    assert_eq!(project.read("a.txt"), "wrong 2\n");
    let right = project.agent("echo fixed >> a.txt; echo Done.");
    let run = resume(&project, &right, &[]);
    assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
    assert_eq!(project.git(&["show", "HEAD:a.txt"]), "wrong 2\nfixed");
    assert_eq!((project.commits(), project.status()), (2, String::new()));
    let task = run.task(0);
    assert_eq!(
        (&task["attempts"], &task["retries"]),
        (&1.into(), &0.into())
    );
    assert_eq!(task["reason"], "verified");
    assert_eq!(run.summary["totals"]["attempts"], 3);
    assert_eq!(run.summary["totals"]["done"], 1);
    let prompt = project.prompt(3);
    assert!(prompt.contains("the whole description"), "{prompt}");
    assert!(!prompt.contains("retry attempt"), "{prompt}");
}

#[test]
fn a_dry_run_shows_what_is_left_of_a_run_and_does_none_of_it() {
    let project = one_task();
    let wrong = project.agent("echo wrong > a.txt; echo Done.");
    assert_eq!(project.run(&wrong, &["--max-retries", "0"]).code, 1);
    let before = project.calls();
    let shown = resume(&project, &wrong, &["--dry-run"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    has(&shown.stdout, "task fix: Fix a.txt");
    has(&shown.stdout, "the whole description");
    assert_eq!((project.calls(), project.commits()), (before, 1));
    assert_eq!(project.read("a.txt"), "wrong\n");
    let right = project.agent("echo fixed > a.txt; echo Done.");
    assert_eq!(resume(&project, &right, &[]).code, 0);
}

#[test]
fn a_resumed_run_keeps_its_plan_and_tasks_and_says_so() {
    let all = [
        (&["--plan", "plan.yaml", "--task", "fix"][..], None),
        (&["--task", "other"], Some("--task")),
        (&["--prompt", "write a poem"], Some("--prompt")),
        (&["--prompt-file", "a.txt"], Some("--prompt-file")),
        (&["--prompt-file", "-"], Some("--prompt-file")),
        (&["--issue", "7"], Some("--issue")),
        (&["--queue", "."], None),
        (&["--queue", "plans"], Some("--queue")),
        (&["--event"], Some("--event")),
        (
            &["--plan", "a.txt", "--task", "other"],
            Some("--plan and --task"),
        ),
    ];
    for (flags, names) in due(&all, 5) {
        let project = one_task();
        let wrong = project.agent("echo wrong > a.txt; echo Done.");
        let run = project.run(&wrong, &["--max-retries", "0", "--task", "fix"]);
        assert_eq!(run.code, 1, "{}", run.stdout);
        let right = project.agent("echo fixed > a.txt; echo Done.");
        let run = resume(&project, &right, flags);
        assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
        let told = " changes nothing: the resumed run keeps its plan and its tasks";
        assert_eq!(run.stdout.contains(told), names.is_some(), "{}", run.stdout);
        let told = format!("warning: {}{told}", names.unwrap_or_default());
        assert!(
            names.is_none() || run.stdout.contains(&told),
            "{}",
            run.stdout
        );
    }
}

/// With `--keep-going` the work of a failed task leaves the tree, so that its patch is all that is left of it.
#[test]
fn the_patch_of_a_failed_task_outlives_its_next_failure() {
    let project = one_task();
    let agent =
        project.agent("echo \"wrong $N\" > a.txt; echo \"of turn $N\" > new-$N.txt; echo Done.");
    let failed = project.run(&agent, &["--max-retries", "0", "--keep-going"]);
    assert_eq!(
        (failed.code, project.read("a.txt").as_str()),
        (1, "broken\n")
    );
    for turn in 2..=3 {
        let again = resume(&project, &agent, &["--max-retries", "0", "--keep-going"]);
        assert_eq!((again.code, project.calls()), (1, turn), "{}", again.stdout);
    }
    let patches = failed.dir.unwrap().join("patches");
    let read = |name: &str| std::fs::read_to_string(patches.join(name)).unwrap();
    for (name, turn) in [
        ("fix-earlier-01.patch", 1),
        ("fix-earlier-02.patch", 2),
        ("fix.patch", 3),
    ] {
        assert!(read(name).contains(&format!("+of turn {turn}")), "{name}");
    }
}

#[test]
fn nothing_is_left_to_take_up_after_a_success() {
    let project = one_task();
    let agent = project.agent("echo fixed > a.txt; echo Done.");
    assert_eq!(project.run(&agent, &[]).code, 0);
    let run = resume(&project, &agent, &[]);
    assert_eq!(run.code, 2, "{}\n{}", run.stdout, run.stderr);
    assert!(run.stderr.contains("no unfinished run"), "{}", run.stderr);
    let dir = project.run_dirs()[0].clone();
    let named = resume(&project, &agent, &["--run-dir", dir.to_str().unwrap()]);
    assert_eq!(named.code, 0, "{}\n{}", named.stdout, named.stderr);
    assert_eq!((project.calls(), project.commits()), (1, 2));
    assert_eq!(named.summary["totals"]["done"], 1);
}

/// The run that is taken up is the one that is named, not the newest.
#[test]
fn a_run_is_taken_up_by_its_short_id() {
    let project = one_task();
    let wrong = project.agent("echo \"wrong $N\" > a.txt; echo Done.");
    let failed = project.run(&wrong, &["--max-retries", "0"]).expect(1);
    let first = failed.dir.unwrap();
    project.git(&["checkout", "--quiet", "."]);
    let newest = project.run(&wrong, &["--max-retries", "0"]).expect(1);
    assert_ne!(newest.dir.unwrap(), first);
    let unknown = resume(&project, &wrong, &["deadbeef"]).expect(2);
    has(
        &unknown.stderr,
        "deadbeef is neither a directory nor the id of a run",
    );
    let name = first.file_name().unwrap().to_str().unwrap();
    let id = &name[name.len() - 8..];
    let both = resume(&project, &wrong, &[id, "--run-dir", id]).expect(2);
    assert!(both.stderr.contains("both name a run"), "{}", both.stderr);
    assert_eq!(project.calls(), 2);
    project.git(&["checkout", "--quiet", "."]);
    let right = project.agent("echo fixed > a.txt; echo Done.");
    let run = resume(&project, &right, &[id]);
    has(&run.stdout, format!("is resumed in {}", first.display()));
    let report = project.sprag(&["report", "--format", "json"]).expect(0);
    assert!(report.stdout.contains("\"run_id\""), "{}", report.stdout);
}

/// Its configuration was read from that commit, and must not be taken for one that says nothing.
#[test]
fn a_run_of_a_repository_that_was_made_anew_is_refused() {
    let project = one_task();
    let wrong = project.agent("echo wrong > a.txt; echo Done.");
    project.run(&wrong, &["--max-retries", "0"]).expect(1);
    std::fs::remove_dir_all(project.repo().join(".git")).unwrap();
    project.git(&["init", "--quiet", "--initial-branch", "main"]);
    project.write("other.txt", "");
    project.git(&["add", "other.txt"]);
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    project.git(&[&identity[..], &["commit", "--quiet", "--message", "Other"]].concat());
    let refused = resume(&project, &wrong, &[]).expect(2).stderr;
    has(&refused, "this repository no longer has its start commit ");
    assert!(refused.contains("start a new run"), "{refused}");
}

#[test]
fn a_head_that_moved_meanwhile_is_refused() {
    let project = one_task();
    let agent = project.agent("echo wrong > a.txt; echo Done.");
    assert_eq!(project.run(&agent, &["--max-retries", "0"]).code, 1);
    project.commit_all("somebody's");
    let head = project.head();
    let run = resume(&project, &agent, &[]);
    assert_eq!(run.code, 2, "{}\n{}", run.stdout, run.stderr);
    for told in ["the run ended with main at", "and now it is main at "] {
        assert!(run.stderr.contains(told), "{}", run.stderr);
    }
    let remedy = "start a new run here, or go back to where the run ended and resume it";
    assert!(
        run.stderr.contains(remedy) && !run.stderr.contains("stash"),
        "{}",
        run.stderr
    );
    assert_eq!((project.calls(), project.head()), (1, head));
}

#[test]
fn an_agent_that_was_missing_is_tried_again() {
    let project = one_task();
    let missing = project.run("/no/such/agent", &[]);
    assert_eq!(missing.code, 4, "{}", missing.stdout);
    let agent = project.agent("echo fixed > a.txt; echo Done.");
    let run = resume(&project, &agent, &[]);
    assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
    assert_eq!((project.calls(), project.commits()), (1, 2));
}

#[test]
fn what_was_spent_is_counted_once() {
    let project = one_task();
    let usage = r#"printf '{"event":"agent.usage","tokens_in":40,"tokens_out":0}\n'"#;
    let killer = format!(
        "{usage}; if [ $N = 2 ]; then kill_sprag; sleep 60; fi
         test $N -lt 3 || echo fixed > a.txt; echo $N >> a.txt; echo Done."
    );
    let agent = project.agent(&killer);
    let killed = project.run(&agent, &["--max-tokens", "100"]);
    assert_eq!(killed.code, -9, "{}", killed.stdout);
    let run = resume(&project, &agent, &["--max-tokens", "100"]);
    assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
    assert_eq!(run.summary["usage"]["tokens_in"], 80);
}

#[test]
fn the_prompt_of_a_turn_that_is_taken_up_is_whole() {
    let project = one_task();
    let agent = project.agent(
        "if [ $N = 2 ]; then kill_sprag; sleep 60; fi
         test $N = 1 && echo wrong > a.txt; test $N = 3 && echo fixed > a.txt; echo Done.",
    );
    assert_eq!(project.run(&agent, &[]).code, -9);
    let run = resume(&project, &agent, &[]);
    assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
    assert_eq!(project.prompt(3), project.prompt(2));
    let turns = run.task(0)["turns"].as_array().unwrap();
    let turns: Vec<_> = turns
        .iter()
        .map(|turn| turn["turn"].as_u64().unwrap())
        .collect();
    assert_eq!(turns, [1, 2]);
}

/// The reviewer changes what it may not and commits it, and then the run dies.
#[test]
fn a_reviewer_whose_turn_is_repeated_does_not_see_what_the_interrupted_one_changed() {
    let project = one_task();
    let agent = project.agent(
        "if [ $SPRAG_ROLE = implementer ]; then echo fixed > a.txt; echo Done.; exit; fi
         if grep -q mine a.txt || [ -e x.txt ]; then echo '- a.txt:1: not the work'; echo 'VERDICT: NEEDS_FIXES'; exit; fi
         if [ $N = 2 ]; then echo mine > a.txt; echo x > x.txt; git add -A; git commit -q -m own; kill_sprag; sleep 60; fi
         echo 'VERDICT: ACCEPTABLE'",
    );
    assert_eq!(project.run(&agent, &["--review"]).code, -9);
    let run = resume(&project, &agent, &["--review"]);
    assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
    assert_eq!(project.calls(), 3);
    assert_eq!(run.task(0)["status"], "done");
    assert_eq!(project.git(&["show", "HEAD:a.txt"]), "fixed");
    assert_eq!(project.status(), "");
}

#[test]
fn a_task_that_needed_nothing_keeps_its_status_through_a_kill() {
    let plan = "title: Example\nverify:\n  - { name: test, run: 'true', kind: test }\ntasks:\n  - id: one\n    title: One\n  - id: two\n    title: Two\n";
    let project = Project::new(&[("a.txt", "x\n"), ("plan.yaml", plan)]);
    let agent = project.agent(
        "case $SPRAG_TASK_ID-$N in
           one-*) echo 'ALREADY_SATISFIED: it is there' ;;
           two-2) kill_sprag; sleep 60 ;;
           *) echo new > b.txt; echo Done. ;;
         esac",
    );
    assert_eq!(project.run(&agent, &[]).code, -9);
    let run = resume(&project, &agent, &[]);
    assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
    assert_eq!((project.calls(), project.commits()), (3, 2));
    let plan = project.git(&["show", "HEAD:plan.yaml"]);
    assert_eq!(plan.matches("status: done").count(), 2, "{plan}");
    assert_eq!(run.summary["totals"]["done"], 2);
}
