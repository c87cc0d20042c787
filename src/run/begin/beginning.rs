//! How a run begins.

use crate::domain::attempt::{Record, Spend, fold};
use crate::domain::event::{Event, EventKind};
use crate::domain::outcome::{Outcome, TaskEnd};
use crate::domain::plan::{StatusUpdate, Task, TaskStatus};
use crate::domain::schedule::Rules;
use crate::domain::summary::{RunSummary, TaskSummary};
use crate::error::{Error, Result};
use crate::git::Repo;
use crate::github::request::RunRequest;
use crate::run::begin::prepare::Prepared;
use crate::run::state::cached_repo::CachedRepo;
use crate::run::state::directory::RunDir;
use crate::run::state::layout::RunFile;
use crate::run::state::lock::RunLock;
use crate::run::state::parts::TaskStart;
use crate::run::state::plan_state::{PlanState, completed_at};
use std::collections::{BTreeMap, BTreeSet};

/// The place of a run: its directory, and the repository with the private git directory.
pub(crate) struct Place {
    pub(crate) run_dir: RunDir,
    pub(crate) run_id: String,
    pub(crate) repo: CachedRepo,
}

/// How a run begins.
pub(crate) enum Beginning {
    /// With a new run directory.
    New,
    /// Where an earlier process on this machine stopped.
    Resumed(Place, Earlier),
    /// Where a process on another machine stopped.
    Restored(Place, Earlier),
}

impl Beginning {
    /// The place of the run, if it exists already.
    pub(crate) fn place(&self) -> Option<&Place> {
        match self {
            Self::New => None,
            Self::Resumed(place, _) | Self::Restored(place, _) => Some(place),
        }
    }

    /// The state that an earlier process reached, if there was one.
    pub(crate) fn earlier(&self) -> Option<&Earlier> {
        match self {
            Self::New => None,
            Self::Resumed(_, earlier) | Self::Restored(_, earlier) => Some(earlier),
        }
    }

    /// The same to change.
    pub(crate) fn place_mut(&mut self) -> Option<&mut Place> {
        match self {
            Self::New => None,
            Self::Resumed(place, _) | Self::Restored(place, _) => Some(place),
        }
    }

    /// The repository as the earlier process left it.
    pub(crate) fn repo(&self) -> Option<&Repo> {
        self.place().map(|place| &*place.repo)
    }
}

