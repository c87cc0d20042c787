//! The only loop: decide, perform, record.

pub mod accounts;
pub mod agent_files;
mod base_merge;
pub mod cached_repo;
mod check_changes;
mod conversation;
mod cost_limits;
mod credentials;
mod delivery;
pub mod described;
pub mod directory;
pub mod draft;
pub mod draft_request;
pub mod emitter;
pub mod events_file;
pub mod execute;
mod finish;
pub mod foreign_push;
pub mod identity;
mod integrate;
pub mod isolation;
pub(crate) mod jj;
pub mod journal;
mod judged_since;
pub mod layout;
pub mod lock;
pub mod merging;
pub mod model_gateway;
pub mod new_run;
pub mod notes;
mod opening;
mod orderly_end;
pub mod outcomes;
pub mod output_schema;
pub mod parts;
pub mod past_runs;
pub mod places;
pub mod plan_state;
pub mod prepare;
pub mod programs;
mod push_failure;
pub mod record;
pub mod recorder;
pub mod reopen;
pub mod report_sources;
pub mod reporting;
pub mod repository;
pub mod required_agents;
mod restore;
mod resume;
pub mod reviewed_change;
pub mod run_plan;
pub mod runner_files;
pub mod setup;
pub mod source;
pub mod start;
mod started;
pub mod steps;
mod take_over;
pub mod task;
mod telemetry;
mod uncommitted;
mod unfinished_work;
pub mod untrusted_run;
mod work_keeper;
pub mod work_tree;

use crate::domain::attempt::{Step, decide};
use crate::domain::event::{EventKind, TaskEnded};
use crate::domain::outcome::Outcome;
use crate::domain::plan::Task;
use crate::domain::schedule::{Item, Schedule, TaskStep};
use crate::run::emitter::Emitter;
use crate::run::parts::Parts;
use crate::run::run_plan::RunPlan;
use crate::run::steps::{announce, finish_task, perform, start_task};
use crate::run::task::TaskStart;
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
                let outcome = run_task(parts, task, (start, is_last)).await?;
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
    start: (&TaskStart, bool),
) -> anyhow::Result<Outcome> {
    let (setup, tree) = (&parts.setup, &mut parts.tree);
    let (accounts, emit) = (&mut parts.accounts, &mut parts.emit);
    let mut run = start_task(setup, tree, accounts, emit, task, start)?;
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
    let (setup, tree) = (&parts.setup, &mut parts.tree);
    let (accounts, emit) = (&mut parts.accounts, &mut parts.emit);
    finish_task(setup, tree, accounts, emit, &mut run, &outcome)?;
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
