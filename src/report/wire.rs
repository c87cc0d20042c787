//! The public form of events (`--events`, `sprag schema event`). It is a separate type, so that a change of
//! the internal one does not change the public one.

mod convert;

use crate::domain::assess::AssessmentKind;
use crate::domain::attempt::{PhaseName, Proof, ProofWord};
use crate::domain::checks::verdict::CheckKind;
use crate::domain::event::{Event, PushLine};
use crate::domain::outcome::{Reason, RunStatus, TaskEnd};
use crate::domain::review::{Finding, ReviewVerdict};
use crate::domain::sandbox::{DeniedHost, GatewayLine, SandboxLine};
use crate::domain::summary::{HistoryLine, RunSummary, StateLine};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One event of a run. Fields may be added, none removed, while `v` is 1; a reader passes over
/// fields and events that it does not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WireEvent {
    /// Version of this format.
    pub v: u32,
    /// Counts up from 1 within the run.
    pub seq: u64,
    /// Wall-clock time, RFC 3339 in UTC.
    pub ts: String,
    /// Milliseconds since the run began, monotonic.
    pub elapsed_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub body: Body,
    /// The task's id, where it applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The attempt, where it applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The turn, where it applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The proof of which it is a part, where it applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// Role, cycle and phase, where the task has several phases.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub place: Option<PhaseName>,
}

