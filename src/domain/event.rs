//! What happened, one value at a time. Execution emits these and never formats; every report is a
//! rendering of them or of their fold ([`super::summary::RunSummary`]).

use super::agent::{AgentEvent, Usage};
use super::assess::{AssessmentKind, message::FailedReport};
use super::attempt::{BlamedTest, PhaseName, Proof, ProofLine};
use super::builtin::session::Telemetry;
use super::checks::verdict::{CheckKind, CheckResult, HistoryEntry};
use super::notes::Note;
use super::outcome::{Outcome, Reason, RunStatus};
use super::review::{Finding, ReviewVerdict};
use super::sandbox::{DeniedHost, GatewayLine, SandboxLine};
use super::snapshot::Snapshot;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing that happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Counts up from 1 within the run.
    pub seq: u64,
    /// Wall-clock time, RFC 3339 in UTC.
    pub ts: String,
    /// Milliseconds since the run began, monotonic.
    pub elapsed_ms: u64,
    /// The task, where it applies.
    pub task: Option<String>,
    /// The attempt, where it applies.
    pub attempt: Option<u32>,
    /// The turn, where it applies.
    pub turn: Option<u32>,
    /// The proof in which it happened, where it applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// The phase in which it happened, where its task has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<PhaseName>,
    /// What happened.
    pub kind: EventKind,
}

/// A task as the run's beginning announces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskLine {
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

/// How the run begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The run's id.
    pub run_id: String,
    /// The plan's title.
    pub plan_title: String,
    /// The plan's path, relative to the work tree where it lies in it.
    pub plan_path: Option<String>,
    /// The branch that is checked out, short.
    pub branch: Option<String>,
    /// HEAD, when there is a commit.
    pub base: Option<String>,
    /// The agent's name.
    pub agent: String,
    /// Names of the checks in the order in which they run.
    pub checks: Vec<String>,
    /// All tasks of the plan in the order of the run.
    pub tasks: Vec<TaskLine>,
    /// Where the run is recorded.
    pub run_dir: String,
    /// Whether it takes up an earlier run.
    pub resumed: bool,
    /// The name under which it is told of on GitHub.
    #[serde(default)]
    pub name: Option<String>,
    /// What it may cost, in one line; absent where there is no limit.
    #[serde(default)]
    pub limits: Option<String>,
    /// The model, where one is named.
    #[serde(default)]
    pub model: Option<String>,
    /// The machine that the run begins on, where it has a name.
    #[serde(default)]
    pub host: Option<String>,
    /// How far its children are confined; older records do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxLine>,
    /// For each agent whether its key stays with Sprag.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateway: Vec<GatewayLine>,
}

/// A turn that ended, as the report tells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnLine {
    /// The turn's number in the task.
    pub turn: u32,
    /// `implement`, `nudge`, `retry`, or the word of the phase that begins.
    pub purpose: String,
    /// What the turn did.
    pub assessment: AssessmentKind,
    /// The phrases that decided.
    pub indicators: Vec<String>,
    /// One line for a person.
    pub detail: String,
    /// HEAD and tree before.
    pub before: Snapshot,
    /// HEAD and tree after.
    pub after: Snapshot,
    /// How the agent's process ended.
    pub exit: String,
    /// Milliseconds.
    pub elapsed_ms: u64,
    /// Tokens and cost of this turn alone.
    pub usage: Usage,
    /// The `FAILED:` report.
    pub failed_report: Option<FailedReport>,
    /// What it leaves for later tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// The session of the built-in agent in numbers, as it stood before any verification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<Telemetry>,
}

/// A review that came to a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewLine {
    /// Which review of the task, from 1.
    pub round: u32,
    /// How many there may be.
    pub of: u32,
    /// What it came to.
    pub verdict: ReviewVerdict,
    /// What all reviews of the task have found so far.
    pub findings: Vec<Finding>,
}

/// How far a turn has come, as far as the agent tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnProgress {
    /// Milliseconds since the turn began.
    pub elapsed_ms: u64,
    /// The last tool call, in one line.
    pub last_tool: Option<String>,
    /// Files that the agent says it changed.
    pub changed_files: Option<u32>,
    /// Tokens and cost so far.
    pub usage: Usage,
}

/// What is scheduled instead of going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryKind {
    /// The same turn again, more clearly.
    Nudge,
    /// A new attempt.
    Retry,
    /// The same turn again, later.
    Wait,
    /// Another turn, for the value that the run's output schema asks for.
    Output,
}

/// A task that ended, as the report tells it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskEnded {
    /// How.
    pub outcome: Outcome,
    /// Attempts begun.
    pub attempts: u32,
    /// Turns begun.
    pub turns: u32,
    /// Nudges given.
    pub nudges: u32,
    /// Verifications run.
    pub verifications: u32,
    /// What the attempts came to.
    pub history: Vec<HistoryEntry>,
    /// Whether the task left any change.
    pub changes_made: bool,
    /// Files changed by the task.
    pub changed_files: Vec<String>,
    /// The tests that failed last, and whom each failure is to be blamed on.
    #[serde(default)]
    pub failing_tests: Vec<BlamedTest>,
    /// The value that the task gave for the run's output schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<serde_json::Value>,
    /// Tokens and cost of its turns, where these were another job's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<Usage>,
    /// The failed work as a patch, relative to the run directory.
    pub patch: Option<String>,
    /// Commits that the agent made itself.
    pub agent_commits: u32,
    /// Milliseconds.
    pub elapsed_ms: u64,
}

