//! What verification decides, what it leaves behind and what it remembers.

use crate::support::project::{Project, Run, plan};
use crate::support::tasks::{fixable_with, run};
use crate::support::time_limit::under_limit;
use serde_json::json;

const CHECK: &str =
    "grep -qx fixed a.txt || { echo \"FAIL greeting: expected fixed, got $(cat a.txt)\"; exit 1; }";

fn project(check: &str) -> Project {
    fixable_with(&[("version.txt", "1.0\n")], check)
}

fn committed(project: &Project) -> Vec<String> {
    let files = project.git(&["show", "--format=", "--name-only", "HEAD"]);
    files.lines().map(str::to_owned).collect()
}

fn skipped(run: &Run) -> usize {
    let names = run.event_names();
    names
        .iter()
        .filter(|name| **name == "verification.skipped")
        .count()
}

#[test]
fn repeating_failure() {
    // The same failure with another duration, id and temporary path each time.
    let project = project(
        "echo \"FAIL greeting (0.$$ s): id 7f3c9a1e-0000-4000-8000-$(printf %012d $$) in /tmp/tmp.$$/x\"; exit 1",
    );
    let run = run(
        &project,
        "echo $N > work.txt; echo Done.",
        &["--max-retries", "9"],
    )
    .expect(1);
    assert_eq!((project.calls(), project.checks()), (3, 4));
    assert_eq!(run.task(0)["reason"], "repeating_failure");
    assert_eq!(
        run.task(0)["message"],
        "the same failure occurred 3 times in a row"
    );
    assert_eq!(run.task(0)["changes_made"], true);
    assert_eq!(project.commits(), 2);
}

#[test]
fn a_timed_out_verdict_is_not_remembered() {
    let agent = "test $N = 1 && echo fixed > a.txt; echo 'All done.'";
    let (project, run, limit) = under_limit(|limit| {
        let mut project = Project::new(&[("a.txt", "broken\n")]);
        // The first check is then the one of the work.
        project.env("SPRAG_BASELINE", "off");
        let marker = project.outside("marker");
        let script = format!(
            "test -e {marker} || {{ touch {marker}; sleep 600; }}; grep -qx fixed a.txt",
            marker = marker.display()
        );
        let check = project.check(&script);
        project.write("plan.yaml", &plan(&check));
        project.commit_all("plan");
        let run = run(&project, agent, &["--verify-timeout", &format!("{limit}s")]);
        let is_slow = run.task(0)["history"][1]["outcome"] == "timed_out";
        (!is_slow).then_some((project, run, limit))
    });
    let run = run.expect(0);
    let told = format!("timed out after {limit} s");
    assert_eq!((project.calls(), project.checks()), (2, 2));
    assert_eq!(run.task(0)["reason"], "verified");
    assert_eq!(
        run.task(0)["history"],
        json!([
            {"attempt": 1, "changes": ["a.txt"], "outcome": "timed_out", "errors": [told]},
            {"attempt": 2, "changes": ["a.txt"], "outcome": "passed", "errors": []},
        ])
    );
    assert!(project.prompt(2).contains(&told), "{}", project.prompt(2));
}

#[test]
fn check_artifacts_are_no_progress() {
    let project = project(&format!("date +%N > out.xml; {CHECK}"));
    let agent = "test $N = 1 && echo apple > a.txt; echo 'All done.'";
    let run = run(&project, agent, &[]).expect(1);
    assert_eq!((project.calls(), project.checks()), (2, 2));
    assert_eq!(run.task(0)["reason"], "no_progress");
}

#[test]
fn what_the_agent_creates_is_no_check_artifact() {
    let project = project(&format!(
        "grep -q checked made.txt || echo checked >> made.txt; {CHECK}"
    ));
    run(
        &project,
        "echo mine > made.txt; echo fixed > a.txt; echo Done.",
        &[],
    )
    .expect(0);
    assert_eq!(committed(&project), ["a.txt", "made.txt", "plan.yaml"]);
    assert_eq!(project.git(&["show", "HEAD:made.txt"]), "mine\nchecked");
    assert_eq!(project.status(), "");
}

