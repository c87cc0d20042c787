//! The numbers of passed and failed tests, as the test tools report them.

use serde::{Deserialize, Serialize};

/// Numbers of tests. `None` means that the output does not state the number, which is never the same as zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Counts {
    /// Tests that passed.
    pub passed: Option<u64>,
    /// Tests that failed or ended with an error.
    pub failed: Option<u64>,
}

impl Counts {
    /// Both numbers are known.
    pub const fn of(passed: u64, failed: u64) -> Self {
        Self {
            passed: Some(passed),
            failed: Some(failed),
        }
    }

    /// Neither number is known.
    pub const UNKNOWN: Self = Self {
        passed: None,
        failed: None,
    };
}

/// A running sum of several summaries. An overflow or a contradiction makes it unknown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) seen: bool,
    broken: bool,
    passed: u64,
    failed: u64,
}

impl Tally {
    pub(super) fn add(&mut self, passed: Option<u64>, failed: Option<u64>) {
        self.seen = true;
        let sums = passed
            .zip(failed)
            .and_then(|(p, f)| self.passed.checked_add(p).zip(self.failed.checked_add(f)));
        match sums {
            Some((passed, failed)) => (self.passed, self.failed) = (passed, failed),
            None => self.broken = true,
        }
    }

    /// Adds a summary that states the total number of tests, the number that failed, and the number that
    /// neither passed nor failed.
    pub(super) fn add_of_total(
        &mut self,
        total: Option<u64>,
        failed: Option<u64>,
        others: Option<u64>,
    ) {
        let not_passed = sum(&[failed, others]);
        let passed = total
            .zip(not_passed)
            .and_then(|(total, rest)| total.checked_sub(rest));
        self.add(passed, failed);
    }

    pub(super) fn break_if(&mut self, contradicted: bool) {
        self.broken |= contradicted;
    }

    /// The numbers; `None` if the tool's output was not found.
    pub(super) fn finish(self) -> Option<Counts> {
        self.seen.then(|| {
            if self.broken {
                Counts::UNKNOWN
            } else {
                Counts::of(self.passed, self.failed)
            }
        })
    }
}

/// The sum of the numbers before any of these words, such as `3 failed`, anywhere in a summary line.
pub(super) fn worded(line: &str, words: &[&str]) -> Option<u64> {
    let mut sum = 0u64;
    let tokens: Vec<&str> = line
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '|' | '(' | ')' | '=' | ';'))
        .filter(|token| !token.is_empty())
        .collect();
    for pair in tokens.windows(2) {
        if let [number, word] = pair
            && words.contains(word)
            && number.starts_with(|c: char| c.is_ascii_digit())
        {
            sum = sum.checked_add(number.parse().ok()?)?;
        }
    }
    Some(sum)
}

/// The sum of the numbers after these keys, as in `failures=1, expected failures=2`.
pub(super) fn keyed(detail: &str, keys: &[&str]) -> Option<u64> {
    let pairs = detail.split(", ").filter_map(|pair| pair.split_once('='));
    pairs
        .filter(|(key, _)| keys.contains(key))
        .try_fold(0u64, |sum, (_, number)| {
            sum.checked_add(number.parse().ok()?)
        })
}

/// The numbers of a tool that counts files and the tests in them. If a file failed without a failed test, its
/// tests were not counted, so the number of failures is unknown.
pub(super) fn suites(
    lines: &[&str],
    files: &str,
    tests: &str,
    contradicts: fn(&str) -> bool,
) -> Option<Counts> {
    let mut tally = Tally::default();
    let mut failed_files = 0u64;
    let mut seen_files = false;
    for line in lines {
        let line = line.trim_start();
        if let Some(rest) = line.strip_prefix(files).filter(|it| begins_with_count(it)) {
            seen_files = true;
            failed_files = failed_files.saturating_add(worded(rest, &["failed"]).unwrap_or(1));
        } else if seen_files
            && let Some(rest) = line.strip_prefix(tests).filter(|it| begins_with_count(it))
        {
            tally.add(worded(rest, &["passed"]), worded(rest, &["failed"]));
            tally.break_if(contradicts(rest));
        }
    }
    let said = tally.finish()?;
    let uncounted = failed_files > 0 && said.failed == Some(0);
    Some(Counts {
        failed: said.failed.filter(|_| !uncounted),
        ..said
    })
}

fn begins_with_count(text: &str) -> bool {
    text.trim_start().starts_with(|c: char| c.is_ascii_digit())
}

/// The sum; `None` if a number is unknown or the sum overflows.
pub(super) fn sum(numbers: &[Option<u64>]) -> Option<u64> {
    numbers
        .iter()
        .try_fold(0u64, |sum, number| sum.checked_add((*number)?))
}

/// A number that the tool omits when it is 0.
pub(super) fn optional_number(digits: &str) -> Option<u64> {
    if digits.is_empty() {
        Some(0)
    } else {
        digits.parse().ok()
    }
}
