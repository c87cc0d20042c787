//! Recognises test files: an agent may make a check pass by weakening its tests.

use crate::pattern::Pattern;

/// Test directories and file names of the common toolchains.
static TEST_PATH: Pattern = Pattern::new(
    r"(?x)
        (?:^|/)(?:tests?|__tests__|spec|specs|testdata|__snapshots__)/
        | (?:^|/)test_[^/]*\.py$
        | (?:^|/)conftest\.py$
        | _test\.(?:go|py|rb|exs|dart|c|cc|cpp|rs)$
        | _spec\.rb$
        | \.(?:test|spec)\.[cm]?[jt]sx?$
        | (?:^|/)[^/]*Tests?\.(?:java|kt|cs|swift|scala|php)$
        | (?:^|/)tests?\.(?:rs|py|sh|js|ts)$
        | \.snap$
        ",
);

/// Whether a path is a test by the conventions of the common toolchains.
pub fn is_test(path: &str) -> bool {
    TEST_PATH.is_match(path)
}

/// Whether a new test file may control the tests beside it: its text contains something that test runners
/// call before all tests, or it ends the process.
pub fn may_rule_others(path: &str, text: &str) -> bool {
    static RULES: Pattern = Pattern::new(
        r"(?x)
            \bfunc\s+TestMain\s*\(
            | \bdef\s+(?:load_tests|pytest_\w+)\s*\(
            | \bos\._exit\b | \bos\.Exit\b | \bsyscall\.(?:Exit|Kill)\b
            | \bprocess\.(?:exit|reallyExit|abort|kill)\b | \bDeno\.exit\b
            | \bSystem\.(?:exit|halt)\b | \bRuntime\.getRuntime\b
            | \bEnvironment\.Exit\b | \bexit!|\b_?exit\s*\(\s*0
            | \bat_exit\b | \bregister_shutdown_function\b | \batexit\.register\b
            | \bos\.kill\b | \bProcess\.kill\b
            ",
    );
    let is_shell = path.ends_with(".sh") || path.ends_with(".bats");
    !is_shell && RULES.is_match(text)
}

#[cfg(test)]
mod tests {
    use super::{is_test, may_rule_others};

    #[test]
    fn what_runs_before_all_tests_or_ends_the_process_may_rule_others() {
        for text in [
            "func TestMain(m *testing.M) { }",
            "def load_tests(loader, tests, pattern):",
            "import os; os._exit(0)",
            "process.exit(0)",
            "exit(0);",
            "Kernel.exit!",
        ] {
            assert!(may_rule_others("a_test.go", text), "{text}");
        }
        for (path, text) in [
            ("tests/a.sh", "exit 0"),
            (
                "a_test.go",
                "func TestMaintenance(t *testing.T) { t.Fatal(1) }",
            ),
            ("test_a.py", "def test_exit(): assert run() == 0"),
        ] {
            assert!(!may_rule_others(path, text), "{text}");
        }
    }

    #[test]
    fn tests_are_told_by_where_they_are_and_how_they_are_called() {
        for path in [
            "tests/run.rs",
            "crates/a/tests/b/c.txt",
            "src/__tests__/a.js",
            "pkg/test_a.py",
            "conftest.py",
            "pkg/a_test.go",
            "spec/a_spec.rb",
            "src/a.test.tsx",
            "src/a.spec.mjs",
            "src/FooTest.java",
            "src/parser/tests.rs",
            "test.sh",
            "src/a.snap",
        ] {
            assert!(is_test(path), "{path}");
        }
        for path in [
            "src/test_support_is_fine.rs",
            "latest/a.rs",
            "src/contest.py",
            "attestation.go",
        ] {
            assert!(!is_test(path), "{path}");
        }
    }
}