#[test]
fn tracked_files_that_a_check_changes_are_committed() {
    let project = project(&format!("echo 1.1 > version.txt; {CHECK}"));
    let run = run(&project, "echo fixed > a.txt; echo Done.", &[]).expect(0);
    assert_eq!(committed(&project), ["a.txt", "plan.yaml", "version.txt"]);
    assert_eq!(project.git(&["show", "HEAD:version.txt"]), "1.1");
    assert_eq!(project.status(), "");
    assert_eq!(run.summary["warnings"], json!([]));
}

#[test]
fn the_same_tree_is_not_verified_twice() {
    let project = project("true");
    let second = "  - id: again\n    title: The same again\n";
    project.write("plan.yaml", &(project.read("plan.yaml") + second));
    project.commit_all("two tasks");
    let run = run(&project, "echo 'ALREADY_SATISFIED: it is all there'", &[]).expect(0);
    assert_eq!(
        (project.calls(), project.checks(), skipped(&run)),
        (2, 2, 1)
    );
    for task in 0..2 {
        assert_eq!(run.task(task)["reason"], "already_satisfied");
    }
    assert_eq!(run.summary["totals"]["verifications_skipped"], 1);
}

#[test]
fn other_checks_judge_the_same_tree_anew() {
    let project = project("true");
    let second = format!(
        "  - id: again\n    title: The same again\n    verify: [ '{}' ]\n",
        project.check("test -e a.txt")
    );
    project.write("plan.yaml", &(project.read("plan.yaml") + &second));
    project.commit_all("two tasks");
    let run = run(&project, "echo 'ALREADY_SATISFIED: it is all there'", &[]).expect(0);
    assert_eq!((project.checks(), skipped(&run)), (4, 0));
}

fn without_checks() -> Project {
    let project = Project::new(&[("a.txt", "broken\n")]);
    project.write(
        "plan.yaml",
        "title: Example\ntasks:\n  - id: fix\n    title: Fix a.txt\n",
    );
    project.commit_all("plan");
    project
}

#[test]
fn unverified_work_is_committed_and_called_so() {
    let project = without_checks();
    let run = run(&project, "echo fixed > a.txt; echo Done.", &[]).expect(0);
    assert_eq!(run.summary["status"], "unverified");
    assert_eq!(run.task(0)["reason"], "unverified");
    assert_eq!(run.task(0)["status"], "done");
    assert_eq!(committed(&project), ["a.txt", "plan.yaml"]);
    let report = std::fs::read_to_string(run.dir.as_ref().unwrap().join("report.md")).unwrap();
    for text in [&run.stdout, &report] {
        assert!(
            text.contains("verify:"),
            "no word on how to add a check:\n{text}"
        );
    }
}

#[test]
fn unverified_work_can_be_refused() {
    let project = without_checks();
    let head = project.head();
    let run = run(
        &project,
        "echo fixed > a.txt; echo Done.",
        &["--if-unverified", "fail"],
    )
    .expect(1);
    assert_eq!(
        (
            run.summary["status"].as_str(),
            run.task(0)["reason"].as_str()
        ),
        (Some("failed"), Some("unverified"))
    );
    assert_eq!(project.head(), head);
    assert_eq!(project.status(), " M a.txt");
}

/// A file that only a check made is the check's to write: what the agent makes of it would be in no commit.
#[test]
fn what_the_agent_makes_of_a_check_artifact_passes_nothing() {
    let project = project("[ -e made.txt ] || echo broken > made.txt; grep -q fixed made.txt");
    let agent = "[ ! -e made.txt ] || echo fixed > made.txt; echo $SPRAG_TURN >> a.txt; echo Done.";
    let run = run(&project, agent, &["--max-retries", "1"]).expect(1);
    assert_eq!(
        run.task(0)["reason"],
        "verification_failed",
        "{}",
        run.stdout
    );
    assert_eq!(run.task(0)["attempts"], 2, "{}", run.stdout);
    assert_eq!(project.commits(), 2);
}

