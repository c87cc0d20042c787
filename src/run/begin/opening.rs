//! The state of a run before its first step.

use crate::context::Context;
use crate::domain::plan::{Task, TaskId};
use crate::domain::schedule::Rules;
use crate::domain::settings::OnFinding;
use crate::error::Result;
use crate::github::actions_environment;
use crate::process::{self, Cancel, CancelReason};
use crate::run::begin::isolation::Isolation;
use crate::run::begin::model_gateway::ModelGateway;
use crate::run::begin::new_run::OpenRun;
use crate::run::begin::reopen::{Earlier, recall_statuses, spent};
use crate::run::begin::run_plan::RunPlan;
use crate::run::state::accounts::Accounts;
use crate::run::state::agent_files::AgentFiles;
use crate::run::state::emitter::Emitter;
use crate::run::state::notes::Notes;
use crate::run::state::orderly_end::forget_orderly_end;
use crate::run::state::parts::Parts;
use crate::run::state::plan_state::PlanState;
use crate::run::state::runner_files::RunnerFiles;
use crate::run::state::setup::Setup;
use crate::run::state::task::TaskStart;
use crate::run::state::work_tree::WorkTree;
use crate::secrets::sources::{detector, redactor};
use crate::settings::{RunConfig, TaskConfig};
use std::sync::Arc;
use std::time::Duration;

/// All parts of a run in their initial state.
pub(crate) fn parts<'e>(
    context: &Context,
    (open_run, mut isolation): (OpenRun, Isolation),
    plan: PlanState,
    config: RunConfig,
    cancel: Cancel,
    emit: Emitter<'e>,
) -> Parts<'e> {
    let run_dir = open_run.run_dir;
    let ignore = config.progress_ignore.clone();
    let network = actions_environment::network(context);
    let proxy = isolation.take_proxy();
    let gateway = ModelGateway::of(context, &config, &network, proxy);
    let notes = Notes::of(&run_dir, &open_run.run_id, &plan);
    let mut parts = Parts {
        notes,
        tree: WorkTree::new(open_run.repo, plan, run_dir.clone(), ignore),
        accounts: Accounts::of(&run_dir),
        emit,
        keeper: None,
        setup: Setup {
            run_dir,
            run_id: open_run.run_id,
            network,
            env: context.env.clone(),
            is_root: context.is_root,
            in_actions: context.in_actions(),
            cancel,
            config,
            agent_files: AgentFiles::default(),
            output_schema: None,
            isolation,
            gateway,
            reviewed: None,
            runner_files: RunnerFiles::record(context),
            redactor: Arc::new(redactor(&context.env)),
            detector: detector(&context.env),
        },
    };
    let real = parts.tree.repo.real();
    real.stop_with(&parts.setup.cancel, context.times_after_signal());
    let filters = parts.setup.filters();
    parts.tree.repo.confine_filters(filters);
    parts
}

/// Everything that cancels the run: signals, the death of the runner, the deadline.
pub(crate) fn ends(context: &Context, deadline: Option<Duration>) -> Result<Cancel> {
    let cancel = Cancel::new();
    process::listen(&cancel).map_err(anyhow::Error::from)?;
    if context.in_actions() {
        process::watch_parent(&cancel).map_err(anyhow::Error::from)?;
    }
    watch_deadline(&cancel, deadline);
    Ok(cancel)
}

fn watch_deadline(cancel: &Cancel, deadline: Option<Duration>) {
    let Some(deadline) = deadline else { return };
    let cancel = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(deadline).await;
        cancel.trigger(CancelReason::Deadline);
    });
}

/// Restores the results of an earlier process of the run.
///
/// # Errors
/// When the run directory cannot be written.
pub(crate) fn recall(parts: &mut Parts<'_>, earlier: &Earlier) -> Result<()> {
    // The deadline is the job's, and a resumed run has a job of its own.
    let before = Duration::from_millis(earlier.summary.elapsed_ms);
    let deadline = &mut parts.setup.config.settings.deadline;
    *deadline = deadline.map(|limit| limit.saturating_add(before));
    let keep_going = parts.setup.config.settings.keep_going;
    recall_statuses(&mut parts.tree.plan, earlier, keep_going);
    parts.accounts.spent = spent(earlier);
    parts.accounts.changed_files = earlier.summary.changed_files_so_far();
    Ok(forget_orderly_end(&parts.setup.run_dir)?)
}

pub(crate) fn run_plan(
    parts: &Parts<'_>,
    tasks: Vec<(Task, TaskConfig)>,
    named: &[TaskId],
    earlier: Option<Earlier>,
    no_changes: OnFinding,
) -> RunPlan {
    let (outcomes, mut histories, mut agent_commits) = match earlier {
        Some(earlier) => (earlier.outcomes, earlier.histories, earlier.agent_commits),
        None => Default::default(),
    };
    let state = &parts.tree.plan;
    let all = state.plan.tasks.iter();
    let done = all.filter(|task| state.is_done(&task.id));
    RunPlan {
        done_before: done.map(|task| task.id.to_string()).collect(),
        tasks: tasks
            .into_iter()
            .map(|(task, config)| {
                let earlier = histories.remove(task.id.as_str()).unwrap_or_default();
                let agent_commits = agent_commits.remove(task.id.as_str()).unwrap_or_default();
                let start = TaskStart {
                    config,
                    earlier,
                    agent_commits,
                };
                (task, start)
            })
            .collect(),
        outcomes,
        shards: Vec::new(),
        rules: Rules {
            keep_going: parts.setup.config.settings.keep_going,
            no_changes,
            alone: named.iter().map(ToString::to_string).collect(),
        },
    }
}
