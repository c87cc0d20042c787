//! One task as a history of intents and observations, and the choice of the next step.
//!
//! `fold(history)` returns the [`TaskState`]; [`decide`] returns the next [`Step`]. Both are pure and total,
//! so a stored history always replays to the same step.

mod conclude;
mod decide;
mod evidence;
mod facts;
mod moves;
mod nudge;
mod phase;
mod phases;
mod proof;
mod refusal;
mod spend;
mod state;

#[cfg(test)]
mod explore;

pub use decide::decide;
pub use evidence::{EvidenceKind, EvidenceLine, evidence};
pub use nudge::NudgeKind;
pub use phase::{
    Expect, Phase, PhaseName, PhaseSpec, PhasesAsked, ROUNDS, Role, Writes, are_named,
    have_phases_of, phases,
};
pub use proof::{
    Blame, BlamedTest, Proof, ProofLine, ProofResult, ProofWord, Proofs, Proved, TestChanges, names,
};
pub use spend::Spend;
pub use state::{Last, TaskState};

use super::assess::Assessment;
pub use super::checks::FailedCheck;
use super::checks::Reported;
use super::checks::signals::Signal;
use super::checks::verdict::Verdict;
pub use super::outcome::HeldBack;
use super::outcome::Outcome;
use super::output_schema::StructuredOutput;
use super::review::Review;
use super::settings::{Baseline, KnownFailures, ProveNewTests, SignalPolicy, TestChangePolicy};
use super::snapshot::{Fingerprint, RevId, Snapshot};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The message of a task that the pre-flight check ended because its tree is the one that failed last.
pub const NO_FILE_CHANGES: &str = "No progress detected - agent made no file changes";

/// The limits and rules that apply to one task.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The phases of a task in order, at least one.
    pub phases: Vec<PhaseSpec>,
    /// Number of identical failures in a row that ends a task.
    pub identical_failures: u32,
    /// Number of waits for transient errors after which the agent counts as unavailable.
    pub waits: u32,
    /// Whether any check is configured.
    pub has_checks: bool,
    /// Whether the task asks for nothing but a check, so that the checks decide about an unchanged turn.
    pub only_checks: bool,
    /// Whether the task is worded as a question, so that an unchanged turn may answer it.
    pub is_question: bool,
    /// Whether work is accepted when no check is configured.
    pub accept_unverified: bool,
    /// When the checks run on the tree on which the task started.
    pub baseline: Baseline,
    /// How often the checks may run again on a tree that has failed.
    pub flaky_reruns: u32,
    /// How to treat work whose only failures existed before the task.
    pub known_failures: KnownFailures,
    /// How to treat work that changes what judges it.
    pub test_changes: TestChangePolicy,
    /// Whether new tests must fail without the work.
    pub prove_new_tests: ProveNewTests,
    /// What happens with signals.
    pub signals: SignalPolicy,
    /// Whether Sprag commits (it does not with `allow_dirty`).
    pub commits: bool,
    /// Whether the task must return a value that fits the run's output schema.
    pub wants_output: bool,
    /// Token limit of the run.
    pub max_tokens: Option<u64>,
    /// Cost limit of the run in US dollars.
    pub max_cost_usd: Option<f64>,
    /// What the run spent before this task.
    pub spent_before: Spend,
    /// Elapsed run time after which no step starts, in milliseconds.
    pub deadline_ms: Option<u64>,
    /// The first wait for a transient error, in milliseconds; each later wait is three times as long.
    pub wait_base_ms: u64,
}

/// Identifies one turn within a task. All numbers except `phase` count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TurnKey {
    /// Index of the phase, from 0.
    pub phase: usize,
    /// Attempt within the phase.
    pub attempt: u32,
    /// Turn within the task.
    pub turn: u32,
    /// The phase's name, when the task has several phases.
    pub name: Option<PhaseName>,
}

impl TurnKey {
    /// The agent's role in the turn.
    pub fn role(self) -> Role {
        self.name.map_or(Role::Implementer, |name| name.role)
    }
}

/// Why the agent runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "purpose", rename_all = "snake_case")]
pub enum TurnPurpose {
    /// The first turn of a task.
    Implement,
    /// The first turn of any other phase.
    Phase {
        /// The phase.
        phase: Phase,
        /// Why the work on which the phase starts is acceptable.
        grounds: Option<Grounds>,
    },
    /// The agent did nothing: the same request again, more explicitly.
    Nudge {
        /// The number of the nudge within the phase, from 1.
        n: u32,
        /// What the agent did instead.
        kind: NudgeKind,
    },
    /// A new attempt, because the last one failed.
    Retry {
        /// How the last turn was cut off, if it was.
        cut_off: Option<String>,
    },
}

