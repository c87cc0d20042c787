//! The parts of a run in progress.

use crate::domain::agent::TodoItem;
use crate::domain::attempt::{Expect, PhaseSpec, Policy, Record, Role, TurnKey, Writes, are_named};
use crate::domain::plan::Task;
use crate::domain::snapshot::Fingerprint;
use crate::permit::Committable;
use crate::run::deliver::work_keeper::WorkKeeper;
use crate::run::state::accounts::Accounts;
use crate::run::state::emitter::{Emitter, Journal};
use crate::run::state::notes::Notes;
use crate::run::state::setup::Setup;
use crate::run::state::work_tree::{SnapshotPair, WorkTree};
use crate::settings::TaskConfig;

/// The parts of a run. A step takes all of them.
pub struct Parts<'e> {
    /// What is fixed.
    pub setup: Setup,
    /// The repository, the files that checks left behind, and the plan.
    pub tree: WorkTree,
    /// Spend, counters and results of checks.
    pub accounts: Accounts,
    /// Notes that tasks leave for later ones.
    pub notes: Notes,
    /// Sends events.
    pub emit: Emitter<'e>,
    /// Saves unfinished work on GitHub, if the run may push.
    pub(crate) keeper: Option<WorkKeeper>,
}

impl Parts<'_> {
    /// Takes a new snapshot of the repository. Its warnings are emitted.
    pub fn snapshot(&mut self) -> SnapshotPair {
        self.tree.snapshot(&mut self.emit)
    }

    /// The last snapshot, as [`WorkTree::last_snapshot`] says.
    pub fn last_snapshot(&mut self) -> SnapshotPair {
        self.tree.last_snapshot(&mut self.emit)
    }

    /// Sends a warning.
    pub fn warn(&mut self, message: impl Into<String>) {
        self.emit.warn(message);
    }

    /// Sends a warning unless the same one was sent before.
    pub fn warn_once(&mut self, message: &str) {
        self.emit.warn_once(message);
    }
}

/// The start of a task.
#[derive(Debug, Clone)]
pub struct TaskStart {
    /// The task's settings.
    pub config: TaskConfig,
    /// Whether the agent's session goes on, because its question is answered.
    pub continues_session: bool,
    /// Its history, if an earlier process of this run started it.
    pub earlier: Vec<Record>,
    /// Commits that the agent made in it under an earlier process of this run.
    pub agent_commits: Vec<String>,
}

/// A task in progress.
pub struct TaskRun<'t> {
    /// The task in the plan.
    pub task: &'t Task,
    /// Its settings, with the agent of the current role.
    pub config: TaskConfig,
    /// The policy that decides its steps.
    pub policy: Policy,
    /// Its history and the state derived from it.
    pub journal: Journal,
    /// The last final message, for the commit message and the record of failures.
    pub final_message: Option<String>,
    /// The session that a further turn can continue.
    pub session: Option<String>,
    /// The index of the phase that the session belongs to.
    pub session_phase: usize,
    /// The permit to commit from the last run of the checks.
    pub permit: Option<Committable>,
    /// The tree on which the checks last failed, if they did not change it.
    pub failed_on: Option<Fingerprint>,
    /// Commits that the agent made itself.
    pub agent_commits: Vec<String>,
    /// The last plan of the built-in agent, as it left it.
    pub plan: Vec<TodoItem>,
    /// When the task started, in milliseconds on the run's clock.
    pub began_ms: u64,
    /// The agent that replaces the task's own agent.
    pub substitute: Option<SubstituteAgent>,
    /// Roles whose agents were unavailable.
    pub unavailable: Vec<Role>,
    /// The drafts so far of a run that drafts a plan. They are not in the history.
    pub drafts: u32,
    /// The turns of such a run: more than drafts if some were repeated.
    pub draft_turns: u32,
}

/// The agent that replaces the task's own agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubstituteAgent {
    /// An agent of `escalate`, counted from 1.
    Escalation(usize),
    /// The agent of `fallback`.
    Fallback,
}

impl TaskRun<'_> {
    /// Selects the agent for this turn's role. A new agent or phase starts a new session.
    pub fn begin_turn(&mut self, key: TurnKey) {
        let role = key.role();
        self.config.take_role(role);
        let substitute = self.take_substitute(role);
        if (self.substitute, self.session_phase) != (substitute, key.phase) {
            self.session = None;
        }
        (self.substitute, self.session_phase) = (substitute, key.phase);
    }

    /// Replaces the agent if it was unavailable or its work failed verification.
    fn take_substitute(&mut self, role: Role) -> Option<SubstituteAgent> {
        if self.unavailable.contains(&role) && self.config.take_fallback() {
            return Some(SubstituteAgent::Fallback);
        }
        if role != Role::Implementer {
            return None;
        }
        let history = self.journal.state.history.iter();
        let failures = history.filter(|entry| entry.outcome.is_of_checks()).count();
        let substitute = self.config.take_escalation(failures);
        substitute.map(SubstituteAgent::Escalation)
    }

    /// The row of a phase.
    pub fn row(&self, key: TurnKey) -> PhaseSpec {
        let row = self.policy.phases.get(key.phase).copied();
        row.unwrap_or(PhaseSpec::PLAIN)
    }

    /// Whether a turn in this phase must return the structured output.
    pub fn needs_output(&self, key: TurnKey) -> bool {
        let row = self.row(key);
        let does_the_work = matches!(row.role, Role::Implementer | Role::Fixer);
        let is_of_work = does_the_work && !row.optional && row.expect == Expect::Pass;
        self.policy.wants_output && (is_of_work || self.journal.state.is_asked_for_output())
    }

    /// What the current turn may change. Work that is accepted stays as it is while the agent gives a value for it.
    pub fn writes(&self, key: TurnKey) -> Writes {
        if self.journal.state.is_asked_for_output() {
            Writes::Nothing
        } else {
            self.row(key).writes
        }
    }

    /// Whether the history keeps all final messages of the task, because not only the last one may be
    /// needed.
    pub fn keeps_messages(&self) -> bool {
        are_named(&self.policy.phases) || self.policy.wants_output
    }
}
