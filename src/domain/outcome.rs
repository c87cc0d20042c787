//! How a task ended, and everything that follows from it. Status, reason, run status, exit code and check
//! conclusion are total functions of [`Outcome`], so every combination is defined.

mod words;

pub use words::{Conclusion, HeldBack, Reason, RunStatus, TaskEnd};

use super::settings::OnFinding;
use super::snapshot::RevId;
use super::text::{count, one_line, some_of};
use serde::{Deserialize, Serialize};

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The checks passed and the work is committed.
    Verified {
        /// Sprag's commit; `None` if there was nothing left to commit or commits are off.
        commit: Option<RevId>,
    },
    /// No check is configured, or none of the checks that passed ran a test.
    Unverified {
        /// Sprag's commit, as above.
        commit: Option<RevId>,
        /// Whether the policy accepts unverified work (`if_unverified: accept`).
        accepted: bool,
    },
    /// The work is committed, and its only failures existed before the task.
    KnownFailures {
        /// Sprag's commit, as above.
        commit: Option<RevId>,
        /// The failed tests, or the failed checks whose tests are unknown.
        tests: Vec<String>,
    },
    /// The checks passed, but not with what judged the work before.
    ChangedExpectations {
        /// Sprag's commit, as above.
        commit: Option<RevId>,
        /// Whether the policy accepts such work (`test_changes: prove`).
        accepted: bool,
        /// The changed files that judge the work, and what the checks saw and the commit does not have.
        files: Vec<String>,
        /// Whether the commit has none of the files.
        not_committed: bool,
        /// The changed file with which alone the checks pass, if it is known.
        only_with: Option<String>,
        /// The failures with the original files: tests, or checks whose tests are unknown.
        tests: Vec<String>,
        /// Why it is unknown whether the original files pass, if it is.
        unknown: Option<String>,
    },
    /// New tests had to be proved (`prove_new_tests: require`), and they do not fail without the work, or it is
    /// not known.
    UnprovenTests {
        /// The files of the new tests.
        tests: Vec<String>,
        /// Why it is not known whether they fail.
        unknown: Option<String>,
    },
    /// The checks change the tree on every run, so no tree was ever judged.
    UnstableChecks {
        /// The files that they change.
        files: Vec<String>,
    },
    /// A check cannot be started on this machine.
    CheckCannotStart {
        /// The check.
        check: String,
        /// The program that is missing or cannot be run.
        program: String,
    },
    /// The sandbox does not let a check write what it writes also without the work.
    CheckRefused {
        /// The check.
        check: String,
        /// The path.
        path: String,
    },
    /// Nothing needed doing.
    AlreadySatisfied {
        /// Whether the checks confirmed it.
        verified: bool,
    },
    /// The repository did not change.
    NoProgress {
        /// A one-sentence description.
        message: String,
        /// Whether the pre-flight check ended the task, which saved a verification.
        preflight: bool,
        /// Whether the work tree is the same as at the start of the task.
        untouched: bool,
    },
    /// The agent only announced what it would do.
    PlanningOnly,
    /// The agent answered the question that the task asks, and changed nothing.
    Answered,
    /// The agent asked a question that only a person can answer.
    NeedsAnswer,
    /// The checks still fail and no retry is left.
    VerificationFailed,
    /// The same failure occurred too often.
    RepeatingFailure {
        /// The number of consecutive occurrences.
        times: u32,
    },
    /// The agent reported `FAILED:`.
    FailedReport {
        /// The report's summary.
        summary: String,
    },
    /// The reviewer still finds something to fix, and no round is left.
    ReviewFindings {
        /// Findings that are not resolved.
        findings: u32,
        /// Reviews that were made.
        reviews: u32,
    },
    /// The reviewer accepts the change under review, and no other work was requested.
    Acceptable,
    /// Tests that fail had to be written first, and none did.
    TddViolation {
        /// What happened instead.
        what: String,
    },
    /// The final message of the run's last task gives no value that fits the output schema.
    OutputMismatch {
        /// The mismatch.
        why: String,
    },
    /// The agent changed nothing but protected paths. These changes wait for a person.
    NeedsPermission {
        /// The changes.
        held: HeldBack,
    },
    /// The agent did what the policy forbids.
    PolicyViolation {
        /// The violation.
        what: String,
    },
    /// No usable agent: not found, invalid key, unknown model, or the waits ran out.
    AgentUnavailable {
        /// The last error.
        message: String,
    },
    /// The agent crashed in its last attempt.
    AgentCrashed {
        /// A description of the crash.
        message: String,
    },
    /// The last turn hit its time limit.
    TurnTimeout,
    /// The commit could not be made.
    CommitRejected {
        /// The output of the hook or of git.
        message: String,
    },
    /// The token or cost limit was reached.
    Budget {
        /// The limit.
        message: String,
    },
    /// The run's deadline was reached.
    Deadline,
    /// A person or the runner stopped the run.
    Cancelled {
        /// The signal: 2 (SIGINT) or 15 (SIGTERM).
        signal: i32,
    },
    /// A dependency of this task is not done.
    DependencyFailed {
        /// That task's id.
        on: String,
    },
    /// The agent drafted a valid plan.
    Drafted {
        /// The commit with the plan, if one was asked for.
        commit: Option<RevId>,
    },
    /// No draft of a plan was valid.
    NoValidDraft {
        /// The number of drafts.
        drafts: u32,
        /// What is wrong with the last one.
        why: String,
    },
    /// No agent of this run worked on the task: another job did, or a merge of the base branch has conflicts
    /// that nobody resolved. `end`, `reason` and `message` say how that ended. Records use the name of the
    /// first use, `in_shard`.
    #[serde(rename = "in_shard")]
    WithoutAgent {
        /// The task's status.
        end: TaskEnd,
        /// The reason code.
        reason: Reason,
        /// A one-line description.
        message: String,
        /// The commit in this repository that contains its work.
        commit: Option<RevId>,
    },
}

