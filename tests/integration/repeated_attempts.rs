//! Attempts that bring nothing new are noticed, not verified again, and the history is told.

use crate::support::has;
use crate::support::project::Project;
use crate::support::tasks::{fixable_with, run};
use serde_json::json;

const CHECK: &str =
    "grep -qx fixed a.txt || { echo \"FAIL greeting: expected fixed, got $(cat a.txt)\"; exit 1; }";
const NO_CHANGES: &str = "No progress detected - agent made no file changes";
const MEASURED: [&str; 3] = ["check.", "proof.", "verification."];
const ANOTHER_WORD: &str = "set -- apple pear plum fig lime kiwi melon; shift $(( N - 1 )); echo \"$1\" > a.txt; echo \"Wrote $1.\"";

fn project(check: &str) -> Project {
    fixable_with(&[(".gitignore", "*.log\n")], check)
}

fn words(first: &str, rest: &str) -> String {
    format!("case $N in 1) {first} ;; *) {rest} ;; esac; echo 'All done.'")
}

#[test]
fn exact_error() {
    let project = project(CHECK);
    let run = run(&project, &words("echo apple > a.txt", ":"), &[]).expect(1);
    assert_eq!(run.task(0)["message"], NO_CHANGES);
    assert_eq!(run.task(0)["changes_made"], false);
    assert_eq!(
        (&run.task(0)["attempts"], &run.task(0)["nudges"]),
        (&json!(2), &json!(0))
    );
    assert_eq!(
        run.task(0)["history"],
        json!([
            {"attempt": 1, "changes": ["a.txt"], "outcome": "failed_tests", "errors": ["FAIL greeting: expected fixed, got apple"]},
            {"attempt": 2, "changes": [], "outcome": "no_change", "errors": []},
        ])
    );
    let report = std::fs::read_to_string(run.dir.as_ref().unwrap().join("report.md")).unwrap();
    assert!(report.contains(NO_CHANGES), "{report}");
    assert!(run.stdout.contains(NO_CHANGES), "{}", run.stdout);
    let skipped: Vec<_> = run
        .events
        .iter()
        .filter(|event| event["event"] == "verification.skipped")
        .map(|event| event["reason"].as_str().unwrap())
        .collect();
    assert_eq!(skipped, [NO_CHANGES]);
    assert_eq!((project.calls(), project.checks()), (2, 2));
    assert_eq!(run.task(0)["reason"], "no_progress");
    assert_eq!(
        run.summary["totals"]["verifications_skipped"], 1,
        "{}",
        run.summary
    );
    // A run that is resumed looks at the start again, and verifies a tree that differs from the skipped one.
    let agent = project.agent("echo fixed > a.txt; echo Done.");
    let resumed = project
        .sprag(&["run", "--resume", "--agent-command", &agent])
        .expect(0);
    assert_eq!((project.calls(), project.checks()), (3, 4));
    assert_eq!(resumed.task(0)["reason"], "verified");
}

/// Users have a proof before the first turn and one before a task is given up.
#[test]
fn nothing_is_measured_again_after_a_retry_without_a_change() {
    let project = project("grep -qx broken a.txt");
    let run = run(&project, &words("echo apple > a.txt", ":"), &[]).expect(1);
    let names = run.event_names().into_iter();
    let after_retry: Vec<&str> = names
        .skip_while(|name| *name != "retry.scheduled")
        .filter(|name| MEASURED.iter().any(|kind| name.starts_with(kind)))
        .collect();
    assert_eq!(after_retry, ["verification.skipped"]);
    assert_eq!(
        (project.calls(), project.checks()),
        (2, 2),
        "{}",
        run.stdout
    );
    assert_eq!(run.task(0)["message"], NO_CHANGES);
}

/// A failure is repeated only if it may be one that comes and goes: what failed before the work is none.
#[test]
fn what_passed_before_the_work_runs_once_more_before_a_task_is_given_up() {
    let repeated = |check: &str| {
        let project = project(check);
        let run = run(&project, ANOTHER_WORD, &["--max-retries", "1"]).expect(1);
        let says = "once more on the same tree, since the failure may be flaky";
        assert_eq!(run.stdout.matches(says).count(), project.checks() - 3);
        project.checks() - 3
    };
    assert_eq!(repeated("grep -qx broken a.txt"), 1);
    assert_eq!(repeated(CHECK), 0);
}

#[test]
fn an_attempt_whose_changes_cannot_be_read_is_told_as_such() {
    let project = project("exit 1");
    let gone = project.outside("objects");
    let agent = format!(
        "echo fixed > a.txt; test ! -e .git/objects || mv .git/objects {}; echo Done.",
        gone.display()
    );
    run(&project, &agent, &["--max-retries", "1"]);
    let told = project.prompt(2);
    let line = "Attempt 1: Unable to determine changes -> failed_tests";
    assert!(told.lines().any(|one| one == line), "{told}");
}

