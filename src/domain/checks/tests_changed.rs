//! Which changed files are tests that were there before: an agent may make a check pass by
//! weakening what it checks.

use crate::pattern::Pattern;

/// Directories and file names that hold tests in the usual toolchains.
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

/// Whether a path is one of tests, by the conventions of the usual toolchains.
pub fn is_test(path: &str) -> bool {
    TEST_PATH.is_match(path)
}

#[cfg(test)]
mod tests {
    use super::is_test;

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
