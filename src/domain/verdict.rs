//! Checks, their results, and what they add up to.

use serde::{Deserialize, Serialize};

/// What a check tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckKind {
    /// Runs before all others; its failure skips the rest.
    Build,
    /// Tests.
    Test,
    /// Linters and formatters.
    Lint,
    /// Anything else.
    Other,
}

/// A command of the project that decides whether a tree is good.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Check {
    /// For people, logs and reports.
    pub name: String,
    /// Run by `sh -c` in the work tree.
    pub run: String,
    /// Its kind.
    pub kind: CheckKind,
    /// Limit of one run, in milliseconds.
    pub timeout_ms: u64,
}
