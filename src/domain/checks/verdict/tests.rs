use super::*;
use crate::checks::judges::{Named, Start};
use crate::history::AttemptOutcome;

fn check(name: &str, kind: CheckKind) -> Check {
    Check {
        name: name.to_owned(),
        run: "true".to_owned(),
        kind,
        timeout_ms: 1_000,
        junit: None,
        problem_matcher: None,
    }
}

fn result(name: &str, kind: CheckKind, outcome: CheckOutcome) -> CheckResult {
    CheckResult::read(&check(name, kind), outcome, "", 1, "")
}

fn failed(name: &str, kind: CheckKind) -> CheckResult {
    result(name, kind, CheckOutcome::Failed { exit: 1 })
}

fn outcome_of(results: &[CheckResult]) -> (Option<&'static str>, &'static str) {
    let verdict = verdict(results);
    let name = match verdict {
        Verdict::Passed => "passed",
        Verdict::Failed { .. } => "failed",
        Verdict::CannotStart { .. } => "cannot start",
        Verdict::TimedOut { .. } => "timed out",
        Verdict::Aborted => "aborted",
        Verdict::NotRun => "not run",
    };
    (verdict.outcome().map(AttemptOutcome::as_str), name)
}

/// The results, the word for the attempt, and the verdict.
type Row = (Vec<CheckResult>, (Option<&'static str>, &'static str));

#[test]
fn the_gravest_result_decides() {
    use CheckKind::{Build, Lint, Test};
    let passed = || result("ok", Test, CheckOutcome::Passed);
    let skipped = || {
        result(
            "later",
            Test,
            CheckOutcome::Skipped {
                because: "build failed".to_owned(),
            },
        )
    };
    let aborted = || result("cut", Test, CheckOutcome::Aborted);
    let late = || result("slow", Test, CheckOutcome::TimedOut { after_ms: 10 });
    let killed = || result("oom", Test, CheckOutcome::Signalled { signal: 9 });
    let missing = || {
        result(
            "gone",
            Test,
            CheckOutcome::NotStarted {
                program: "sh".to_owned(),
                why: "no shell".to_owned(),
            },
        )
    };
    let table: Vec<Row> = vec![
        (vec![], (None, "not run")),
        (vec![passed()], (Some("passed"), "passed")),
        (
            vec![passed(), failed("t", Test)],
            (Some("failed_tests"), "failed"),
        ),
        (
            vec![failed("b", Build), skipped()],
            (Some("failed_build"), "failed"),
        ),
        (
            vec![late(), failed("t", Test)],
            (Some("failed_tests"), "failed"),
        ),
        (
            vec![failed("l", Lint), passed()],
            (Some("failed_lint"), "failed"),
        ),
        (
            vec![failed("l", Lint), failed("t", Test)],
            (Some("failed_tests"), "failed"),
        ),
        (vec![passed(), late()], (Some("timed_out"), "timed out")),
        (vec![late(), skipped()], (Some("timed_out"), "timed out")),
        (vec![failed("b", Build), aborted()], (None, "aborted")),
        (vec![killed()], (Some("failed_tests"), "failed")),
        (
            vec![failed("t", Test), missing()],
            (Some("failed_tests"), "cannot start"),
        ),
        (vec![missing(), aborted()], (None, "aborted")),
        (vec![passed(), skipped()], (None, "aborted")),
    ];
    for (results, expected) in table {
        assert_eq!(outcome_of(&results), expected, "{results:?}");
    }
}

#[test]
fn output_that_speaks_of_errors_makes_no_build_failure() {
    let output = "error: could not compile `x`\nBUILD FAILED\n";
    let outcome = CheckOutcome::Failed { exit: 1 };
    let result = CheckResult::read(&check("test", CheckKind::Test), outcome, output, 1, "");
    assert_eq!(
        verdict(&[result]).outcome(),
        Some(AttemptOutcome::FailedTests)
    );
}

#[test]
fn builds_run_first_and_the_rest_as_listed() {
    let checks = [
        check("lint", CheckKind::Lint),
        check("build a", CheckKind::Build),
        check("test", CheckKind::Test),
        check("build b", CheckKind::Build),
    ];
    let names: Vec<&str> = ordered(&checks)
        .into_iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(names, ["build a", "build b", "lint", "test"]);
}

