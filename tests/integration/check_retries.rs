//! Verification failures are fed back to the agent, within a limit, and told in every report.

use crate::support::project::{Project, Run, plan};
use crate::support::tasks::{fixable_by, run};
use crate::support::time_limit::under_limit;

/// Fails with what `a.txt` says, which the agents of these tests word differently each time.
const CHECK: &str =
    "grep -qx fixed a.txt || { echo \"FAIL greeting: expected fixed, got $(cat a.txt)\"; exit 1; }";

/// Writes another wrong word in each turn.
const ANOTHER_WORD: &str = "set -- apple pear plum fig lime kiwi melon; shift $(( N - 1 )); echo \"$1\" > a.txt; echo \"Wrote $1.\"";

/// Writes two wrong words and then the right one.
const THIRD_TIME: &str =
    "set -- apple pear fixed; shift $(( N - 1 )); echo \"$1\" > a.txt; echo \"Wrote $1.\"";

fn calls_and_checks(project: &Project) -> (u32, usize) {
    (project.calls(), project.checks())
}

/// What the task came to: reason, attempts, retries.
fn end(run: &Run) -> (&str, u64, u64) {
    let task = run.task(0);
    (
        task["reason"].as_str().unwrap(),
        task["attempts"].as_u64().unwrap(),
        task["retries"].as_u64().unwrap(),
    )
}

fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

#[test]
fn retry_to_limit() {
    let project = fixable_by(CHECK);
    let run = run(&project, ANOTHER_WORD, &[]).expect(1);
    assert_eq!(calls_and_checks(&project), (4, 5));
    assert_eq!(end(&run), ("verification_failed", 4, 3));
    assert_eq!(run.summary["status"], "failed");
    let report = std::fs::read_to_string(run.dir.as_ref().unwrap().join("report.md")).unwrap();
    for text in [&report, &run.stdout] {
        assert_has(
            text,
            &[
                "the checks still fail and no retry is left",
                "FAIL greeting: expected fixed, got fig",
            ],
        );
    }
    for word in ["apple", "pear", "plum", "fig"] {
        assert_has(&report, &[&format!("got {word}")]);
    }
    let retries: Vec<_> = run
        .events
        .iter()
        .filter(|event| event["event"] == "retry.scheduled")
        .map(|event| {
            let text = |key: &str| event[key].as_str().unwrap().to_owned();
            (
                event["n"].as_u64().unwrap(),
                event["of"].as_u64().unwrap(),
                text("kind"),
                text("reason"),
            )
        })
        .collect();
    let expected: Vec<_> = ["apple", "pear", "plum"]
        .iter()
        .zip(1..)
        .map(|(word, n)| {
            let reason = format!("test failed: FAIL greeting: expected fixed, got {word}");
            (n, 3, "retry".to_owned(), reason)
        })
        .collect();
    assert_eq!(retries, expected);
    let count = |name: &str| {
        run.event_names()
            .iter()
            .filter(|other| **other == name)
            .count()
    };
    assert_eq!(
        (
            count("turn.started"),
            count("turn.ended"),
            count("check.ended")
        ),
        (4, 4, 5)
    );
}

#[test]
fn prompt_instructions() {
    let project = fixable_by(CHECK);
    let run = run(&project, THIRD_TIME, &[]).expect(0);
    assert_eq!(calls_and_checks(&project), (3, 4));
    assert!(!project.prompt(1).contains("got apple"));
    assert_has(
        &project.prompt(2),
        &[
            "a.txt must say fixed",
            "Failing checks: `test`",
            "FAIL greeting: expected fixed, got apple",
            "uncommitted changes are still there",
        ],
    );
    assert_has(
        &project.prompt(3),
        &[
            "CRITICAL: Tests are failing. You attempted implementation but verification failed.\nThis is retry attempt 2 of 3.\n",
            "1. Analyse ",
            "2. Compare expected vs actual",
            "3. Find the root cause",
            "4. Fix the production code. Change a test only where it clearly contradicts the task.",
        ],
    );
    assert_eq!(end(&run), ("verified", 3, 2));
    assert_eq!(run.summary["totals"]["attempts"], 3);
    assert_eq!(run.summary["totals"]["retries"], 2);
    let plan = project.git(&["show", "HEAD:plan.yaml"]);
    assert_has(&plan, &["status: done", "attempts: 3"]);
    let entry = |attempt: u32, outcome: &str, errors: &[&str]| serde_json::json!({"attempt": attempt, "changes": ["a.txt"], "outcome": outcome, "errors": errors});
    assert_eq!(
        run.task(0)["history"],
        serde_json::json!([
            entry(
                1,
                "failed_tests",
                &["FAIL greeting: expected fixed, got apple"]
            ),
            entry(
                2,
                "failed_tests",
                &["FAIL greeting: expected fixed, got pear"]
            ),
            entry(3, "passed", &[]),
        ])
    );
}

