//! What a turn did instead of the work, to which a nudge replies.

use serde::{Deserialize, Serialize};

/// What the agent did instead of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NudgeKind {
    /// It announced what it would do.
    Planning,
    /// It asked a question or waited for permission.
    AwaitingInput,
    /// It said that it cannot continue, without the required form.
    Blocked,
    /// It said that the work is done, or something unrelated.
    ClaimsDone,
    /// It said nothing.
    Empty,
    /// It changed files and ended with an error.
    EndedWithError,
    /// It fixed nothing that a review found.
    Findings,
    /// It wrote no test where one was required.
    NoTests,
    /// It changed other files where only tests may change.
    OnlyTests,
    /// It wrote tests that do not fail.
    TestsPass,
    /// Its final message contains no value that fits the run's output schema.
    Output,
}

impl NudgeKind {
    /// Whether this nudge shows the agent its unchanged tree, which happens once per attempt.
    pub fn shows_unchanged(self) -> bool {
        matches!(self, Self::ClaimsDone | Self::Blocked)
    }

    /// A description of the turn that led to this nudge, where its assessment does not give one.
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::EndedWithError => Some("changed files and ended with an error"),
            Self::Findings => Some("fixed nothing of what the review found"),
            Self::NoTests => Some("wrote no test"),
            Self::OnlyTests => Some("changed files that are no tests, which was undone"),
            Self::TestsPass => Some("wrote tests that do not fail"),
            Self::Planning
            | Self::AwaitingInput
            | Self::Blocked
            | Self::ClaimsDone
            | Self::Empty
            | Self::Output => None,
        }
    }

    /// Whether the nudge asks for failing tests rather than for the work.
    pub(crate) const fn is_about_tests(self) -> bool {
        matches!(self, Self::NoTests | Self::OnlyTests | Self::TestsPass)
    }
}
