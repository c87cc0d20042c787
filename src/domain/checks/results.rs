//! The results of tests that share a name, told apart by their order in the output.

use super::FailingTest;
use super::counts::Counts;
use super::tools::TABLE;
use crate::text;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The results of all tests of one name in a run of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Results {
    /// The number of results.
    pub total: u64,
    /// Which of them are failures, from 0 in the order of the output.
    pub failed: BTreeSet<u64>,
}

/// The results of every name of which a test failed, by the test's id. Empty unless `output` names every test that
/// passed or failed, which `counts` tells.
pub(super) fn by_id(output: &str, counts: Counts) -> BTreeMap<String, Results> {
    let mut all: BTreeMap<String, Results> = BTreeMap::new();
    let (mut passed, mut failed) = (0, 0);
    for line in text::plain(output).lines() {
        let result = TABLE.iter().find_map(|tool| (tool.result)(line));
        let Some((name, has_failed)) = result else {
            continue;
        };
        let Some(test) = FailingTest::named(name) else {
            continue;
        };
        // The numbers of TAP leave out tests inside of others.
        match line.starts_with(char::is_whitespace) {
            true => {}
            false if has_failed => failed += 1,
            false => passed += 1,
        }
        let results = all.entry(test.id).or_default();
        if has_failed {
            results.failed.insert(results.total);
        }
        results.total += 1;
    }
    if counts != Counts::of(passed, failed) {
        return BTreeMap::new();
    }
    all.retain(|_, results| !results.failed.is_empty());
    all
}

/// The number of failures among these results.
pub(super) fn number_failed(all: &BTreeMap<String, Results>) -> u64 {
    let each = all.values().map(|it| it.failed.len());
    u64::try_from(each.sum::<usize>()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::counts::counts;
    use super::*;

    fn read(output: &str) -> Vec<(String, u64, Vec<u64>)> {
        let all = by_id(output, counts(output)).into_iter();
        all.map(|(id, it)| (id, it.total, it.failed.into_iter().collect()))
            .collect()
    }

    #[test]
    fn tests_of_one_name_are_told_apart_where_all_are_named() {
        let tap = "TAP version 13\n# a\nok 1 equal\nnot ok 2 equal\n  ---\n    at: f (a.js:1:2)\n  ...\nnot ok 3 equal\nok 4 other\n\n1..4\n# tests 4\n";
        assert_eq!(read(tap), [("equal".to_owned(), 3, vec![1, 2])]);
        let end = |passed: u8, failed: u8| {
            let word = if failed == 0 { "ok" } else { "FAILED" };
            format!(
                "test result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
            )
        };
        let cargo = format!(
            "running 2 tests\ntest t::a ... ok\ntest t::b - should panic ... ok\n{}running 1 test\ntest t::a ... FAILED\n\nfailures:\n    t::a\n\n{}",
            end(2, 0),
            end(0, 1)
        );
        assert_eq!(read(&cargo), [("t::a".to_owned(), 2, vec![1])]);
    }

    #[test]
    fn tests_inside_of_others_are_told_apart_too() {
        let inside = "    ok 1 - adds\n    not ok 2 - adds\n    1..2\n";
        let tap = format!("TAP version 13\n# Subtest: a\n{inside}not ok 1 - a\nok 2 - b\n1..2\n");
        let expected = [
            ("a".to_owned(), 1, vec![0]),
            ("adds".to_owned(), 2, vec![1]),
        ];
        assert_eq!(read(&tap), expected);
    }

    #[test]
    fn nothing_is_known_where_a_test_is_not_named() {
        for output in [
            // One without a name, one with a directive in its name, one that never ran, a tool that names failures only.
            "1..2\nnot ok 1 - a\nok 2\n",
            "1..2\nnot ok 1 - a\nok 2 - a #3\n",
            "1..3\nnot ok 1 - a\nok 2 - a\n",
            "FAILED a.py::a - x\n1 failed, 1 passed in 0.01s\n",
        ] {
            assert_eq!(read(output), [], "{output}");
        }
    }
}
