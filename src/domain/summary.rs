//! The only read model of a run: a fold over its events, and the structure of `summary.json`.

mod fold;
mod parts;

use super::agent::{AgentEvent, TodoItem, Usage};
use super::assess::AssessmentKind;
use super::assess::message::FailedReport;
use super::attempt::{BlamedTest, Phase, PhaseName, Proof, ProofLine};
use super::builtin::session::Telemetry;
use super::checks::verdict::{CheckKind, CheckOutcome, CheckResult};
use super::event::{
    Event, EventKind, PushLine, RetryKind, ReviewLine, RunStarted, TaskEnded, TurnLine,
    TurnProgress,
};
use super::notes::Note;
use super::outcome::{Reason, RunStatus, TaskEnd};
use super::review::{self, Finding, ReviewVerdict};
use super::sandbox::{DeniedHost, GatewayLine, SandboxLine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A run, as far as it has come. Serialised it is `summary.json`, a public interface: fields may be
/// added, none removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// Version of this format.
    pub v: u32,
    /// The run's id.
    pub run_id: String,
    /// The status; `null` while the run is going on.
    pub status: Option<RunStatus>,
    /// The reason code.
    pub reason: Option<Reason>,
    /// The process's exit code.
    pub exit_code: Option<u8>,
    /// Milliseconds.
    pub elapsed_ms: u64,
    /// The branch that is checked out, short.
    pub branch: Option<String>,
    /// HEAD at the end.
    pub head: Option<String>,
    /// HEAD at the beginning.
    pub base: Option<String>,
    /// The plan.
    pub plan: PlanLine,
    /// Where the run is recorded.
    #[serde(default)]
    pub run_dir: String,
    /// The name under which the run is told of on GitHub, such as `Sprag / CI / fix`; absent where GitHub has nothing to do with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the run may cost, in one line; absent where there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<String>,
    /// The agent's name.
    pub agent: String,
    /// The model, where one is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The machine that the run began on, where it has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Names of the checks.
    pub checks: Vec<String>,
    /// How far the children of the run were confined; absent where the record does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxLine>,
    /// For each agent whether its key stayed with Sprag; absent where no agent asks a model itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateway: Vec<GatewayLine>,
    /// Files changed by the run.
    pub changed_files: Vec<String>,
    /// Sprag's commits, oldest first.
    pub commits: Vec<String>,
    /// What became of the commits on the remote; absent where nothing was to be pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<PushLine>,
    /// What a person should know.
    pub warnings: Vec<String>,
    /// What the agents of tasks left for later ones, in the order of time; absent where there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// The value that the last task gave for the output schema; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<serde_json::Value>,
    /// Tokens and cost of all turns; `null` where unknown.
    pub usage: RunUsage,
    /// Counts over all tasks.
    pub totals: Totals,
    /// Every task of the plan.
    pub tasks: Vec<TaskSummary>,
    /// The task being worked on.
    #[serde(skip)]
    pub current: Option<String>,
    /// The prompt of the turn that was begun last.
    #[serde(skip)]
    pub prompt: Option<String>,
    /// The agent's own list of things to do, as it last stood.
    #[serde(skip)]
    pub todo: Vec<TodoItem>,
    /// How far the turn has come that is going on.
    #[serde(skip)]
    pub turn: Option<Box<TurnProgress>>,
}

/// Which plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanLine {
    /// Its title.
    pub title: String,
    /// Its path; `null` when the plan is a prompt.
    pub path: Option<String>,
}

/// Tokens and cost; `null` where unknown, which is not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunUsage {
    /// Tokens sent.
    pub tokens_in: Option<u64>,
    /// Of these, tokens that the provider served from its cache; left out where the agent does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_cached: Option<u64>,
    /// Tokens received.
    pub tokens_out: Option<u64>,
    /// US dollars.
    pub cost_usd: Option<f64>,
}

