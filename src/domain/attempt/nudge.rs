//! What a turn did instead of the work, to which a nudge replies.

use crate::assess::AssessmentKind;
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
    /// The nudge after a turn that neither changed anything nor spoke of what is done.
    pub(super) const fn without_words(turn: AssessmentKind) -> Option<Self> {
        match turn {
            AssessmentKind::PlanningOnly => Some(Self::Planning),
            AssessmentKind::AwaitingInput => Some(Self::AwaitingInput),
            AssessmentKind::Empty => Some(Self::Empty),
            _ => None,
        }
    }

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
            _ => None,
        }
    }

    /// Whether it replies to a turn that changed nothing, so that a change is what it asks for.
    pub fn is_about_idleness(self) -> bool {
        self.reason().is_none() && self != Self::Output
    }

    /// Whether the nudge asks for failing tests rather than for the work.
    pub(crate) const fn is_about_tests(self) -> bool {
        matches!(self, Self::NoTests | Self::OnlyTests | Self::TestsPass)
    }
}
