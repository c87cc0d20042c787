//! The only loop: decide, perform, record.

pub mod delivery;
pub mod directory;
pub mod layout;
pub mod lock;
pub mod new_run;
pub mod prepare;
pub mod record;
pub mod reopen;
pub mod reporting;
pub mod repository;
pub mod setting_sources;
pub mod source;
pub mod steps;

use crate::domain::attempt::{Step, decide};
use crate::domain::event::{EventKind, TaskEnded};
use crate::domain::outcome::Outcome;
use crate::domain::plan::Task;
use crate::domain::schedule::{Item, Rules, Schedule, TaskStep};
use crate::run::steps::{Performer, TaskStart};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What is to be done, in order.
#[derive(Debug, Clone, Default)]
pub struct RunPlan {
    /// The selected tasks, in the order in which they are worked on.
    pub tasks: Vec<(Task, TaskStart)>,
    /// Ids of tasks that were done before the run.
    pub done_before: BTreeSet<String>,
    /// What an earlier process of this run has brought.
    pub outcomes: BTreeMap<String, Outcome>,
    /// When to stop.
    pub rules: Rules,
}

/// Works the plan off and says how each task ended.
///
/// # Errors
/// Only when the run's own state cannot be read or written.
pub async fn run(
    performer: &mut Performer<'_>,
    plan: &RunPlan,
) -> anyhow::Result<BTreeMap<String, Outcome>> {
    let items: Vec<Item> = plan.tasks.iter().map(|(task, _)| item(task)).collect();
    let tasks: HashMap<&str, &(Task, TaskStart)> = plan
        .tasks
        .iter()
        .map(|planned| (planned.0.id.as_str(), planned))
        .collect();
    let mut outcomes = plan.outcomes.clone();
    let mut schedule = Schedule::new(&items, &plan.done_before, &outcomes, &plan.rules);
    loop {
        let (id, outcome) = match schedule.next_task() {
            TaskStep::End => break,
            TaskStep::Skip { id, on } => {
                let outcome = Outcome::DependencyFailed { on };
                skip(performer, &id, &outcome);
                (id, outcome)
            }
            TaskStep::Run(id) => {
                let Some((task, start)) = tasks.get(id.as_str()) else {
                    break;
                };
                let outcome = run_task(performer, task, start).await?;
                (id, outcome)
            }
        };
        schedule.end(&id, &outcome);
        outcomes.insert(id, outcome);
    }
    performer.emit.at(None, None, None);
    Ok(outcomes)
}

async fn run_task(
    performer: &mut Performer<'_>,
    task: &Task,
    start: &TaskStart,
) -> anyhow::Result<Outcome> {
    let mut run = performer.begin_task(task, start)?;
    loop {
        let step = decide(&run.policy, &run.journal.state);
        performer.announce(&run, &step);
        if let Step::Finish(outcome) = step {
            performer.finish_task(&mut run, &outcome)?;
            return Ok(outcome);
        }
        run.journal.intend(step.clone())?;
        let observation = performer.perform(&mut run, &step).await?;
        performer.emit.all_kept()?;
        run.journal.observe(observation)?;
    }
}

fn skip(performer: &mut Performer<'_>, id: &str, outcome: &Outcome) {
    performer.emit.at(Some(id), None, None);
    performer
        .emit
        .emit(EventKind::TaskEnded(Box::new(TaskEnded {
            outcome: outcome.clone(),
            attempts: 0,
            turns: 0,
            nudges: 0,
            verifications: 0,
            history: Vec::new(),
            changes_made: false,
            changed_files: Vec::new(),
            failing_tests: Vec::new(),
            patch: None,
            agent_commits: 0,
            elapsed_ms: 0,
        })));
}

fn item(task: &Task) -> Item {
    Item {
        id: task.id.to_string(),
        depends_on: task.depends_on.iter().map(ToString::to_string).collect(),
    }
}
