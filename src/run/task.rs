//! A task of a run: what it begins with, and what is known of it while it is worked on.

use crate::domain::attempt::{
    Expect, PhaseSpec, Policy, Record, Role, TurnKey, TurnPurpose, are_named,
};
use crate::domain::checks::verdict::{AttemptOutcome, HistoryEntry};
use crate::domain::plan::Task;
use crate::domain::prompt::NudgeKind;
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
    /// The JSON Schema of the value that the task owes, as the agent is shown it.
    pub output_schema: Option<String>,
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

    /// Whether a turn of this phase has to give the value that the run's output schema asks for.
    pub fn owes_output(&self, key: TurnKey) -> bool {
        let row = self.row(key);
        let does_the_work = matches!(row.role, Role::Implementer | Role::Fixer);
        let is_of_work = does_the_work && !row.optional && row.expect == Expect::Pass;
        self.policy.wants_output && (is_of_work || self.is_asked_for_output())
    }

    /// Whether the present turn is for that value alone.
    pub fn is_asked_for_output(&self) -> bool {
        matches!(
            self.journal.state.purpose,
            Some(TurnPurpose::Nudge {
                kind: NudgeKind::Output,
                ..
            })
        )
    }

    /// The schema of the value that a turn of this phase has to give, as the agent is shown it.
    pub fn output(&self, key: TurnKey) -> Option<&str> {
        self.output_schema
            .as_deref()
            .filter(|_| self.owes_output(key))
    }

    /// Whether the history keeps the final messages of the task, since another than the last one may count.
    pub fn keeps_messages(&self) -> bool {
        self.has_phases() || self.policy.wants_output
    }

    /// Whether the task has other phases than the one that does it.
    pub fn has_phases(&self) -> bool {
        are_named(&self.policy.phases)
    }
}
