//! The state of a run before its first step, and the event that reports its start.

use crate::context::Context;
use crate::domain::attempt::Spend;
use crate::domain::checks::verdict::ordered;
use crate::domain::continuation::Directories;
use crate::domain::event::{EventKind, PlanLine, RunStarted, TaskLine, WarningTopic};
use crate::domain::mcp::credentials;
use crate::domain::plan::{Task, TaskId};
use crate::domain::schedule::Rules;
use crate::domain::settings::OnFinding;
use crate::domain::summary::NO_AGENT;
use crate::error::Result;
use crate::github::actions_environment;
use crate::github::request::RunRequest;
use crate::process::{self, Cancel, CancelReason};
use crate::run::begin::beginning::{Earlier, Place, RunPlan, load_statuses, spent};
use crate::run::begin::model_gateway::ModelGateway;
use crate::run::begin::open::Opened;
use crate::run::begin::prepare::Source;
use crate::run::begin::work::Work;
use crate::run::deliver::work_keeper::{WorkKeeper, reference};
use crate::run::deliver::{cost_limits, jj};
use crate::run::state::accounts::Accounts;
use crate::run::state::agent_files::AgentFiles;
use crate::run::state::answer::TaskAnswer;
use crate::run::state::emitter::Emitter;
use crate::run::state::notes::Notes;
use crate::run::state::orderly_end::forget_orderly_end;
use crate::run::state::parts::{Parts, TaskStart};
use crate::run::state::plan_state::PlanState;
use crate::run::state::runner_files::RunnerFiles;
use crate::run::state::setup::Setup;
use crate::run::state::work_tree::WorkTree;
use crate::secrets::sources::detector;
use crate::settings::{DEFAULT_FILE, RunConfig, TaskConfig};
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

/// All parts of a run in their initial state.
pub(crate) fn parts<'e>(
    context: &Context,
    opened: Opened,
    plan: PlanState,
    config: RunConfig,
    work: &Work,
    cancel: Cancel,
    emit: Emitter<'e>,
) -> Parts<'e> {
    let Place {
        run_dir,
        run_id,
        repo,
    } = opened.place;
    let mut isolation = opened.isolation;
    let ignore = config.progress_ignore.clone();
    let network = actions_environment::network(context);
    let gateway = ModelGateway::of(context, &config, &network, isolation.take_proxy());
    let detector = detector(&context.env, &credentials(&config.mcp));
    let mut parts = Parts {
        notes: Notes::of(&run_dir, &run_id, &plan),
        tree: WorkTree::new(repo, plan, run_dir.clone(), ignore),
        accounts: Accounts::of(&run_dir),
        emit,
        keeper: None,
        setup: Setup {
            redactor: run_dir.redactor(),
            run_dir,
            run_id,
            network,
            env: context.env.clone(),
            is_root: context.is_root,
            in_actions: context.in_actions(),
            cancel,
            config,
            agent_files: AgentFiles::default(),
            output_schema: opened.schema,
            isolation,
            gateway,
            reviewed: work.reviewed().cloned(),
            runner_files: RunnerFiles::record(context),
            detector,
        },
    };
    let real = parts.tree.repo.real();
    real.stop_with(&parts.setup.cancel, context.times_after_signal());
    let filters = parts.setup.filters();
    parts.tree.repo.confine_filters(filters);
    parts
}

