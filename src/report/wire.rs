//! The public form of events (`--events`, `sprag schema event`), which internal changes leave as it is.

mod convert;

use crate::domain::agent::{TodoItem, Usage};
use crate::domain::assess::AssessmentKind;
use crate::domain::assess::message::FailedReport;
use crate::domain::attempt::{PhaseName, Proof, ProofWord};
use crate::domain::checks::verdict::CheckKind;
use crate::domain::event::{Event, PushLine, RetryKind, TaskLine, WarningTopic};
use crate::domain::outcome::{Reason, RunStatus, TaskEnd};
use crate::domain::review::{Finding, ReviewVerdict};
use crate::domain::sandbox::{DeniedHost, GatewayLine, SandboxLine};
use crate::domain::summary::{HistoryLine, PlanLine, RunSummary, StateLine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One event of a run. While `v` is 1, fields may be added, but none is removed. Ignore fields and events
/// that you do not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WireEvent {
    /// The version of this format.
    pub v: u32,
    /// The event's number within the run, from 1.
    pub seq: u64,
    /// Wall-clock time, RFC 3339 in UTC.
    pub ts: String,
    /// Milliseconds since the run started, from a monotonic clock.
    pub elapsed_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub body: Body,
    /// The task's id, if it applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The attempt, if it applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The turn, if it applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The proof during which the event happened, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// Role, cycle and phase, if the task has several phases.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub place: Option<PhaseName>,
}