impl Outcome {
    /// Work that no check confirms, where the policy does not accept that.
    pub(crate) const REFUSED_UNVERIFIED: Self = Self::Unverified {
        commit: None,
        accepted: false,
    };

    /// The outcome of a task on which no agent of this run worked, without a commit.
    pub const fn without_agent(end: TaskEnd, reason: Reason, message: String) -> Self {
        Self::WithoutAgent {
            end,
            reason,
            message,
            commit: None,
        }
    }

    /// The task's status at the end of the run.
    pub fn task_end(&self) -> TaskEnd {
        use RunStatus as S;
        match (self, self.run_status(OnFinding::Fail)) {
            (Self::WithoutAgent { end, .. }, _) => *end,
            (Self::DependencyFailed { .. }, _) => TaskEnd::Skipped,
            (Self::NeedsPermission { .. }, _) | (_, S::Blocked) => TaskEnd::Blocked,
            (_, S::Success | S::Answered | S::Unverified | S::NoWork) => TaskEnd::Done,
            (_, S::Failed | S::Partial | S::Invalid | S::Environment) => TaskEnd::Failed,
            (_, S::Budget | S::Deadline | S::Cancelled) => TaskEnd::Pending,
        }
    }

    /// The reason code.
    pub fn reason(&self) -> Reason {
        self.end().0
    }

    /// The status of a run that consists of this outcome alone.
    pub fn run_status(&self, no_changes: OnFinding) -> RunStatus {
        let is_untouched = match self {
            Self::NoProgress { untouched, .. } => *untouched,
            Self::PlanningOnly => true,
            _ => false,
        };
        if is_untouched && no_changes != OnFinding::Fail {
            RunStatus::NoWork
        } else {
            self.end().1
        }
    }

