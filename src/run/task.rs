//! A task of a run: what it begins with, and what is known of it while it is worked on.

use crate::domain::attempt::{PhaseSpec, Policy, Record, Role, TurnKey, are_named};
use crate::domain::checks::verdict::{AttemptOutcome, HistoryEntry};
use crate::domain::plan::Task;
use crate::domain::snapshot::Fingerprint;
use crate::permit::Committable;
use crate::run::journal::Journal;
use crate::settings::TaskConfig;

/// What a task begins with.
#[derive(Debug, Clone)]
pub struct TaskStart {
    /// Its settings.
    pub config: TaskConfig,
    /// Its history, when it was begun by an earlier process of this run.
    pub earlier: Vec<Record>,
    /// The commits that the agent made in it under an earlier process of this run.
    pub agent_commits: Vec<String>,
}

/// One task while it is worked on.
pub struct TaskRun<'t> {
    /// The task.
    pub task: &'t Task,
    /// Its settings, with the agent of the role at work.
    pub config: TaskConfig,
    /// What is allowed.
    pub policy: Policy,
    /// Its history and the state that follows from it.
    pub journal: Journal,
    /// The last final message, for the commit's message and the failure's record.
    pub final_message: Option<String>,
    /// The session that a further turn can continue.
    pub session: Option<String>,
    /// The index of the phase that the session belongs to.
    pub session_phase: usize,
    /// The permit to commit that the last run of the checks gave.
    pub permit: Option<Committable>,
    /// The tree on which the last run of the checks failed, without a change by them.
    pub failed_on: Option<Fingerprint>,
    /// Commits that the agent made itself.
    pub agent_commits: Vec<String>,
    /// When the task began, on the run's clock.
    pub began_ms: u64,
    /// Who works in place of the task's own agent.
    pub stand_in: Option<StandIn>,
    /// The roles whose agents were unavailable.
    pub unavailable: Vec<Role>,
}

/// Who works in place of the task's own agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandIn {
    /// One of `escalate`, from 1.
    Escalation(usize),
    /// The `fallback`.
    Fallback,
}

impl TaskRun<'_> {
    /// Has the agent work whose role it is in this turn. Nobody goes on with the session of another phase.
    pub fn begin_turn(&mut self, key: TurnKey) {
        let role = key.name.map_or(Role::Implementer, |name| name.role);
        self.config.take_role(role);
        let stand_in = self.take_stand_in(role);
        let is_other = std::mem::replace(&mut self.stand_in, stand_in) != stand_in;
        if is_other {
            self.session = None;
        }
        if self.session_phase != key.phase {
            self.session = None;
            self.session_phase = key.phase;
        }
    }

    /// Has another agent work where this one was unavailable or its work failed verification.
    fn take_stand_in(&mut self, role: Role) -> Option<StandIn> {
        if self.unavailable.contains(&role) && self.config.take_fallback() {
            return Some(StandIn::Fallback);
        }
        let failed = |entry: &&HistoryEntry| {
            matches!(
                entry.outcome,
                AttemptOutcome::FailedTests | AttemptOutcome::FailedBuild
            )
        };
        let failures = self.journal.state.history.iter().filter(failed).count();
        match role {
            Role::Implementer => self
                .config
                .take_escalation(failures)
                .map(StandIn::Escalation),
            _ => None,
        }
    }

    /// The row of a phase.
    pub fn row(&self, key: TurnKey) -> PhaseSpec {
        let row = self.policy.phases.get(key.phase).copied();
        row.unwrap_or(PhaseSpec::PLAIN)
    }

    /// Whether the task has other phases than the one that does it.
    pub fn has_phases(&self) -> bool {
        are_named(&self.policy.phases)
    }
}
