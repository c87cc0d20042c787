//! The events of a run. Execution emits these values and never formats; every report renders them or their
//! fold ([`super::summary::RunSummary`]).

mod push;

pub use push::{ClosedPull, PullRequestLine, PushLine, RebasedLine};

use super::agent::{AgentEvent, Usage};
use super::assess::{AssessmentKind, message::FailedReport};
use super::attempt::{BlamedTest, EvidenceLine, HeldBack, PhaseName, Proof, ProofLine};
use super::checks::signals::Signal;
use super::checks::verdict::{CheckKind, CheckResult};
use super::continuation::{Continuation, Directories};
use super::history::HistoryEntry;
use super::outcome::{Outcome, Reason, RunStatus};
use super::review::{Finding, ReviewVerdict};
use super::sandbox::{DeniedHost, GatewayLine, SandboxLine};
use super::session::Telemetry;
use super::snapshot::{Head, Snapshot};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The event's number within the run, from 1.
    pub seq: u64,
    /// Wall-clock time, RFC 3339 in UTC.
    pub ts: String,
    /// Milliseconds since the run started, from a monotonic clock.
    pub elapsed_ms: u64,
    /// Where in the run it happened.
    #[serde(flatten)]
    pub place: EventPlace,
    /// What happened.
    pub kind: EventKind,
}

/// Where in a run an event happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventPlace {
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
    pub phase: Option<PhaseName>,
}

/// A task as the start of the run lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskLine {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Whether it was done before the run.
    pub done: bool,
    /// Whether the run includes it.
    pub selected: bool,
    /// Its line in the plan file.
    pub line: Option<u32>,
    /// The maximum number of retries.
    pub max_retries: u32,
}

/// The plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanLine {
    /// Its title.
    pub title: String,
    /// Its path; `null` if the plan is a prompt.
    pub path: Option<String>,
}

/// The start of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct RunStarted {
    /// What is known of the run.
    #[serde(flatten)]
    pub facts: RunFacts,
    /// All tasks of the plan, in the order of the run.
    pub tasks: Vec<TaskLine>,
    /// Whether it resumes an earlier run.
    pub resumed: bool,
    /// Which parts of the plan were taken for something else than tasks, and which hooks do not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub understood: Vec<String>,
}

/// What is known of a run from its start: in its first event, and in the summary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunFacts {
    /// The run's id.
    pub run_id: String,
    /// The plan.
    pub plan: PlanLine,
    /// The short name of the checked-out branch.
    pub branch: Option<String>,
    /// HEAD at the beginning.
    pub base: Option<String>,
    /// The agent's name.
    pub agent: String,
    /// Names of the checks, in the order in which they run.
    pub checks: Vec<String>,
    /// The run directory.
    pub run_dir: String,
    /// The run's name on GitHub, such as `Sprag / CI / fix`; absent without GitHub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The cost limits in one line; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<String>,
    /// The model; absent if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The host name of the machine on which the run began; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// How far the run's child processes are confined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxLine>,
    /// For each agent, whether its key stays with Sprag; absent if no agent calls a model itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateway: Vec<GatewayLine>,
    /// How a person continues the run if it is not completely done; absent for a command on its machine.
    #[serde(default, skip_serializing_if = "Continuation::is_here")]
    pub continuation: Continuation,
    /// Whether the run may start on a tree that is not clean, and commits nothing; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_dirty: bool,
    /// How commands that a person types name the directories of the run; absent if they need not.
    #[serde(default, skip_serializing_if = "Directories::are_here")]
    pub directories: Directories,
}

/// HEAD and tree; all `null` if they could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateLine {
    /// HEAD's commit.
    pub head: Option<String>,
    /// The fingerprint of the work tree.
    pub tree: Option<String>,
    /// Whether the work tree differs from HEAD.
    pub dirty: Option<bool>,
}

impl From<&Snapshot> for StateLine {
    fn from(snapshot: &Snapshot) -> Self {
        let Snapshot::Known(known) = snapshot else {
            return Self::default();
        };
        Self {
            head: match &known.head {
                Head::Unborn => None,
                Head::At(id) => Some(id.0.clone()),
            },
            tree: Some(known.tree.0.clone()),
            dirty: Some(known.dirty),
        }
    }
}