    /// The reason, and the status of a run of this task alone in which a task without changes fails.
    #[rustfmt::skip]
    fn end(&self) -> (Reason, RunStatus) {
        use RunStatus as S;
        match self {
            Self::Verified { .. } => (Reason::Verified, S::Success),
            Self::Drafted { .. } => (Reason::Drafted, S::Success),
            Self::Unverified { accepted: true, .. } | Self::KnownFailures { .. } => (Reason::Unverified, S::Unverified),
            Self::Unverified { accepted: false, .. } => (Reason::Unverified, S::Failed),
            Self::ChangedExpectations { accepted: true, .. } => (Reason::ChangedExpectations, S::Unverified),
            Self::ChangedExpectations { accepted: false, .. } => (Reason::ChangedExpectations, S::Blocked),
            Self::UnstableChecks { .. } => (Reason::UnstableChecks, S::Blocked),
            Self::CheckCannotStart { .. } | Self::CheckRefused { .. } => (Reason::Environment, S::Environment),
            Self::AlreadySatisfied { verified: true } => (Reason::AlreadySatisfied, S::Success),
            Self::AlreadySatisfied { verified: false } => (Reason::AlreadySatisfied, S::Unverified),
            Self::NoProgress { .. } => (Reason::NoProgress, S::Failed),
            Self::PlanningOnly => (Reason::PlanningOnly, S::Failed),
            Self::Answered => (Reason::Answered, S::Answered),
            Self::NeedsAnswer => (Reason::NeedsAnswer, S::Blocked),
            Self::VerificationFailed | Self::NoValidDraft { .. } | Self::UnprovenTests { .. } => (Reason::VerificationFailed, S::Failed),
            Self::RepeatingFailure { .. } => (Reason::RepeatingFailure, S::Failed),
            Self::FailedReport { .. } => (Reason::FailedReport, S::Blocked),
            Self::ReviewFindings { .. } => (Reason::ReviewFindings, S::Failed),
            Self::Acceptable => (Reason::Acceptable, S::Success),
            Self::TddViolation { .. } => (Reason::TddViolation, S::Failed),
            Self::OutputMismatch { .. } => (Reason::OutputMismatch, S::Failed),
            Self::NeedsPermission { .. } => (Reason::NeedsPermission, S::Unverified),
            Self::PolicyViolation { .. } => (Reason::PolicyViolation, S::Blocked),
            Self::AgentUnavailable { .. } => (Reason::AgentUnavailable, S::Environment),
            Self::AgentCrashed { .. } => (Reason::AgentCrashed, S::Failed),
            Self::TurnTimeout => (Reason::TurnTimeout, S::Failed),
            Self::CommitRejected { .. } => (Reason::CommitRejected, S::Failed),
            Self::Budget { .. } => (Reason::Budget, S::Budget),
            Self::Deadline => (Reason::Deadline, S::Deadline),
            Self::Cancelled { .. } => (Reason::Cancelled, S::Cancelled),
            Self::DependencyFailed { .. } => (Reason::DependencyFailed, S::Failed),
            Self::WithoutAgent { end, reason, .. } => (*reason, without_agent(*end, *reason)),
        }
    }

    /// Whether the checks or the reviewer confirm that the task is done.
    pub fn is_verified(&self) -> bool {
        self.end().1 == RunStatus::Success && !matches!(self, Self::Drafted { .. })
    }

    /// Whether the run stops after this task even with `keep_going`.
    pub fn ends_run(&self) -> bool {
        use RunStatus as S;
        let status = self.end().1;
        let ends = matches!(
            status,
            S::Environment | S::Budget | S::Deadline | S::Cancelled
        );
        ends && !matches!(self, Self::WithoutAgent { .. })
    }

    /// Sprag's commit for the task.
    pub fn commit(&self) -> Option<&RevId> {
        match self {
            Self::Verified { commit }
            | Self::Drafted { commit }
            | Self::Unverified { commit, .. }
            | Self::KnownFailures { commit, .. }
            | Self::ChangedExpectations { commit, .. }
            | Self::WithoutAgent { commit, .. } => commit.as_ref(),
            _ => None,
        }
    }

    /// A one-line description.
    pub fn message(&self) -> String {
        one_line(&self.in_words(), MESSAGE_CHARS)
    }

