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

/// The sum; `None` if a number is unknown or the sum overflows.
pub(super) fn sum(numbers: &[Option<u64>]) -> Option<u64> {
    numbers
        .iter()
        .try_fold(0u64, |sum, number| sum.checked_add((*number)?))
}