/// Everything that cancels the run: signals, the death of the runner, the deadline.
pub(crate) fn cancels(context: &Context, deadline: Option<Duration>) -> Result<Cancel> {
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

/// Loads what the run's earlier processes left, determines where unfinished work is kept, and applies the daily
/// cost limit. Returns the limits for people.
///
/// # Errors
/// When the run directory cannot be written, or what the run needs is not there.
pub(crate) async fn load(
    context: &Context,
    parts: &mut Parts<'_>,
    ready: &ReadyTasks<'_>,
    earlier: Option<&Earlier>,
    spent_elsewhere: Option<Spend>,
) -> Result<Option<String>> {
    match earlier {
        Some(earlier) => load_results(parts, earlier)?,
        // Files that the checks of earlier runs left behind.
        None => {
            parts.tree.load_artifacts(&mut parts.emit);
            warn_of_left_files(parts);
        }
    }
    let set = parts.setup.config.settings.agent_config;
    parts.setup.agent_files = AgentFiles::resolve(context, &parts.tree.repo, set, ready.request)?;
    let base = parts.tree.repo.base();
    parts.setup.save_start_commit(base.clone())?;
    jj::record_operation(&parts.setup, &parts.tree, &mut parts.emit).await?;
    if !ready.work.has_agent() {
        return Ok(None);
    }
    // A merge is always made anew from its two sides, so it needs no saved work.
    let keeps_work = |it: &&RunRequest| !it.context.merges_base && parts.setup.reviewed.is_none();
    parts.keeper = ready.request.filter(keeps_work).and_then(|request| {
        let work_tree = parts.tree.repo.real().work_tree();
        let name = reference(request, ready.source, work_tree)?;
        WorkKeeper::of(context, request, name, base, spent_elsewhere.is_some())
    });
    Ok(cost_limits::apply_daily_limit(context, parts, ready.request, spent_elsewhere).await)
}

/// Restores the results of an earlier process of the run.
fn load_results(parts: &mut Parts<'_>, earlier: &Earlier) -> Result<()> {
    // The deadline is the job's, and a resumed run has a job of its own.
    let before = Duration::from_millis(earlier.summary.elapsed_ms);
    let deadline = &mut parts.setup.config.settings.deadline;
    *deadline = deadline.map(|limit| limit.saturating_add(before));
    let keep_going = parts.setup.config.settings.keep_going;
    load_statuses(&mut parts.tree.plan, earlier, keep_going);
    parts.accounts.spent = spent(earlier);
    parts.accounts.changed_files = earlier.summary.changed_files_so_far();
    Ok(forget_orderly_end(&parts.setup.run_dir)?)
}

/// Names what runs that died have moved out of this work tree, on a machine that keeps its checkout.
fn warn_of_left_files(parts: &mut Parts<'_>) {
    for dir in parts.tree.repo.left_away() {
        parts.warn(format!(
            "a run that was killed has left files of the work tree that are not under version control in {}: resume \
             that run, or move them back (N.from says where N was) and remove the directory",
            dir.display()
        ));
    }
}

/// The tasks to run, each with what an earlier process left of it.
pub(crate) fn run_plan(
    parts: &Parts<'_>,
    tasks: Vec<(Task, TaskConfig)>,
    named: &[TaskId],
    earlier: Option<Earlier>,
    answer: Option<&TaskAnswer>,
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
                let answered = answer.filter(|answer| answer.task == task.id.as_str());
                let start = TaskStart {
                    config,
                    continues_session: answered.is_some_and(|answer| answer.is_new),
                    earlier,
                    agent_commits,
                };
                (task, start)
            })
            .collect(),
        outcomes,
        rules: Rules {
            keep_going: parts.setup.config.settings.keep_going,
            no_changes,
            alone: named.iter().map(ToString::to_string).collect(),
        },
    }
}

/// The plan and the request of a run at its start.
pub(crate) struct ReadyTasks<'a> {
    pub(crate) request: Option<&'a RunRequest>,
    pub(crate) work: &'a Work,
    pub(crate) source: &'a Source,
    /// All tasks of the plan.
    pub(crate) all: &'a [Task],
    /// The tasks to run.
    pub(crate) tasks: &'a [(Task, TaskConfig)],
    pub(crate) resumed: bool,
}

/// Loads the notes for a new run. Emits the start of the run and then the warnings for the user. `limits` are the
/// cost limits, for people.
///
/// # Errors
/// When the notes cannot be saved.
pub(crate) fn report_start(
    context: &Context,
    parts: &mut Parts<'_>,
    ready: &ReadyTasks<'_>,
    limits: Option<String>,
    warnings: &[String],
) -> Result<()> {
    let started = started(context, parts, ready, limits);
    let merges = ready.request.is_some_and(|it| it.context.merges_base);
    if !ready.resumed && ready.work.has_agent() && !merges {
        let keeper = parts.keeper.as_mut();
        let elsewhere = keeper.and_then(|keeper| keeper.notes(&parts.tree));
        let work_tree = parts.tree.repo.real().work_tree();
        parts
            .notes
            .load(context, work_tree, &parts.setup.run_dir, elsewhere)?;
    }
    let detached = started.branch.is_none() && started.base.is_some() && !context.in_actions();
    parts.emit.emit(EventKind::RunStarted(Box::new(started)));
    if detached {
        warn_of_detached_head(parts);
    }
    warn_of_held_lock(parts);
    for warning in warnings.iter().chain(parts.setup.isolation.warnings()) {
        parts.emit.warn(warning);
    }
    let of_fork = ready.request.is_some_and(|it| it.context.report_only);
    if of_fork && !ready.resumed && parts.setup.reviewed.is_none() {
        parts.emit.warn_about(
            WarningTopic::FromFork,
            "the pull request is from a fork: nothing is pushed, the work is only reported",
        );
    }
    Ok(())
}

fn warn_of_detached_head(parts: &mut Parts<'_>) {
    if parts.tree.repo.started_with_jj() {
        parts.emit.warn_about(
            WarningTopic::NoBookmark,
            "no bookmark follows the commits of this run; its end says how to create one",
        )
    } else {
        parts.warn(
            "HEAD is detached: commits will not be on a branch; the end of the run says how to create one",
        )
    }
}