    fn in_words(&self) -> String {
        match self {
            Self::Verified { commit: Some(id) } => {
                format!("checks passed, committed {}", short(id))
            }
            Self::Verified { commit: None } => "checks passed; nothing was left to commit".into(),
            Self::Unverified { accepted, commit } => match commit {
                _ if !accepted => {
                    "no check confirms the work, and `if_unverified: fail` does not accept that"
                        .into()
                }
                Some(id) => format!("committed as {}, and no check confirms it", short(id)),
                None => "done, and no check confirms it".into(),
            },
            Self::KnownFailures { commit, tests } => {
                let (done, tests) = (in_branch(commit.as_ref()), listed(tests));
                format!("{done}; its only failures existed before the task: {tests}")
            }
            Self::ChangedExpectations { .. } => self.expectations(),
            Self::UnprovenTests { tests, unknown } => {
                let tests = listed(tests);
                match unknown {
                    None => format!(
                        "the new tests prove nothing: they pass without the change ({tests})"
                    ),
                    Some(why) => format!(
                        "whether the new tests ({tests}) fail without the change is not known: {why}"
                    ),
                }
            }
            Self::UnstableChecks { files } => format!(
                "the checks change the work tree every time they run, so nothing was verified: {}",
                listed(files)
            ),
            Self::CheckCannotStart { check, program } => {
                format!("check {check} cannot start: {program} is missing or cannot be run here")
            }
            Self::CheckRefused { check, path } => format!(
                "check {check} fails on the start tree too, because the sandbox does not let it write {path}; name \
                 that directory in `sandbox_write`, or set `sandbox: off`"
            ),
            Self::AlreadySatisfied { verified: true } => {
                "already satisfied; the checks confirm it".into()
            }
            Self::AlreadySatisfied { verified: false } => {
                "already satisfied according to the agent; no check confirms it".into()
            }
            Self::PlanningOnly => "the agent planned and never changed a file".into(),
            Self::Answered => "the agent answered and changed nothing".into(),
            Self::NeedsAnswer => "the agent asks a question that a person has to answer".into(),
            Self::VerificationFailed => "the checks still fail and no retry is left".into(),
            Self::Drafted { commit: None } => "the draft is a valid plan".into(),
            Self::Drafted { commit: Some(id) } => {
                format!("the draft is a valid plan, committed {}", short(id))
            }
            Self::NoValidDraft { drafts, why } => {
                let drafts = count(u64::from(*drafts), "draft");
                format!("no valid plan in {drafts}: {why}")
            }
            Self::RepeatingFailure { times } => {
                format!("the same failure occurred {times} times in a row")
            }
            Self::FailedReport { summary } if summary.is_empty() => {
                "the agent reported that it cannot do the task".into()
            }
            Self::FailedReport { summary } => format!("the agent reported: {summary}"),
            Self::Acceptable => "the reviewer accepts the change".into(),
            Self::ReviewFindings { findings, reviews } => {
                let what = match findings {
                    0 => "the reviewer does not accept the work".to_owned(),
                    n => format!("{} unresolved", count(u64::from(*n), "review finding")),
                };
                format!("{what} after {}", count(u64::from(*reviews), "review"))
            }
            Self::OutputMismatch { why } => {
                format!("the final message does not fit the output schema: {why}")
            }
            Self::NeedsPermission { held } => format!(
                "it needs your permission to change {} (`protected_paths`); nothing was committed, and the changes are in {}",
                listed(&held.paths),
                held.patch
            ),
            Self::TddViolation { what: message }
            | Self::PolicyViolation { what: message }
            | Self::NoProgress { message, .. }
            | Self::AgentUnavailable { message }
            | Self::AgentCrashed { message }
            | Self::CommitRejected { message }
            | Self::Budget { message }
            | Self::WithoutAgent { message, .. } => message.clone(),
            Self::TurnTimeout => "the agent's turn reached its time limit".into(),
            Self::Deadline => "the run's deadline was reached".into(),
            Self::Cancelled { signal } => format!("cancelled by {}", signal_name(*signal)),
            Self::DependencyFailed { on } => format!("not started: {on} is not done"),
        }
    }

