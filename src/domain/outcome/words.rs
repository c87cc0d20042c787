//! The statuses of tasks and runs, and the exit codes and conclusions that they map to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Changes of protected paths that wait for a person.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct HeldBack {
    /// The patch with the changes, relative to the run directory.
    pub patch: String,
    /// The paths.
    pub paths: Vec<String>,
}

/// The status of a task at the end of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum TaskEnd {
    /// Done.
    Done,
    /// Failed.
    Failed,
    /// A person must act.
    Blocked,
    /// Not reached, or interrupted: it can be resumed.
    #[default]
    Pending,
    /// Its dependency failed.
    Skipped,
}

/// Reason codes of tasks and runs, a public interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is described where it is decided")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Reason {
    Verified,
    Drafted,
    Unverified,
    AlreadySatisfied,
    NoProgress,
    PlanningOnly,
    Answered,
    NeedsAnswer,
    VerificationFailed,
    RepeatingFailure,
    FailedReport,
    NeedsPermission,
    PolicyViolation,
    ReviewFindings,
    Acceptable,
    TddViolation,
    OutputMismatch,
    AgentUnavailable,
    AgentCrashed,
    TurnTimeout,
    CommitRejected,
    UnstableChecks,
    ChangedExpectations,
    Budget,
    Deadline,
    Cancelled,
    DependencyFailed,
    NoWork,
    Invalid,
    Environment,
    Internal,
    Refused,
    Conflict,
    MissingShard,
}

/// The status of a run, a public interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RunStatus {
    /// Every selected task is done and verified.
    Success,
    /// Every selected task is done or waits for a permission, at least one of them unverified: no check, changed
    /// tests, known failures, or protected paths.
    Unverified,
    /// Every selected task asked a question, and the agent answered it.
    Answered,
    /// There was nothing to do.
    NoWork,
    /// A task failed and none was committed.
    Failed,
    /// A task failed and others were committed.
    Partial,
    /// Usage, configuration or plan error.
    Invalid,
    /// A person must act.
    Blocked,
    /// Agent, git, GitHub or a permission is missing.
    Environment,
    /// The token or cost limit was reached.
    Budget,
    /// The deadline was reached.
    Deadline,
    /// Stopped by a signal.
    Cancelled,
}

/// The conclusion of GitHub's check run for a run status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "GitHub's own words")]
pub enum Conclusion {
    Success,
    Neutral,
    Failure,
    ActionRequired,
    TimedOut,
    Cancelled,
}

impl RunStatus {
    /// The process's exit code.
    pub fn exit_code(self, signal: Option<i32>) -> u8 {
        match self {
            Self::Success | Self::Unverified | Self::Answered | Self::NoWork => 0,
            Self::Failed | Self::Partial => 1,
            Self::Invalid => 2,
            Self::Blocked => 3,
            Self::Environment => 4,
            Self::Budget | Self::Deadline => 5,
            Self::Cancelled if signal == Some(15) => 143,
            Self::Cancelled => 130,
        }
    }

    /// Whether nothing is left to do.
    pub fn is_complete(self) -> bool {
        self.exit_code(None) == 0
    }

    /// The check run's conclusion.
    pub fn conclusion(self) -> Conclusion {
        match self {
            Self::Success => Conclusion::Success,
            Self::Unverified | Self::Answered | Self::NoWork => Conclusion::Neutral,
            Self::Failed | Self::Partial | Self::Invalid | Self::Environment => Conclusion::Failure,
            Self::Blocked => Conclusion::ActionRequired,
            Self::Budget | Self::Deadline => Conclusion::TimedOut,
            Self::Cancelled => Conclusion::Cancelled,
        }
    }

    /// The word used in JSON, outputs and reports.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    pub(super) fn rank(self) -> u8 {
        match self {
            Self::Invalid => 0,
            Self::Cancelled => 1,
            Self::Environment => 2,
            Self::Deadline => 3,
            Self::Budget => 4,
            Self::Blocked => 5,
            Self::Failed | Self::Partial => 6,
            Self::Unverified => 7,
            Self::Success => 8,
            Self::Answered => 9,
            Self::NoWork => 10,
        }
    }
}

impl Reason {
    /// Whether another task's reason says more about the run, such as why the dependency failed or what was
    /// done.
    pub(super) fn is_secondary(self) -> bool {
        matches!(self, Self::DependencyFailed | Self::AlreadySatisfied)
    }

    /// The word used in JSON, outputs and reports.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl TaskEnd {
    /// The word used in JSON and reports.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
