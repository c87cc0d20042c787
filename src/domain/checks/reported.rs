//! What checks report about the tests that they ran, and whether tests were lost since the start of a task.
//!
//! Code under test may end its test runner with exit code 0, and configuration may leave tests out. Neither
//! shows in an exit code, but both show in what the runner reports, compared with its report on the tree on
//! which the task started.

use super::verdict::{CheckOutcome, CheckResult};
use crate::text;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What the checks of a verification reported about their tests, by check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reported {
    /// The number of tests that passed or failed, when the output states it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ran: BTreeMap<String, u64>,
    /// Checks that ended without the result of any test.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub silent: BTreeSet<String>,
    /// Checks that began tests of which a long output does not show the end.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub open: BTreeSet<String>,
    /// Checks that passed although they reported failed tests.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub contradictory: BTreeSet<String>,
    /// Checks of which more is to be expected: they run a test runner that always reports a result, and
    /// none was reported, no test ran, files in which no test ran count as passed, or tests have failed. The same if
    /// the end of its tests is not in what is kept of a long output.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub doubtful: BTreeSet<String>,
    /// Checks that passed and ran no test.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub idle: BTreeSet<String>,
    /// Whether another check passed.
    #[serde(default)]
    pub others_passed: bool,
}

impl Reported {
    /// Whether the checks passed and say nothing about the work, because none of them ran a test.
    pub fn is_no_evidence(&self) -> bool {
        !self.idle.is_empty() && !self.others_passed
    }

    /// What these results report. `runs_tests` tells by name whether a check runs a test runner that always
    /// reports a result.
    pub fn of(results: &[CheckResult], runs_tests: impl Fn(&str) -> bool) -> Self {
        let mut all = Self::default();
        for result in results {
            let passed = result.outcome == CheckOutcome::Passed;
            if !passed && !matches!(result.outcome, CheckOutcome::Failed { .. }) {
                continue;
            }
            let (name, said, counts) = (&result.name, result.said, result.counts);
            // If only failed tests are counted, at least these ran. A test may fail more than once.
            let names: BTreeSet<&String> = result.failing_tests.iter().map(|it| &it.id).collect();
            let most = Some(names.len() as u64).filter(|names| *names > 0);
            let failed = counts.failed.filter(|failed| *failed > 0);
            let contradicts = passed && failed.is_some();
            let failed = failed.map(|failed| failed.min(most.unwrap_or(u64::MAX)));
            let ran = counts.passed.or(failed.map(|_| 0)).map(|passed| {
                let ran = passed.saturating_add(failed.unwrap_or(0));
                ran.saturating_sub(said.hollow)
            });
            all.ran.extend(ran.map(|ran| (name.clone(), ran)));
            let ran_none = ran == Some(0);
            // A file without a test that node counts as one may still check something.
            let is_idle = passed && (ran_none && said.hollow == 0 || said.says_none_ran);
            let is_odd = contradicts || said.hollow > 0 || said.is_open || ran_none;
            let is_doubtful = passed && (is_odd || !said.is_reported && runs_tests(name));
            all.others_passed |= passed && !is_idle;
            for (set, applies) in [
                (&mut all.silent, !said.is_reported),
                (&mut all.open, said.is_open),
                (&mut all.contradictory, contradicts),
                (&mut all.idle, is_idle),
                (&mut all.doubtful, is_doubtful),
            ] {
                set.extend(applies.then(|| name.clone()));
            }
        }
        all
    }