    /// A description of work that passes only with changed tests.
    fn expectations(&self) -> String {
        let Self::ChangedExpectations {
            commit,
            accepted,
            files,
            not_committed,
            only_with,
            tests,
            unknown,
        } = self
        else {
            return String::new();
        };
        let mut done = "nothing was committed".to_owned();
        if *accepted {
            done = format!("{}, not verified", in_branch(commit.as_ref()));
        }
        let (changed, tests) = (listed(files), listed(tests));
        let (what, otherwise) = if *not_committed {
            (
                "a fresh checkout does not have what the checks saw",
                "without it",
            )
        } else {
            (
                "files that judge the work changed",
                "with the original files",
            )
        };
        let what = if files.is_empty() {
            "what judges the work changed".to_owned()
        } else {
            format!("{what} ({changed})")
        };
        match (unknown, only_with) {
            (Some(why), _) if files.is_empty() => format!("{done}: {why}"),
            (Some(why), _) => format!(
                "{done}; {what}, and whether the checks pass {otherwise} is not known: {why}"
            ),
            (None, Some(file)) => {
                let others = files.iter().filter(|other| *other != file).cloned();
                let mut others = listed(&others.collect::<Vec<_>>());
                if !others.is_empty() {
                    others = format!(" (others that changed: {others})");
                }
                format!(
                    "{done}; it passes only with the changed `{file}`: without that change, these fail: {tests}{others}"
                )
            }
            (None, None) => format!("{done}; {what}, and {otherwise}, these fail: {tests}"),
        }
    }
}

/// The run status that follows from a task on which no agent of this run worked. If another job did and was
/// cancelled, this run was not.
fn without_agent(end: TaskEnd, reason: Reason) -> RunStatus {
    match (end, reason) {
        (TaskEnd::Done, Reason::Verified | Reason::Drafted | Reason::AlreadySatisfied) => {
            RunStatus::Success
        }
        (TaskEnd::Done, _) => RunStatus::Unverified,
        (TaskEnd::Blocked, _) => RunStatus::Blocked,
        (_, Reason::AgentUnavailable | Reason::Environment) => RunStatus::Environment,
        (_, Reason::Budget) => RunStatus::Budget,
        (_, Reason::Deadline) => RunStatus::Deadline,
        (TaskEnd::Failed | TaskEnd::Pending | TaskEnd::Skipped, _) => RunStatus::Failed,
    }
}

/// The maximum number of names that a message lists.
const LISTED: usize = 5;

/// The longest description, in characters.
const MESSAGE_CHARS: usize = 1_000;

/// The first of these names, and how many more there are.
pub(crate) fn listed(names: &[String]) -> String {
    some_of(names, LISTED)
}

fn in_branch(commit: Option<&RevId>) -> String {
    match commit {
        Some(id) => format!("committed as {}", short(id)),
        None => "done; nothing was left to commit".into(),
    }
}

/// The run's status and reason, from the outcomes of its tasks. The first status that applies wins:
/// cancelled, environment, deadline or budget, blocked, failed, unverified, success. Among tasks with the
/// same status, the first one gives the reason, but a secondary reason (see `Reason::is_secondary`) gives way
/// to any other.
pub fn run_end(outcomes: &[&Outcome], no_changes: OnFinding) -> (RunStatus, Reason) {
    let ends = outcomes
        .iter()
        .map(|outcome| (outcome.run_status(no_changes), outcome.reason()));
    let first = ends.min_by_key(|(status, reason)| (status.rank(), reason.is_secondary()));
    let kept = outcomes
        .iter()
        .any(|outcome| outcome.task_end() == TaskEnd::Done);
    match first {
        None => (RunStatus::NoWork, Reason::NoWork),
        Some((RunStatus::Failed, reason)) if kept => (RunStatus::Partial, reason),
        Some(end) => end,
    }
}

/// The first twelve characters of a revision.
pub fn short(id: &RevId) -> &str {
    short_id(&id.0)
}

/// The first twelve characters of an id.
pub fn short_id(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// A signal's conventional name.
pub fn signal_name(signal: i32) -> String {
    match signal {
        1 => "SIGHUP".into(),
        2 => "SIGINT".into(),
        3 => "SIGQUIT".into(),
        6 => "SIGABRT".into(),
        9 => "SIGKILL".into(),
        11 => "SIGSEGV".into(),
        13 => "SIGPIPE".into(),
        15 => "SIGTERM".into(),
        other => format!("signal {other}"),
    }
}

#[cfg(test)]
mod tests;