/// Counts over all tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Tasks of the plan.
    pub tasks: u32,
    /// Tasks that are done, earlier runs included.
    pub done: u32,
    /// Attempts begun.
    pub attempts: u32,
    /// Retries.
    pub retries: u32,
    /// Nudges.
    pub nudges: u32,
    /// Turns begun.
    pub turns: u32,
    /// Verifications run.
    pub verifications: u32,
    /// Verifications spared.
    pub verifications_skipped: u32,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSummary {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Where it stands.
    pub status: TaskEnd,
    /// The reason code; `null` for a task that was not reached or was done before.
    pub reason: Option<Reason>,
    /// Sprag's commit.
    pub commit: Option<String>,
    /// Attempts begun.
    pub attempts: u32,
    /// Retries.
    pub retries: u32,
    /// Retries allowed.
    pub max_retries: u32,
    /// Nudges.
    pub nudges: u32,
    /// Its turns.
    pub turns: Vec<TurnSummary>,
    /// What the attempts came to.
    pub history: Vec<HistoryLine>,
    /// Every check run for it, in order, but for those of proofs.
    pub checks: Vec<CheckLine>,
    /// The proofs that were run for it, in order.
    #[serde(default)]
    pub proofs: Vec<ProofLine>,
    /// The tests that failed last, and whom each failure is to be blamed on.
    #[serde(default)]
    pub failing_tests: Vec<BlamedTest>,
    /// The value that it gave for the run's output schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<serde_json::Value>,
    /// What its reviews came to, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<ReviewSummary>,
    /// What its reviews have found.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// The agent's `FAILED:` report.
    pub failed_report: Option<FailedReport>,
    /// Whether the task left any change; `null` for a task that was not worked on.
    pub changes_made: Option<bool>,
    /// Files changed by the task.
    pub changed_files: Vec<String>,
    /// One line for a person.
    pub message: String,
    /// The failed work as a patch, relative to the run directory.
    pub patch: Option<String>,
    /// Commits that the agent made itself.
    pub agent_commits: u32,
    /// Verifications run.
    #[serde(default)]
    pub verifications: u32,
    /// Milliseconds.
    pub elapsed_ms: u64,
    /// Tokens and cost of its turns; `null` where unknown.
    #[serde(default)]
    pub usage: RunUsage,
    /// The task's line in the plan file.
    pub line: Option<u32>,
    /// Whether the run was to work on it.
    pub selected: bool,
    /// What is counted in each of its phases.
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
    /// Which review of the task, from 1.
    pub round: u32,
    /// How many there may be.
    pub of: u32,
    /// What it came to.
    pub verdict: ReviewVerdict,
    /// Findings that were open after it.
    pub open: u32,
}

/// One turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnSummary {
    /// Its number in the task.
    pub turn: u32,
    /// The attempt that it belongs to; 0 where an older record does not tell.
    #[serde(default)]
    pub attempt: u32,
    /// `implement`, `nudge`, `retry`, or the word of the phase that begins.
    pub purpose: String,
    /// What the agent was told, relative to the run directory; its number is that of the turn's other files too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Role, cycle and phase, where the task has several phases.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub place: Option<PhaseName>,
    /// What it did.
    pub assessment: AssessmentKind,
    /// The phrases that decided.
    pub indicators: Vec<String>,
    /// One line for a person.
    pub detail: String,
    /// The state before.
    pub before: StateLine,
    /// The state after.
    pub after: StateLine,
    /// How the agent's process ended.
    pub exit: String,
    /// Milliseconds.
    pub elapsed_ms: u64,
    /// Tokens and cost of this turn alone; `null` where unknown.
    #[serde(default)]
    pub usage: RunUsage,
    /// The session of the built-in agent in numbers; other agents have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<Telemetry>,
}

/// HEAD and tree; all `null` when they could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateLine {
    /// HEAD's commit.
    pub head: Option<String>,
    /// Fingerprint of the working copy.
    pub tree: Option<String>,
    /// Whether the working copy differs from HEAD.
    pub dirty: Option<bool>,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryLine {
    /// Its number.
    pub attempt: u32,
    /// Role, cycle and phase, where the task has several phases.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub place: Option<PhaseName>,
    /// Files changed since the task began.
    pub changes: Vec<String>,
    /// How it ended.
    pub outcome: String,
    /// One line for each of the first errors.
    pub errors: Vec<String>,
}

/// One run of a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckLine {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: CheckKind,
    /// The attempt that it decided.
    pub attempt: u32,
    /// Whether it passed.
    pub passed: bool,
    /// Tests that passed; `null` when the output does not tell.
    pub passed_count: Option<u64>,
    /// Tests that failed; `null` when the output does not tell.
    pub failed_count: Option<u64>,
    /// Whether it hit its time limit.
    pub timed_out: bool,
    /// Milliseconds.
    pub elapsed_ms: u64,
    /// Its log, relative to the run directory.
    pub log: Option<String>,
    /// When it ended, RFC 3339.
    pub ended_at: String,
    /// How it ended, for a person.
    pub detail: String,
    /// The end of its output when it failed, bounded.
    pub excerpt: Option<String>,
    /// What it said about lines of files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub diagnostics: Vec<super::checks::diagnostic::Diagnostic>,
}

impl Default for RunSummary {
    fn default() -> Self {
        Self {
            v: 1,
            run_id: String::new(),
            status: None,
            reason: None,
            exit_code: None,
            elapsed_ms: 0,
            branch: None,
            head: None,
            base: None,
            plan: PlanLine::default(),
            run_dir: String::new(),
            agent: String::new(),
            model: None,
            host: None,
            checks: Vec::new(),
            sandbox: None,
            gateway: Vec::new(),
            changed_files: Vec::new(),
            commits: Vec::new(),
            push: None,
            warnings: Vec::new(),
            notes: Vec::new(),
            structured_output: None,
            usage: RunUsage::default(),
            totals: Totals::default(),
            tasks: Vec::new(),
            current: None,
            prompt: None,
            todo: Vec::new(),
            name: None,
            limits: None,
            turn: None,
        }
    }
}

#[cfg(test)]
mod tests;
