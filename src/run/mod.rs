//! The only loop: decide, perform, record.

pub mod begin;
pub mod deliver;
pub mod merge;
pub mod state;
pub mod steps;

use crate::domain::attempt::{Step, decide};
use crate::domain::event::{EventKind, TaskEnded};
use crate::domain::outcome::Outcome;
use crate::domain::plan::Task;
use crate::domain::schedule::{Item, Schedule, TaskStep};
use crate::run::begin::beginning::RunPlan;
use crate::run::state::emitter::Emitter;
use crate::run::state::parts::{Parts, TaskStart};
use crate::run::steps::{announce, finish_task, perform, start_task};
use std::collections::{BTreeMap, HashMap};

/// Runs the plan and returns the outcome of each task.
///
/// # Errors
/// When the run's own state cannot be read or written.
pub async fn run(
    parts: &mut Parts<'_>,
    plan: &RunPlan,
) -> anyhow::Result<BTreeMap<String, Outcome>> {
    let items: Vec<Item> = plan.tasks.iter().map(|(task, _)| item(task)).collect();
    let tasks = plan.tasks.iter();
    let tasks: HashMap<&str, &(Task, TaskStart)> = tasks
        .map(|planned| (planned.0.id.as_str(), planned))
        .collect();
    let mut outcomes = plan.outcomes.clone();
    let mut schedule = Schedule::new(&items, &plan.done_before, &outcomes, &plan.rules);
    loop {
        let (id, outcome) = match schedule.next_task() {
            TaskStep::End => break,
            TaskStep::Skip { id, on } => {
                let outcome = Outcome::DependencyFailed { on };
                skip(&mut parts.emit, &id, &outcome);
                (id, outcome)
            }
            TaskStep::Run(id) => {
                let Some((task, start)) = tasks.get(id.as_str()) else {
                    break;
                };
                if let Some(keeper) = &mut parts.keeper {
                    keeper.keep_commits(&parts.setup, &mut parts.tree, &mut parts.emit);
                }
                let is_over = |id: &str| outcomes.contains_key(id) || plan.done_before.contains(id);
                let is_last = tasks.keys().all(|other| *other == id || is_over(other));
                let outcome = run_task(parts, task, start, is_last).await?;
                (id, outcome)
            }
        };
        schedule.end(&id, &outcome);
        outcomes.insert(id, outcome);
    }
    parts.emit.at(None, None, None);
    Ok(outcomes)
}

async fn run_task(
    parts: &mut Parts<'_>,
    task: &Task,
    start: &TaskStart,
    is_last: bool,
) -> anyhow::Result<Outcome> {
    let mut run = start_task(parts, task, start, is_last)?;
    let outcome = loop {
        let step = decide(&run.policy, &run.journal.state);
        announce(&mut parts.emit, &run, &step);
        if let Step::Finish(outcome) = step {
            run.journal.sync()?;
            break match &parts.tree.merging {
                Some(merging) => merging.outcome(outcome),
                None => outcome,
            };
        }
        run.journal.intend(step.clone())?;
        let observation = perform(parts, &mut run, &step).await?;
        parts.emit.ensure_stored()?;
        run.journal.observe_before_intent(observation)?;
    };
    finish_task(parts, &mut run, &outcome)?;
    Ok(outcome)
}

fn skip(emit: &mut Emitter<'_>, id: &str, outcome: &Outcome) {
    emit.at(Some(id), None, None);
    let ended = TaskEnded::without_turns(outcome.clone());
    emit.emit(EventKind::TaskEnded(Box::new(ended)));
}

fn item(task: &Task) -> Item {
    Item {
        id: task.id.to_string(),
        depends_on: task.depends_on.iter().map(ToString::to_string).collect(),
    }
}
