//! The tests that failed, as values that can be compared between runs.

use super::diagnostic::{self, Place};
use super::{normalise, path};
use crate::text;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Longest name that is kept, in characters.
const MAX_NAME: usize = 300;

/// Most failing tests that are kept of one output or report.
pub const MAX_FAILING_TESTS: usize = 10_000;

/// One test that failed, or one file of tests that could not be started.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FailingTest {
    /// Equal for the same test in two runs of the same check, and different for two tests of one
    /// run: the name without what changes from run to run (temporary paths, process ids, line
    /// numbers). It says nothing across checks, whose tools name tests in different ways.
    pub id: String,
    /// The test as its tool names it.
    pub name: String,
    /// The file of the failing assertion, or of the test where the assertion is not told; relative
    /// to the root, with `/`.
    pub file: Option<String>,
    /// The line in `file`, from 1.
    pub line: Option<u32>,
    /// What its tool says about the failure; empty where it says nothing.
    pub message: String,
}

impl FailingTest {
    /// A test of this name, without a place. `None` for an empty name.
    pub fn named(name: &str) -> Option<Self> {
        let name = text::one_line(name, MAX_NAME);
        (!name.is_empty()).then(|| Self {
            id: normalise::name(&name),
            name,
            file: None,
            line: None,
            message: String::new(),
        })
    }

    /// The same test at a place; one outside of the root is no place.
    pub(super) fn at(self, place: Place<'_>, root: &str) -> Self {
        let file = path::relative(place.path, root);
        let line = diagnostic::number(place.line).filter(|_| file.is_some());
        Self { file, line, ..self }
    }

    /// The same test with what is said about it.
    pub(super) fn saying(self, message: &str) -> Self {
        let message = diagnostic::bounded(message);
        Self { message, ..self }
    }
}

/// The tests (and files of tests that could not even start) that `output` reports as failed, each
/// named as its tool names it. Empty when the output has no form that is known. Paths in it are taken
/// as relative or dropped.
pub fn failing_tests(output: &str) -> Vec<FailingTest> {
    diagnostic::read(&text::plain(output), "", &[]).failing_tests
}

/// The names of the tests that `lines` report as failed.
pub(super) fn names_in(lines: &[&str]) -> BTreeSet<String> {
    let tests = diagnostic::read(&lines.join("\n"), "", &[]).failing_tests;
    tests.into_iter().map(|test| test.name).collect()
}

/// `tests` in the order of their ids, each id once: of two values for one test the placed one stays.
pub(super) fn distinct(mut tests: Vec<FailingTest>) -> Vec<FailingTest> {
    let unplaced = |test: &FailingTest| (test.file.is_none(), test.line.is_none());
    tests.sort_by(|a, b| a.id.cmp(&b.id).then(unplaced(a).cmp(&unplaced(b))));
    tests.dedup_by(|a, b| a.id == b.id);
    tests.truncate(MAX_FAILING_TESTS);
    tests
}

#[cfg(test)]
mod tests {
    use super::{FailingTest, distinct};

    fn id(name: &str) -> String {
        FailingTest::named(name).unwrap().id
    }

    #[test]
    fn an_id_is_equal_for_the_same_test_and_no_other() {
        for (one, other) in [
            ("spec/a_spec.rb:12", "spec/a_spec.rb:14"),
            (
                "test_x[/tmp/pytest-of-me/pytest-3/a.txt]",
                "test_x[/tmp/pytest-of-me/pytest-4/a.txt]",
            ),
            ("suite  handles\tspaces", "suite handles spaces"),
        ] {
            assert_eq!(id(one), id(other));
        }
        for (one, other) in [
            ("test_x[2024-01-02]", "test_x[2024-01-03]"),
            ("test_x[1700000000]", "test_x[1700000001]"),
            ("test_x[deadbeef1]", "test_x[deadbeef2]"),
            ("takes 5 seconds", "takes 6 seconds"),
            ("a::b", "a::c"),
        ] {
            assert_ne!(id(one), id(other));
        }
        assert_eq!(FailingTest::named(" \n"), None);
    }

    #[test]
    fn of_two_values_for_one_test_the_placed_one_stays() {
        let unplaced = FailingTest::named("a").unwrap();
        let placed = FailingTest {
            file: Some("a.py".into()),
            line: Some(3),
            ..unplaced.clone()
        };
        assert_eq!(distinct(vec![unplaced, placed.clone()]), [placed]);
    }
}