/// What happened, by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event")]
pub enum Body {
    /// The run started.
    #[serde(rename = "run.started")]
    RunStarted {
        /// The run's id.
        run_id: String,
        /// The plan.
        plan: PlanLine,
        /// The short name of the checked-out branch.
        branch: Option<String>,
        /// HEAD's commit.
        base: Option<String>,
        /// The agent's name.
        agent: String,
        /// Names of the checks, in the order in which they run.
        checks: Vec<String>,
        /// All tasks of the plan, in the order of the run.
        tasks: Vec<TaskLine>,
        /// The run directory.
        run_dir: String,
        /// Whether it resumes an earlier run.
        resumed: bool,
        /// The run's name on GitHub.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The cost limits, in one line.
        #[serde(skip_serializing_if = "Option::is_none")]
        limits: Option<String>,
        /// How far its child processes are confined.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sandbox: Option<SandboxLine>,
        /// For each agent, whether its key stays with Sprag.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gateway: Vec<GatewayLine>,
    },
    /// A task started.
    #[serde(rename = "task.started")]
    TaskStarted {
        /// Its title.
        title: String,
    },
    /// A turn started.
    #[serde(rename = "turn.started")]
    TurnStarted {
        /// `implement`, `nudge`, `retry`, or the name of the phase that begins: `test`, `review`, `fix`,
        /// `red`, `green`, `refactor`.
        purpose: String,
        /// The agent's name.
        agent: String,
        /// The prompt's path, relative to the run directory.
        prompt: String,
    },
    /// The agent opened or resumed a session.
    #[serde(rename = "agent.session")]
    AgentSession {
        /// The agent's own id for the session.
        session_id: String,
    },
    /// The agent wrote a message.
    #[serde(rename = "agent.message")]
    AgentMessage {
        /// The whole text.
        text: String,
        /// Whether it is the model's reasoning.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reasoning: bool,
    },
    /// The agent called a tool.
    #[serde(rename = "agent.tool_call")]
    AgentToolCall {
        /// The agent's id for the call.
        #[serde(default)]
        id: Option<String>,
        /// The tool's name.
        name: String,
        /// A one-line description: the command or the path.
        #[serde(default)]
        summary: String,
    },
    /// A tool call ended.
    #[serde(rename = "agent.tool_result")]
    AgentToolResult {
        /// The agent's id for the call.
        #[serde(default)]
        id: Option<String>,
        /// Whether it succeeded.
        ok: bool,
        /// The exit code, if the tool is a command.
        #[serde(default)]
        exit_code: Option<i32>,
        /// The beginning of the output.
        #[serde(default)]
        summary: String,
    },
    /// The agent reports that it changed a file. The repository decides.
    #[serde(rename = "agent.file_change")]
    AgentFileChange {
        /// The path as the agent names it.
        path: String,
        /// `add`, `update`, `delete` …
        kind: String,
    },
    /// The agent's own complete to-do list.
    #[serde(rename = "agent.todo")]
    AgentTodo {
        /// Every item.
        items: Vec<TodoItem>,
    },
    /// Tokens and cost so far; `null` means unknown, not zero.
    #[serde(rename = "agent.usage")]
    AgentUsage {
        /// The values that are known.
        #[serde(flatten)]
        usage: Usage,
    },
    /// The agent reported an error.
    #[serde(rename = "agent.error")]
    AgentError {
        /// The agent's text.
        message: String,
        /// Whether the turn failed because of it.
        #[serde(default)]
        is_final: bool,
    },
    /// A line that is not part of the agent's protocol.
    #[serde(rename = "agent.raw")]
    AgentRaw {
        /// The line, cut if it is very long.
        line: String,
    },
    /// A turn is still running; sent once a minute.
    #[serde(rename = "turn.progress")]
    TurnProgress {
        /// Milliseconds since the turn started.
        duration_ms: u64,
        /// The last tool call in one line, if the agent reports tool calls.
        last_tool: Option<String>,
        /// The number of files that the agent says it changed, if it reports them.
        changed_files: Option<u32>,
        /// Tokens and cost so far.
        usage: Usage,
    },
    /// A turn ended.
    #[serde(rename = "turn.ended")]
    TurnEnded {
        /// How the agent's process ended.
        exit: String,
        /// The duration in milliseconds.
        duration_ms: u64,
        /// Tokens and cost of a turn that was cut short, which is not assessed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    /// A turn was assessed.
    #[serde(rename = "turn.assessed")]
    TurnAssessed {
        /// `implement`, `nudge`, `retry`, or the name of the phase that begins: `test`, `review`, `fix`,
        /// `red`, `green`, `refactor`.
        purpose: String,
        /// The assessment.
        assessment: AssessmentKind,
        /// Up to 5 phrases of at most 120 characters that decided the assessment.
        indicators: Vec<String>,
        /// A one-line description, for a person.
        detail: String,
        /// HEAD and tree before.
        before: StateLine,
        /// HEAD and tree after.
        after: StateLine,
        /// How the agent's process ended.
        exit: String,
        /// The duration in milliseconds.
        duration_ms: u64,
        /// Tokens and cost of this turn alone.
        usage: Usage,
        /// The `FAILED:` report.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed_report: Option<FailedReport>,
        /// Its notes for later tasks: the texts of its `NOTE:` lines.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// A review gave a verdict.
    #[serde(rename = "review.ended")]
    ReviewEnded {
        /// The number of the review within the task, from 1.
        round: u32,
        /// The maximum number of reviews.
        of: u32,
        /// The verdict.
        verdict: ReviewVerdict,
        /// Whether the reviewer gave no verdict; absent if it gave one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        incomplete: bool,
        /// The findings of all reviews of the task so far.
        findings: Vec<Finding>,
    },
    /// A setup command started.
    #[serde(rename = "setup.started")]
    SetupStarted {
        /// The command.
        command: String,
    },
    /// A setup command ended.
    #[serde(rename = "setup.ended")]
    SetupEnded {
        /// The command.
        command: String,
        /// How its process ended: `code 0`, a signal, or a time limit.
        exit: String,
        /// Whether it succeeded.
        passed: bool,
        /// The duration in milliseconds.
        duration_ms: u64,
        /// The path of its log, relative to the run directory.
        log: Option<String>,
    },
    /// A check started.
    #[serde(rename = "check.started")]
    CheckStarted {
        /// Its name.
        name: String,
        /// Its kind.
        kind: CheckKind,
    },
    /// A check ended.
    #[serde(rename = "check.ended")]
    CheckEnded {
        /// Its name.
        name: String,
        /// Its kind.
        kind: CheckKind,
        /// The outcome.
        outcome: WireCheckOutcome,
        /// Whether it passed.
        passed: bool,
        /// Its exit code, if it has one.
        exit_code: Option<i32>,
        /// Why it was not run or was aborted, or the signal that ended it.
        detail: Option<String>,
        /// The number of tests that passed; `null` if the output does not contain it.
        passed_count: Option<u64>,
        /// The number of tests that failed; `null` if the output does not contain it.
        failed_count: Option<u64>,
        /// The duration in milliseconds.
        duration_ms: u64,
        /// The path of its log, relative to the run directory.
        log: Option<String>,
        /// The first errors, one line each.
        errors: Vec<String>,
    },
    /// A nudge, retry or wait is scheduled.
    #[serde(rename = "retry.scheduled")]
    RetryScheduled {
        /// The kind.
        kind: RetryKind,
        /// Its number, from 1.
        n: u32,
        /// The maximum number.
        of: u32,
        /// The reason, in one line.
        reason: String,
        /// Up to 5 phrases of at most 120 characters as evidence.
        indicators: Vec<String>,
        /// The delay in milliseconds.
        delay_ms: u64,
        /// The sentence in the log.
        message: String,
    },
    /// A proof began: the checks run on another tree, or again on the same tree.
    #[serde(rename = "proof.started")]
    ProofStarted {},
    /// A proof ended, and the work tree is restored.
    #[serde(rename = "proof.ended")]
    ProofEnded {
        /// The result of the checks.
        result: ProofWord,
        /// The failures, or why the result is unknown.
        details: Vec<String>,
        /// The conclusion, in one sentence.
        message: String,
        /// The duration in milliseconds.
        duration_ms: u64,
    },
    /// A verification was not necessary.
    #[serde(rename = "verification.skipped")]
    VerificationSkipped {
        /// The reason.
        reason: String,
    },
    /// A commit by Sprag is in the branch.
    #[serde(rename = "commit.created")]
    CommitCreated {
        /// Its id.
        commit: String,
        /// The first line of its message.
        subject: String,
        /// The files in the commit.
        files: Vec<String>,
    },
    /// A commit was refused.
    #[serde(rename = "commit.rejected")]
    CommitRejected {
        /// The output of the hook or of git.
        reason: String,
        /// Whether a hook refused it; `false` if git could not make it.
        by_hook: bool,
    },
    /// A push succeeded or was refused.
    #[serde(rename = "push.ended")]
    PushEnded(PushLine),
    /// A task ended.
    #[serde(rename = "task.ended")]
    TaskEnded {
        /// Its status.
        status: TaskEnd,
        /// The reason code.
        reason: Reason,
        /// The result in one line, for a person.
        message: String,
        /// Sprag's commit.
        commit: Option<String>,
        /// The number of attempts.
        attempts: u32,
        /// The number of turns.
        turns: u32,
        /// The number of nudges.
        nudges: u32,
        /// The number of verifications.
        verifications: u32,
        /// The results of the attempts.
        history: Vec<HistoryLine>,
        /// Whether the task left any change.
        changes_made: bool,
        /// Files changed by the task.
        changed_files: Vec<String>,
        /// The value that the task returned for the run's output schema; absent if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        structured_output: Option<serde_json::Value>,
        /// The path of the patch with the failed work, relative to the run directory.
        patch: Option<String>,
        /// The number of commits that the agent made itself.
        agent_commits: u32,
        /// The duration in milliseconds.
        duration_ms: u64,
    },
    /// A signal asked the run to stop.
    #[serde(rename = "cancel.requested")]
    CancelRequested {
        /// Its number.
        signal: i32,
    },
    /// Child processes requested hosts that the setting `network` does not allow.
    #[serde(rename = "network.denied")]
    NetworkDenied {
        /// The hosts, and how often each was requested since the last such event.
        hosts: Vec<DeniedHost>,
    },
    /// A warning for a person. With `code` it is a note, which `summary.json` does not have as a warning.
    #[serde(rename = "warning")]
    Warning {
        /// The text in one line.
        message: String,
        /// Its topic, if a report depends on it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        topic: Option<WarningTopic>,
        /// The kind of note.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<WireNote>,
        /// With `nudge_resolved`: the number of turns that it took within the attempt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        k: Option<u32>,
        /// With `nudge_resolved`: the maximum number of turns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<u32>,
        /// With `agent_commits`: `<id> <author> <subject>`, oldest first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        commits: Vec<String>,
    },
    /// The run ended.
    #[serde(rename = "run.ended")]
    RunEnded {
        /// Its status.
        status: RunStatus,
        /// Its reason.
        reason: Reason,
        /// The exit code.
        exit_code: u8,
        /// HEAD's commit.
        head: Option<String>,
        /// Files changed by the run.
        changed_files: Vec<String>,
    },
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WireCheckOutcome {
    /// It passed.
    Passed,
    /// It exited with a code other than 0.
    Failed,
    /// A signal ended it.
    Signalled,
    /// It reached its time limit.
    TimedOut,
    /// It could not be started.
    NotStarted,
    /// The run aborted it.
    Aborted,
    /// It was not run.
    Skipped,
}

/// Notes without their own event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WireNote {
    /// A turn did the work after one or more nudges.
    NudgeResolved,
    /// The agent made commits itself.
    AgentCommits,
}

impl WireEvent {
    /// Converts an event to its public form. `summary` is the fold up to and including it: the sentences of
    /// nudges depend on the assessment of the task's last turn.
    pub fn new(event: &Event, summary: &RunSummary) -> Self {
        Self {
            v: 1,
            seq: event.seq,
            ts: event.ts.clone(),
            elapsed_ms: event.elapsed_ms,
            body: convert::body(event, summary),
            task: event.task.clone(),
            attempt: event.attempt,
            turn: event.turn,
            proof: event.proof,
            place: event.phase,
        }
    }
}

/// The JSON Schema of one line of events.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(WireEvent).to_value()
}

/// The JSON Schema of `summary.json`.
pub fn summary_schema() -> serde_json::Value {
    schemars::schema_for!(RunSummary).to_value()
}

#[cfg(test)]
mod tests;