#[test]
fn a_result_survives_a_round_trip() {
    let output = "src/a.ts(1,7): error TS2322: Type 'string' is not a number.\n";
    let outcomes = [
        CheckOutcome::Failed { exit: 2 },
        CheckOutcome::Passed,
        CheckOutcome::Aborted,
        CheckOutcome::Signalled { signal: 11 },
        CheckOutcome::TimedOut { after_ms: 600_000 },
        CheckOutcome::NotStarted {
            program: "sh".to_owned(),
            why: "no shell".to_owned(),
        },
        CheckOutcome::Skipped {
            because: "build failed".to_owned(),
        },
    ];
    for outcome in outcomes {
        let result = CheckResult::read(&check("tsc", CheckKind::Build), outcome, output, 5, "");
        let json = serde_json::to_string(&result).unwrap();
        assert_eq!(serde_json::from_str::<CheckResult>(&json).unwrap(), result);
        let verdict = verdict(&[result]);
        let json = serde_json::to_string(&verdict).unwrap();
        assert_eq!(serde_json::from_str::<Verdict>(&json).unwrap(), verdict);
    }
}

#[test]
fn a_passing_check_carries_counts_and_nothing_else() {
    let output = "warning: error: odd\n3 passed in 0.1s\n";
    let read = CheckResult::read(
        &check("t", CheckKind::Test),
        CheckOutcome::Passed,
        output,
        7,
        "",
    );
    let expected = CheckResult {
        name: "t".to_owned(),
        kind: CheckKind::Test,
        outcome: CheckOutcome::Passed,
        counts: Counts::of(3, 0),
        said: Said {
            is_reported: true,
            ..Said::default()
        },
        elapsed_ms: 7,
        log: None,
        diagnostics: Vec::new(),
        failing_tests: Vec::new(),
        results: Default::default(),
        failed_by_run: Vec::new(),
        excerpt: String::new(),
        errors: Vec::new(),
        fingerprint: None,
        refused: None,
    };
    assert_eq!(read, expected);
}

#[test]
fn a_check_that_compares_with_the_last_commit_says_what_to_ask_instead() {
    let says = |run: &str, output: &str| {
        let check = Check {
            run: run.to_owned(),
            ..check("clean", CheckKind::Other)
        };
        CheckResult::read(&check, CheckOutcome::Failed { exit: 1 }, output, 0, "").errors
    };
    for run in [
        r#"make gen && test -z "$(git status --porcelain)""#,
        "git -C . diff --quiet HEAD",
        "git diff-index --quiet HEAD --",
    ] {
        assert!(says(run, "")[0].contains("`git diff --exit-code`"), "{run}");
    }
    let diff = "diff --git a/gen.js b/gen.js\n--- a/gen.js\n+++ b/gen.js\n@@ -4,3 +4,4 @@\n+  d: 4,\n })\n";
    let errors = says("make gen && git diff --exit-code", diff);
    assert_eq!(errors, ["gen.js:4: `git diff` shows a change of this file"]);
    let errors = says(
        "git status && pytest",
        "E   SyntaxError: invalid\nFAILED a.py::b\n",
    );
    assert!(!errors[0].contains("git diff"), "{errors:?}");
}

#[test]
fn a_path_that_was_refused_counts_if_nothing_else_explains_the_failure() {
    let refused = |output: &str| {
        let mut result = CheckResult::read(
            &check("t", CheckKind::Test),
            CheckOutcome::Failed { exit: 1 },
            output,
            0,
            "",
        );
        result.note_refused("/home/a/x");
        result.refused
    };
    assert!(refused("touch: cannot touch '/home/a/x': Permission denied\n").is_some());
    assert!(refused("FAILED t.py::a - OSError: '/home/a/x'\n").is_some());
    assert!(
        refused("warning: /home/a/x: Permission denied\nFAILED t.py::a - assert 1 == 2\n")
            .is_none()
    );
}

#[test]
fn a_check_that_says_nothing_still_has_an_error() {
    let late = result(
        "slow",
        CheckKind::Test,
        CheckOutcome::TimedOut { after_ms: 90_000 },
    );
    assert_eq!(late.errors, ["timed out after 90 s"]);
    assert_eq!(
        failed("t", CheckKind::Test).errors,
        ["failed with exit code 1"]
    );
}

