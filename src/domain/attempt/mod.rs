//! One task as a history of intents and observations, and the decision what comes next.
//!
//! `fold(history)` gives the [`TaskState`]; [`decide`] gives the next [`Step`]. Both are pure and
//! total, so a stored history always replays to the same step.

mod conclude;
mod decide;
mod output;
mod phase;
mod phases;
mod proof;
mod spend;
mod state;

#[cfg(test)]
mod explore;

pub use decide::decide;
pub use phase::{
    Expect, Phase, PhaseName, PhaseSpec, PhasesAsked, ROUNDS, Role, Writes, are_named, phases,
};
pub use proof::{
    Blame, BlamedTest, FailedCheck, Proof, ProofLine, ProofResult, ProofWord, Proofs, Proved,
    TestChanges, names,
};
pub use spend::Spend;
pub use state::{Last, TaskState};

use super::assess::Assessment;
use super::checks::verdict::Verdict;
use super::outcome::Outcome;
use super::output_schema::StructuredOutput;
use super::prompt::NudgeKind;
use super::review::Review;
use super::settings::{Baseline, KnownFailures, ProveNewTests, TestChangePolicy};
use super::snapshot::{Fingerprint, RevId, Snapshot};
use serde::{Deserialize, Serialize};

/// The sentence of a task that the pre-flight check ended: the tree is the one that failed last.
pub const NO_FILE_CHANGES: &str = "No progress detected - agent made no file changes";

/// What is allowed and wanted for one task.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The phases of a task in order, at least one.
    pub phases: Vec<PhaseSpec>,
    /// Identical failures in a row that end a task.
    pub identical_failures: u32,
    /// Waits for a transient error before the agent counts as unavailable.
    pub waits: u32,
    /// Whether any check is configured.
    pub has_checks: bool,
    /// Whether work without a check is taken.
    pub accept_unverified: bool,
    /// When the tree on which the task started is checked.
    pub baseline: Baseline,
    /// How often the checks may be run once more on a tree that has failed.
    pub flaky_reruns: u32,
    /// What becomes of work that fails only what failed before.
    pub known_failures: KnownFailures,
    /// What becomes of work that changes tests or what the checks are made of.
    pub test_changes: TestChangePolicy,
    /// Whether new tests must fail without the work.
    pub prove_new_tests: ProveNewTests,
    /// Whether Sprag commits (not with `allow_dirty`).
    pub commits: bool,
    /// Whether the task owes a value that fits the run's output schema.
    pub wants_output: bool,
    /// Token limit of the run.
    pub max_tokens: Option<u64>,
    /// Cost limit of the run in US dollars.
    pub max_cost_usd: Option<f64>,
    /// What the run spent before this task.
    pub spent_before: Spend,
    /// Milliseconds of the run after which no step begins.
    pub deadline_ms: Option<u64>,
    /// The first wait for a transient error, in milliseconds; each further one is three times as long.
    pub wait_base_ms: u64,
}

/// Names one turn within a task. All numbers but `phase` count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TurnKey {
    /// Index of the phase, from 0.
    pub phase: usize,
    /// Attempt within the phase.
    pub attempt: u32,
    /// Turn within the task.
    pub turn: u32,
    /// The phase, where a task has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<PhaseName>,
}

impl TurnKey {
    /// The first turn of a task.
    pub const FIRST: Self = Self {
        phase: 0,
        attempt: 1,
        turn: 1,
        name: None,
    };
}

/// Why the agent is run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "purpose", rename_all = "snake_case")]
pub enum TurnPurpose {
    /// The first turn of a task.
    Implement,
    /// The first turn of another phase than that.
    Phase {
        /// Which.
        phase: Phase,
        /// On what grounds the work is good on which it begins.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grounds: Option<Grounds>,
    },
    /// Nothing was done: the same again, more clearly.
    Nudge {
        /// Which nudge of the phase, from 1.
        n: u32,
        /// What the agent did instead.
        kind: NudgeKind,
    },
    /// The last attempt failed.
    Retry {
        /// How the last turn was cut off, when it was.
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
    /// To decide an attempt.
    Attempt,
    /// For the report only: the task fails whatever comes out, for the reason named.
    Evidence {
        /// Whether the reason is `planning_only` (else `no_progress`).
        planning: bool,
    },
    /// To hear whether nothing needs doing.
    Satisfied,
    /// A commit hook changed the tree.
    AfterHook,
    /// The checks changed the tree that they were run on: they judge what they have made of it.
    Recheck,
}

/// On what grounds a tree is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grounds {
    /// Every check passed on it.
    Passed,
    /// It fails nothing but what failed before the task.
    KnownFailures,
    /// There is no check.
    Unchecked,
}

/// The next effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// Run the agent.
    RunAgent {
        /// Which turn.
        key: TurnKey,
        /// Why.
        purpose: TurnPurpose,
    },
    /// Run the checks on the tree as it stands.
    Verify {
        /// Which attempt.
        key: TurnKey,
        /// Why.
        purpose: VerifyPurpose,
    },
    /// Run the checks on another tree, or once more, and bring the work tree back.
    Prove {
        /// Which attempt.
        key: TurnKey,
        /// What is to be proved.
        proof: Proof,
    },
    /// Bring the work tree back to where the phase began.
    Undo {
        /// Which attempt.
        key: TurnKey,
    },
    /// Commit the tree that was just verified.
    Commit {
        /// Why it may be committed.
        grounds: Grounds,
    },
    /// Wait for a transient error to pass.
    Wait {
        /// How long, in milliseconds.
        ms: u64,
        /// The error.
        why: String,
    },
    /// The task is over.
    Finish(Outcome),
}