    /// One line for each check that reported tests at the `start` and has now lost some of them: it reports
    /// none at all, or not as many. The same for each check that passes in spite of failed tests, or whose
    /// tests have no known end, which was not so at the start.
    pub fn lost_since(&self, start: &Self) -> Vec<String> {
        let lost = |(check, before): (&String, &u64)| {
            if self.contradictory.contains(check) && !start.contradictory.contains(check) {
                return Some(format!(
                    "check {check} passed, although it reported failed tests"
                ));
            }
            if *before > 0 && self.open.contains(check) && !start.open.contains(check) {
                return Some(format!(
                    "the output of check {check} is so long that the end of its tests is not known"
                ));
            }
            let now = match self.ran.get(check) {
                Some(now) => *now,
                None if self.silent.contains(check) => 0,
                // It reported something, and the number cannot be known.
                None => return None,
            };
            let tests = |number: u64| match number {
                0 => "none".to_owned(),
                _ => text::count(number, "test"),
            };
            (now < *before).then(|| {
                let (before, now) = (tests(*before), tests(now));
                format!("check {check} ran {before} on the tree on which the task started, and {now} with the change")
            })
        };
        start.ran.iter().filter_map(lost).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::said::Said;
    use super::super::verdict::{Check, CheckKind};
    use super::*;

    fn result(output: &str, outcome: CheckOutcome) -> CheckResult {
        let check = Check {
            name: "test".into(),
            run: "npm test".into(),
            kind: CheckKind::Test,
            timeout_ms: 0,
            junit: None,
            problem_matcher: None,
        };
        CheckResult::read(&check, outcome, output, 0, "")
    }

    fn passed(output: &str) -> Reported {
        Reported::of(&[result(output, CheckOutcome::Passed)], |_| true)
    }

    fn failed(output: &str) -> Reported {
        Reported::of(&[result(output, CheckOutcome::Failed { exit: 1 })], |_| {
            true
        })
    }

    /// Outputs of runs with three tests, and of the same runs that code under test has ended.
    const RUNS: [(&str, &str); 8] = [
        (
            "\n  t\n    ✔ a\n\n  3 passing (4ms)\n",
            "\n> x@1 test\n> mocha\n\n",
        ),
        (
            "Test Suites: 1 passed, 1 total\nTests:       3 passed, 3 total\n",
            "",
        ),
        (" Test Files  1 passed (1)\n      Tests  3 passed (3)\n", ""),
        ("...\n3 passed in 0.01s\n", ""),
        ("...s                  [100%]\n", "."),
        (
            "...\n\nFinished in 0.01 seconds (files took 0.1 seconds to load)\n3 examples, 0 failures\n",
            "",
        ),
        (
            "✔ a (1ms)\n✔ b (1ms)\n✔ c (1ms)\nℹ tests 3\nℹ pass 3\nℹ fail 0\n",
            "✔ /w/a.test.js (30.1ms)\nℹ tests 1\nℹ pass 1\nℹ fail 0\n",
        ),
        (
            "TAP version 13\n# Subtest: a\nok 1 - a\nok 2 - b\nok 3 - c\n1..3\n# tests 3\n# pass 3\n# fail 0\n",
            "TAP version 13\n# Subtest: /w/a.test.js\nok 1 - /w/a.test.js\n1..1\n# tests 1\n# pass 1\n# fail 0\n",
        ),
    ];

    #[test]
    fn a_runner_that_code_under_test_has_ended_has_lost_its_tests() {
        for (whole, ended) in RUNS {
            let (start, now) = (passed(whole), passed(ended));
            assert_eq!(start.ran.get("test"), Some(&3), "{whole}");
            assert!(start.doubtful.is_empty(), "{whole}");
            assert!(now.doubtful.contains("test"), "{ended}");
            let lost = now.lost_since(&start);
            assert_eq!(lost.len(), 1, "{ended}");
            assert!(
                lost[0].contains("3 tests") && lost[0].contains("none"),
                "{lost:?}"
            );
            assert_eq!(start.lost_since(&start), [""; 0]);
            // A check that never reported anything has nothing to lose.
            assert_eq!(now.lost_since(&now), [""; 0]);
        }
    }

    #[test]
    fn tests_are_lost_if_there_are_fewer() {
        let of = |ran: Option<u64>, is_silent: bool| Reported {
            ran: ran
                .into_iter()
                .map(|ran| ("test".to_owned(), ran))
                .collect(),
            silent: is_silent.then(|| "test".to_owned()).into_iter().collect(),
            ..Reported::default()
        };
        for before in 0..20 {
            let start = of(Some(before), false);
            for now in 0..25 {
                let lost = !of(Some(now), false).lost_since(&start).is_empty();
                assert_eq!(lost, now < before, "{before} {now}");
            }
            let is_lost = |now: Reported| !now.lost_since(&start).is_empty();
            assert_eq!(is_lost(of(None, true)), before > 0);
            // Unknown numbers are no evidence, and neither is an unknown start.
            assert!(!is_lost(of(None, false)));
            assert!(
                of(Some(before), false)
                    .lost_since(&of(None, true))
                    .is_empty()
            );
        }
    }

    #[test]
    fn a_long_output_without_the_end_of_its_tests_is_no_report() {
        let read = |run: &str, output: &str, is_whole| {
            let mut result = result(output, CheckOutcome::Passed);
            result.outcome = CheckOutcome::Passed;
            result.said = Said::read(run, output, is_whole, None);
            Reported::of(&[result], |_| false)
        };
        let start = read(
            "pytest",
            "==== test session starts ====\n=== 3 passed in 0.1s ===\n",
            true,
        );
        for (run, output) in [
            (
                "pytest",
                "==== test session starts ====\nx\n[… 9 bytes cut …]\nx\n",
            ),
            ("python3 -m unittest", "x\n[… 9 bytes cut …]\nx\n"),
            // The number of tests is not known.
            (
                "cargo test",
                "running 1 test\nx\n[… 9 bytes cut …]\nrunning 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
            ),
            (
                "pytest",
                "==== test session starts ====\n=== 3 passed in 0.1s ===\n==== test session starts ====\nx\n",
            ),
        ] {
            let now = read(run, output, false);
            assert!(now.doubtful.contains("test"), "{output}");
            assert_eq!(now.lost_since(&start).len(), 1, "{output}");
            // Neither is one that was as long at the start.
            assert_eq!(now.lost_since(&now), [""; 0]);
        }
        let ended = "==== test session starts ====\n[… 9 bytes cut …]\n=== 3 passed in 0.1s ===\n";
        let now = read("pytest", ended, false);
        assert!(now.doubtful.is_empty() && now.lost_since(&start).is_empty());
    }

    #[test]
    fn failed_tests_at_the_start_have_run_too() {
        let start = failed("1 failed, 2 passed in 0.1s\n");
        assert_eq!(start.ran.get("test"), Some(&3));
        assert_eq!(passed("").lost_since(&start).len(), 1);
        assert!(passed("3 passed in 0.1s\n").lost_since(&start).is_empty());
    }

    #[test]
    fn skipped_tests_have_not_run_and_a_test_that_fails_twice_is_one() {
        let line = "=".repeat(70);
        let failure =
            |name: &str| format!("{line}\nFAIL: {name} (t.T.{name})\n{}\n", "-".repeat(70));
        let twice = [failure("a"), failure("a")].concat();
        let end = "Ran 2 tests in 0.1s\n\nFAILED (failures=";
        let start = failed(&format!("{}{end}1)\n", failure("a")));
        assert_eq!(start.ran.get("test"), Some(&2));
        let skipped = passed("Ran 2 tests in 0.1s\n\nOK (skipped=1)\n");
        assert_eq!(skipped.lost_since(&start).len(), 1);
        let start = failed(&format!("{twice}{end}2)\n"));
        assert_eq!(start.ran.get("test"), Some(&1));
    }

    #[test]
    fn a_run_of_no_test_is_doubtful_and_failed_tests_alone_have_run() {
        let none = passed(
            "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        );
        assert!(none.doubtful.contains("test"), "{none:?}");
        assert!(none.lost_since(&none).is_empty());
        let go =
            failed("--- FAIL: TestA (0.00s)\n    a_test.go:7: x\nFAIL\nFAIL\tx\t0.01s\nFAIL\n");
        assert_eq!(go.ran.get("test"), Some(&1));
        let empty = passed("ok  \tx\t0.01s [no tests to run]\n");
        assert!(empty.doubtful.contains("test"), "{empty:?}");
        assert_eq!(empty.lost_since(&go).len(), 1);
        assert!(passed("ok  \tx\t0.01s\n").doubtful.is_empty());
    }

    #[test]
    fn a_pass_in_which_no_test_ran_is_no_evidence() {
        for output in [
            "Test project /w/build\nNo tests were found!!!\n",
            "?   \texample.org/x\t[no test files]\n",
            "t/a.t .. skipped: x\nFiles=1, Tests=0,  0 wallclock secs\nResult: NOTESTS\n",
            "ok  \texample.org/x\t0.01s [no tests to run]\n",
            "\n----------------------------------------------------------------------\nRan 0 tests in 0.000s\n\nOK\n",
            "No tests found, exiting with code 0\n",
            "No test files found, exiting with code 0\n",
            "[INFO] No tests to run.\n",
            "[INFO] Tests are skipped.\n",
            "> Task :test NO-SOURCE\n",
            "No tests executed!\n",
            "No test is available in /w/a.dll. Make sure that a test discoverer is registered.\n",
            "There are no tests to run\n",
            "No matching test cases were run\n",
            "\n  0 passing (1ms)\n\n",
            "No examples found.\n",
            "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        ] {
            assert!(passed(output).is_no_evidence(), "{output}");
        }
        for output in [
            "",
            "checked 12 files\n",
            "?   \texample.org/x\t[no test files]\nok  \texample.org/y\t0.01s\n",
            "No tests found, exiting with code 0\n\n  3 passing (4ms)\n",
            "✔ /w/a.js (30.1ms)\nℹ tests 1\nℹ pass 1\nℹ fail 0\n",
            "the runner says when no test has a name\n",
        ] {
            assert!(!passed(output).is_no_evidence(), "{output}");
        }
        let none = result("No tests were found!!!\n", CheckOutcome::Passed);
        let mut lint = result("", CheckOutcome::Passed);
        lint.name = "lint".into();
        let both = Reported::of(&[none, lint], |_| false);
        assert!(both.idle.contains("test") && !both.is_no_evidence());
    }

    #[test]
    fn files_without_a_test_that_always_counted_are_not_lost() {
        let plain = passed("✔ /w/a.js (30.1ms)\nℹ tests 1\nℹ pass 1\nℹ fail 0\n");
        assert!(plain.doubtful.contains("test"));
        assert!(plain.lost_since(&plain).is_empty());
        let red = failed(
            "✖ /w/a.js (30.1ms)\nℹ tests 1\nℹ pass 0\nℹ fail 1\n\n✖ failing tests:\n\n✖ /w/a.js (30.1ms)\n",
        );
        assert!(plain.lost_since(&red).is_empty(), "{red:?}");
    }

    #[test]
    fn a_pass_with_failed_tests_is_one_only_where_failures_never_counted() {
        let contradictory = passed("1 failed, 2 passed in 0.1s\n");
        assert!(contradictory.doubtful.contains("test"));
        for start in ["1 failed, 2 passed in 0.1s\n", "3 passed in 0.1s\n"] {
            assert_eq!(contradictory.lost_since(&failed(start)).len(), 1);
        }
        assert!(contradictory.lost_since(&contradictory).is_empty());
        assert!(contradictory.lost_since(&Reported::default()).is_empty());
    }

    #[test]
    fn a_check_of_an_unknown_tool_is_not_doubtful() {
        let unknown = Reported::of(&[result("ok\n", CheckOutcome::Passed)], |_| false);
        assert!(unknown.doubtful.is_empty() && unknown.silent.contains("test"));
    }
}
