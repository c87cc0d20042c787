//! Step → effect → observation. Everything that a run does to the world happens below here.

mod agent_turn;
mod announce;
mod begin;
mod book;
mod builtin_turn;
mod commit;
mod credentials;
mod deliver;
mod emit;
mod finish;
mod hand_in;
mod journal;
mod left;
mod listen;
mod look;
mod prompting;
mod proof;
mod recorder;
mod resume;
mod secrets;
mod setup;
mod turn;
mod verification;

pub use begin::TaskStart;
pub use book::{PlanBook, PlanFile};
pub use deliver::{Parcel, undo_move};
pub use emit::Emitter;
pub use hand_in::HandIn;
pub use journal::Journal;
pub use look::Watched;
pub use prompting::first_prompt;
pub use recorder::Recorder;
pub use resume::finish_landing;
pub use secrets::FindSecrets;

use crate::checks::Verification;
use crate::domain::agent::Usage;
use crate::domain::attempt::Expect;
use crate::domain::attempt::{Interruption, Observation, PhaseSpec, Policy, Role, Spend, Step};
use crate::domain::checks::Matcher;
use crate::domain::duration::millis;
use crate::domain::event::EventKind;
use crate::domain::plan::Task;
use crate::domain::settings::{Baseline, KnownFailures, ProveNewTests, TestChangePolicy};
use crate::domain::snapshot::Fingerprint;
use crate::git::Exempt;
use crate::http::{Network, jittered};
use crate::permit::Committable;
use crate::process::{Cancel, CancelReason, Service};
use crate::run::directory::RunDir;
use crate::settings::{RunConfig, TaskConfig};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

/// The longest that a commit hook may run.
const HOOK_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The first wait for a transient error; each further one is three times as long.
const WAIT_BASE_MS: u64 = 1_000;

/// Waits for transient errors within an attempt.
const WAITS: u32 = 5;

/// The variable with the longest wait for a model, in milliseconds.
const LONGEST_WAIT: &str = "SPRAG_MODEL_WAIT_MS";

/// Everything that a run works with.
pub struct Performer<'a> {
    /// The repository and the run's private git directory.
    pub repo: Watched,
    /// Where the run keeps what it leaves behind.
    pub run_dir: RunDir,
    /// The run's id.
    pub run_id: String,
    /// The process's own environment.
    pub env: Vec<(OsString, OsString)>,
    /// The way out of this machine.
    pub network: Network,
    /// Whether the process runs as root.
    pub is_root: bool,
    /// Whether this is a step of a GitHub Actions job.
    pub in_actions: bool,
    /// Raised by signals and by the deadline.
    pub cancel: Cancel,
    /// What concerns the whole run.
    pub config: RunConfig,
    /// The plan, its file and what is known of its tasks.
    pub book: PlanBook,
    /// Where events go.
    pub emit: Emitter<'a>,
    /// Untracked files that only verification created.
    pub droppings: BTreeSet<Vec<u8>>,
    /// Turns begun in the run, for the names of files.
    pub turns: u32,
    /// Checks begun in the run, for the names of files.
    pub checks: u32,
    /// Spend of the tasks before this one.
    pub spent: Spend,
    /// What the setup commands left running for the run.
    pub services: Vec<Service>,
    /// Verdicts by tree and set of checks.
    pub verdicts: HashMap<(Fingerprint, String), Verification>,
    /// Problem matchers by the file that a check names, as far as checks have run.
    pub matchers: BTreeMap<String, Vec<Matcher>>,
    /// What the agent's sessions have reported so far, where they report totals.
    pub session_usage: HashMap<String, Usage>,
    /// Files that the run's commits changed.
    pub changed_files: BTreeSet<String>,
    /// Takes secrets out of a text that leaves this process.
    pub redact: Redact,
    /// Finds secrets in what is to be committed, if there are any.
    pub find_secrets: Option<FindSecrets>,
    /// Takes the sessions of the built-in agent, where that is asked for.
    pub recorder: Option<Recorder>,
}

