//! Turns a GitHub event into work, a refusal, or nothing to do.
//!
//! [`payload::parse`] reads the event defensively, [`triage::triage`] decides from the event alone,
//! [`authorise::authorise`] decides from the fetched facts, and [`context::prompt`] describes the work for
//! the agent. Any stranger may have written these texts: their length is limited, parts that people cannot
//! see are removed, and they never configure anything.

pub mod approval;
pub mod authorise;
pub mod clean;
pub mod context;
pub mod issue;
pub mod job_log;
pub mod marker;
pub mod payload;
pub mod phrase;
pub mod picture;
pub mod place;
pub mod refname;
pub mod review;
pub mod run_name;
pub mod settings;
pub mod triage;

use super::outcome::{Reason, RunStatus};

/// A request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Request {
    /// The text that a person wrote after the phrase: one task.
    Instruction(String),
    /// The question that a person wrote after the command `ask`. Nothing is changed.
    Ask(String),
    /// The answer to the question with which the last run ended.
    Answer(String),
    /// Draft a plan for the issue or pull request, with these remarks, and show it.
    Draft(String),
    /// Run the plan that was shown, which has this code: see [`approval`].
    Approve(String),
    /// Run the plan file at this path, relative to the repository's root.
    Plan(String),
    /// Repeat the last work from its beginning.
    Retry,
    /// Continue where the last run ended.
    Continue,
    /// Merge the base branch into the branch of the pull request.
    Rebase,
    /// Stop the current run.
    Stop,
    /// Report the current run, or how the last run ended.
    Status,
    /// List the possible requests.
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
    /// Address a review.
    Review {
        /// The review.
        review_id: u64,
    },
    /// Work through a directory of plans, relative to the repository's root.
    Queue(String),
    /// A source named by a dispatch event. At most one is set.
    Dispatch {
        /// A plan file, relative to the repository's root.
        plan: Option<String>,
        /// The text of a task.
        prompt: Option<String>,
        /// A directory of plans, relative to the repository's root.
        queue: Option<String>,
    },
    /// The source that the workflow step configures.
    #[default]
    Configured,
}

impl Request {
    /// Whether an agent works on it; otherwise the request only needs an answer or a cancellation.
    pub fn is_work(&self) -> bool {
        !matches!(self, Self::Stop | Self::Status | Self::Help)
    }

    /// Whether it goes on with the work of the last run.
    pub fn continues(&self) -> bool {
        matches!(self, Self::Continue | Self::Answer(_))
    }
}

/// Why a request is refused; its text is the reason in one sentence. Decisions depend on the kind of refusal
/// and never on its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the sentence of each says what its fields are")]
pub enum Refusal {
    /// The asker cannot write to the repository.
    #[error("{login} has no write access to this repository")]
    NoWriteAccess { login: String },
    /// The asker can write to the repository, but the settings exclude them.
    #[error("`allowed-associations` does not list {login}'s association")]
    AssociationNotListed { login: String },
    /// GitHub did not answer the request for the asker's permission.
    #[error("could not determine {login}'s permission on this repository: {why}")]
    PermissionUnknown { login: String, why: String },
    /// Sprag's own comment could not be read. Without its record, a request could be carried out again and
    /// again.
    #[error("could not read the records of earlier runs here: {why}")]
    HistoryUnknown { why: String },
    /// GitHub did not answer the request for the pull request.
    #[error("could not determine the state of pull request #{number}")]
    PullRequestUnknown { number: u64 },
    /// The pull request's head repository was deleted.
    #[error("the fork that the pull request comes from is gone")]
    ForkIsGone,
    /// The issue or pull request is closed.
    #[error("the {what} is closed")]
    Closed { what: &'static str },
    /// Too many consecutive runs were started by machines.
    #[error("the last {runs} runs were all started by machines")]
    TooManyMachineRuns { runs: u32 },
    /// The daily limit is reached.
    #[error("{runs} runs were started here today, the limit of `max-runs-per-day`")]
    TooManyRunsToday { runs: u32 },
    /// `retry` or `continue` without an earlier run whose request can be read.
    #[error("there is no earlier run here to retry or continue{why}")]
    NoEarlierRun { why: String },
    /// `rebase` on an issue.
    #[error("`rebase` is for a pull request, and this is an issue")]
    NotAPullRequest,
    /// `approve` without a plan in Sprag's comment.
    #[error("there is no plan here to approve")]
    NoPlan,
    /// `answer` where no run has ended with a question.
    #[error("no question is open here, so that there is nothing to answer")]
    NoQuestion,
    /// The commit that the work would start from is unknown.
    #[error("the commit that the work starts from is unknown: {why}")]
    BaseUnknown { why: String },
    /// `approve` names another plan than the one that is shown, or the base has moved since.
    #[error(
        "the plan above or its base has changed, or the code is not its own: the code is {code} now"
    )]
    OtherPlan { code: String },
    /// `pull_request_target` is not enabled.
    #[error("`pull_request_target` gives the pull request's code the repository's secrets")]
    PullRequestTarget,
    /// A dispatch event names more than one source.
    #[error("the event has more than one of `plan`, `prompt` and `queue`")]
    SeveralSources,
    /// A path leads outside the repository.
    #[error("the path `{path}` {what}")]
    InvalidPath { path: String, what: String },
    /// A task refers to an issue that cannot be worked on.
    #[error("the task `{reference}` refers to an issue {what}")]
    InvalidReference { reference: String, what: String },
    /// A branch name is not accepted.
    #[error("the branch name `{name}` {what}")]
    InvalidBranch { name: String, what: String },
}