#[test]
fn history() {
    let project = project(CHECK);
    run(&project, ANOTHER_WORD, &["--max-retries", "2"]).expect(1);
    let sentence = "Do NOT repeat the same fixes. Try a different approach.";
    for gone in ["Attempt 1", sentence] {
        assert!(!project.prompt(1).contains(gone));
    }
    assert!(project.prompt(2).contains(sentence));
    let told = |n| {
        project
            .prompt(n)
            .lines()
            .filter(|line| line.starts_with("Attempt "))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(told(2), ["Attempt 1: a.txt -> failed_tests"]);
    assert_eq!(
        told(3),
        [
            "Attempt 1: a.txt -> failed_tests",
            "Attempt 2: a.txt -> failed_tests"
        ]
    );
}

#[test]
fn reset_between_runs() {
    let project = project(CHECK);
    let first = run(&project, ANOTHER_WORD, &["--max-retries", "1"]).expect(1);
    project.git(&["checkout", "--quiet", "a.txt"]);
    let second = run(&project, "echo fixed > a.txt; echo Done.", &[]).expect(0);
    let prompt = project.prompt(3);
    for word in ["Attempt", "retry", "got apple", "Do NOT repeat"] {
        assert!(!prompt.contains(word), "{word} in:\n{prompt}");
    }
    assert_eq!(
        (&first.task(0)["attempts"], &second.task(0)["attempts"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(second.task(0)["history"].as_array().unwrap().len(), 1);
}

#[test]
fn edit_then_revert() {
    let within_a_turn = project(CHECK);
    let agent = words(
        "echo apple > a.txt",
        "echo pear > a.txt; echo apple > a.txt",
    );
    let run_1 = run(&within_a_turn, &agent, &[]).expect(1);
    assert_eq!((within_a_turn.calls(), within_a_turn.checks()), (2, 2));
    assert_eq!(run_1.task(0)["message"], NO_CHANGES);

    let across_attempts = project("echo \"broken by $(cat a.txt)\"; false");
    let agent = "case $N in 2) echo pear > a.txt ;; *) echo apple > a.txt ;; esac; echo Done.";
    let run_2 = run(&across_attempts, agent, &[]).expect(1);
    assert_eq!((across_attempts.calls(), across_attempts.checks()), (3, 3));
    assert_eq!(
        run_2.task(0)["message"],
        "No progress detected - agent returned to the state of attempt 1"
    );
    assert_eq!(run_2.task(0)["reason"], "no_progress");
    // A rerun would be of the tree of attempt 1, which failed every time.
    assert_ne!(run_2.task(0)["failing_tests"], json!([]));
    let flaky = [run_2.summary.to_string(), run_2.stdout];
    assert!(!flaky.concat().contains("flaky"), "{flaky:?}");
}

#[test]
fn build_before_tests() {
    let project = Project::new(&[("a.txt", "broken\n")]);
    let note = |name: &str| format!("echo {name} >> {}", project.outside("order").display());
    let text = format!(
        "title: Example\nverify:\n  - {{ name: units, run: '{}', kind: test }}\n  - {{ name: compile, run: '{}; grep -qx fixed a.txt', kind: build }}\n  - {{ name: style, run: '{}', kind: lint }}\ntasks:\n  - id: fix\n    title: Fix a.txt\n",
        note("units"),
        note("compile"),
        note("style")
    );
    project.write("plan.yaml", &text);
    project.commit_all("plan");
    let run = run(
        &project,
        &words("echo apple > a.txt", "echo fixed > a.txt"),
        &[],
    )
    .expect(0);
    assert_eq!(
        project.notes("order"),
        ["compile", "compile", "compile", "units", "style"],
        "of the tree at the start, of the failed attempt, of the work"
    );
    assert_eq!(run.task(0)["history"][0]["outcome"], "failed_build");
    assert!(project.prompt(2).contains("Failing checks: `compile`"));
    has(&project.prompt(2), "Attempt 1: a.txt -> failed_build");
}

#[test]
fn dependency_hints() {
    let check =
        "grep -qx fixed a.txt || { echo \"Error: Cannot find module 'left-pad'\"; exit 1; }";
    let project = project(check);
    run(
        &project,
        &words("echo apple > a.txt", "echo fixed > a.txt"),
        &[],
    )
    .expect(0);
    let prompt = project.prompt(2);
    let (_, hints) = prompt.split_once("## Hints\n\n").unwrap();
    let hint = hints.lines().next().unwrap();
    has(hint, "left-pad");
    has(hint, "install");
    assert!(!project.prompt(1).contains("## Hints"));
}

#[test]
fn ansi_cleaned() {
    let check = "grep -qx fixed a.txt || { printf '\\033[31mFAIL greeting\\033[0m: \\033]8;;http://x\\007got apple\\033]8;;\\007\\n'; exit 1; }";
    let project = project(check);
    let run = run(
        &project,
        &words("echo apple > a.txt", "echo fixed > a.txt"),
        &[],
    )
    .expect(0);
    let prompt = project.prompt(2);
    assert!(prompt.contains("FAIL greeting: got apple\n"), "{prompt}");
    for text in [prompt, run.stdout, run.summary.to_string()] {
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{7}'),
            "{text}"
        );
    }
}
