//! What a run of the checks with the new tests, on the tree on which the task started, shows of them.

use super::{Blame, FailedCheck, ProofResult, Proofs};

impl ProofResult {
    /// What this result with the new tests shows of them, where `before` is the result on the same tree without
    /// them: only what fails because of them counts.
    pub fn because_of_new_tests(self, before: &Self) -> Self {
        let Self::Failed { failed } = &self else {
            return self;
        };
        let unknown = |why: &str| Self::Unknown { why: why.into() };
        let earlier = match before {
            Self::Passed => return self,
            Self::Failed { failed } => failed,
            Self::CannotStart { .. } | Self::Unknown { .. } => {
                return unknown("what fails there without them is not known");
            }
        };
        let blames = Proofs {
            baseline: Some(before.clone()),
            ..Proofs::default()
        };
        let then = |now: &FailedCheck| earlier.iter().find(|then| then.check == now.check);
        // A runner that named tests before and names none now has not come to them.
        let is_new = |of: &FailedCheck, test: Option<&str>| {
            blames.blame_for(of, test) == Blame::New
                || test.is_none() && then(of).is_some_and(|then| !then.tests.is_empty())
        };
        if let Some(new) = self.failures_that(is_new) {
            return new;
        }
        let have_more_passed = failed.iter().any(|now| {
            !now.tests.is_empty() && then(now).is_some_and(|then| now.passed > then.passed)
        });
        if blames.were_red_before(failed) && have_more_passed {
            Self::Passed
        } else {
            unknown("other tests fail there without them")
        }
    }

    /// The failures in these files; `None` if there are none.
    pub fn failures_in(&self, files: &[String]) -> Option<Self> {
        self.failures_that(|of, test| {
            let place = test.and_then(|test| of.places.get(test));
            place.is_some_and(|(file, _)| files.contains(file))
        })
    }

    /// The failures of which this holds, given the check and its test; `None` if there are none.
    fn failures_that(&self, holds: impl Fn(&FailedCheck, Option<&str>) -> bool) -> Option<Self> {
        let Self::Failed { failed } = self else {
            return None;
        };
        let of_check = |whole: &FailedCheck| {
            let mut of = whole.clone();
            of.tests.retain(|test| holds(whole, Some(test)));
            let is_any = if whole.tests.is_empty() {
                holds(whole, None)
            } else {
                !of.tests.is_empty()
            };
            is_any.then_some(of)
        };
        let all: Vec<FailedCheck> = failed.iter().filter_map(of_check).collect();
        (!all.is_empty()).then(|| Self::Failed { failed: all.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::{FailedCheck, ProofResult};
    use std::collections::BTreeMap;

    /// A failed check with these tests, and the number of those that passed.
    fn failed(tests: &[&str], passed: u64) -> ProofResult {
        let place = |test: &&str| ((*test).to_owned(), (format!("tests/{test}.py"), 1));
        let check = FailedCheck {
            check: "test".to_owned(),
            end: "failed with exit code 1".to_owned(),
            fingerprint: tests.concat(),
            tests: tests.iter().map(|test| (*test).to_owned()).collect(),
            all_named: true,
            hides_some: false,
            passed: Some(passed),
            results: BTreeMap::new(),
            failed_by_run: Vec::new(),
            places: tests.iter().map(place).collect(),
            refused: None,
        };
        ProofResult::Failed {
            failed: [check].into(),
        }
    }

    fn unknown(result: &ProofResult) -> bool {
        matches!(result, ProofResult::Unknown { .. })
    }

    #[test]
    fn only_what_fails_because_of_the_new_tests_shows_something_of_them() {
        let with = |tests: &[&str], passed| failed(tests, passed);
        for (now, before, expected) in [
            (with(&["new"], 3), ProofResult::Passed, Some(&["new"][..])),
            (with(&["new", "old"], 3), with(&["old"], 3), Some(&["new"])),
            (with(&["old"], 4), with(&["old"], 3), None),
        ] {
            let shown = now.because_of_new_tests(&before);
            match expected {
                Some(tests) => assert_eq!(shown.details(), tests),
                None => assert_eq!(shown, ProofResult::Passed),
            }
        }
        // Tests that do not even load: nothing is named any more.
        let none = with(&[], 0).because_of_new_tests(&with(&["old"], 3));
        assert_eq!(none.details(), ["check test"]);
        assert_eq!(
            ProofResult::Passed.because_of_new_tests(&with(&["old"], 3)),
            ProofResult::Passed
        );
    }

    #[test]
    fn what_fails_without_the_new_tests_too_shows_nothing_of_them() {
        let why = || "it timed out".to_owned();
        for (now, before) in [
            // The new test may not have run.
            (failed(&["old"], 3), failed(&["old"], 3)),
            (failed(&[], 0), failed(&[], 0)),
            (failed(&["new"], 3), ProofResult::Unknown { why: why() }),
        ] {
            assert!(unknown(&now.because_of_new_tests(&before)), "{before:?}");
        }
    }

    #[test]
    fn failures_in_the_files_of_the_new_tests_are_theirs() {
        let both = failed(&["new", "old"], 3);
        let in_new = both.failures_in(&["tests/new.py".to_owned()]);
        assert_eq!(in_new.unwrap().details(), ["new"]);
        assert_eq!(both.failures_in(&["tests/other.py".to_owned()]), None);
        assert_eq!(
            failed(&[], 0).failures_in(&["tests/new.py".to_owned()]),
            None
        );
    }
}
