//! No gate is switched off by accident: a check that cannot start, a session that runs into its own limit.

use crate::support::project::{Project, plan};
use crate::support::tasks::{FIX, assessments, end, fixable, fixable_by, warnings};
use crate::support::time_limit::under_limit;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

fn started(check: &str) -> Project {
    let files = [
        ("a.txt", "broken\n"),
        ("check.sh", "grep -q fixed a.txt\n"),
        ("windows.sh", "#!/bin/sh\r\ngrep -q fixed a.txt\r\n"),
    ];
    let mut project = Project::new(&files);
    for name in ["check.sh", "windows.sh"] {
        let path = project.repo().join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    project.write("plan.yaml", &plan(check));
    project.commit_all("plan");
    project.env("SPRAG_BASELINE", "on-failure");
    project
}

#[test]
fn a_check_that_cannot_start_blames_the_machine_and_commits_nothing() {
    for (check, program) in [
        ("no-such-program --all", "no-such-program"),
        (
            "./windows.sh",
            "./windows.sh (its first line ends in a carriage return, as on Windows)",
        ),
        ("python3 -m no_such_runner", "Python module no_such_runner"),
    ] {
        let project = started(check);
        let run = project.run(&project.agent(FIX), &[]).expect(4);
        let shown = format!("{check}\n{}\n{}", run.stdout, run.stderr);
        assert_eq!(run.summary["status"], "environment", "{shown}");
        assert_eq!(run.task(0)["reason"], "environment", "{shown}");
        let message = run.task(0)["message"].as_str().unwrap();
        assert!(message.contains(program), "{shown}");
        assert!(message.contains("cannot start"), "{shown}");
        assert_eq!(run.summary["totals"]["retries"], 0, "{shown}");
        assert_eq!((project.calls(), project.commits()), (1, 2), "{shown}");
    }
}

#[test]
fn a_check_that_the_change_keeps_from_starting_is_a_failed_attempt() {
    for script in ["rm check.sh", "sed -i '1i #!/no/such/interpreter' check.sh"] {
        let project = started("./check.sh");
        let agent = project.agent(&format!("echo fixed > a.txt; {script}; echo Done."));
        let run = project.run(&agent, &["--max-retries", "0"]).expect(1);
        let shown = format!("{script}\n{}", run.stdout);
        assert_eq!(
            end(run.task(0)),
            ("failed", "verification_failed"),
            "{shown}"
        );
        assert_eq!(project.commits(), 2, "{shown}");
    }
}

#[test]
fn whether_a_check_could_start_before_is_not_asked_without_a_baseline() {
    let mut project = started("./check.sh");
    project.env("SPRAG_BASELINE", "off");
    let agent = project.agent("echo fixed > a.txt; rm check.sh; echo Done.");
    let run = project.run(&agent, &[]).expect(4);
    assert_eq!(run.task(0)["reason"], "environment");
    assert_eq!(project.commits(), 2);
}

#[test]
fn a_check_that_started_and_ends_with_such_a_code_has_failed() {
    let project = fixable_by("echo 'not ok 1 - a'; echo 1..1; exit 127");
    let run = project
        .run(&project.agent(FIX), &["--max-retries", "0"])
        .expect(1);
    assert_eq!(end(run.task(0)), ("failed", "verification_failed"));
}

/// Has `claude` be a program that does this and then ends as the recorded session did that had used up its
/// turns.
fn limited(project: &mut Project, script: &str) {
    let dir = project.outside("bin");
    fs::create_dir(&dir).unwrap();
    let path = dir.join("claude");
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/agent-events/claude/max_turns.jsonl");
    let text = format!(
        "#!/bin/sh\necho turn >> {}\n{script}\ncat {}; exit 1\n",
        project.outside("turns").display(),
        recorded.display()
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let rest = std::env::var("PATH").unwrap();
    project.env("PATH", format!("{}:{rest}", dir.display()));
    project.env("ANTHROPIC_API_KEY", "not-a-key");
}

const CLAUDE: [&str; 5] = ["run", "--plan", "plan.yaml", "--agent", "claude"];

#[test]
fn a_session_at_its_own_limit_that_changed_nothing_gets_one_more_turn() {
    let mut project = fixable();
    limited(&mut project, "");
    let args = [&CLAUDE[..], &["--max-retries", "9"]].concat();
    let run = project.sprag(&args).expect(1);
    assert_eq!(
        end(run.task(0)),
        ("failed", "no_progress"),
        "{}",
        run.stdout
    );
    assert_eq!(project.notes("turns").len(), 2, "{}", run.stdout);
    assert_eq!(project.commits(), 2);
}

#[test]
fn a_session_at_its_own_limit_that_did_the_work_is_judged_by_it() {
    let mut project = fixable();
    let count = project.outside("turns");
    let script = format!("grep -c turn {} >> a.txt", count.display());
    limited(&mut project, &script);
    let args = [&CLAUDE[..], &["--max-retries", "2"]].concat();
    let run = project.sprag(&args).expect(1);
    // Each turn changes something, so each attempt counts and none is stagnation.
    assert_eq!(project.notes("turns").len(), 3, "{}", run.stdout);
    assert_ne!(run.task(0)["reason"], "no_progress", "{}", run.stdout);
    assert_eq!(project.commits(), 2);
}

#[test]
fn a_turn_that_hangs_and_changes_nothing_comes_twice_at_most() {
    let (project, run) = under_limit(|limit| {
        let project = fixable();
        let agent = project.agent("touch \"$OUT/began-$N\"; sleep 600");
        let limit = format!("{limit}s");
        let args = ["--turn-timeout", &limit, "--max-retries", "9"];
        let run = project.run(&agent, &args);
        let begun = project.outside("began-2").exists();
        begun.then_some((project, run))
    });
    let run = run.expect(1);
    assert_eq!(assessments(run.task(0)), ["turn_timeout", "turn_timeout"]);
    assert_eq!((project.calls(), project.commits()), (2, 2));
}

#[test]
fn keys_of_other_tools_are_ignored_and_listed() {
    let project = Project::new(&[("a.txt", "broken\n")]);
    let text = "goal: Example\nstorypoints: 5\ntasks:\n  - title: Fix\n    description: Fix it\n    mood: fine\n    steps: []\n";
    project.write("plan.yaml", text);
    project.commit_all("plan");
    let args = ["--verify", "grep -q fixed a.txt"];
    let run = project.run(&project.agent(FIX), &args).expect(0);
    let warnings = run.summary["warnings"].to_string();
    assert!(
        warnings.contains("storypoints") && warnings.contains("mood"),
        "{warnings}"
    );
    // A key of Sprag's own that is misspelt among them switches no gate off in silence.
    let typo = project
        .read("plan.yaml")
        .replace("storypoints: 5", "verfy: ['false']");
    project.write("plan.yaml", &typo);
    project.commit_all("typo");
    let run = project.run(&project.agent("echo fixed again > a.txt"), &args);
    let told = format!("{}{}", run.summary["warnings"], run.stderr);
    assert!(told.contains("verfy"), "{}\n{told}", run.stdout);
}

/// The code under test ends the whole process: exit code 0, and no test was over.
#[test]
fn a_test_runner_that_ends_before_its_tests_do_has_failed() {
    let test = "import sys, unittest\nsys.path.insert(0, '.')\nfrom app import two\n\nclass T(unittest.TestCase):\n    def test_two(self):\n        self.assertEqual(two(), 2)\n";
    let files = [
        ("app.py", "def two():\n    return 1\n"),
        ("tests/__init__.py", ""),
        ("tests/test_a.py", test),
        (".gitignore", "__pycache__\n"),
    ];
    for check in [
        "python3 -m unittest discover -s tests -t .",
        "echo 'running 1 test'; python3 -c 'import app; print(\"test result: ok. 1 passed; 0 failed; \")'",
    ] {
        let project = Project::new(&files);
        project.write("plan.yaml", &plan(check));
        project.commit_all("plan");
        let agent = "printf 'import os\\nos._exit(0)\\n' > app.py; echo Done.";
        let run = project
            .run(&project.agent(agent), &["--max-retries", "0"])
            .expect(1);
        assert_eq!(
            end(run.task(0)),
            ("failed", "verification_failed"),
            "{}",
            run.stdout
        );
        let told = "failed: it ended with exit code 0 before its test runner printed a result";
        assert!(run.stdout.contains(told), "{}", run.stdout);
    }
}

#[test]
fn the_first_command_of_a_check_that_fails_is_its_end() {
    for check in ["grep -q fixed a.txt; true", "grep -q fixed a.txt\ntrue\n"] {
        let mut project = Project::new(&[("a.txt", "broken\n")]);
        project.write("plan.yaml", &plan(check));
        project.commit_all("plan");
        project.env("SPRAG_BASELINE", "off");
        let agent = project.agent("echo other > a.txt; echo Done.");
        let run = project.run(&agent, &["--max-retries", "0"]).expect(1);
        assert_eq!(
            end(run.task(0)),
            ("failed", "verification_failed"),
            "{}",
            run.stdout
        );
    }
}

/// Many checks look only at what has changed. The commits of an agent would leave nothing of it.
#[test]
fn a_check_that_asks_git_what_has_changed_sees_what_the_agent_has_committed() {
    let check = "git diff --quiet; for f in $(git diff --name-only HEAD -- '*.txt'); do grep -qx fixed $f; done";
    let commit = "git -c user.name=x -c user.email=x@y commit -qam theirs";
    let project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan(check))]);
    let base = project.head();
    let agent = project.agent(&format!("echo wrong > a.txt; {commit}; echo Done."));
    let run = project.run(&agent, &["--max-retries", "0"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert_eq!(run.task(0)["reason"], "verification_failed");
    assert_eq!(project.head(), base);

    let project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan(check))]);
    let agent = project.agent(&format!(
        "git log -1 --format=%s >> \"$OUT/last\"\n\
         if [ $SPRAG_ATTEMPT = 1 ]; then echo wrong > a.txt; else echo fixed > a.txt; fi; {commit}; echo Done."
    ));
    let run = project.run(&agent, &["--max-retries", "1"]);
    assert_eq!(run.task(0)["reason"], "verified", "{}", run.stdout);
    // The agent finds its own commit again.
    assert_eq!(project.notes("last"), ["base", "theirs"]);
    assert_eq!(project.commits(), 2);
    assert_eq!(project.git(&["status", "--porcelain"]), "");
}