/// Warns of a lock that another git process holds, if this run is to commit. It may be released before the first
/// commit, which waits for it for a while.
fn warn_of_held_lock(parts: &mut Parts<'_>) {
    let lock = parts.tree.repo.real().held_lock();
    if let Some(lock) = lock.filter(|_| parts.setup.commits()) {
        parts.warn(format!(
            "{} is held by another git process, and nothing can be committed until it is gone: remove the file if no git is running",
            lock.display()
        ));
    }
}

fn started(
    context: &Context,
    parts: &mut Parts<'_>,
    ready: &ReadyTasks<'_>,
    limits: Option<String>,
) -> RunStarted {
    let tasks = ready.tasks;
    // Warnings about the tree are emitted after this event.
    let exempt = parts.tree.exempt();
    let seen = parts.tree.repo.last_snapshot(&exempt).ok();
    let branch = seen.and_then(|seen| seen.known.branch.as_deref().map(short_branch));
    let plan = &parts.tree.plan;
    let first = tasks.first().map(|(_, config)| config);
    let agent = first.filter(|_| ready.work.has_agent());
    let selected: HashMap<&TaskId, &TaskConfig> = tasks
        .iter()
        .map(|(task, config)| (&task.id, config))
        .collect();
    let line = |task: &Task| {
        let config = selected.get(&task.id);
        TaskLine {
            id: task.id.to_string(),
            title: task.title.clone(),
            done: plan.is_done(&task.id),
            selected: config.is_some(),
            line: plan.file.as_ref().and(u32::try_from(task.line).ok()),
            max_retries: config.map_or(0, |config| config.settings.max_retries),
        }
    };
    // The configuration of a task's own directory is not read.
    let place = tasks.first().map(|(task, config)| match task.directory {
        None => place(parts.tree.repo.real().work_tree(), &config.directory),
        Some(_) => format!("works in {}", config.directory),
    });
    let place = place.filter(|_| first.is_some_and(|config| !config.directory.is_empty()));
    let hooks = parts.tree.repo.idle_hooks();
    let idle = (!hooks.is_empty()).then(|| format!("hooks that do not run: {}", hooks.join(", ")));
    let filters = parts.tree.repo.lost_filters();
    let lost = (!filters.is_empty()).then(|| {
        format!(
            "filters of .gitattributes that are not set up here, so that files are committed as they are or not at all: {} (for lfs: install git-lfs and run `git lfs install`)",
            filters.join(", ")
        )
    });
    RunStarted {
        run_id: parts.setup.run_id.clone(),
        plan: PlanLine {
            title: plan.plan.title.clone(),
            path: plan.file.as_ref().map(|file| file.name.clone()),
        },
        branch,
        base: parts.tree.repo.base().map(|id| id.0),
        agent: agent
            .map_or(NO_AGENT, |config| config.agent.name())
            .to_owned(),
        checks: first.map_or_else(Vec::new, |config| {
            ordered(&config.checks)
                .into_iter()
                .map(|check| check.name.clone())
                .collect()
        }),
        tasks: ready.all.iter().map(line).collect(),
        run_dir: parts.setup.run_dir.root().display().to_string(),
        resumed: ready.resumed,
        name: ready
            .request
            .map(|it| it.context.place.name.as_str().to_owned()),
        limits,
        model: agent.and_then(|config| config.settings.model.clone()),
        host: context.host(),
        sandbox: Some(parts.setup.isolation.line().clone()),
        gateway: parts
            .setup
            .gateway
            .lines(tasks.iter().map(|(_, config)| config)),
        continuation: ready.work.continuation(context.in_actions(), ready.request),
        allow_dirty: parts.setup.config.settings.allow_dirty,
        directories: directories(context, parts.tree.repo.real().work_tree()),
        understood: place
            .into_iter()
            .chain(plan.plan.understood())
            .chain(idle)
            .chain(lost)
            .collect(),
    }
}

/// What differs from a shell at the root of the repository.
fn directories(context: &Context, work_tree: &Path) -> Directories {
    let here = context.cwd.canonicalize();
    let is_root = !context.cwd_is_chosen && here.is_ok_and(|here| here == work_tree);
    let named = |path: &Path| path.display().to_string();
    Directories {
        root: (!is_root).then(|| named(work_tree)),
        chosen: context.cwd_is_chosen.then(|| named(&context.cwd)),
    }
}

/// Where the first task works, and the configuration that is in that directory.
fn place(work_tree: &Path, below: &str) -> String {
    let own = format!("{below}/{DEFAULT_FILE}");
    if work_tree.join(&own).is_file() {
        format!("works in {below}, with the configuration {own}")
    } else {
        format!("works in {below}")
    }
}

fn short_branch(name: &str) -> String {
    name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()
}
