//! A failed check, as it is compared with its other runs.

use super::Results;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A failed check, reduced to what is compared with its runs on other trees.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FailedCheck {
    /// The check's name.
    pub check: String,
    /// How it ended, without durations: `failed with exit code 101`.
    pub end: String,
    /// Equal for equal failures; empty if nothing is known of the failure.
    pub fingerprint: String,
    /// Ids of the failed tests, as far as the output names them.
    pub tests: BTreeSet<String>,
    /// Whether `tests` is known to be complete.
    pub all_named: bool,
    /// Whether more tests have failed than `tests` names.
    #[serde(default)]
    pub hides_some: bool,
    /// The number of passed tests, when the output states it.
    pub passed: Option<u64>,
    /// The results of all tests of each name in `tests`; empty if not every test of the check is named.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub results: BTreeMap<String, Results>,
    /// The number of failed tests of each run of tests, as far as they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_by_run: Vec<Option<u64>>,
    /// A path that the sandbox did not let the check write, if that explains the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// File and line of each test, as far as the output states them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<String, (String, u32)>,
}
