//! A GitHub event becomes nothing to do, a refusal, or work.
//!
//! [`payload::parse`] reads the event defensively, [`triage::triage`] decides from the event alone,
//! [`authorise::authorise`] decides from what had to be fetched, and [`context::prompt`] words the
//! work for the agent. Every text here was written by somebody on the internet: it is bounded,
//! cleaned of what people cannot see, and never configures anything.

pub mod authorise;
pub mod clean;
pub mod context;
pub mod issue;
pub mod job_log;
pub mod marker;
pub mod payload;
pub mod phrase;
pub mod refname;
pub mod settings;
pub mod triage;

use super::outcome::RunStatus;
use serde::{Deserialize, Serialize};

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// What a person wrote after the phrase: one task.
    Instruction(String),
    /// Run the plan file at this path, relative to the repository's root.
    Plan(String),
    /// Do the last work again from its beginning.
    Retry,
    /// Go on where the last run ended.
    Continue,
    /// Stop what runs.
    Stop,
    /// Say what runs, or how the last run ended.
    Status,
    /// Say what can be asked for.
    Help,
    /// The text of the labelled issue or pull request is the plan: see [`issue::plan`].
    IssuePlan,
    /// Make the failed jobs of a workflow run pass.
    FixRun {
        /// The workflow run.
        run_id: u64,
    },
    /// Make the failed jobs of a check suite pass.
    FixSuite {
        /// The check suite.
        suite_id: u64,
    },
    /// Do what a review asks for.
    Review {
        /// The review.
        review_id: u64,
    },
    /// Work off a directory of plans, relative to the repository's root.
    Queue(String),
    /// A source that a dispatch event named. At most one is set.
    Dispatch {
        /// A plan file, relative to the repository's root.
        plan: Option<String>,
        /// A task in words.
        prompt: Option<String>,
        /// A directory of plans, relative to the repository's root.
        queue: Option<String>,
    },
    /// The source that the step itself configures.
    Configured,
}

impl Ask {
    /// Whether an agent works for it; otherwise an answer or a cancel is all there is to do.
    pub fn is_work(&self) -> bool {
        !matches!(self, Self::Stop | Self::Status | Self::Help)
    }
}

/// Why somebody who asked is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The run's status, from which its exit code follows.
    pub status: RunStatus,
    /// Why, in one sentence.
    pub reason: String,
    /// What a person can do about it, in one sentence.
    pub remedy: String,
}

impl Refusal {
    pub(super) fn new(status: RunStatus, reason: impl Into<String>, remedy: &str) -> Self {
        Self {
            status,
            reason: reason.into(),
            remedy: remedy.to_owned(),
        }
    }
}

/// At most `limit` bytes of `text`, cut where a character begins.
pub(crate) fn head(text: &str, limit: usize) -> &str {
    text.get(..text.floor_char_boundary(limit)).unwrap_or(text)
}

/// At most the last `limit` bytes of `text`, cut where a character begins.
pub(crate) fn tail(text: &str, limit: usize) -> &str {
    let from = text.ceil_char_boundary(text.len().saturating_sub(limit));
    text.get(from..).unwrap_or_default()
}

#[cfg(test)]
mod tests;
