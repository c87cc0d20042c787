//! The failed tests, as values that can be compared between runs.

use super::normalise;
use crate::text;
use serde::{Deserialize, Serialize};

/// The maximum length of a test's name, in characters.
const MAX_NAME: usize = 300;

/// The maximum number of failed tests kept from one output or report.
pub const MAX_FAILING_TESTS: usize = 10_000;

const MAX_MESSAGE: usize = 2_000;
const MAX_MESSAGE_LINES: usize = 20;

/// A test that failed, or a file of tests that could not start.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FailingTest {
    /// Equal for the same test in two runs of the same check, and different for two tests of one run: the
    /// name without the parts that change from run to run (temporary paths, process ids, line numbers). It
    /// cannot be compared across checks, because their tools name tests differently.
    pub id: String,
    /// The test as its tool names it.
    pub name: String,
    /// The file of the failed assertion, or of the test if the assertion is unknown; relative to the root,
    /// with `/`.
    pub file: Option<String>,
    /// The line in `file`, from 1.
    pub line: Option<u32>,
    /// The tool's message about the failure; empty if there is none.
    pub message: String,
}

impl FailingTest {
    /// A test with this name and no location. `None` for an empty name.
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

    /// The same test with a location.
    pub(super) fn at(self, file: Option<String>, line: &str) -> Self {
        let line = number(line).filter(|_| file.is_some());
        Self { file, line, ..self }
    }

    /// The same test with a message.
    pub(super) fn saying(self, message: &str) -> Self {
        let message = bounded(message);
        Self { message, ..self }
    }
}

/// `tests` ordered by id, without duplicates: of two values for one test, the one with a location is kept.
pub(super) fn distinct(mut tests: Vec<FailingTest>) -> Vec<FailingTest> {
    let unplaced = |test: &FailingTest| (test.file.is_none(), test.line.is_none());
    tests.sort_by(|a, b| a.id.cmp(&b.id).then(unplaced(a).cmp(&unplaced(b))));
    tests.dedup_by(|a, b| a.id == b.id);
    tests.truncate(MAX_FAILING_TESTS);
    tests
}

pub(super) fn bounded(message: &str) -> String {
    let mut lines = message.trim().lines();
    let mut text = lines
        .by_ref()
        .take(MAX_MESSAGE_LINES)
        .collect::<Vec<_>>()
        .join("\n");
    if lines.next().is_some() {
        text.push_str("\n…");
    }
    text::cap_chars(&text, MAX_MESSAGE).into_owned()
}

pub(super) fn number(digits: &str) -> Option<u32> {
    digits.parse().ok().filter(|n| *n > 0)
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
