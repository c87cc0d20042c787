//! How many tests passed and failed, as the test tools themselves say it.

mod frameworks;

use crate::text;
use serde::{Deserialize, Serialize};

/// Numbers of tests. `None` means that the output does not tell, which is never the same as zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Counts {
    /// Tests that passed.
    pub passed: Option<u64>,
    /// Tests that failed or ended with an error.
    pub failed: Option<u64>,
}

impl Counts {
    /// Both numbers known.
    pub fn of(passed: u64, failed: u64) -> Self {
        Self {
            passed: Some(passed),
            failed: Some(failed),
        }
    }

    /// Neither number known.
    pub const UNKNOWN: Self = Self {
        passed: None,
        failed: None,
    };
}

/// The numbers in a check's output. Several summaries of one tool are added up; two tools that say
/// different things, or a tool that contradicts itself, leave the numbers unknown.
pub fn counts(output: &str) -> Counts {
    let plain = text::plain(output);
    let lines: Vec<&str> = plain.lines().collect();
    let mut said = frameworks::ALL
        .iter()
        .filter_map(|framework| framework(&lines));
    let Some(first) = said.next() else {
        return Counts::UNKNOWN;
    };
    if said.all(|other| other == first) {
        first
    } else {
        Counts::UNKNOWN
    }
}

/// A running sum of several summaries; anything that overflows or contradicts makes it unknown.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    seen: bool,
    broken: bool,
    passed: u64,
    failed: u64,
}

impl Tally {
    fn add(&mut self, passed: Option<u64>, failed: Option<u64>) {
        self.seen = true;
        let sums = passed
            .zip(failed)
            .and_then(|(p, f)| self.passed.checked_add(p).zip(self.failed.checked_add(f)));
        match sums {
            Some((passed, failed)) => (self.passed, self.failed) = (passed, failed),
            None => self.broken = true,
        }
    }

    fn break_if(&mut self, contradicted: bool) {
        self.broken |= contradicted;
    }

    /// `None` when the tool was not seen at all.
    fn finish(self) -> Option<Counts> {
        self.seen.then(|| {
            if self.broken {
                Counts::UNKNOWN
            } else {
                Counts::of(self.passed, self.failed)
            }
        })
    }
}