/// How the asker learns of a refusal on GitHub. A note and a comment come with a reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusalReply {
    /// Not at all.
    Nothing,
    /// By a reaction to the request.
    Reaction,
    /// By a note below the text that Sprag's comment has.
    Note,
    /// By a comment with nothing else.
    Comment,
}

impl Refusal {
    /// The status of the job, which determines its exit code. A person who may not make requests cannot make
    /// a job fail.
    pub fn status(&self) -> RunStatus {
        self.row().0
    }

    /// The reason code of the job.
    pub fn reason(&self) -> Reason {
        match self.status() {
            RunStatus::Invalid => Reason::Invalid,
            RunStatus::Environment => Reason::Environment,
            _ => Reason::Refused,
        }
    }

    /// What may be written to GitHub: nothing while the permission is unknown, and no comment for a person
    /// without permission.
    pub fn reply(&self) -> RefusalReply {
        self.row().1
    }

    /// The remedy, in one sentence.
    pub fn remedy(&self) -> &'static str {
        self.row().2
    }

    /// How the run ends, how the refusal is told, and its remedy. A note leaves the plan above it as it is.
    #[rustfmt::skip]
    fn row(&self) -> (RunStatus, RefusalReply, &'static str) {
        use RefusalReply::{Comment, Note, Nothing, Reaction};
        use RunStatus::{Blocked, Environment, Invalid, NoWork};
        match self {
            Self::NoWriteAccess { .. } => (NoWork, Reaction, "Somebody with write access can ask, or `allowed-users` can list this login."),
            Self::AssociationNotListed { .. } => (NoWork, Reaction, "Somebody who is can ask, or `allowed-users` can list this login."),
            Self::PermissionUnknown { .. } => (Environment, Nothing, "Run the job again. A token of an app or a person must be able to read the repository's metadata."),
            Self::HistoryUnknown { .. } => (Environment, Nothing, "Run the job again. Its token needs `issues: read` and `pull-requests: read`."),
            Self::PullRequestUnknown { .. } => (Environment, Comment, "Run the job again. Its token needs `pull-requests: read`."),
            Self::ForkIsGone => (Blocked, Comment, "Push the branch to this repository and open a pull request from there."),
            Self::Closed { .. } => (Blocked, Comment, "Reopen it and ask again."),
            Self::TooManyMachineRuns { .. } => (Blocked, Comment, "Find out why it keeps failing; a comment by a person starts the next run."),
            Self::TooManyRunsToday { .. } => (Blocked, Comment, "Ask again tomorrow (UTC), or raise the limit. Sprag's comment here holds the count: if Sprag has not written it, delete it."),
            Self::NoEarlierRun { .. } => (Invalid, Comment, "Describe the work to do."),
            Self::NotAPullRequest => (Invalid, Comment, "Ask for it on the pull request."),
            Self::NoPlan => (Invalid, Comment, "Have one drafted with `plan` first."),
            Self::NoQuestion => (Invalid, Comment, "Ask with `ask`, or describe the work to do."),
            Self::BaseUnknown { .. } => (Environment, Note, "Approve it again."),
            Self::OtherPlan { .. } => (Invalid, Note, "Read it again, then approve it with this code."),
            Self::PullRequestTarget => (Invalid, Comment, "Use `pull_request` or a comment as the trigger, or set `allow-pull-request-target` if this is intended."),
            Self::SeveralSources => (Invalid, Comment, "Give exactly one of them."),
            Self::InvalidPath { .. } => (Invalid, Comment, "Name a file by its path from the repository's root."),
            Self::InvalidReference { .. } => (Invalid, Comment, "Describe the task in the issue itself."),
            Self::InvalidBranch { .. } => (Invalid, Comment, "Rename the branch."),
        }
    }
}

/// At most the first `limit` bytes of `text`, cut at a character boundary.
pub(crate) fn head(text: &str, limit: usize) -> &str {
    text.get(..text.floor_char_boundary(limit)).unwrap_or(text)
}

/// At most the last `limit` bytes of `text`, cut at a character boundary.
pub(crate) fn tail(text: &str, limit: usize) -> &str {
    let from = text.ceil_char_boundary(text.len().saturating_sub(limit));
    text.get(from..).unwrap_or_default()
}

#[cfg(test)]
mod tests;
