//! The results of tests that share a name, told apart by their order.

use super::FailingTest;
use super::counts::Counts;
use super::is_around_tests;
use super::tools::TABLE;
use crate::pattern::{Pattern, group};
use crate::text;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The results of all tests of one name in a run of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Results {
    /// The number of results.
    pub total: u64,
    /// Which of them are failures, from 0: by run in the order of the output, and in a run by the line that the name
    /// states. Rust's examples in comments run at the same time, and are printed as they end.
    pub failed: BTreeSet<u64>,
}

/// The results of every name of which a test failed, by the test's id. Empty unless `output` names every test that
/// passed or failed, which `counts` tells.
pub(super) fn by_id(output: &str, counts: Counts) -> BTreeMap<String, Results> {
    let plain = text::plain(output);
    let (mut passed, mut failed, mut run) = (0, 0, 0u64);
    let mut each = Vec::new();
    for line in plain.lines() {
        let Some((name, has_failed)) = TABLE.iter().find_map(|tool| (tool.result)(line)) else {
            run += u64::from(is_around_tests(line));
            continue;
        };
        let Some(test) = FailingTest::named(name) else {
            continue;
        };
        // The numbers of TAP leave out tests inside of others.
        if !line.starts_with(char::is_whitespace) {
            failed += u64::from(has_failed);
            passed += u64::from(!has_failed);
        }
        each.push((run, line_in(name), test.id, has_failed));
    }
    each.sort_by_key(|(run, line, ..)| (*run, *line));
    let mut all: BTreeMap<String, Results> = BTreeMap::new();
    for (.., id, has_failed) in each {
        let results = all.entry(id).or_default();
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

/// The line of a file in the name of a test, which is no part of its id; 0 if there is none.
fn line_in(name: &str) -> u64 {
    static LINE: Pattern = Pattern::only_if(r"\b(?i:line) ([0-9]+)\b", |name| name.contains(' '));
    let line = LINE.captures(name);
    line.map_or(0, |found| group(&found, 1).parse().unwrap_or(0))
}

/// The number of failures among these results.
pub(super) fn number_failed(all: &BTreeMap<String, Results>) -> u64 {
    let each = all.values().map(|it| it.failed.len());
    u64::try_from(each.sum::<usize>()).unwrap_or(u64::MAX)
}

/// The most runs of tests in one output whose numbers are kept.
const MAX_RUNS: usize = 1_000;

/// The numbers in a check's output. Several summaries of one tool are added up. If two tools report different
/// numbers, or a tool contradicts itself, the numbers are unknown.
pub fn counts(output: &str) -> Counts {
    let plain = text::plain(output);
    let lines: Vec<&str> = plain.lines().collect();
    let mut said = TABLE.iter().filter_map(|tool| tool.counts(&lines));
    let first = said.next().unwrap_or(Counts::UNKNOWN);
    let is_agreed = said.all(|other| other == first);
    if is_agreed { first } else { Counts::UNKNOWN }
}

/// The number of tests that failed in each run of tests whose summary is one line, in the order of the output.
pub(super) fn failed_by_run(output: &str) -> Vec<Option<u64>> {
    let plain = text::plain(output);
    let lines: Vec<&str> = plain.lines().collect();
    let tools = TABLE.iter().filter(|tool| tool.counts(&lines).is_some());
    let tools: Vec<_> = tools.collect();
    let of_line = |line: &&str| tools.iter().find_map(|tool| tool.counts(&[*line]));
    let runs = lines.iter().filter_map(of_line).map(|run| run.failed);
    runs.take(MAX_RUNS).collect()
}

#[cfg(test)]
mod tests {
    use super::counts;
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
        assert_eq!(
            read("1..2\nnot ok 1 - a #3\nok 2 - a\n"),
            [("a #3".to_owned(), 1, vec![0])]
        );
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

    /// The examples of one comment run at the same time.
    #[test]
    fn examples_of_one_comment_are_told_apart_by_their_lines() {
        let of = |lines: [(u32, &str); 4]| {
            let each =
                lines.map(|(line, word)| format!("test src/a.rs - (line {line}) ... {word}\n"));
            let end = "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
            let [a, b, c, d] = each;
            read(&format!(
                "running 2 tests\n{a}{b}{end}running 2 tests\n{c}{d}{end}"
            ))
        };
        let expected = [("src/a.rs - (line <n>)".to_owned(), 4, vec![0, 3])];
        let sorted = [(9, "FAILED"), (10, "ok"), (1, "ok"), (20, "FAILED")];
        assert_eq!(of(sorted), expected);
        let [a, b, c, d] = sorted;
        assert_eq!(of([b, a, d, c]), expected);
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
            // One without a name, one that never ran, a tool that names failures only.
            "1..2\nnot ok 1 - a\nok 2\n",
            "1..3\nnot ok 1 - a\nok 2 - a\n",
            "FAILED a.py::a - x\n1 failed, 1 passed in 0.01s\n",
        ] {
            assert_eq!(read(output), [], "{output}");
        }
    }
}