impl TurnPurpose {
    /// The word used in events, reports and `SPRAG_PURPOSE`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Implement => "implement",
            Self::Phase { phase, .. } => phase.as_str(),
            Self::Nudge { .. } => "nudge",
            Self::Retry { .. } => "retry",
        }
    }
}

/// Why a tree is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifyPurpose {
    /// To decide whether an attempt succeeded.
    Attempt,
    /// For the report only: the task fails whatever the result.
    Evidence {
        /// Whether the task fails as `planning_only` (otherwise as `no_progress`).
        planning: bool,
    },
    /// To confirm that nothing needs doing.
    Satisfied,
    /// Because a commit hook changed the tree.
    AfterHook,
    /// Because the checks changed the tree that they ran on: they run again on the tree that they left.
    Recheck,
}

/// Why a tree may be committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grounds {
    /// Every check passed on it.
    Passed,
    /// Its only failures existed before the task.
    KnownFailures,
    /// No check is configured.
    Unchecked,
}

/// The next effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// Run the agent.
    RunAgent {
        /// The turn.
        key: TurnKey,
        /// Why the agent runs.
        purpose: TurnPurpose,
    },
    /// Run the checks on the current tree.
    Verify {
        /// Why the tree is verified.
        purpose: VerifyPurpose,
    },
    /// Run the checks on another tree, or again on the same one, and restore the work tree afterwards.
    Prove {
        /// The kind of proof.
        proof: Proof,
    },
    /// Restore the work tree to the start of the phase.
    Undo {
        /// The attempt.
        key: TurnKey,
    },
    /// Commit the tree that was just verified.
    Commit {
        /// Why it may be committed.
        grounds: Grounds,
    },
    /// Wait for a transient error to pass.
    Wait {
        /// How long to wait, in milliseconds.
        ms: u64,
        /// The transient error.
        why: String,
    },
    /// The task is over.
    Finish(Outcome),
}

/// The result of an effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "observed", rename_all = "snake_case")]
pub enum Observation {
    /// The task started from this state.
    TaskStarted {
        /// HEAD and tree.
        start: Snapshot,
        /// The run's clock, in milliseconds.
        elapsed_ms: u64,
    },
    /// A turn is about to start from this state.
    TurnStarted {
        /// HEAD and tree.
        before: Snapshot,
    },
    /// A turn ended.
    TurnEnded(Arc<TurnEnded>),
    /// A verification ended.
    Verified(Arc<VerificationEnded>),
    /// A proof ended.
    Proved(Arc<Proved>),
    /// The work tree was restored to the start of the phase, as far as possible.
    Undone {
        /// HEAD and tree afterwards.
        after: Snapshot,
        /// Files changed since the task started.
        changes: Vec<String>,
        /// The test files among the changes.
        tests: Arc<TestChanges>,
    },
    /// The commit object exists; the branch may not point to it yet.
    CommitPrepared {
        /// The commit.
        commit: RevId,
    },
    /// The commit is on the branch, or there was nothing to commit.
    Committed {
        /// Sprag's commit.
        commit: Option<RevId>,
    },
    /// A hook refused the commit; the next prompt shows why.
    HookRejected {
        /// The hook's output.
        message: String,
        /// Whether it refused the commit message, not the files.
        of_message: bool,
    },
    /// A hook changed the tree.
    HookChangedTree {
        /// HEAD and tree afterwards.
        after: Snapshot,
    },
    /// The commit failed, and another turn would not help.
    CommitFailed {
        /// The reason.
        message: String,
    },
    /// Checks or hooks broke a rule that applies to every task.
    Violated {
        /// The violation.
        what: String,
    },
    /// A wait ended.
    Waited,
    /// The step was cut short.
    Interrupted {
        /// What interrupted it.
        by: Interruption,
        /// The step's cost until the interruption.
        spend: Spend,
    },
    /// The run was resumed after a crash or a cancellation.
    Resumed,
}

impl Observation {
    /// The interruption of a step that costs nothing.
    pub fn interrupted(by: Interruption) -> Self {
        let spend = Spend::default();
        Self::Interrupted { by, spend }
    }
}