/// What happened, by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event")]
pub enum Body {
    /// The run began.
    #[serde(rename = "run.started")]
    RunStarted {
        /// The run's id.
        run_id: String,
        /// The plan.
        plan: WirePlan,
        /// The branch that is checked out, short.
        branch: Option<String>,
        /// HEAD's commit.
        base: Option<String>,
        /// The agent's name.
        agent: String,
        /// Names of the checks in the order in which they run.
        checks: Vec<String>,
        /// All tasks of the plan in the order of the run.
        tasks: Vec<WireTask>,
        /// Where the run is recorded.
        run_dir: String,
        /// Whether it takes up an earlier run.
        resumed: bool,
        /// The name under which it is told of on GitHub.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// What it may cost, in one line.
        #[serde(skip_serializing_if = "Option::is_none")]
        limits: Option<String>,
        /// How far its children are confined.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sandbox: Option<SandboxLine>,
        /// For each agent whether its key stays with Sprag.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gateway: Vec<GatewayLine>,
    },
    /// A task began.
    #[serde(rename = "task.started")]
    TaskStarted {
        /// Its title.
        title: String,
    },
    /// A turn began.
    #[serde(rename = "turn.started")]
    TurnStarted {
        /// `implement`, `nudge`, `retry`, or the word of the phase that begins: `test`, `review`, `fix`, `red`, `green`, `refactor`.
        purpose: String,
        /// The agent's name.
        agent: String,
        /// The prompt's file, relative to the run directory.
        prompt: String,
    },
    /// The agent opened or resumed a session.
    #[serde(rename = "agent.session")]
    AgentSession {
        /// The agent's own id of the session.
        session_id: String,
    },
    /// The agent wrote something.
    #[serde(rename = "agent.message")]
    AgentMessage {
        /// The whole text.
        text: String,
        /// Whether it is the model's reasoning and not addressed to anybody.
        #[serde(default, skip_serializing_if = "is_false")]
        reasoning: bool,
    },
    /// The agent called a tool.
    #[serde(rename = "agent.tool_call")]
    AgentToolCall {
        /// The agent's id of the call.
        #[serde(default)]
        id: Option<String>,
        /// The tool's name.
        name: String,
        /// One line for a person: the command, the path.
        #[serde(default)]
        summary: String,
    },
    /// A tool call ended.
    #[serde(rename = "agent.tool_result")]
    AgentToolResult {
        /// The agent's id of the call.
        #[serde(default)]
        id: Option<String>,
        /// Whether it succeeded.
        ok: bool,
        /// Exit code of a command.
        #[serde(default)]
        exit_code: Option<i32>,
        /// The output's beginning.
        #[serde(default)]
        summary: String,
    },
    /// The agent says that it changed a file. The repository decides.
    #[serde(rename = "agent.file_change")]
    AgentFileChange {
        /// As the agent names it.
        path: String,
        /// `add`, `update`, `delete` …
        kind: String,
    },
    /// The agent's own list of things to do, whole.
    #[serde(rename = "agent.todo")]
    AgentTodo {
        /// Every item.
        items: Vec<WireTodo>,
    },
    /// Tokens and cost so far; `null` is unknown, not zero.
    #[serde(rename = "agent.usage")]
    AgentUsage {
        /// What is known.
        #[serde(flatten)]
        usage: WireUsage,
    },
    /// An error that the agent reported.
    #[serde(rename = "agent.error")]
    AgentError {
        /// The agent's text.
        message: String,
        /// Whether the turn failed with it.
        #[serde(default)]
        is_final: bool,
    },
    /// A line that is not of the agent's protocol.
    #[serde(rename = "agent.raw")]
    AgentRaw {
        /// The line, cut where it is very long.
        line: String,
    },
    /// A turn goes on; told once a minute.
    #[serde(rename = "turn.progress")]
    TurnProgress {
        /// Milliseconds since the turn began.
        duration_ms: u64,
        /// The last tool call, in one line, where the agent tells of them.
        last_tool: Option<String>,
        /// Files that the agent says it changed, where it tells of them.
        changed_files: Option<u32>,
        /// Tokens and cost so far.
        usage: WireUsage,
    },
    /// A turn ended.
    #[serde(rename = "turn.ended")]
    TurnEnded {
        /// How the agent's process ended.
        exit: String,
        /// Milliseconds.
        duration_ms: u64,
        /// Tokens and cost of a turn that was cut short and is not assessed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<WireUsage>,
    },
    /// It was decided what a turn did.
    #[serde(rename = "turn.assessed")]
    TurnAssessed {
        /// `implement`, `nudge`, `retry`, or the word of the phase that begins: `test`, `review`, `fix`, `red`, `green`, `refactor`.
        purpose: String,
        /// What it did.
        assessment: AssessmentKind,
        /// Up to 5 phrases of at most 120 characters that decided.
        indicators: Vec<String>,
        /// One line for a person.
        detail: String,
        /// HEAD and tree before.
        before: StateLine,
        /// HEAD and tree after.
        after: StateLine,
        /// How the agent's process ended.
        exit: String,
        /// Milliseconds.
        duration_ms: u64,
        /// Tokens and cost of this turn alone.
        usage: WireUsage,
        /// The `FAILED:` report.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed_report: Option<WireFailedReport>,
        /// What it leaves for later tasks: the texts of its `NOTE:` lines.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// A review came to a verdict.
    #[serde(rename = "review.ended")]
    ReviewEnded {
        /// Which review of the task, from 1.
        round: u32,
        /// How many there may be.
        of: u32,
        /// What it came to.
        verdict: ReviewVerdict,
        /// What all reviews of the task have found so far.
        findings: Vec<Finding>,
    },
    /// A check began.
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
        /// How it ended.
        outcome: WireCheckOutcome,
        /// Whether it passed.
        passed: bool,
        /// Its exit code, where it has one.
        exit_code: Option<i32>,
        /// Why it was not run or had no end of its own, or the signal that ended it.
        detail: Option<String>,
        /// Tests that passed; `null` when the output does not tell.
        passed_count: Option<u64>,
        /// Tests that failed; `null` when the output does not tell.
        failed_count: Option<u64>,
        /// Milliseconds.
        duration_ms: u64,
        /// Its log, relative to the run directory.
        log: Option<String>,
        /// One line for each of the first errors.
        errors: Vec<String>,
    },
    /// The work goes on in another way than the straight one.
    #[serde(rename = "retry.scheduled")]
    RetryScheduled {
        /// Which way.
        kind: WireRetry,
        /// Which one, from 1.
        n: u32,
        /// Of how many.
        of: u32,
        /// Why, in one line.
        reason: String,
        /// Up to 5 phrases of at most 120 characters that show it.
        indicators: Vec<String>,
        /// Milliseconds until then.
        delay_ms: u64,
        /// The sentence of the log.
        message: String,
    },
    /// A proof began: the checks run on another tree, or once more.
    #[serde(rename = "proof.started")]
    ProofStarted {},
    /// A proof ended, and the work tree is as it was before.
    #[serde(rename = "proof.ended")]
    ProofEnded {
        /// What the checks came to.
        result: ProofWord,
        /// What failed, or why nothing is known.
        details: Vec<String>,
        /// What is known now, in one sentence.
        message: String,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
    /// A verification was spared.
    #[serde(rename = "verification.skipped")]
    VerificationSkipped {
        /// Why.
        reason: String,
    },
    /// A commit of Sprag's is in the branch.
    #[serde(rename = "commit.created")]
    CommitCreated {
        /// Its id.
        commit: String,
        /// The first line of its message.
        subject: String,
        /// Files in it.
        files: Vec<String>,
    },
    /// A commit was refused.
    #[serde(rename = "commit.rejected")]
    CommitRejected {
        /// In whose words.
        reason: String,
    },
    /// A push was made or refused.
    #[serde(rename = "push.ended")]
    PushEnded(PushLine),
    /// A task ended.
    #[serde(rename = "task.ended")]
    TaskEnded {
        /// Where it stands.
        status: TaskEnd,
        /// The reason code.
        reason: Reason,
        /// One line for a person.
        message: String,
        /// Sprag's commit.
        commit: Option<String>,
        /// Attempts begun.
        attempts: u32,
        /// Turns begun.
        turns: u32,
        /// Nudges given.
        nudges: u32,
        /// Verifications run.
        verifications: u32,
        /// What the attempts came to.
        history: Vec<HistoryLine>,
        /// Whether the task left any change.
        changes_made: bool,
        /// Files changed by the task.
        changed_files: Vec<String>,
        /// The value that the task gave for the run's output schema; absent where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        structured_output: Option<serde_json::Value>,
        /// The failed work as a patch, relative to the run directory.
        patch: Option<String>,
        /// Commits that the agent made itself.
        agent_commits: u32,
        /// Milliseconds.
        duration_ms: u64,
    },
    /// A signal asked the run to stop.
    #[serde(rename = "cancel.requested")]
    CancelRequested {
        /// Its number.
        signal: i32,
    },
    /// Children have asked for hosts that the setting `network` does not allow.
    #[serde(rename = "network.denied")]
    NetworkDenied {
        /// The hosts, and how often each was asked for since the last such event.
        hosts: Vec<DeniedHost>,
    },
    /// Something that a person should know. With `code` it is a note that has no event of its own
    /// and is no warning of `summary.json`.
    #[serde(rename = "warning")]
    Warning {
        /// One line.
        message: String,
        /// What kind of note.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<WireNote>,
        /// With `nudge_resolved`: the turns that it took within the attempt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        k: Option<u32>,
        /// With `nudge_resolved`: the turns that were allowed.
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

/// Which plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WirePlan {
    /// Its title.
    pub title: String,
    /// Its path; `null` when the plan is a prompt.
    pub path: Option<String>,
}

/// A task as the run's beginning announces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WireTask {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Whether it was done before the run.
    pub done: bool,
    /// Whether the run is to work on it.
    pub selected: bool,
    /// Its line in the plan file.
    pub line: Option<u32>,
    /// Its retries.
    pub max_retries: u32,
}

/// One item of an agent's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WireTodo {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub status: WireTodoStatus,
}