#[test]
fn fast_path() {
    let project = fixable_by(CHECK);
    let run = run(&project, "echo fixed > a.txt; echo Done.", &[]).expect(0);
    assert_eq!(calls_and_checks(&project), (1, 2));
    assert_eq!(end(&run), ("verified", 1, 0));
    assert_eq!(run.summary["totals"]["retries"], 0);
    for text in [&project.prompt(1), &run.stdout] {
        assert!(!text.to_lowercase().contains("retry"), "{text}");
    }
    assert!(!run.event_names().contains(&"retry.scheduled"));
}

#[test]
fn per_task_override() {
    let project = fixable_by(CHECK);
    let with_own = |retries: &str| {
        let text = project
            .read("plan.yaml")
            .split("    max_retries")
            .next()
            .unwrap()
            .to_owned();
        project.write("plan.yaml", &format!("{text}    max_retries: {retries}\n"));
        project.commit_all("own retries");
    };
    with_own("50");
    let refused = run(&project, ANOTHER_WORD, &[]).expect(2);
    assert_eq!(
        refused.stderr,
        "error: plan.yaml:8:18: max_retries must be a whole number from 0 to 10, got 50\n"
    );
    assert_eq!(project.calls(), 0);
    with_own("5");
    let run = run(&project, ANOTHER_WORD, &[]).expect(1);
    assert_eq!(calls_and_checks(&project), (6, 7));
    assert_eq!(end(&run), ("verification_failed", 6, 5));
}

#[test]
fn max_retries_zero_by_the_strongest_source() {
    let mut project = fixable_by(CHECK);
    project.write(".sprag/config.yaml", "max_retries: 1\n");
    project.commit_all("configuration");
    project.env("SPRAG_MAX_RETRIES", "2");
    let run = run(&project, ANOTHER_WORD, &["--max-retries", "0"]).expect(1);
    assert_eq!(calls_and_checks(&project), (1, 2));
    assert_eq!(end(&run), ("verification_failed", 1, 0));
}

#[test]
fn cost_warning() {
    let project = fixable_by(CHECK);
    let agent = "echo fixed > a.txt; echo Done.";
    let run = run(&project, agent, &["--max-retries", "6"]).expect(0);
    let warning = "task fix has up to 6 retries: more than 5 are costly";
    assert_eq!(run.summary["warnings"], serde_json::json!([warning]));
    assert_has(&run.stdout, &[warning]);
}

#[test]
fn attempt_log() {
    let said = |words: &str, flags: &[&str]| -> Vec<String> {
        let project = fixable_by(CHECK);
        let run = run(&project, ANOTHER_WORD, flags).expect(1);
        let lines = run.stdout.lines();
        let said = lines
            .map(str::trim)
            .filter(|line| line.starts_with(words))
            .map(str::to_owned);
        said.collect()
    };
    assert_eq!(
        said("retry ", &[]),
        ["retry 1 of 3", "retry 2 of 3", "retry 3 of 3"]
    );
    let detailed = ["1/3", "2/3", "3/3"].map(|n| format!("Implementation retry {n}"));
    assert_eq!(said("Implementation retry ", &["-v"]), detailed);
}

#[test]
fn a_story_has_its_own_limit_of_retries() {
    let project = Project::new(&[]);
    let path = ".ai-sdlc/stories/S-0001/story.md";
    let story = "---\nid: S-0001\nstatus: ready\nmax_implementation_retries: 1\nverify: [ 'false' ]\n---\n# Make it\n";
    project.write(path, story);
    project.commit_all("story");
    let agent = project.agent("echo $N > made; echo Done.");
    let args = ["run", "--plan", path, "--agent-command", &agent];
    let run = project.sprag(&args).expect(1);
    assert_eq!(project.calls(), 2);
    assert!(
        !run.stdout.contains("max_implementation_retries"),
        "{}",
        run.stdout
    );
}