/// What interrupts a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Interruption {
    /// A signal.
    Cancel {
        /// Its number.
        signal: i32,
    },
    /// The run's deadline.
    Deadline,
}

impl Interruption {
    /// The outcome of a task that this interruption ends.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Cancel { signal } => Outcome::Cancelled { signal },
            Self::Deadline => Outcome::Deadline,
        }
    }
}

/// A turn that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnEnded {
    /// What the turn did.
    pub assessment: Assessment,
    /// HEAD and tree afterwards.
    pub after: Snapshot,
    /// Files changed since the task started.
    pub changes: Vec<String>,
    /// The test files among the changes.
    pub tests: Arc<TestChanges>,
    /// What the turn cost.
    pub spend: Spend,
    /// The run's clock, in milliseconds.
    pub elapsed_ms: u64,
    /// Files whose changes were reverted because the phase may not change them.
    pub undone: Vec<String>,
    /// Changes of protected paths that were taken out of the work.
    pub held: Option<HeldBack>,
    /// The end of the agent's final message, when the task has several phases or must return a value.
    pub message: Option<String>,
    /// The commit message that the agent suggests.
    pub suggested: Option<String>,
    /// The reviewer's verdict and findings.
    pub review: Option<Review>,
    /// The value that the final message gives for the run's output schema, when the task must return one.
    pub output: Option<StructuredOutput>,
}

/// A verification that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerificationEnded {
    /// The verdict.
    pub verdict: Verdict,
    /// The tree that was verified.
    pub before: Snapshot,
    /// The tree that the checks left.
    pub after: Snapshot,
    /// Files that the checks changed, when both trees are known.
    pub altered: Vec<String>,
    /// Test files that differ from those at the start of the task.
    pub tests: Arc<TestChanges>,
    /// What is worth a look in the work, if the checks passed.
    pub signals: Vec<Signal>,
    /// What the checks reported about their tests.
    pub reported: Arc<Reported>,
    /// The checks that failed.
    pub failed: Vec<FailedCheck>,
    /// One line for each of the first errors.
    pub errors: Vec<String>,
    /// Output of the failed checks for the next prompt, within its size limit.
    pub failing_output: String,
    /// Names of the failed checks.
    pub failing_checks: Vec<String>,
    /// Suggested remedies for the next prompt.
    pub hints: Vec<String>,
    /// The run's clock, in milliseconds.
    pub elapsed_ms: u64,
}

impl VerificationEnded {
    /// Whether a check could not start.
    pub fn cannot_start(&self) -> bool {
        matches!(self.verdict, Verdict::CannotStart { .. })
    }

    /// Whether the checks passed on a tree that could not be read.
    pub fn passed_unread(&self) -> bool {
        self.verdict == Verdict::Passed && self.after.tree().is_none()
    }

    /// The tree that the verdict applies to: it is known, the checks did not change it, and every check ran
    /// to its end.
    pub fn judged(&self) -> Option<&Fingerprint> {
        let to_the_end = matches!(self.verdict, Verdict::Passed | Verdict::Failed { .. });
        let stable = self.before.same_as(&self.after) == Some(true);
        (to_the_end && stable).then(|| self.after.tree()).flatten()
    }
}

/// One line of a task's history, appended and synced before and after every effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// A step is about to run.
    Intent {
        /// The step.
        step: Step,
    },
    /// The result of a step.
    Observed {
        /// The observation.
        observation: Observation,
    },
    /// The task has ended and is not resumed.
    Finished {
        /// The outcome.
        outcome: Outcome,
    },
}

/// Folds a history into the state that the next decision needs.
pub fn fold<'a>(history: impl IntoIterator<Item = &'a Record>) -> TaskState {
    let mut state = TaskState::default();
    for record in history {
        state.apply(record);
    }
    state
}

/// A tree on which the checks failed, and the attempt in which they failed.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedTree {
    /// The attempt.
    pub attempt: u32,
    /// The tree.
    pub tree: Fingerprint,
    /// The verification.
    pub verification: Arc<VerificationEnded>,
}

/// What a hook wrote, as the errors of an attempt: without the first line, which says which hook it was, if
/// there are others.
fn said_by_hook(message: &str) -> Vec<String> {
    let lines = message.lines().filter(|line| !line.trim().is_empty());
    let mut said: Vec<String> = lines.map(|line| line.trim().to_owned()).collect();
    if said.len() > 1 {
        said.remove(0);
    }
    said
}