/// A completed turn, as reports show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct TurnLine {
    /// `implement`, `nudge`, `retry`, or the name of the phase that begins: `test`, `review`, `fix`,
    /// `red`, `green`, `refactor`.
    pub purpose: String,
    /// The assessment.
    pub assessment: AssessmentKind,
    /// Up to 5 phrases of at most 120 characters that decided the assessment.
    pub indicators: Vec<String>,
    /// A one-line description, for a person.
    pub detail: String,
    /// HEAD and tree before.
    pub before: StateLine,
    /// HEAD and tree after.
    pub after: StateLine,
    /// How the agent's process ended.
    pub exit: String,
    /// The duration in milliseconds.
    #[serde(rename = "duration_ms")]
    pub elapsed_ms: u64,
    /// Tokens and cost of this turn alone.
    pub usage: Usage,
    /// The `FAILED:` report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_report: Option<FailedReport>,
    /// The final message of a turn that ended with a question, cut to 4,000 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Its notes for later tasks: the texts of its `NOTE:` lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Statistics of the built-in agent's session, before any verification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub builtin: Option<Telemetry>,
}

/// A review that gave a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ReviewLine {
    /// The number of the review within the task, from 1.
    pub round: u32,
    /// The maximum number of reviews.
    pub of: u32,
    /// The verdict.
    pub verdict: ReviewVerdict,
    /// Whether the reviewer gave no verdict; absent if it gave one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// The findings of all reviews of the task so far.
    pub findings: Vec<Finding>,
}

/// The progress of a turn, as far as the agent reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct TurnProgress {
    /// Milliseconds since the turn started.
    #[serde(rename = "duration_ms")]
    pub elapsed_ms: u64,
    /// The last tool call in one line, if the agent reports tool calls.
    pub last_tool: Option<String>,
    /// The number of files that the agent says it changed, if it reports them.
    pub changed_files: Option<u32>,
    /// Tokens and cost so far.
    pub usage: Usage,
}

/// What is scheduled before the work continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryKind {
    /// The same turn again, with a more explicit prompt.
    Nudge,
    /// A new attempt.
    Retry,
    /// The same turn again, after a wait.
    Wait,
    /// Another turn, for the value that the run's output schema requires.
    Output,
}

/// A scheduled nudge, retry or wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct RetryLine {
    /// The kind.
    #[serde(rename = "kind")]
    pub how: RetryKind,
    /// Its number, from 1.
    pub n: u32,
    /// The maximum number.
    pub of: u32,
    /// The reason, in one line.
    pub reason: String,
    /// Up to 5 phrases of at most 120 characters as evidence.
    pub indicators: Vec<String>,
    /// The delay in milliseconds.
    pub delay_ms: u64,
    /// The sentence in the log; empty until the public form is made.
    #[schemars(description = "The sentence in the log.")]
    pub message: String,
}

impl RetryLine {
    /// Repetition `n` of `of`, at once and without indicators.
    pub fn new(how: RetryKind, n: u32, of: u32, reason: impl Into<String>) -> Self {
        Self {
            how,
            n,
            of,
            reason: reason.into(),
            indicators: Vec::new(),
            delay_ms: 0,
            message: String::new(),
        }
    }
}

/// A completed setup command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct SetupLine {
    /// The command.
    pub command: String,
    /// How its process ended: `code 0`, a signal, or a time limit.
    pub exit: String,
    /// Whether it succeeded.
    pub passed: bool,
    /// The duration in milliseconds.
    #[serde(rename = "duration_ms")]
    pub elapsed_ms: u64,
    /// The path of its log, relative to the run directory.
    pub log: Option<String>,
}

/// A completed task, as reports show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskEnded {
    /// The outcome.
    pub outcome: Outcome,
    /// The number of attempts started.
    pub attempts: u32,
    /// The number of turns started.
    pub turns: u32,
    /// The number of nudges.
    pub nudges: u32,
    /// Whether the task left any change.
    pub changes_made: bool,
    /// What it left.
    #[serde(flatten)]
    pub work: TaskWork,
    /// Tokens and cost of its turns, if they ran in another job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<Usage>,
    /// The duration in milliseconds.
    pub elapsed_ms: u64,
}

/// What a task left: in the event of its end, and in the summary.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskWork {
    /// The number of verifications.
    pub verifications: u32,
    /// The results of the attempts.
    pub history: Vec<HistoryEntry>,
    /// Files changed by the task.
    pub changed_files: Vec<String>,
    /// The tests that failed last, each with the origin of its failure.
    pub failing_tests: Vec<BlamedTest>,
    /// What the checks show of its work; absent if it is not done or no check ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceLine>,
    /// What is worth a look in its work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<Signal>,
    /// Changes of protected paths that were taken out of the work and wait for a person.
    pub held: Vec<HeldBack>,
    /// The agent's answer, or the question that it asks, if the task ended with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The value that it returned for the run's output schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<serde_json::Value>,
    /// The path of the patch with the failed work, relative to the run directory.
    pub patch: Option<String>,
    /// The number of commits that the agent made itself.
    pub agent_commits: u32,
}

