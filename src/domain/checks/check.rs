//! Checks and how they end.

use crate::settings::choice::choice;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

choice! {
    /// The kind of a check.
    #[derive(PartialOrd, Ord, JsonSchema)]
    CheckKind {
        /// A build. It runs before all others, and its failure skips the rest.
        Build = "build",
        /// Tests.
        Test = "test",
        /// Linters and formatters.
        Lint = "lint",
        /// Anything else.
        Other = "other",
    }
}

impl CheckKind {
    /// The word used in plans, JSON and reports.
    pub fn as_str(self) -> &'static str {
        self.word()
    }
}

/// A command of the project that judges a tree.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Check {
    /// The name for logs and reports.
    pub name: String,
    /// The command, which `sh -e -c` runs in the work tree.
    pub run: String,
    /// Its kind.
    pub kind: CheckKind,
    /// The time limit of one run, in milliseconds.
    pub timeout_ms: u64,
    /// A glob for the JUnit XML reports that it writes, relative to the work tree.
    #[serde(default)]
    pub junit: Option<String>,
    /// The file of problem matchers for its output, relative to the work tree.
    #[serde(default)]
    pub problem_matcher: Option<String>,
}

/// How a check ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum CheckOutcome {
    /// Exit code 0.
    Passed,
    /// Another exit code, or 0 although the tests started and did not finish.
    Failed {
        /// The exit code.
        exit: i32,
    },
    /// It was ended by a signal that Sprag did not send.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// It was killed when its own time limit ran out.
    TimedOut {
        /// The limit, in milliseconds.
        after_ms: u64,
    },
    /// It could not start.
    NotStarted {
        /// The program that is missing or cannot be run.
        #[serde(default)]
        program: String,
        /// The error.
        why: String,
    },
    /// A cancellation, a deadline or a budget ended it: the result says nothing about the tree.
    Aborted,
    /// It did not run.
    Skipped {
        /// The reason, such as `build failed`.
        because: String,
    },
}

impl fmt::Display for CheckOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Failed { exit: 0 } => f.write_str(UNFINISHED),
            Self::Failed { exit } => write!(f, "failed with exit code {exit}"),
            Self::Signalled { signal } => write!(f, "killed by signal {signal}"),
            Self::TimedOut { after_ms } if after_ms.is_multiple_of(1_000) => {
                write!(f, "timed out after {} s", after_ms / 1_000)
            }
            Self::TimedOut { after_ms } => write!(f, "timed out after {after_ms} ms"),
            Self::NotStarted { why, .. } => write!(f, "could not be started: {why}"),
            Self::Aborted => f.write_str("aborted"),
            Self::Skipped { because } => write!(f, "skipped: {because}"),
        }
    }
}

/// The message for a check that ended before its tests did.
const UNFINISHED: &str =
    "failed: it ended with exit code 0 before its test runner printed a result";

impl CheckOutcome {
    /// Whether the outcome counts against the tree: neither passed, skipped nor aborted.
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Failed { .. }
            | Self::Signalled { .. }
            | Self::TimedOut { .. }
            | Self::NotStarted { .. } => true,
            Self::Passed | Self::Aborted | Self::Skipped { .. } => false,
        }
    }

    /// Whether the check's own time limit ran out.
    pub(super) fn is_timeout(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }
}
