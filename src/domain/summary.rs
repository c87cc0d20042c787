//! The only read model of a run: a fold over its events, and the structure of `summary.json`.

mod attempts;
mod fold;
mod parts;
mod standing;

pub use attempts::{AttemptLines, AttemptName};
pub use standing::{Hue, Standing};

use super::agent::{AgentEvent, TodoItem, Usage};
use super::assess::AssessmentKind;
use super::assess::message::FailedReport;
use super::attempt::{Phase, PhaseName, Proof, ProofLine};
use super::checks::verdict::{CheckKind, CheckOutcome, CheckResult};
use super::event::{
    Event, EventKind, PullRequestLine, PushLine, RetryKind, RetryLine, ReviewLine, RunFacts,
    RunStarted, StateLine, TaskEnded, TaskWork, TurnLine, TurnProgress, WarningTopic,
};
use super::notes::Note;
use super::outcome::{Reason, RunStatus, TaskEnd};
use super::review::{self, Finding, ReviewVerdict};
use super::sandbox::{DeniedHost, GatewayLine};
use super::session::Telemetry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The agent's name of a run in which no agent works.
pub const NO_AGENT: &str = "none";

/// The current state of a run. Its serialized form is `summary.json`, a public interface: fields may be
/// added, but none is removed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// The version of this format.
    pub v: Version,
    /// What is known of it from its start.
    #[serde(flatten)]
    pub facts: RunFacts,
    /// The status; `null` during the run.
    pub status: Option<RunStatus>,
    /// The reason code.
    pub reason: Option<Reason>,
    /// The process's exit code.
    pub exit_code: Option<u8>,
    /// The duration in milliseconds.
    pub elapsed_ms: u64,
    /// HEAD at the end.
    pub head: Option<String>,
    /// Files changed by the run.
    pub changed_files: Vec<String>,
    /// Sprag's commits, oldest first.
    pub commits: Vec<String>,
    /// The result of the push; absent if there was nothing to push.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<PushLine>,
    /// Warnings for a person.
    pub warnings: Vec<String>,
    /// The topics of the warnings that have one; absent if none has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warning_topics: Vec<TopicLine>,
    /// The notes of agents for later tasks, in the order of time; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// The value that the last task returned for the output schema; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<serde_json::Value>,
    /// Tokens and cost of all turns; `null` if unknown.
    pub usage: Usage,
    /// Counts over all tasks.
    pub totals: Totals,
    /// Every task of the plan.
    pub tasks: Vec<TaskSummary>,
    /// The task being worked on.
    #[serde(skip)]
    pub current: Option<String>,
    /// The prompt of the latest turn.
    #[serde(skip)]
    pub prompt: Option<String>,
    /// The latest state of the agent's own to-do list.
    #[serde(skip)]
    pub todo: Vec<TodoItem>,
    /// The progress of the current turn.
    #[serde(skip)]
    pub turn: Option<Box<TurnProgress>>,
}

/// The version of the format: 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Version(u32);

impl Default for Version {
    fn default() -> Self {
        Self(1)
    }
}

/// The topic of a warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TopicLine {
    /// The position of the warning in `warnings`, from 0.
    pub warning: usize,
    /// Its topic.
    #[serde(flatten)]
    pub topic: WarningTopic,
}

/// Counts over all tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// The number of tasks of the plan.
    pub tasks: u32,
    /// The number of tasks that are done, including those from earlier runs.
    pub done: u32,
    /// The number of attempts.
    pub attempts: u32,
    /// The number of retries.
    pub retries: u32,
    /// The number of nudges.
    pub nudges: u32,
    /// The number of turns.
    pub turns: u32,
    /// The number of verifications.
    pub verifications: u32,
    /// The number of verifications that were not necessary.
    pub verifications_skipped: u32,
}