impl TaskEnded {
    /// The end of a task that had no turn of an agent.
    pub fn without_turns(outcome: Outcome) -> Self {
        Self {
            outcome,
            attempts: 0,
            turns: 0,
            nudges: 0,
            changes_made: false,
            work: TaskWork::default(),
            elsewhere: None,
            elapsed_ms: 0,
        }
    }
}

/// The topic of a warning on which reports depend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WarningTopic {
    /// An error that ended the run or its delivery.
    Error {
        /// What removes its cause, one sentence each.
        remedies: Vec<String>,
    },
    /// The run's unfinished work is only in its job.
    OnlyInJob,
    /// Files that only setup commands and checks created are left in the work tree.
    CheckArtifacts,
    /// No jj bookmark follows the commits.
    NoBookmark,
    /// The pull request is from a fork, so nothing is pushed.
    FromFork,
    /// The pull request was closed during a run that has nothing to push.
    PullRequestClosed {
        /// How it was closed.
        how: ClosedPull,
    },
}

/// The kinds of events, by their public names. A variant that the schema skips has another public form, which
/// `report/wire.rs` declares. The same holds for a skipped field: the public form does not have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event")]
pub enum EventKind {
    /// The run started.
    #[serde(rename = "run.started")]
    RunStarted(Box<RunStarted>),
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
    /// A turn is still running; sent once a minute.
    #[serde(rename = "turn.progress")]
    TurnProgress(Box<TurnProgress>),
    /// A turn ended.
    #[serde(rename = "turn.ended")]
    TurnEnded {
        /// How the agent's process ended.
        exit: String,
        /// The duration in milliseconds.
        #[serde(rename = "duration_ms")]
        elapsed_ms: u64,
        /// Tokens and cost of a turn that was cut short, which is not assessed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    /// A turn was assessed.
    #[serde(rename = "turn.assessed")]
    TurnAssessed(Box<TurnLine>),
    /// A review gave a verdict.
    #[serde(rename = "review.ended")]
    ReviewEnded(Box<ReviewLine>),
    /// A setup command started.
    #[serde(rename = "setup.started")]
    SetupStarted {
        /// The command.
        command: String,
    },
    /// A setup command ended.
    #[serde(rename = "setup.ended")]
    SetupEnded(Box<SetupLine>),
    /// A check started.
    #[serde(rename = "check.started")]
    CheckStarted {
        /// Its name.
        name: String,
        /// Its kind.
        #[serde(rename = "kind")]
        check: CheckKind,
    },
    /// A check ended.
    #[serde(rename = "check.ended")]
    #[schemars(skip)]
    CheckEnded(Box<CheckResult>),
    /// A nudge, retry or wait is scheduled.
    #[serde(rename = "retry.scheduled")]
    RetryScheduled(Box<RetryLine>),
    /// A turn did the work after one or more nudges.
    #[serde(rename = "nudge.resolved")]
    #[schemars(skip)]
    NudgeResolved {
        /// The number of turns that it took within the attempt.
        k: u32,
        /// The number of turns allowed.
        of: u32,
    },
    /// A proof began: the checks run on another tree, or again on the same tree.
    #[serde(rename = "proof.started")]
    ProofStarted {},
    /// A proof ended.
    #[serde(rename = "proof.ended")]
    #[schemars(skip)]
    ProofEnded(Box<ProofLine>),
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
    /// The agent's own commits are on the branch.
    #[serde(rename = "agent.commits")]
    #[schemars(skip)]
    AgentCommits {
        /// `<id> <author> <subject>`, oldest first.
        commits: Vec<String>,
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
    PushEnded(Box<PushLine>),
    /// A task ended.
    #[serde(rename = "task.ended")]
    #[schemars(skip)]
    TaskEnded(Box<TaskEnded>),
    /// A signal asked the run to stop.
    #[serde(rename = "cancel.requested")]
    CancelRequested {
        /// Its number.
        signal: i32,
    },
    /// Child processes requested hosts that the setting `network` does not allow.
    #[serde(rename = "network.denied")]
    HostsDenied {
        /// The hosts, and how often each was requested since the last such event.
        hosts: Vec<DeniedHost>,
    },
    /// Something that a person should know.
    #[serde(rename = "warning")]
    #[schemars(skip)]
    Warning {
        /// A one-line message.
        message: String,
        /// Its topic, if a report depends on it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        topic: Option<WarningTopic>,
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
    /// The agent said or did something.
    #[serde(untagged)]
    #[schemars(skip)]
    Agent(AgentEvent),
}
