//! What an earlier process of a run has left.

use crate::domain::attempt::{Record, Spend, fold};
use crate::domain::event::EventKind;
use crate::domain::outcome::{Outcome, TaskEnd};
use crate::domain::plan::{StatusUpdate, Task, TaskId, TaskStatus};
use crate::domain::schedule::Rules;
use crate::domain::summary::{RunSummary, TaskSummary};
use crate::error::{Error, Result};
use crate::run::state::cached_repo::CachedRepo;
use crate::run::state::directory::RunDir;
use crate::run::state::layout::RunFile;
use crate::run::state::parts::TaskStart;
use crate::run::state::plan_state::{PlanState, completed_at};
use std::collections::{BTreeMap, BTreeSet};

/// The place of a run: its directory, and the repository with the private git directory.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) run_dir: RunDir,
    pub(crate) run_id: String,
    pub(crate) repo: CachedRepo,
}

/// The tasks of a run, in order.
#[derive(Debug, Clone, Default)]
pub struct RunPlan {
    /// The selected tasks, in order of execution.
    pub tasks: Vec<(Task, TaskStart)>,
    /// Ids of tasks that were done before the run.
    pub done_before: BTreeSet<String>,
    /// Outcomes from an earlier process of this run.
    pub outcomes: BTreeMap<String, Outcome>,
    /// When the run stops.
    pub rules: Rules,
}

/// The state that an earlier process of this run reached.
#[derive(Debug, Default)]
pub(crate) struct Earlier {
    /// Whether that process was on another machine.
    pub(crate) was_elsewhere: bool,
    /// Outcomes of finished tasks: done, or failed in a process that died before it reported the run's
    /// end.
    pub(crate) outcomes: BTreeMap<String, Outcome>,
    /// The histories of the other tasks.
    pub(crate) histories: BTreeMap<String, Vec<Record>>,
    /// Commits that the agent made, by task.
    pub(crate) agent_commits: BTreeMap<String, Vec<String>>,
    /// The task that failed last, if no other task was started after it.
    pub(crate) just_failed: Option<String>,
    pub(crate) summary: RunSummary,
    pub(crate) seq: u64,
}

impl Earlier {
    /// Reads the state of an earlier process. A failed task starts again with fresh counters, unless the
    /// process died before it reported the run's end: then the task's outcome stands. An interrupted task
    /// continues.
    pub(crate) fn read(run_dir: &RunDir, was_elsewhere: bool) -> Result<Self> {
        let damaged =
            |error: anyhow::Error| Error::config(format!("the run cannot be resumed: {error:#}"));
        let events = run_dir.read_events().map_err(damaged)?;
        // The number of the last event of the last process that ended in order.
        let ended: u64 = run_dir.read_json(RunFile::Ended).unwrap_or(0);
        let mut earlier = Self {
            was_elsewhere,
            summary: RunSummary::of(&events),
            seq: events.last().map_or(0, |event| event.seq),
            ..Self::default()
        };
        let mut stands = BTreeSet::new();
        for event in events {
            let task = event.place.task.unwrap_or_default();
            match event.kind {
                EventKind::TaskEnded(_) if event.seq > ended => drop(stands.insert(task)),
                EventKind::TaskStarted { .. } => drop(earlier.agent_commits.remove(&task)),
                EventKind::AgentCommits { commits } => {
                    earlier.agent_commits.insert(task, commits);
                }
                _ => {}
            }
        }
        for line in run_dir.read_history().map_err(damaged)? {
            earlier.just_failed = None;
            earlier.outcomes.remove(&line.task);
            let history = earlier.histories.entry(line.task.clone()).or_default();
            match line.record {
                Record::Finished { outcome } if outcome.ends_run() => {}
                Record::Finished { outcome } if outcome.task_end() == TaskEnd::Done => {
                    earlier.histories.remove(&line.task);
                    earlier.outcomes.insert(line.task, outcome);
                }
                Record::Finished { outcome } => {
                    history.truncate(1);
                    if stands.contains(&line.task) {
                        earlier.just_failed = Some(line.task.clone());
                        earlier.outcomes.insert(line.task, outcome);
                    }
                }
                record => history.push(record),
            }
        }
        Ok(earlier)
    }

    /// The failed task after which the dead process was about to continue.
    pub(crate) fn just_failed(&self) -> Option<&TaskSummary> {
        self.summary.task(self.just_failed.as_ref()?)
    }

    /// Whether a task was started and did not end.
    pub(crate) fn has_open(&self, task: &TaskId) -> bool {
        let history = self.histories.get(task.as_str());
        history.is_some_and(|history| history.len() > 1)
    }

    /// Total spend of the run.
    pub(crate) fn spent(&self) -> Spend {
        let usage = &self.summary.usage;
        let tokens = usage.tokens_in.unwrap_or(0);
        Spend {
            tokens: tokens.saturating_add(usage.tokens_out.unwrap_or(0)),
            cost_usd: usage.cost_usd.unwrap_or(0.0),
        }
    }

    /// Spend of the run without its unfinished tasks, whose histories contain their own spend.
    pub(crate) fn spent_on_ended_tasks(&self) -> Spend {
        let open = self.histories.values().map(|history| fold(history).spend);
        open.fold(self.spent(), |left, open| Spend {
            tokens: left.tokens.saturating_sub(open.tokens),
            cost_usd: (left.cost_usd - open.cost_usd).max(0.0),
        })
    }

    /// Restores statuses that were not saved in the plan yet, so that the next commit saves them.
    pub(crate) fn load_statuses(&self, book: &mut PlanState, keep_going: bool) {
        for (id, outcome) in &self.outcomes {
            let Some(task) = book.plan.tasks.iter().find(|task| task.id.as_str() == id) else {
                continue;
            };
            let id = task.id.clone();
            let status = match outcome.task_end() {
                TaskEnd::Done if !book.is_done(&id) => TaskStatus::Done,
                TaskEnd::Failed if keep_going => TaskStatus::Failed,
                TaskEnd::Blocked if keep_going => TaskStatus::Blocked,
                _ => continue,
            };
            let attempts = self.summary.task(id.as_str()).map(|task| task.attempts);
            let update = StatusUpdate {
                status,
                attempts,
                completed_at: (status == TaskStatus::Done).then(completed_at),
            };
            book.set(&id, update);
        }
    }
}