/// How far an item of an agent's list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WireTodoStatus {
    /// Not begun.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done, the agent says.
    Completed,
}

/// Tokens and cost; `null` is unknown, not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WireUsage {
    /// Tokens sent to the model, cached ones included.
    #[serde(default)]
    pub tokens_in: Option<u64>,
    /// Of these, tokens served from a cache.
    #[serde(default)]
    pub tokens_cached: Option<u64>,
    /// Tokens produced by the model.
    #[serde(default)]
    pub tokens_out: Option<u64>,
    /// US dollars.
    #[serde(default)]
    pub cost_usd: Option<f64>,
}

/// The agent's `FAILED:` report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WireFailedReport {
    /// The text after `FAILED:`.
    pub summary: String,
    /// What was asked.
    pub requirements: Option<String>,
    /// What stands in the way.
    pub problems: Option<String>,
    /// What could be done.
    pub solutions: Option<String>,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WireCheckOutcome {
    /// It passed.
    Passed,
    /// It exited with another code than 0.
    Failed,
    /// A signal ended it.
    Signalled,
    /// It hit its time limit.
    TimedOut,
    /// It could not be started.
    NotStarted,
    /// The run ended it.
    Aborted,
    /// It was not run.
    Skipped,
}

/// What is scheduled instead of going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WireRetry {
    /// The same turn again, more clearly.
    Nudge,
    /// A new attempt.
    Retry,
    /// The same turn again, later.
    Wait,
    /// Another turn, for the value that the run's output schema asks for.
    Output,
}

/// Notes that have no event of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WireNote {
    /// Nudges helped.
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

fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests;