/// Takes secrets out of a text.
pub type Redact = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// One task while it is worked on.
pub struct TaskRun<'a> {
    /// The task.
    pub task: &'a Task,
    /// Its settings.
    pub config: TaskConfig,
    /// What is allowed.
    pub policy: Policy,
    /// Its history and the state that follows from it.
    pub journal: Journal,
    /// The last final message, for the commit's message and the failure's record.
    pub final_message: Option<String>,
    /// The session that a further turn can continue.
    pub session: Option<String>,
    /// The permit to commit that the last run of the checks gave.
    pub token: Option<Committable>,
    /// The tree on which the last run of the checks failed, without a change by them.
    pub failed_on: Option<Fingerprint>,
    /// Commits that the agent made itself.
    pub agent_commits: Vec<String>,
    /// When the task began, on the run's clock.
    pub began_ms: u64,
}

impl<'a> Performer<'a> {
    /// Performs one step and says what came of it.
    ///
    /// # Errors
    /// Only what makes it impossible to go on at all: the run's own state cannot be written.
    pub async fn perform(
        &mut self,
        run: &mut TaskRun<'_>,
        step: &Step,
    ) -> anyhow::Result<Observation> {
        if let Some(by) = self.interruption() {
            return Ok(Observation::interrupted(by));
        }
        match step {
            Step::RunAgent { key, purpose } => self.turn(run, *key, purpose).await,
            Step::Verify { purpose, .. } => self.verification(run, *purpose).await,
            Step::Prove { proof, .. } => self.proof(run, *proof).await,
            Step::Commit { grounds } => self.commit(run, *grounds).await,
            Step::Wait { ms, .. } => Ok(self.wait(*ms).await),
            Step::Finish(_) => Ok(Observation::Waited),
        }
    }

    /// What asks the run to stop.
    pub fn interruption(&self) -> Option<Interruption> {
        self.cancel.reason().map(interruption)
    }

    /// What is allowed for a task with these settings.
    pub fn policy(&self, config: &TaskConfig) -> Policy {
        Policy {
            phases: vec![PhaseSpec {
                role: Role::Implement,
                expect: Expect::Pass,
                retries: config.max_retries,
            }],
            nudges: config.nudges,
            identical_failures: config.identical_failures,
            waits: WAITS,
            has_checks: !config.checks.is_empty(),
            accept_unverified: config.accept_unverified,
            baseline: Baseline::Off,
            flaky_reruns: 0,
            known_failures: KnownFailures::Fail,
            test_changes: TestChangePolicy::Ok,
            prove_new_tests: ProveNewTests::Off,
            commits: !self.config.allow_dirty,
            max_tokens: self.config.max_tokens,
            max_cost_usd: self.config.max_cost_usd,
            spent_before: self.spent,
            deadline_ms: self.config.deadline.map(millis),
            wait_base_ms: WAIT_BASE_MS,
        }
    }

    /// What does not count as change.
    pub fn exempt(&self) -> Exempt {
        Exempt {
            progress_ignore: self.config.progress_ignore.clone(),
            droppings: self.droppings.clone(),
            plan: self.book.exempt(),
        }
    }

    async fn wait(&mut self, ms: u64) -> Observation {
        let pause = tokio::time::sleep(jittered(ms, self.longest_wait()));
        tokio::select! {
            () = pause => Observation::Waited,
            reason = self.cancel.cancelled() => Observation::interrupted(interruption(reason)),
        }
    }

    /// The longest wait for a model; longer ones are cut. Tests set it, who have no reason to spare
    /// a server of their own.
    fn longest_wait(&self) -> Duration {
        let mut set = self.env.iter().filter(|(name, _)| name == LONGEST_WAIT);
        let value = set.find_map(|(_, value)| value.to_str()?.parse().ok());
        value.map_or(Duration::MAX, Duration::from_millis)
    }

    /// Says something that a person should know.
    pub fn warn(&mut self, message: impl Into<String>) {
        self.emit.emit(EventKind::Warning {
            message: message.into(),
        });
    }
}

/// What a raised flag means to the domain.
pub fn interruption(reason: CancelReason) -> Interruption {
    match reason.signal() {
        Some(signal) => Interruption::Cancel { signal },
        None => Interruption::Deadline,
    }
}