#[test]
fn a_report_tells_numbers_names_and_places() {
    use crate::checks::junit;
    let xml = b"<testsuite><testcase name='a' file='t/x.py' line='3'><failure message='m'/></testcase>\
        <testcase name='b' file='t/y.py' line='4'><failure message='n'/></testcase><testcase name='c'/></testsuite>";
    let report = junit::read(xml, "/w");
    let evidence = Evidence {
        output: "t/x.py:3:1: error: seen\n7 passed, 1 failed\n",
        is_whole: true,
        report: Some(&report),
        as_committed: false,
        matchers: &[],
        directories: &[],
        root: "/w",
        is_file: |_, _| false,
        files: |_| Vec::new(),
    };
    let check = check("t", CheckKind::Test);
    let failed = CheckOutcome::Failed { exit: 1 };
    let result = CheckResult::of_evidence(&check, failed, &evidence, 1);
    let messages: Vec<&str> = result
        .diagnostics
        .iter()
        .map(|it| it.message.as_str())
        .collect();
    assert_eq!(messages, ["seen", "b: n"]);
    assert_eq!(result.counts, Counts::of(1, 2));
    let placed = |test: &FailingTest| (test.id.clone(), test.file.clone(), test.line);
    assert_eq!(
        result.failing_tests.iter().map(placed).collect::<Vec<_>>(),
        [
            ("a".into(), Some("t/x.py".into()), Some(3)),
            ("b".into(), Some("t/y.py".into()), Some(4)),
        ]
    );
    let ids = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
    assert_eq!(result.failed_check().unwrap().tests, ids);
    let passed = CheckResult::of_evidence(&check, CheckOutcome::Passed, &evidence, 1);
    assert_eq!(
        (passed.counts, passed.diagnostics.len()),
        (Counts::of(1, 2), 0)
    );
}

/// Files of a tree, without content.
struct Tree(Vec<String>);

impl Start for Tree {
    fn is_file(&self, path: &str) -> bool {
        self.0.iter().any(|known| known == path)
    }

    fn is_directory(&self, path: &str) -> bool {
        self.0
            .iter()
            .any(|known| known.starts_with(&format!("{path}/")))
    }

    fn paths(&self) -> &[String] {
        &self.0
    }

    fn read(&self, _: &str) -> Option<String> {
        None
    }
}

/// Reads a failed run of a check in a tree with a few files.
fn read_in_tree(run: &str, output: &str, report: Option<&str>) -> CheckResult {
    const FILES: [&str; 12] = [
        "a/tests/test_x.py",
        "a/tests/test_y.py",
        "b/tests/test_x.py",
        "b/tests/test_z.py",
        "backend/add_test.go",
        "cmd/tool/add_test.go",
        "src/foo.cpp",
        "build/src/foo.cpp",
        "build/config.h",
        "lib/bar.cpp",
        "web/tests/test_a.py",
        "mysite/mysite/test_x.py",
    ];
    let check = Check {
        run: run.to_owned(),
        ..check("test", CheckKind::Test)
    };
    let report = report.map(|xml| crate::checks::junit::read(xml.as_bytes(), "/work"));
    let mut paths = FILES.map(str::to_owned).to_vec();
    paths.sort();
    let directories = Named::of([run], &Tree(paths)).directories;
    let directories: Vec<String> = directories.into_iter().collect();
    let evidence = Evidence {
        output,
        is_whole: true,
        report: report.as_ref(),
        as_committed: false,
        matchers: &[],
        directories: &directories,
        root: "/work",
        is_file: |root, path| root == "/work" && FILES.contains(&path),
        files: |_| FILES.map(str::to_owned).to_vec(),
    };
    CheckResult::of_evidence(&check, CheckOutcome::Failed { exit: 1 }, &evidence, 1)
}

#[test]
fn files_are_named_from_the_root_where_a_check_changes_to_a_directory_first() {
    let output = "=== RUN   TestAdd\n    add_test.go:9: Add(1, 2) = -1, want 3\n--- FAIL: TestAdd (0.00s)\nFAIL\nFAIL\tb\t0.002s\n";
    let result = read_in_tree("cd backend && go test ./...", output, None);
    let place = Some("backend/add_test.go");
    assert_eq!(result.diagnostics[0].path.as_deref(), place);
    assert_eq!(result.failing_tests[0].file.as_deref(), place);
    assert!(result.errors[0].starts_with("backend/add_test.go:9: "));
}

#[test]
fn of_two_files_of_one_name_the_one_where_the_check_runs_is_meant() {
    let place = |run: &str, output: &str| {
        let result = read_in_tree(run, output, None);
        result.diagnostics[0].path.clone()
    };
    let output = "src/foo.cpp:9:2: error: no\n";
    for run in [
        "cd build && lint src",
        "env -C build lint src",
        "cd \"$(git rev-parse --show-toplevel)/build\" && lint src",
        "make -C build lint",
    ] {
        let expected = Some("build/src/foo.cpp".to_owned());
        assert_eq!(place(run, output), expected, "{run}");
    }
    let root = Some("src/foo.cpp".to_owned());
    assert_eq!(place("lint src", output), root);
    // cargo prints paths from the root of the workspace.
    assert_eq!(place("cd build && cargo test", output), root);
    assert_eq!(place("lint src && cd build && lint src", output), root);
    let absolute = "/work/src/foo.cpp:9:2: error: no\n";
    assert_eq!(place("cd build && lint src", absolute), root);
}