/// What an effect turned out to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "observed", rename_all = "snake_case")]
pub enum Observation {
    /// The task began on this state.
    TaskStarted {
        /// HEAD and tree.
        start: Snapshot,
        /// The run's clock, in milliseconds.
        elapsed_ms: u64,
    },
    /// A turn is about to begin on this state.
    TurnStarted {
        /// HEAD and tree.
        before: Snapshot,
    },
    /// A turn ended.
    TurnEnded(Box<TurnEnded>),
    /// A verification ended.
    Verified(Box<VerificationEnded>),
    /// A proof ended.
    Proved(Box<Proved>),
    /// The work tree was brought back to where the phase began, as far as it could be.
    Undone {
        /// HEAD and tree afterwards.
        after: Snapshot,
        /// Files changed since the task began.
        changes: Vec<String>,
        /// Test files among them.
        tests: TestChanges,
    },
    /// The commit object exists; the branch may not have it yet.
    CommitPrepared {
        /// The commit.
        commit: RevId,
    },
    /// The commit is in the branch, or there was nothing to commit.
    Committed {
        /// Sprag's commit.
        commit: Option<RevId>,
    },
    /// A hook refused the commit; the next prompt shows why.
    HookRejected {
        /// The hook's words.
        message: String,
    },
    /// A hook changed the tree.
    HookChangedTree {
        /// HEAD and tree afterwards.
        after: Snapshot,
    },
    /// The commit could not be made and another turn would not help.
    CommitFailed {
        /// Why.
        message: String,
    },
    /// Checks or hooks did what no task may do.
    Violated {
        /// What that was.
        what: String,
    },
    /// A wait ended.
    Waited,
    /// The step was cut short.
    Interrupted {
        /// By what.
        by: Interruption,
        /// What the step had cost by then.
        #[serde(default)]
        spend: Spend,
    },
    /// The run was taken up again after a crash or a cancel.
    Resumed,
}

impl Observation {
    /// A step that costs nothing was cut short.
    pub fn interrupted(by: Interruption) -> Self {
        let spend = Spend::default();
        Self::Interrupted { by, spend }
    }
}

/// What cuts a step short.
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
    /// How a task ends that it stops.
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
    /// Files changed since the task began.
    pub changes: Vec<String>,
    /// Test files among them.
    #[serde(default)]
    pub tests: TestChanges,
    /// What the turn cost.
    pub spend: Spend,
    /// The run's clock, in milliseconds.
    pub elapsed_ms: u64,
    /// Files whose changes were undone, since the phase may not change them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<String>,
    /// The end of the agent's final message, where a task has several phases or owes
    /// a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What a reviewer says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// What the final message gives for the run's output schema, where the task owes that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<StructuredOutput>,
}

/// A verification that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerificationEnded {
    /// What it said.
    pub verdict: Verdict,
    /// The tree that was verified.
    pub before: Snapshot,
    /// The tree that the checks left.
    pub after: Snapshot,
    /// Files that the checks changed, where both trees are known.
    #[serde(default)]
    pub altered: Vec<String>,
    /// Test files that differ from the task's start.
    #[serde(default)]
    pub tests: TestChanges,
    /// The checks that failed.
    #[serde(default)]
    pub failed: Vec<FailedCheck>,
    /// One line for each of the first errors.
    pub errors: Vec<String>,
    /// Failing output for the next prompt, within its budget.
    pub failing_output: String,
    /// Names of the failed checks.
    pub failing_checks: Vec<String>,
    /// What would help, for the next prompt.
    pub hints: Vec<String>,
    /// The run's clock, in milliseconds.
    pub elapsed_ms: u64,
}

impl VerificationEnded {
    /// Whether the checks passed on a tree that could not be read.
    pub fn passed_unread(&self) -> bool {
        self.verdict == Verdict::Passed && self.after.tree().is_none()
    }

    /// The tree that was judged: known, the same before and after, and run to the end.
    pub fn judged(&self) -> Option<&Fingerprint> {
        let to_the_end = matches!(self.verdict, Verdict::Passed | Verdict::Failed { .. });
        let stable = self.before.same_as(&self.after) == Some(true);
        (to_the_end && stable).then(|| self.after.tree()).flatten()
    }
}

impl Step {
    /// Whether the last thing that happened calls for this step whenever it is looked at, so that a
    /// step that was cut short need not be kept.
    fn follows_from_the_last_thing(&self) -> bool {
        matches!(
            self,
            Self::Prove { .. } | Self::Undo { .. } | Self::Commit { .. }
        )
    }
}

/// One line of a task's history, appended and synced before and after every effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// What is about to be done.
    Intent {
        /// Counts up within the task, from 1.
        id: u64,
        /// The step.
        step: Step,
    },
    /// What came of it.
    Observed {
        /// The intent's number (0 before the first).
        id: u64,
        /// The observation.
        observation: Observation,
    },
    /// The task is over: nothing of it is taken up again.
    Finished {
        /// How it ended.
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

/// Whether two trees are both known and equal.
fn same_tree(a: &Snapshot, b: &Snapshot) -> bool {
    matches!((a.tree(), b.tree()), (Some(x), Some(y)) if x == y)
}

/// A tree on which the checks failed, and the attempt in which they did.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FailedTree {
    /// The attempt.
    pub attempt: u32,
    /// The tree.
    pub tree: Fingerprint,
}