/// One task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSummary {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its status.
    pub status: TaskEnd,
    /// Whether the checks or the reviewer confirm that the task is done.
    pub verified: bool,
    /// The reason code; `null` for a task that was not reached or was already done.
    pub reason: Option<Reason>,
    /// Sprag's commit.
    pub commit: Option<String>,
    /// The number of attempts.
    pub attempts: u32,
    /// The number of retries.
    pub retries: u32,
    /// The maximum number of retries.
    pub max_retries: u32,
    /// The number of nudges.
    pub nudges: u32,
    /// Its turns.
    pub turns: Vec<TurnSummary>,
    /// Every run of a check for it, in order, except for those of proofs.
    pub checks: Vec<CheckLine>,
    /// Its proofs, in order.
    pub proofs: Vec<ProofLine>,
    /// The verdicts of its reviews, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<ReviewSummary>,
    /// The findings of its reviews.
    pub findings: Vec<Finding>,
    /// The agent's `FAILED:` report.
    pub failed_report: Option<FailedReport>,
    /// Whether the task left any change; `null` if the task was not started.
    pub changes_made: Option<bool>,
    /// What it left.
    #[serde(flatten)]
    pub work: TaskWork,
    /// The result in one line, for a person.
    pub message: String,
    /// Whether a hook, and not git itself, refused the last commit; absent if none was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_by_hook: Option<bool>,
    /// The duration in milliseconds.
    pub elapsed_ms: u64,
    /// Tokens and cost of its turns; `null` if unknown.
    #[serde(default)]
    pub usage: Usage,
    /// The task's line in the plan file.
    pub line: Option<u32>,
    /// Whether the run includes it.
    pub selected: bool,
    /// The counters of its phases.
    #[serde(skip)]
    pub counted: Counted,
}

/// The counters of each phase of a task. Only the fold needs them, so they do not affect the equality of
/// summaries.
#[derive(Debug, Clone, Default)]
pub struct Counted(BTreeMap<(u32, Phase), PhaseCounts>);

impl PartialEq for Counted {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The counters of a phase.
#[derive(Debug, Clone, Copy, Default)]
struct PhaseCounts {
    attempts: u32,
    retries: u32,
    nudges: u32,
}

/// One review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewSummary {
    /// The number of the review within the task, from 1.
    pub round: u32,
    /// The maximum number of reviews.
    pub of: u32,
    /// The verdict.
    pub verdict: ReviewVerdict,
    /// Whether the reviewer gave no verdict, so that the review may be incomplete; absent if it gave one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// The number of findings that were open after it.
    pub open: u32,
}

/// One turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnSummary {
    /// The turn's number in the task.
    pub turn: u32,
    /// Its attempt.
    pub attempt: u32,
    /// `implement`, `nudge`, `retry`, or the name of the phase that begins.
    pub purpose: String,
    /// The path of the prompt, relative to the run directory; the turn's other files have the same number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Role, cycle and phase, if the task has several phases.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub place: Option<PhaseName>,
    /// The assessment of the turn.
    pub assessment: AssessmentKind,
    /// The phrases that decided the assessment.
    pub indicators: Vec<String>,
    /// A one-line description, for a person.
    pub detail: String,
    /// The final message of a turn that ended with a question, cut to 4,000 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// HEAD and tree before the turn.
    pub before: StateLine,
    /// HEAD and tree after the turn.
    pub after: StateLine,
    /// How the agent's process ended.
    pub exit: String,
    /// The duration in milliseconds.
    pub elapsed_ms: u64,
    /// Tokens and cost of this turn alone; `null` if unknown.
    #[serde(default)]
    pub usage: Usage,
    /// Statistics of the built-in agent's session; absent for other agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<Telemetry>,
}

/// One run of a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckLine {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: CheckKind,
    /// The attempt that it verified.
    pub attempt: u32,
    /// Role, cycle and phase of that attempt, if the task has several phases.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub place: Option<PhaseName>,
    /// Whether it passed.
    pub passed: bool,
    /// The number of tests that passed; `null` if the output does not contain it.
    pub passed_count: Option<u64>,
    /// The number of tests that failed; `null` if the output does not contain it.
    pub failed_count: Option<u64>,
    /// Whether it reached its time limit.
    pub timed_out: bool,
    /// The duration in milliseconds.
    pub elapsed_ms: u64,
    /// The path of its log, relative to the run directory.
    pub log: Option<String>,
    /// The time of its end, RFC 3339.
    pub ended_at: String,
    /// The result in words.
    pub detail: String,
    /// The end of its output if it failed, cut to a limit.
    pub excerpt: Option<String>,
    /// Its messages about lines of files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub diagnostics: Vec<super::checks::diagnostic::Diagnostic>,
}

#[cfg(test)]
mod tests;
