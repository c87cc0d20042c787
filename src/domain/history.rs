//! The attempts of a task so far, as prompts and reports show them.

use crate::attempt::PhaseName;
use crate::checks::verdict::Verdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of an attempt, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum AttemptOutcome {
    /// A check that is neither a build nor a linter failed.
    FailedTests,
    /// Only checks of kind lint failed.
    FailedLint,
    /// A check of kind build failed.
    FailedBuild,
    /// The agent changed nothing.
    NoChange,
    /// Every check passed.
    Passed,
    /// A check or the turn ran out of time.
    TimedOut,
    /// The agent's process crashed.
    AgentCrashed,
    /// A commit hook refused the verified work.
    CommitRejected,
}

impl AttemptOutcome {
    /// The word used in prompts and reports.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether checks failed.
    pub const fn is_of_checks(self) -> bool {
        matches!(
            self,
            Self::FailedTests | Self::FailedLint | Self::FailedBuild
        )
    }
}

/// What an attempt changed if the tree cannot be read.
pub const UNKNOWN_CHANGES: &str = "Unable to determine changes";

/// One attempt of a task, as its history records it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryEntry {
    /// Its number, from 1.
    pub attempt: u32,
    /// The files it changed, or [`UNKNOWN_CHANGES`] alone.
    pub changes: Vec<String>,
    /// Its result.
    pub outcome: AttemptOutcome,
    /// Its first errors, one line each.
    pub errors: Vec<String>,
    /// Role, cycle and phase, if the task has several phases.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub phase: Option<PhaseName>,
}

impl Verdict {
    /// The attempt outcome that this verdict stands for; `None` if it says nothing about the attempt.
    pub fn outcome(&self) -> Option<AttemptOutcome> {
        match self {
            Self::Passed => Some(AttemptOutcome::Passed),
            Self::Failed { build: true, .. } => Some(AttemptOutcome::FailedBuild),
            Self::Failed { lint: true, .. } => Some(AttemptOutcome::FailedLint),
            Self::Failed { .. } | Self::CannotStart { .. } => Some(AttemptOutcome::FailedTests),
            Self::TimedOut { .. } => Some(AttemptOutcome::TimedOut),
            Self::Aborted | Self::NotRun => None,
        }
    }
}