/// Python would run what was compiled in the place of the tests.
#[test]
fn compiled_tests_are_not_run_in_the_place_of_their_source() {
    let project = Project::new(&[
        (".gitignore", "__pycache__\n"),
        ("a.txt", "broken\n"),
        ("tests/__init__.py", ""),
        (
            "tests/test_a.py",
            "import unittest\nclass T(unittest.TestCase):\n    def test_work(self):\n        self.assertEqual(open('a.txt').read(), 'fixed\\n')\n",
        ),
    ]);
    project.write(
        "plan.yaml",
        &plan("python3 -m unittest discover -s tests -t ."),
    );
    project.commit_all("plan");
    let fake = r#"import os, py_compile, sys
source = sys.argv[1] + "/fake.py"
open(source, "w").write("import unittest\nclass T(unittest.TestCase):\n    def test_work(self): pass\n")
name = "tests/__pycache__/test_a.cpython-%d%d.pyc" % sys.version_info[:2]
py_compile.compile(source, cfile=name, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
"#;
    std::fs::write(project.outside("compile.py"), fake).unwrap();
    let agent = "mkdir -p tests/__pycache__; python3 \"$OUT/compile.py\" \"$OUT\"; echo more >> a.txt; echo Done.";
    let run = run(&project, agent, &["--max-retries", "0"]).expect(1);
    assert_eq!(
        run.task(0)["reason"],
        "verification_failed",
        "{}",
        run.stdout
    );
}

/// A product file with a dropped error, and a suppression.
const WORTH_A_LOOK: &str = "mkdir -p app; printf 'import os\\ntry:\\n    run()\\nexcept Exception:\\n    pass\\nx = 1  # noqa\\n' > app/a.py; echo fixed > a.txt; echo Done.";

#[test]
fn lines_that_are_worth_a_look_are_in_every_report() {
    let project = project(CHECK);
    let run = run(&project, WORTH_A_LOOK, &[]).expect(0);
    assert_eq!(run.task(0)["reason"], "verified");
    let signals = run.task(0)["signals"].as_array().unwrap();
    let lines: Vec<_> = signals
        .iter()
        .map(|one| (&one["kind"], &one["path"], &one["line"], &one["text"]))
        .collect();
    let path = json!("app/a.py");
    assert_eq!(
        lines,
        [
            (
                &json!("swallowed_error"),
                &path,
                &json!(4),
                &json!("except Exception:")
            ),
            (
                &json!("suppression"),
                &path,
                &json!(6),
                &json!("x = 1  # noqa")
            ),
        ]
    );
    let said = "worth a look: app/a.py:4 drops an error; app/a.py:6 turns off a finding";
    assert!(run.stdout.contains(said), "{}", run.stdout);
    let page = std::fs::read_to_string(project.run_dirs()[0].join("report.html")).unwrap();
    assert!(page.contains("Worth a look") && page.contains("x = 1  # noqa"));
}

#[test]
fn signals_are_ignored_or_refused_where_the_setting_says_so() {
    let off = run(&project(CHECK), WORTH_A_LOOK, &["--signals", "off"]).expect(0);
    assert!(off.task(0)["signals"].as_array().is_none_or(Vec::is_empty));
    let project = project(CHECK);
    let base = project.head();
    let refused = run(&project, WORTH_A_LOOK, &["--signals", "fail"]).expect(3);
    assert_eq!(refused.task(0)["reason"], "policy_violation");
    let message = refused.task(0)["message"].as_str().unwrap();
    assert!(message.contains("app/a.py:4 drops an error"), "{message}");
    assert_eq!(project.head(), base);
}
