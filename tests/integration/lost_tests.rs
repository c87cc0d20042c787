//! Checks that pass because tests no longer run: code under test ends the test runner, or configuration under any
//! name leaves tests out.

use crate::support::project::{Project, Run, plan};
use serde_json::Value;

/// A stand-in for mocha: it runs each test in a process of its own shell, together with the code under test, and
/// reports like the real one.
const MOCHA: &str = "#!/bin/sh
. ./app.sh
n=0 f=0
for test in $(sed -n 's/^spec: //p' .mocharc.yml); do
  if . ./$test; then n=$((n + 1)); else f=$((f + 1)); fi
done
printf '\n  %s passing (4ms)\n  %s failing\n' $n $f
test $f = 0
";
const TEST: &str = "test \"$(two)\" = 2\n";
const BROKEN: &str = "two() { echo 1; }\n";

fn project(mocha: &str) -> Project {
    let files = [
        ("app.sh", BROKEN),
        ("runner/mocha", mocha),
        (".mocharc.yml", "spec: qa/*.sh\n"),
        ("qa/one.sh", TEST),
        ("qa/two.sh", "true\n"),
    ];
    let mut project = Project::new(&files);
    project.env("SPRAG_BASELINE", "on-failure");
    project.env("SPRAG_TEST_CHANGES", "prove");
    project.write("plan.yaml", &plan("sh runner/mocha"));
    project.commit_all("plan");
    project
}

fn run(project: &Project, agent: &str) -> Run {
    project.run(&project.agent(agent), &["--max-retries", "0"])
}

fn proofs(run: &Run) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let proofs = run.task(0)["proofs"].as_array().unwrap().iter();
    proofs
        .map(|proof| (word(&proof["proof"]), word(&proof["result"])))
        .collect()
}

fn pair(proof: &str, result: &str) -> (String, String) {
    (proof.to_owned(), result.to_owned())
}

#[test]
fn code_that_ends_its_test_runner_verifies_nothing() {
    let run = run(&project(MOCHA), "echo 'exit 0' > app.sh; echo Done.").expect(0);
    assert_eq!(run.summary["status"], "unverified", "{}", run.stdout);
    assert_eq!(run.task(0)["reason"], "changed_expectations");
    assert_eq!(
        proofs(&run),
        [pair("baseline", "failed"), pair("old_tests", "unknown")]
    );
}

/// A test that was red is not green because product code has it skipped.
#[test]
fn a_test_that_product_code_skips_verifies_nothing() {
    let test = "import unittest\nimport app\n\n\nclass T(unittest.TestCase):\n    def test_one(self):\n        pass\n\n    def test_two(self):\n        self.assertEqual(app.two(), 2)\n";
    let project = Project::new(&[
        ("app.py", "def two():\n    return 1\n"),
        ("test_app.py", test),
        ("plan.yaml", &plan("python3 -B -m unittest")),
    ]);
    let skip = "printf 'import unittest\\ndef two(): raise unittest.SkipTest(\"\")\\n' > app.py; echo Done.";
    let run = run(&project, skip).expect(0);
    let task = run.task(0);
    assert_eq!(task["reason"], "changed_expectations", "{}", run.stdout);
    let message = task["message"].as_str().unwrap();
    let lost = "ran 2 tests on the tree on which the task started, and 1 test with the change";
    assert!(message.contains(lost), "{message}");
    let evidence = task["evidence"].to_string();
    assert!(!evidence.contains("red_to_green"), "{evidence}");
}

#[test]
fn tests_that_all_run_need_no_further_proof() {
    let run = run(
        &project(MOCHA),
        "echo 'two() { echo 2; }' > app.sh; echo Done.",
    )
    .expect(0);
    assert_eq!(run.summary["status"], "success", "{}", run.stdout);
    assert_eq!(proofs(&run), []);
}

#[test]
fn a_test_runner_that_never_reports_a_result_is_no_evidence() {
    let quiet = MOCHA.replace("printf", ": printf");
    assert_ne!(quiet, MOCHA);
    let run = run(
        &project(&quiet),
        "echo 'two() { echo 2; }' > app.sh; echo Done.",
    )
    .expect(0);
    assert_eq!(run.summary["status"], "success", "{}", run.stdout);
    assert_eq!(proofs(&run), [pair("baseline", "failed")]);
}

#[test]
fn tests_in_directories_that_only_the_configuration_names_are_tests() {
    let run = run(&project(MOCHA), "echo true > qa/one.sh; echo Done.").expect(0);
    assert_eq!(run.summary["status"], "unverified", "{}", run.stdout);
    assert_eq!(run.task(0)["reason"], "changed_expectations");
    assert!(run.stdout.contains("qa/one.sh"), "{}", run.stdout);
}

#[test]
fn a_pass_in_which_no_test_ran_is_unverified_and_names_the_check() {
    let none = "echo 'Test project /w/build'; echo 'No tests were found!!!'";
    for (checks, reason, status) in [
        (vec![none], "unverified", "unverified"),
        (vec![none, "true"], "verified", "success"),
    ] {
        let mut project = Project::new(&[("a.txt", "apple\n")]);
        project.env("SPRAG_BASELINE", "first");
        let agent = project.agent("echo fixed > a.txt; echo Done.");
        let mut args = vec!["--prompt", "Fix a.txt"];
        args.extend(checks.iter().flat_map(|check| ["--verify", check]));
        let run = project.sprag(&[&["run", "--agent-command", &agent], &args[..]].concat());
        let run = run.expect(0);
        assert_eq!(run.task(0)["reason"], reason, "{}", run.stdout);
        assert_eq!(run.summary["status"], status);
        assert_eq!(run.task(0)["verified"], reason == "verified");
        assert!(run.stdout.contains("ran no test"), "{}", run.stdout);
        let is_advised = run.stdout.contains("make the checks run a test");
        assert_eq!(is_advised, reason == "unverified", "{}", run.stdout);
    }
    let mut project = Project::new(&[("a.txt", "apple\n")]);
    project.env("SPRAG_BASELINE", "first");
    let base = project.head();
    let agent = project.agent("echo fixed > a.txt; echo Done.");
    let limits = [
        "--if-unverified",
        "fail",
        "--prompt",
        "Fix a.txt",
        "--verify",
        none,
    ];
    let run = project.sprag(&[&["run", "--agent-command", &agent], &limits[..]].concat());
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert_eq!(project.head(), base);
}

#[test]
fn work_without_product_code_is_told_where_the_checks_passed_before() {
    for (change, is_told) in [
        ("echo more >> README.md", true),
        ("mkdir -p tests; echo true > tests/more.sh", true),
        ("echo 'two() { echo 2; }' > two.sh", false),
    ] {
        let mut project = Project::new(&[("README.md", "Read\n")]);
        project.env("SPRAG_BASELINE", "first");
        let agent = project.agent(&format!("{change}; echo Done."));
        let args = ["--prompt", "Do it", "--verify", "true"];
        let run = project.sprag(&[&["run", "--agent-command", &agent], &args[..]].concat());
        let run = run.expect(0);
        let said = run.stdout.contains("no product code changed");
        assert_eq!(said, is_told, "{change}: {}", run.stdout);
    }
}
