//! Proofs: what further runs of the checks tell of a verdict, and whom a failure is to be blamed on.

mod definitions;
mod names;
mod new_tests;
mod one_rule;
mod runners;
mod several_tasks;
mod tools;
mod uncommitted;

use crate::support::has;
use crate::support::project::{Project, Run};
use crate::support::time_limit::under_limit;
use serde_json::{Value, json};

/// A suite of three tests in the form of TAP: `a` and `b` are lines of `work.txt`, `c` is one of `other.txt`.
const SUITE: &str = "#!/bin/sh
echo 1..3
n=0
for t in a:work.txt b:work.txt c:other.txt; do
  n=$((n + 1))
  name=${t%%:*}
  if grep -qx $name ${t##*:}; then echo \"ok $n - $name\"; else echo \"not ok $n - $name\"; bad=1; fi
done
[ -z \"$bad\" ]
";

fn project(files: &[(&str, &str)], check: &str, settings: &str) -> Project {
    let mut project = Project::new(files);
    let check = serde_json::to_string(check).unwrap();
    project.write(
        "plan.yaml",
        &format!(
            "title: Example\n{settings}verify:\n  - {{ name: test, run: {check}, kind: test }}\ntasks:\n  - id: fix\n    title: Fix it\n"
        ),
    );
    project.commit_all("plan");
    // A variable counts more than the plan.
    for (name, key, value) in [
        ("SPRAG_BASELINE", "baseline:", "on-failure"),
        ("SPRAG_TEST_CHANGES", "test_changes:", "prove"),
    ] {
        let own = settings.lines().find_map(|line| line.strip_prefix(key));
        project.env(name, own.map_or(value, str::trim));
    }
    project.env("SPRAG_FLAKY_RERUNS", "0");
    project
}

/// The suite with `a` and `c` red.
fn suite(settings: &str) -> Project {
    let files = [
        ("suite.sh", SUITE),
        ("work.txt", "b\n"),
        ("other.txt", "x\n"),
    ];
    project(&files, "sh suite.sh", settings)
}

fn run(project: &Project, agent: &str, args: &[&str]) -> Run {
    project.run(&project.agent(agent), args)
}

/// Proofs of the only task as pairs of name and result.
fn proofs(run: &Run) -> Vec<(String, String)> {
    let all = run.task(0)["proofs"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    all.iter()
        .map(|proof| (text(&proof["proof"]), text(&proof["result"])))
        .collect()
}

fn proved(run: &Run, expected: &[(&str, &str)]) {
    let all = proofs(run);
    let all: Vec<(&str, &str)> = all.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(all, expected, "{}\n{}", run.stdout, run.stderr);
}

/// The first run of `attempt` in which no check that ends by itself has reached the limit of checks, which `attempt`
/// gets in seconds. It has these proofs.
fn proved_under_limit(
    expected: &[(&str, &str)],
    mut attempt: impl FnMut(u32) -> (Project, Run),
) -> (Project, Run) {
    let (project, run) = under_limit(|limit| {
        let (project, run) = attempt(limit);
        let found = proofs(&run);
        eprintln!("{limit} s: {found:?}");
        let is_cut_off = |at: usize| found.get(at).is_none_or(|(_, result)| result == "unknown");
        let differs =
            |at: &usize| found.get(*at).map(|(_, result)| result.as_str()) != Some(expected[*at].1);
        let is_slow = (0..expected.len()).find(differs).is_some_and(is_cut_off);
        (!is_slow).then_some((project, run))
    });
    proved(&run, expected);
    (project, run)
}

/// The failing tests with their blame.
fn blamed(run: &Run) -> Vec<(String, String)> {
    let all = run.task(0)["failing_tests"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.iter()
        .map(|test| (text(&test["test"]), text(&test["blame"])))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = expected
        .iter()
        .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
    owned.collect()
}

#[test]
fn each_failing_test_is_told_as_new_or_as_red_before() {
    let project = suite("max_retries: 1\n");
    // Breaks `b`, leaves `a` and `c` as they were.
    let run = run(&project, "echo \"x$N\" > work.txt; echo Done.", &[]).expect(1);
    proved(&run, &[("baseline", "failed")]);
    let expected = pairs(&[
        ("a", "was_red_before"),
        ("b", "new"),
        ("c", "was_red_before"),
    ]);
    assert_eq!(blamed(&run), expected);
    let prompt = project.prompt(2);
    has(&prompt, "Which failures were there before");
    for (line, told) in [
        ("a: was red before", "already failing before: a"),
        ("b: new", "failing: b: new"),
        ("c: was red before", "already failing before: c"),
    ] {
        assert!(prompt.contains(line), "{line}\n{prompt}");
        assert!(run.stdout.contains(told), "{}", run.stdout);
    }
    has(&run.stdout, "failed before the task: a, c");
    let dir = run.dir.as_ref().unwrap();
    for file in ["report.md", "report.html"] {
        let report = std::fs::read_to_string(dir.join(file)).unwrap();
        assert!(report.contains("was red before"), "{file}: {report}");
        assert!(
            report.contains("failed before the task: a, c"),
            "{file}: {report}"
        );
    }
    assert_eq!(project.read("work.txt"), "x2\n");
}

#[test]
fn a_start_that_was_green_makes_every_failure_new() {
    let files = [
        ("suite.sh", SUITE),
        ("work.txt", "a\nb\n"),
        ("other.txt", "c\n"),
    ];
    let project = project(&files, "sh suite.sh", "max_retries: 0\n");
    let run = run(&project, "echo x > work.txt; echo Done.", &[]).expect(1);
    proved(&run, &[("baseline", "passed")]);
    assert_eq!(blamed(&run), pairs(&[("a", "new"), ("b", "new")]));
}

#[test]
fn a_check_that_runs_out_of_time_is_compared_with_the_start() {
    for (start, proof, blame) in [("x", "passed", "new"), ("y", "unknown", "unknown")] {
        let files = [
            ("slow.sh", "grep -qx x work.txt || sleep 1000\n"),
            ("work.txt", start),
        ];
        let (_, run) = proved_under_limit(&[("baseline", proof)], |limit| {
            let settings = format!("max_retries: 0\nverify_timeout: {limit}s\n");
            let project = project(&files, "sh slow.sh", &settings);
            let run = run(&project, "echo z > work.txt; echo Done.", &[]);
            (project, run)
        });
        let run = run.expect(1);
        assert_eq!(blamed(&run), pairs(&[("", blame)]));
        let said = match proof {
            "passed" => "every check passed before the task",
            _ => "what failed before the task is not known: test timed out",
        };
        assert!(run.stdout.contains(said), "{}", run.stdout);
    }
}

#[test]
fn a_baseline_that_cannot_be_known_is_told_as_unknown() {
    let files = [("slow.sh", "test -e work.txt || sleep 1000\nexit 1\n")];
    let project = project(&files, "sh slow.sh", "max_retries: 0\nverify_timeout: 2s\n");
    let run = run(&project, "echo x > work.txt; echo Done.", &[]).expect(1);
    proved(&run, &[("baseline", "unknown")]);
    assert_eq!(blamed(&run), pairs(&[("", "unknown")]));
    has(
        &run.stdout,
        "what failed before the task is not known: test timed out",
    );
}

#[test]
fn without_a_baseline_nothing_is_said_of_blame() {
    let project = suite("max_retries: 1\nbaseline: off\n");
    let run = run(&project, "echo \"x$N\" > work.txt; echo Done.", &[]).expect(1);
    proved(&run, &[]);
    assert!(
        !project.prompt(2).contains("were there before"),
        "{}",
        project.prompt(2)
    );
    assert!(!run.stdout.contains("failing test"), "{}", run.stdout);
}

#[test]
fn what_was_red_before_is_tolerated_and_named_where_the_policy_says_so() {
    let mut project = suite("max_retries: 0\nknown_failures: tolerate\n");
    let output = project.outside("output").display().to_string();
    project.env("GITHUB_OUTPUT", &output);
    let run = run(&project, "printf 'a\\nb\\n' > work.txt; echo Done.", &[]).expect(0);
    assert_eq!(run.summary["status"], "unverified");
    assert_eq!(run.task(0)["status"], "done");
    assert_eq!(blamed(&run), pairs(&[("c", "was_red_before")]));
    let message = run.task(0)["message"].as_str().unwrap();
    assert!(
        message.ends_with("its only failures existed before the task: c"),
        "{message}"
    );
    assert_eq!(run.task(0)["changed_files"], json!(["work.txt"]));
    let report = std::fs::read_to_string(run.dir.as_ref().unwrap().join("report.md")).unwrap();
    let head = report.lines().take(3).collect::<String>();
    has(&head, "unverified");
    has(&head, "its only failures existed before");
    assert_eq!(project.commits(), 3);
}

#[test]
fn advice_about_a_task_that_fails_as_before_is_about_what_failed_before() {
    let project = suite("max_retries: 0\n");
    let run = run(&project, "printf 'a\\nb\\n' > work.txt; echo Done.", &[]).expect(1);
    assert_eq!(blamed(&run), pairs(&[("c", "was_red_before")]));
    let advice = "unless the task is to mend what failed before it, fix that first";
    assert!(run.stdout.contains(advice), "{}", run.stdout);
}

/// The exit code is the same, whatever fails.
#[test]
fn a_failure_of_which_nothing_is_printed_is_not_tolerated() {
    let files = [
        ("suite.sh", SUITE),
        ("work.txt", "b\n"),
        ("other.txt", "x\n"),
    ];
    let settings = "max_retries: 0\nknown_failures: tolerate\n";
    let project = project(&files, "sh suite.sh > /dev/null 2>&1", settings);
    run(&project, "echo a > work.txt; echo Done.", &[]).expect(1);
    assert_eq!(project.commits(), 2);
}

#[test]
fn a_new_failure_is_not_tolerated_behind_an_old_one() {
    let project = suite("max_retries: 0\nknown_failures: tolerate\n");
    let run = run(&project, "echo a > work.txt; echo Done.", &[]).expect(1);
    assert_eq!(
        blamed(&run),
        pairs(&[("b", "new"), ("c", "was_red_before")])
    );
    assert_eq!(project.commits(), 2);
}

/// Python takes what it has compiled of a source of the same size and time for that of another tree.
#[test]
fn what_python_has_compiled_of_one_tree_is_not_run_for_another() {
    let check = "touch -d 2020-01-01 calc.py; python3 -c 'import calc; assert calc.add(2, 3) == 5'";
    let files = [
        ("calc.py", "def add(a, b):\n    return a + b\n"),
        (".gitignore", "__pycache__\n"),
    ];
    let project = project(&files, check, "max_retries: 0\n");
    let agent = "sed -i 's/a + b/a - b/' calc.py; echo Done.";
    let run = run(&project, agent, &["--flaky-reruns", "1"]).expect(1);
    proved(&run, &[("baseline", "passed"), ("flake", "failed")]);
    assert_eq!(blamed(&run)[0].1, "new", "{}", run.stdout);
}

/// Names may be given twice, and commands that begin alike get the same one.
#[test]
fn a_check_is_not_excused_by_an_old_failure_of_another_of_the_same_name() {
    let command = |file: &str| format!("test -e a-directory-with-a-long-name-it-needs/{file}");
    let (old, new) = (command("old"), command("new"));
    let path = new.split_once("-e ").unwrap().1;
    let project = Project::new(&[(path, "x\n")]);
    let args = ["--verify", &old, "--verify", &new, "--max-retries", "0"];
    let agent = project.agent(&format!("rm {path}; echo x > work.txt; echo Done."));
    let prompt = [&["run", "Do it", "--agent-command", &agent], &args[..]].concat();
    let settings = ["--baseline", "on-failure", "--known-failures", "tolerate"];
    let tolerant = [&prompt[..], &settings].concat();
    let run = project.sprag(&tolerant).expect(1);
    let name = "test -e a-directory-with-a-long-name-it…";
    assert_eq!(run.summary["checks"], json!([name, format!("{name} (2)")]));
    assert_eq!(
        blamed(&run),
        pairs(&[("", "was_red_before"), ("", "new")]),
        "{}",
        run.stdout
    );
}

#[test]
fn a_failure_that_does_not_come_back_is_told_as_flaky() {
    let files = [
        ("work.txt", "x\n"),
        ("suite.sh", SUITE),
        ("other.txt", "c\n"),
    ];
    let project = project(&files, "true", "max_retries: 0\nflaky_reruns: 1\n");
    let marker = project.outside("marker");
    let check = format!(
        "! grep -qx x work.txt || exit 0; test -e {0} || {{ touch {0}; echo 1..1; echo 'not ok 1 - sometimes'; exit 1; }}; sh suite.sh",
        marker.display()
    );
    let agent = "printf 'a\\nb\\n' > work.txt; echo Done.";
    let plan = project
        .read("plan.yaml")
        .replace("\"true\"", &serde_json::to_string(&check).unwrap());
    project.write("plan.yaml", &plan);
    project.commit_all("check");
    let mut project = project;
    project.env("SPRAG_FLAKY_RERUNS", "1");
    let run = run(&project, agent, &["--baseline", "on-failure"]).expect(0);
    proved(&run, &[("baseline", "passed"), ("flake", "passed")]);
    assert_eq!(run.task(0)["reason"], "verified");
    assert_eq!(blamed(&run), pairs(&[("sometimes", "flaky")]));
    has(&run.stdout, "failing: sometimes: flaky");
    let message = run.task(0)["message"].as_str().unwrap();
    assert!(message.ends_with("; flaky: sometimes"), "{message}");
    let report = run.dir.as_ref().unwrap().join("report.md");
    let report = std::fs::read_to_string(report).unwrap();
    has(&report, format!("**`fix`: {message}**"));
}

#[test]
fn a_failure_that_comes_back_is_not_flaky() {
    let mut project = suite("max_retries: 0\n");
    project.env("SPRAG_FLAKY_RERUNS", "1");
    let run = run(&project, "echo a > work.txt; echo Done.", &[]).expect(1);
    proved(&run, &[("baseline", "failed"), ("flake", "failed")]);
    assert_eq!(
        blamed(&run),
        pairs(&[("b", "new"), ("c", "was_red_before")])
    );
}

#[test]
fn a_repeated_run_that_tells_nothing_excuses_nothing() {
    let mut project = project(
        &[("work.txt", "x\n")],
        "true",
        "max_retries: 0\nverify_timeout: 2s\n",
    );
    let marker = project.outside("marker");
    let check = format!(
        "grep -qx x work.txt && exit 0; test ! -e {0} || sleep 1000; touch {0}; exit 1",
        marker.display()
    );
    let plan = project
        .read("plan.yaml")
        .replace("\"true\"", &serde_json::to_string(&check).unwrap());
    project.write("plan.yaml", &plan);
    project.commit_all("check");
    project.env("SPRAG_FLAKY_RERUNS", "1");
    let run = run(
        &project,
        "echo y > work.txt; echo Done.",
        &["--baseline", "on-failure"],
    )
    .expect(1);
    assert_ne!(run.task(0)["reason"], "verified");
    assert!(!proofs(&run).contains(&("flake".into(), "passed".into())));
    assert_eq!(project.commits(), 3);
}

const TEST: &str = "grep -qx fixed work.txt\n";

fn tested(settings: &str) -> Project {
    let files = [("work.txt", "x\n"), ("tests/a.sh", TEST)];
    let check = "for t in tests/*.sh; do sh $t || exit 1; done";
    project(&files, check, &format!("max_retries: 0\n{settings}"))
}

const WEAKENED: &str = "echo true > tests/a.sh; echo Done.";

#[test]
fn work_that_passes_only_with_weaker_tests_is_not_called_verified() {
    let project = tested("");
    let run = run(&project, WEAKENED, &[]).expect(0);
    proved(&run, &[("old_tests", "failed")]);
    is_unverified(&project, &run, "tests/a.sh");
}

#[test]
fn work_that_passes_with_the_old_tests_is_verified() {
    let project = tested("");
    let agent = "echo fixed > work.txt; echo 'grep -q fixed work.txt' > tests/a.sh; echo Done.";
    let run = run(&project, agent, &[]).expect(0);
    proved(&run, &[("old_tests", "passed")]);
    assert_eq!(run.task(0)["reason"], "verified");
}

#[test]
fn the_policy_may_block_or_only_warn_of_weaker_tests() {
    let project = tested("test_changes: fail\n");
    let blocked = run(&project, WEAKENED, &[]).expect(3);
    assert_eq!(blocked.task(0)["reason"], "changed_expectations");
    assert_eq!(
        (blocked.task(0)["status"].as_str(), project.commits()),
        (Some("blocked"), 2)
    );
    let advice = "before you take the patch";
    assert!(blocked.stdout.contains(advice), "{}", blocked.stdout);
    assert_eq!(project.read("tests/a.sh"), "true\n");
    let project = tested("test_changes: warn\n");
    let warned = run(&project, WEAKENED, &[]).expect(0);
    proved(&warned, &[]);
    let warnings = warned.summary["warnings"].to_string();
    has(&warnings, "changes existing tests: tests/a.sh");
    let project = tested("test_changes: ok\n");
    let silent = run(&project, WEAKENED, &[]).expect(0);
    assert_eq!(silent.summary["warnings"], json!([]));
}

#[test]
fn old_tests_that_cannot_be_judged_verify_nothing() {
    let files = [("tests/a.sh", "test -e work.txt || exit 1\nsleep 1000\n")];
    let agent = "echo x > work.txt; echo true > tests/a.sh; echo Done.";
    let (_, run) = proved_under_limit(&[("old_tests", "unknown")], |limit| {
        let settings = format!("max_retries: 0\nverify_timeout: {limit}s\n");
        let project = project(&files, "sh tests/a.sh", &settings);
        let run = run(&project, agent, &[]);
        (project, run)
    });
    let run = run.expect(0);
    assert_eq!(run.summary["status"], "unverified");
    let message = run.task(0)["message"].as_str().unwrap();
    has(
        message,
        "with the original files is not known: test timed out",
    );
}

fn is_unverified(project: &Project, run: &Run, file: &str) {
    assert_eq!(run.task(0)["reason"], "changed_expectations");
    assert_eq!(run.task(0)["status"], "done");
    assert_eq!(run.summary["status"], "unverified");
    let message = run.task(0)["message"].as_str().unwrap();
    has(message, "not verified");
    has(message, file);
    // What Python makes of a module is left by the checks.
    let left = project.status().replace("?? __pycache__/", "");
    assert_eq!((project.commits(), left.as_str()), (3, ""));
}

const NEW_TEST: &str =
    "echo fixed > work.txt; echo 'grep -q fixed work.txt' > tests/b.sh; echo Done.";
const EMPTY_TEST: &str = "echo fixed > work.txt; echo 'test -e work.txt' > tests/b.sh; echo Done.";

#[test]
fn new_tests_have_to_fail_without_the_work_where_that_is_required() {
    let files = [("work.txt", "x\n"), ("tests/a.sh", "true\n")];
    let check = "for t in tests/*.sh; do sh $t || exit 1; done";
    let project = project(&files, check, "max_retries: 0\nprove_new_tests: require\n");
    let run = run(&project, NEW_TEST, &[]).expect(0);
    proved(&run, &[("new_tests", "failed")]);
    assert_eq!(run.task(0)["reason"], "verified");
    let empty = |how: &str| {
        let project = self::project(
            &files,
            check,
            &format!("max_retries: 0\nprove_new_tests: {how}\n"),
        );
        self::run(&project, EMPTY_TEST, &[])
    };
    let refused = empty("require").expect(1);
    proved(&refused, &[("new_tests", "passed")]);
    assert_eq!(refused.task(0)["history"][0]["outcome"], "failed_tests");
    let warned = empty("warn").expect(0);
    assert_eq!(warned.task(0)["reason"], "verified");
    let warnings = warned.summary["warnings"].to_string();
    has(&warnings, "they prove nothing");
    has(&warnings, "tests/b.sh");
    proved(&empty("off").expect(0), &[]);
}

/// The checks pass, so their output cannot tell the agent what is wrong with its tests.
#[test]
fn an_agent_whose_tests_prove_nothing_is_told_so() {
    let files = [("work.txt", "x\n"), ("tests/a.sh", "true\n")];
    let check = "for t in tests/*.sh; do sh $t || exit 1; done";
    let project = project(&files, check, "prove_new_tests: require\n");
    let script = format!("case $SPRAG_ATTEMPT in 1) {EMPTY_TEST} ;; *) {NEW_TEST} ;; esac");
    let run = run(&project, &script, &[]).expect(0);
    let why = "the new tests prove nothing: they pass without the change (tests/b.sh)";
    let prompt = project.prompt(2);
    has(
        &prompt,
        format!("The checks pass, but your work is not accepted: {why}."),
    );
    assert!(prompt.contains("-> failed_tests"), "{prompt}");
    assert!(!prompt.contains("Tests are failing"), "{prompt}");
    let history = &run.task(0)["history"];
    assert_eq!(
        (&history[0]["outcome"], &history[1]["outcome"]),
        (&json!("failed_tests"), &json!("passed"))
    );
    assert_eq!(history[0]["errors"], json!([why]));
}

#[test]
fn new_tests_that_cannot_be_judged_are_not_taken_where_they_have_to_prove_something() {
    let files = [("work.txt", "x\n"), ("tests/a.sh", "true\n")];
    let check = "for t in tests/*.sh; do sh $t || exit 1; done";
    let agent = "echo fixed > work.txt; echo 'grep -q fixed work.txt || sleep 1000' > tests/b.sh; echo Done.";
    let (project, run) = proved_under_limit(&[("new_tests", "unknown")], |limit| {
        let settings =
            format!("max_retries: 0\nverify_timeout: {limit}s\nprove_new_tests: require\n");
        let project = project(&files, check, &settings);
        let run = run(&project, agent, &[]);
        (project, run)
    });
    assert_ne!(run.code, 0, "{}", run.stdout);
    assert_eq!(project.commits(), 2);
}

#[test]
fn a_run_that_dies_while_the_old_tests_are_in_place_brings_the_work_back() {
    let project = Project::new(&[]);
    let marker = project.outside("killed");
    let old = format!(
        "test -e {0} || {{ touch {0}; kill -9 $SPRAG_PID; sleep 60; }}\ngrep -qx fixed work.txt\n",
        marker.display()
    );
    project.write("tests/a.sh", &old);
    project.write("work.txt", "x\n");
    project.write(".gitignore", "cache\n");
    project.write("cache", "built\n");
    let check = "SPRAG_PID=$PPID sh tests/a.sh";
    let plan = format!(
        "title: Example\nmax_retries: 0\nverify:\n  - {{ name: test, run: {check}, kind: test }}\ntasks:\n  - id: fix\n    title: Fix it\n"
    );
    project.write("plan.yaml", &plan);
    project.commit_all("plan");
    let mut project = project;
    // The first check is then the one of the old tests.
    project.env("SPRAG_BASELINE", "off");
    let agent = "echo true > tests/a.sh; echo new > new.txt; echo y > work.txt; echo Done.";
    assert_eq!(run(&project, agent, &[]).code, -9);
    assert_eq!(project.read("tests/a.sh"), old, "the old test was in place");
    let resumed = project.sprag(&["run", "--resume"]).expect(0);
    proved(&resumed, &[("old_tests", "failed")]);
    is_unverified(&project, &resumed, "tests/a.sh");
    assert_eq!(project.calls(), 1);
    for (path, text) in [
        ("tests/a.sh", "true\n"),
        ("new.txt", "new\n"),
        ("work.txt", "y\n"),
        ("cache", "built\n"),
    ] {
        assert_eq!(project.read(path), text, "{path}");
    }
}