#[test]
fn a_bare_place_counts_where_the_file_exists_and_no_tool_names_another() {
    let places = |output: &str| {
        let result = read_in_tree("./lint.sh", output, None);
        let places = result.diagnostics.into_iter().map(|it| (it.path, it.line));
        places.collect::<Vec<_>>()
    };
    let here = (Some("backend/add_test.go".to_owned()), Some(3));
    let bare = "backend/add_test.go:3: the licence is missing\n";
    assert_eq!(places(bare), [here]);
    assert_eq!(places("backend/gone.go:3: the licence is missing\n"), []);
    assert_eq!(places("backend/add_test.go:3: info: ready\n"), []);
    let compiled = format!("{bare}backend/a.c:7:1: error: no\n");
    assert_eq!(
        places(&compiled),
        [(Some("backend/a.c".to_owned()), Some(7))]
    );
}

/// Go prints the name of a file alone, and the package below.
#[test]
fn files_are_named_from_the_root_where_the_output_tells_their_package() {
    for (package, place) in [
        ("example.org/m/backend", "backend/add_test.go"),
        ("example.org/m/cmd/tool", "cmd/tool/add_test.go"),
        ("example.org/m/other", "add_test.go"),
    ] {
        let output = format!(
            "--- FAIL: TestAdd (0.00s)\n    add_test.go:9: no\nFAIL\nFAIL\t{package}\t0.002s\nok  \tz\t0.1s\n"
        );
        let result = read_in_tree("go test ./...", &output, None);
        assert_eq!(result.diagnostics[0].path.as_deref(), Some(place));
        assert_eq!(result.failing_tests[0].file.as_deref(), Some(place));
    }
}

#[test]
fn a_check_in_a_directory_names_files_of_this_directory() {
    for (run, printed, expected) in [
        ("cd build && make", "/work/src/foo.cpp", "src/foo.cpp"),
        ("cd build && make", "src/foo.cpp", "build/src/foo.cpp"),
        ("cd build && make", "config.h", "build/config.h"),
        ("cd build && make", "/work/build/config.h", "build/config.h"),
        ("cd build && make", "build/config.h", "build/config.h"),
        ("cd build && make", "none.cpp", "none.cpp"),
        (
            "cd build && make && cd .. && x",
            "config.h",
            "build/config.h",
        ),
        (
            "for p in a b; do (cd $p && pytest); done",
            "tests/test_y.py",
            "a/tests/test_y.py",
        ),
        (
            "for p in *; do (cd \"$p\" && pytest); done",
            "tests/test_z.py",
            "b/tests/test_z.py",
        ),
        (
            "for p in a b; do (cd $p && pytest); done",
            "tests/test_x.py",
            "tests/test_x.py",
        ),
        ("(cd a && x); make -C build", "config.h", "build/config.h"),
        ("(cd build && x); y", "config.h", "build/config.h"),
        // The only file with this name, whatever the check does.
        ("(cd build && true); y", "config.h", "build/config.h"),
        ("(cd build && true); y", "x/config.h", "x/config.h"),
        (
            "case $X in a) cd build ;; esac; y",
            "config.h",
            "build/config.h",
        ),
        (
            "npm --prefix web test",
            "tests/test_a.py",
            "web/tests/test_a.py",
        ),
        ("cd src && cargo test", "lib/bar.cpp", "lib/bar.cpp"),
        (
            "cd mysite && x",
            "mysite/test_x.py",
            "mysite/mysite/test_x.py",
        ),
    ] {
        let output = format!("{printed}:1:5: error: no\n");
        let found = read_in_tree(run, &output, None).diagnostics;
        let places: Vec<_> = found
            .iter()
            .map(|it| (it.path.as_deref(), it.line))
            .collect();
        assert_eq!(places, [(Some(expected), Some(1))], "{run}: {printed}");
    }
}

#[test]
fn a_report_of_a_check_in_a_directory_names_the_same_places_as_its_output() {
    let xml = "<testsuite><testcase name='test_a' file='tests/test_a.py' line='2'>\
        <failure message='m'>tests/test_a.py:2: AssertionError</failure></testcase></testsuite>";
    let output = "tests/test_a.py:2:1: error: m\n";
    for run in ["cd web && pytest", "pytest"] {
        let result = read_in_tree(run, output, Some(xml));
        let place = "web/tests/test_a.py";
        let paths: Vec<_> = result.diagnostics.iter().map(|it| &it.path).collect();
        assert_eq!(paths, [&Some(place.to_owned())], "{run}");
        assert_eq!(result.failing_tests[0].file.as_deref(), Some(place));
    }
}