/// The work would land on another branch, or without the history of its own.
#[test]
fn what_a_check_does_to_head_is_undone() {
    for (check, warning) in [
        ("git checkout -q other", "a check switched HEAD to other; "),
        ("git checkout -qB new", "a check switched HEAD to new; "),
        (
            "git update-ref -d refs/heads/main",
            "a check deleted the branch; ",
        ),
        (
            "git commit -qam check --allow-empty",
            "a check moved HEAD to ",
        ),
    ] {
        let check = format!("{check}; grep -qx fixed a.txt");
        let project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan(&check))]);
        let base = project.head();
        project.git(&["checkout", "-q", "-b", "other"]);
        project.git(&["commit", "-q", "--allow-empty", "-m", "other"]);
        let other = project.head();
        project.git(&["checkout", "-q", "main"]);
        let run = project.run(&project.agent(FIX), &[]).expect(0);
        let warned = warnings(&run).iter().any(|it| it.starts_with(warning));
        assert!(warned, "{check}: {}", run.stdout);
        assert_eq!(project.git(&["symbolic-ref", "--short", "HEAD"]), "main");
        assert_eq!(project.git(&["rev-parse", "other"]), other);
        assert_eq!(project.git(&["rev-parse", "main~"]), base);
        assert_eq!(project.git(&["status", "--porcelain"]), "");
    }
}

#[test]
fn a_lock_that_a_check_leaves_ends_a_run_that_can_be_resumed() {
    let mut project = Project::new(&[("a.txt", "broken\n")]);
    // The first check is then the one after the agent's commit.
    project.env("SPRAG_BASELINE", "off");
    let once = project.outside("once");
    let once = once.display();
    let lock = format!("[ -e {once} ] || touch {once} .git/refs/heads/main.lock");
    project.write("plan.yaml", &plan(&format!("{lock}; grep -qx fixed a.txt")));
    project.commit_all("plan");
    let base = project.head();
    let agent = project.agent(&format!(
        "echo fixed > a.txt; git -c user.name=x -c user.email=x@y commit -qam theirs; {FIX}"
    ));
    let run = project.run(&agent, &[]).expect(4);
    assert!(run.stderr.contains("main.lock"), "{}", run.stderr);
    assert_eq!(project.head(), base);
    fs::remove_file(project.repo().join(".git/refs/heads/main.lock")).unwrap();
    project
        .sprag(&["run", "--resume", "--agent-command", &agent])
        .expect(0);
    assert_eq!((project.calls(), project.commits()), (1, 3));
    assert_eq!(project.git(&["log", "-1", "--format=%s"]), "theirs");
}