/// A run that was asked for, with everything that it needs.
pub(crate) struct Ready {
    pub(crate) prepared: Prepared,
    pub(crate) request: Option<RunRequest>,
    pub(crate) beginning: Beginning,
    /// Held until the run ends. A dry run needs none.
    pub(crate) lock: Option<RunLock>,
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
pub(crate) struct Earlier {
    /// Outcomes of finished tasks: done, or failed in a process that died before it reported the run's
    /// end.
    pub(crate) outcomes: BTreeMap<String, Outcome>,
    /// The histories of the other tasks.
    pub(crate) histories: BTreeMap<String, Vec<Record>>,
    /// Ids of unfinished tasks that were started.
    pub(crate) open: Vec<String>,
    /// Commits that the agent made, by task.
    pub(crate) agent_commits: BTreeMap<String, Vec<String>>,
    /// The task that failed last, if no other task was started after it.
    pub(crate) just_failed: Option<String>,
    pub(crate) summary: RunSummary,
    pub(crate) seq: u64,
}

impl Earlier {
    /// The failed task after which the dead process was about to continue, and its outcome.
    pub(crate) fn just_failed(&self) -> Option<(TaskSummary, Outcome)> {
        let id = self.just_failed.as_ref()?;
        Some((
            self.summary.task(id)?.clone(),
            self.outcomes.get(id)?.clone(),
        ))
    }
}

/// Reads the state of an earlier process. A failed task starts again with fresh counters, unless the
/// process died before it reported the run's end: then the task's outcome stands. An interrupted task
/// continues.
pub(crate) fn read_earlier(run_dir: &RunDir) -> Result<Earlier> {
    let damaged =
        |error: anyhow::Error| Error::config(format!("the run cannot be resumed: {error:#}"));
    let events = run_dir.read_events().map_err(damaged)?;
    let ended = run_dir.read_json(RunFile::Ended).unwrap_or(0);
    let by_events = EventState::by(&events, ended);
    let mut outcomes = BTreeMap::new();
    let mut just_failed = None;
    let mut histories: BTreeMap<String, Vec<Record>> = BTreeMap::new();
    for line in run_dir.read_history().map_err(damaged)? {
        just_failed = None;
        outcomes.remove(&line.task);
        let history = histories.entry(line.task.clone()).or_default();
        match line.record {
            Record::Finished { outcome } if outcome.ends_run() => {}
            Record::Finished { outcome } if outcome.task_end() == TaskEnd::Done => {
                histories.remove(&line.task);
                outcomes.insert(line.task, outcome);
            }
            Record::Finished { outcome } => {
                history.truncate(1);
                if by_events.stands.contains(&line.task) {
                    just_failed = Some(line.task.clone());
                    outcomes.insert(line.task, outcome);
                }
            }
            record => history.push(record),
        }
    }
    let is_open = |history: &Vec<Record>| history.len() > 1;
    let open = histories
        .iter()
        .filter(|(_, history)| is_open(history))
        .map(|(task, _)| task.clone())
        .collect();
    let summary = RunSummary::of(&events);
    let seq = events.last().map_or(0, |event| event.seq);
    Ok(Earlier {
        outcomes,
        histories,
        open,
        agent_commits: by_events.agent_commits,
        just_failed,
        summary,
        seq,
    })
}

/// State that only the events contain.
#[derive(Default)]
struct EventState {
    /// Tasks that ended after the last event that a process reported at its orderly end.
    stands: BTreeSet<String>,
    /// Commits that the agent made, by task.
    agent_commits: BTreeMap<String, Vec<String>>,
}

impl EventState {
    /// `ended` is the number of the last event of the last process that ended in order.
    fn by(events: &[Event], ended: u64) -> Self {
        let mut state = Self::default();
        for event in events {
            let task = event.task.clone().unwrap_or_default();
            match &event.kind {
                EventKind::TaskEnded(_) if event.seq > ended => drop(state.stands.insert(task)),
                EventKind::TaskStarted { .. } => drop(state.agent_commits.remove(&task)),
                EventKind::AgentCommits { commits } => {
                    state.agent_commits.insert(task, commits.clone());
                }
                _ => {}
            }
        }
        state
    }
}

/// Total spend of the run.
pub(crate) fn spent_of(earlier: &Earlier) -> Spend {
    let usage = &earlier.summary.usage;
    let tokens = usage.tokens_in.unwrap_or(0);
    Spend {
        tokens: tokens.saturating_add(usage.tokens_out.unwrap_or(0)),
        cost_usd: usage.cost_usd.unwrap_or(0.0),
    }
}

/// Spend of the run without its unfinished tasks, whose histories contain their own spend.
pub(crate) fn spent(earlier: &Earlier) -> Spend {
    let open = earlier
        .histories
        .values()
        .map(|history| fold(history).spend);
    open.fold(spent_of(earlier), |left, open| Spend {
        tokens: left.tokens.saturating_sub(open.tokens),
        cost_usd: (left.cost_usd - open.cost_usd).max(0.0),
    })
}

/// Restores statuses that were not saved in the plan yet, so that the next commit saves them.
pub(crate) fn load_statuses(book: &mut PlanState, earlier: &Earlier, keep_going: bool) {
    for (id, outcome) in &earlier.outcomes {
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
        let attempts = earlier.summary.task(id.as_str()).map(|task| task.attempts);
        let update = StatusUpdate {
            status,
            attempts,
            completed_at: (status == TaskStatus::Done).then(completed_at),
        };
        book.set(&id, update);
    }
}