impl TaskEnded {
    /// The end of a task in which no agent had a turn.
    pub fn without_turns(outcome: Outcome) -> Self {
        Self {
            outcome,
            attempts: 0,
            turns: 0,
            nudges: 0,
            verifications: 0,
            history: Vec::new(),
            changes_made: false,
            changed_files: Vec::new(),
            failing_tests: Vec::new(),
            structured_output: None,
            elsewhere: None,
            patch: None,
            agent_commits: 0,
            elapsed_ms: 0,
        }
    }
}

/// What became of the run's commits on the remote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PushLine {
    /// The branch on the remote that the work was meant for, short.
    pub branch: String,
    /// The head of the branch that holds the work, as it was read back from the remote.
    pub head: Option<String>,
    /// Whether the work is on that branch.
    pub pushed: bool,
    /// The branch that holds the work instead, short, where the meant one did not take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rescue: Option<String>,
    /// The pull request of the branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequestLine>,
    /// One line for a person.
    pub detail: String,
    /// Workflows that were started on what was pushed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dispatched: Vec<String>,
    /// The commits that were made anew on top of somebody else's, or by GitHub, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rebased: Vec<RebasedLine>,
}

/// A commit that was made anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RebasedLine {
    /// As it was.
    pub old: String,
    /// As it is; `null` when its change was there already.
    pub new: Option<String>,
}

/// A pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PullRequestLine {
    /// Its number.
    pub number: u64,
    /// Its address.
    pub url: String,
    /// Whether the run opened it.
    pub opened: bool,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The run began.
    RunStarted(Box<RunStarted>),
    /// A task began.
    TaskStarted {
        /// Its title.
        title: String,
    },
    /// A turn began.
    TurnStarted {
        /// `implement`, `nudge`, `retry`, or the word of the phase that begins.
        purpose: String,
        /// The agent's name.
        agent: String,
        /// The prompt, relative to the run directory.
        prompt: String,
    },
    /// The agent said or did something.
    Agent(AgentEvent),
    /// A turn goes on.
    TurnProgress(Box<TurnProgress>),
    /// A turn ended.
    TurnEnded {
        /// How the agent's process ended.
        exit: String,
        /// Milliseconds.
        elapsed_ms: u64,
        /// Tokens and cost of a turn that was cut short. Of every other turn its assessment tells
        /// them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    /// A turn was assessed.
    TurnAssessed(Box<TurnLine>),
    /// A review came to a verdict.
    ReviewEnded(Box<ReviewLine>),
    /// A check began.
    CheckStarted {
        /// Its name.
        name: String,
        /// Its kind.
        check: CheckKind,
    },
    /// A check ended.
    CheckEnded(Box<CheckResult>),
    /// The work goes on in another way than the straight one.
    RetryScheduled {
        /// Which way.
        how: RetryKind,
        /// Which one, from 1.
        n: u32,
        /// Of how many.
        of: u32,
        /// Why, in one line.
        reason: String,
        /// What shows it.
        indicators: Vec<String>,
        /// Milliseconds until then.
        delay_ms: u64,
    },
    /// Nudges helped.
    NudgeResolved {
        /// Turns that it took within the attempt.
        k: u32,
        /// Turns that were allowed.
        of: u32,
    },
    /// A proof began.
    ProofStarted {
        /// Which.
        proof: Proof,
    },
    /// A proof ended.
    ProofEnded(Box<ProofLine>),
    /// A verification was spared.
    VerificationSkipped {
        /// Why.
        reason: String,
    },
    /// A commit is in the branch.
    CommitCreated {
        /// Its id.
        commit: String,
        /// The first line of its message.
        subject: String,
        /// Files in it.
        files: Vec<String>,
    },
    /// The agent's own commits are in the branch.
    AgentCommits {
        /// `<id> <author> <subject>`, oldest first.
        commits: Vec<String>,
    },
    /// A commit was refused.
    CommitRejected {
        /// In whose words.
        reason: String,
    },
    /// A push was made or refused.
    PushEnded(Box<PushLine>),
    /// A task ended.
    TaskEnded(Box<TaskEnded>),
    /// A signal asked the run to stop.
    CancelRequested {
        /// Its number.
        signal: i32,
    },
    /// Hosts that children have asked for and that the setting `network` does not allow.
    HostsDenied {
        /// The hosts.
        hosts: Vec<DeniedHost>,
    },
    /// Something that a person should know.
    Warning {
        /// One line.
        message: String,
    },
    /// The run ended.
    RunEnded {
        /// Its status.
        status: RunStatus,
        /// Its reason.
        reason: Reason,
        /// The exit code.
        exit_code: u8,
        /// HEAD, when there is a commit.
        head: Option<String>,
        /// Files changed by the run.
        changed_files: Vec<String>,
    },
}