#[test]
fn per_attempt_timeout() {
    let (project, run) = under_limit(|limit| {
        let project = Project::new(&[("a.txt", "broken\n")]);
        let pids = project.outside("pids");
        let grandchild = format!("echo $$ >> {}; while :; do sleep 1; done", pids.display());
        let check = project.check(&format!(
            "setsid sh -c '{grandchild}' & sh -c '{grandchild}' & wait"
        ));
        project.write("plan.yaml", &plan(&check));
        project.commit_all("plan");
        let limit = format!("{limit}s");
        let args = ["--verify-timeout", &limit, "--max-retries", "1"];
        let run = run(&project, ANOTHER_WORD, &args);
        // Otherwise the limit came before they had started.
        (project.notes("pids").len() >= 4).then_some((project, run))
    });
    let run = run.expect(1);
    assert_eq!(calls_and_checks(&project), (2, 3));
    let timed_out: Vec<_> = run.task(0)["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| {
            (
                check["timed_out"].as_bool().unwrap(),
                check["passed"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(timed_out, [(true, false); 2]);
    assert_eq!(run.task(0)["history"][0]["outcome"], "timed_out");
    let pids = project.notes("pids");
    assert_eq!(pids.len(), 6);
    for pid in pids {
        let process = std::path::Path::new("/proc").join(&pid);
        assert!(!process.exists(), "{pid} lives on");
    }
}

#[test]
fn truncation() {
    let noise = "yes 'some chatter of the build that nobody needs to read' | head -c 1000000";
    let project = fixable_by(&format!(
        "grep -qx fixed a.txt || {{ {noise}; echo; echo 'FAIL greeting: the last failure'; exit 1; }}"
    ));
    run(
        &project,
        "test $N = 1 && echo apple > a.txt || echo fixed > a.txt; echo Done.",
        &[],
    )
    .expect(0);
    let prompt = project.prompt(2);
    assert_has(&prompt, &["FAIL greeting: the last failure", "repeated"]);
    assert!(prompt.len() < 12_000, "{} bytes", prompt.len());
}

#[test]
fn all_failures_shown() {
    let project = Project::new(&[("a.txt", "broken\n")]);
    let failing = |name: &str| {
        format!(
            "{{ name: {name}, run: \"grep -qx fixed a.txt || {{ echo FAIL in {name}; exit 1; }}\", kind: test }}"
        )
    };
    let text = format!(
        "title: Example\nverify:\n  - {}\n  - {}\ntasks:\n  - id: fix\n    title: Fix a.txt\n",
        failing("units"),
        failing("scenarios")
    );
    project.write("plan.yaml", &text);
    project.commit_all("plan");
    let run = run(
        &project,
        "test $N = 1 && echo apple > a.txt || echo fixed > a.txt; echo Done.",
        &[],
    )
    .expect(0);
    assert_has(
        &project.prompt(2),
        &[
            "Failing checks: `units`, `scenarios`",
            "FAIL in units",
            "FAIL in scenarios",
        ],
    );
    assert_eq!(
        run.task(0)["history"][0]["errors"],
        serde_json::json!(["FAIL in units", "FAIL in scenarios"])
    );
}

#[test]
fn verify_result() {
    let project = fixable_by(
        "echo 'test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s'; exit 1",
    );
    let run = run(
        &project,
        ANOTHER_WORD,
        &["--verify", "exit 1", "--max-retries", "0"],
    )
    .expect(1);
    let check = &run.task(0)["checks"][0];
    assert_eq!(check["passed"], false);
    assert_eq!(
        (&check["passed_count"], &check["failed_count"]),
        (&serde_json::Value::Null, &serde_json::Value::Null),
        "what cannot be read is not zero"
    );

    let other = fixable_by(
        "echo 'test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s'; exit 1",
    );
    let run = self::run(&other, ANOTHER_WORD, &["--max-retries", "0"]).expect(1);
    let check = &run.task(0)["checks"][0];
    assert_eq!(
        (
            check["passed"].as_bool(),
            check["passed_count"].as_u64(),
            check["failed_count"].as_u64()
        ),
        (Some(false), Some(3), Some(1))
    );
    let ended = run
        .events
        .iter()
        .find(|event| event["event"] == "check.ended")
        .unwrap();
    ended["ts"]
        .as_str()
        .unwrap()
        .parse::<jiff::Timestamp>()
        .unwrap();
}

#[test]
fn a_failing_linter_is_named_as_one_with_the_cause_above_its_wrapper() {
    let lint = "grep -qx fixed a.txt || { echo '[warn] a.txt'; echo ' ELIFECYCLE  Command failed with exit code 1.'; exit 1; }";
    let plan = format!(
        "title: Example\nverify:\n  - {{ name: lint, kind: lint, run: {} }}\ntasks:\n  - id: fix\n    title: Fix a.txt\n",
        serde_json::to_string(lint).unwrap()
    );
    let project = Project::new(&[("plan.yaml", &plan), ("a.txt", "bad\n")]);
    let agent =
        project.agent("test $N = 1 && echo apple > a.txt || echo fixed > a.txt; echo Done.");
    let run = project.run(&agent, &[]).expect(0);
    assert_has(
        &project.prompt(2),
        &[
            "CRITICAL: A linter reports errors.",
            "Attempt 1: a.txt -> failed_lint\n  - [warn] a.txt",
        ],
    );
    assert_eq!(run.task(0)["history"][0]["outcome"], "failed_lint");
    let shown = format!("{}{}{}", run.stdout, run.stderr, project.prompt(2));
    assert!(!shown.to_lowercase().contains("failed tests"), "{shown}");
    assert!(
        !shown.to_lowercase().contains("tests are failing"),
        "{shown}"
    );
}

#[test]
fn a_check_whose_program_is_missing_costs_no_turn() {
    for check in [
        "sprag-no-such-linter .",
        "printf 'all:\\n\\tsprag-no-such-linter\\n' | make -f -",
    ] {
        let project = Project::new(&[("plan.yaml", &plan(check)), ("a.txt", "bad\n")]);
        let agent = project.agent("echo fixed > a.txt; echo Done.");
        let run = project.run(&agent, &[]).expect(4);
        assert_eq!(project.calls(), 0, "{}", run.stderr);
        assert_has(&run.stdout, &["sprag-no-such-linter"]);
    }
}
