//! The state of a run before its first step, and the event that reports its start.

use crate::context::Context;
use crate::domain::checks::verdict::ordered;
use crate::domain::continuation::Directories;
use crate::domain::event::{EventKind, PlanLine, RunFacts, RunStarted, TaskLine, WarningTopic};
use crate::domain::mcp::credentials;
use crate::domain::plan::{Task, TaskId};
use crate::domain::schedule::Rules;
use crate::domain::summary::NO_AGENT;
use crate::error::Result;
use crate::github::actions_environment;
use crate::github::request::RunRequest;
use crate::process::{self, Cancel, CancelReason};
use crate::run::begin::beginning::{Earlier, Place, RunPlan};
use crate::run::begin::model_gateway::ModelGateway;
use crate::run::begin::open::Opened;
use crate::run::begin::prepare::Prepared;
use crate::run::deliver::work_keeper::{WorkKeeper, reference};
use crate::run::deliver::{cost_limits, jj};
use crate::run::state::accounts::Accounts;
use crate::run::state::agent_files::AgentFiles;
use crate::run::state::emitter::Emitter;
use crate::run::state::notes::Notes;
use crate::run::state::orderly_end::forget_orderly_end;
use crate::run::state::parts::{Parts, TaskStart};
use crate::run::state::runner_files::RunnerFiles;
use crate::run::state::setup::Setup;
use crate::run::state::work_tree::WorkTree;
use crate::secrets::sources::detector;
use crate::settings::{DEFAULT_FILE, TaskConfig};
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

/// All parts of a run in their initial state.
pub(crate) fn parts<'e>(
    context: &Context,
    opened: Opened,
    prepared: &Prepared,
    cancel: Cancel,
    emit: Emitter<'e>,
) -> Parts<'e> {
    let Opened {
        place,
        mut isolation,
        schema,
    } = opened;
    let Place {
        run_dir,
        run_id,
        repo,
    } = place;
    let (plan, config) = (prepared.book.clone(), prepared.run.clone());
    let ignore = config.progress_ignore.clone();
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
            env: context.env.clone(),
            is_root: context.is_root,
            in_actions: context.in_actions(),
            cancel,
            agent_files: AgentFiles::default(),
            output_schema: schema,
            gateway: ModelGateway::of(context, &config, isolation.take_proxy()),
            network: actions_environment::network(context),
            isolation,
            reviewed: prepared.asked.work.reviewed().cloned(),
            runner_files: RunnerFiles::record(context),
            detector: detector(&context.env, &credentials(&config.mcp)),
            config,
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
    process::listen(&cancel)?;
    if context.in_actions() {
        process::watch_parent(&cancel)?;
    }
    if let Some(deadline) = deadline {
        let cancel = cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(deadline).await;
            cancel.trigger(CancelReason::Deadline);
        });
    }
    Ok(cancel)
}

/// Loads what the run's earlier processes left, determines where unfinished work is kept, and applies the daily
/// cost limit. Returns the limits for people.
///
/// # Errors
/// When the run directory cannot be written, or what the run needs is not there.
pub(crate) async fn load(
    context: &Context,
    parts: &mut Parts<'_>,
    prepared: &Prepared,
) -> Result<Option<String>> {
    let asked = &prepared.asked;
    let earlier = asked.earlier.as_ref();
    match earlier {
        Some(earlier) => {
            let settings = &mut parts.setup.config.settings;
            // The deadline is the job's, and a resumed run has a job of its own.
            let before = Duration::from_millis(earlier.summary.elapsed_ms);
            settings.deadline = settings.deadline.map(|limit| limit.saturating_add(before));
            earlier.load_statuses(&mut parts.tree.plan, settings.keep_going);
            parts.accounts.spent = earlier.spent_on_ended_tasks();
            parts.accounts.changed_files = earlier.summary.changed_files_so_far();
            forget_orderly_end(&parts.setup.run_dir)?;
        }
        None => {
            // Files that the checks of earlier runs left behind, and what runs that died have moved out of this work
            // tree, on a machine that keeps its checkout.
            parts.tree.load_artifacts(&mut parts.emit);
            for dir in parts.tree.repo.left_away() {
                parts.warn(format!(
                    "a run that was killed has left files of the work tree that are not under version control in {}: \
                     resume that run, or move them back (N.from says where N was) and remove the directory",
                    dir.display()
                ));
            }
        }
    }
    let (set, request) = (prepared.run.settings.agent_config, prepared.request());
    parts.setup.agent_files = AgentFiles::resolve(context, &parts.tree.repo, set, request)?;
    let base = parts.tree.repo.base();
    parts.setup.save_start_commit(base.clone())?;
    jj::record_operation(&parts.setup, &parts.tree, &mut parts.emit).await?;
    if !asked.work.has_agent() {
        return Ok(None);
    }
    let elsewhere = earlier.filter(|earlier| earlier.was_elsewhere);
    // A merge is always made anew from its two sides, so it needs no saved work.
    let keeps_work = |it: &&RunRequest| !it.context.merges_base && parts.setup.reviewed.is_none();
    parts.keeper = request.filter(keeps_work).and_then(|request| {
        let name = reference(request, &asked.source, asked.real.work_tree())?;
        WorkKeeper::of(context, request, name, base, elsewhere.is_some())
    });
    let elsewhere = elsewhere.map(Earlier::spent);
    Ok(cost_limits::apply_daily_limit(context, parts, request, elsewhere).await)
}

/// The tasks to run, each with what an earlier process left of it.
pub(crate) fn run_plan(parts: &Parts<'_>, prepared: &mut Prepared) -> RunPlan {
    let mut earlier = prepared.asked.earlier.take().unwrap_or_default();
    let state = &parts.tree.plan;
    let all = state.plan.tasks.iter();
    let done = all.filter(|task| state.is_done(&task.id));
    let tasks = std::mem::take(&mut prepared.tasks).into_iter();
    let tasks = tasks.map(|(task, config)| {
        let id = task.id.as_str();
        let answer = prepared.answer.as_ref();
        let start = TaskStart {
            config,
            continues_session: answer.is_some_and(|it| it.task == id && it.is_new),
            earlier: earlier.histories.remove(id).unwrap_or_default(),
            agent_commits: earlier.agent_commits.remove(id).unwrap_or_default(),
        };
        (task, start)
    });
    RunPlan {
        done_before: done.map(|task| task.id.to_string()).collect(),
        tasks: tasks.collect(),
        outcomes: earlier.outcomes,
        rules: Rules {
            keep_going: prepared.run.settings.keep_going,
            no_changes: prepared.run.settings.if_no_changes,
            alone: prepared.named.iter().map(ToString::to_string).collect(),
        },
    }
}

/// Loads the notes for a new run. Emits the start of the run and then the warnings for the user. `limits` are the
/// cost limits, for people.
///
/// # Errors
/// When the notes cannot be saved.
pub(crate) fn report_start(
    context: &Context,
    parts: &mut Parts<'_>,
    prepared: &Prepared,
    limits: Option<String>,
) -> Result<()> {
    let started = started(context, parts, prepared, limits);
    let (asked, request) = (&prepared.asked, prepared.request());
    let is_new = asked.earlier.is_none();
    let merges = request.is_some_and(|it| it.context.merges_base);
    if is_new && asked.work.has_agent() && !merges {
        let keeper = parts.keeper.as_mut();
        let elsewhere = keeper.and_then(|keeper| keeper.notes(&parts.tree));
        let work_tree = asked.real.work_tree();
        parts
            .notes
            .load(context, work_tree, &parts.setup.run_dir, elsewhere)?;
    }
    let detached =
        started.facts.branch.is_none() && started.facts.base.is_some() && !context.in_actions();
    parts.emit.emit(EventKind::RunStarted(Box::new(started)));
    if detached && parts.tree.repo.started_with_jj() {
        parts.emit.warn_about(
            WarningTopic::NoBookmark,
            "no bookmark follows the commits of this run; its end says how to create one",
        );
    } else if detached {
        parts.warn(
            "HEAD is detached: commits will not be on a branch; the end of the run says how to create one",
        );
    }
    let lock = parts.tree.repo.real().held_lock();
    // It may be released before the first commit, which waits for it for a while.
    if let Some(lock) = lock.filter(|_| parts.setup.commits()) {
        parts.warn(format!(
            "{} is held by another git process, and nothing can be committed until it is gone: remove the file if no git is running",
            lock.display()
        ));
    }
    for warning in asked
        .warnings
        .iter()
        .chain(parts.setup.isolation.warnings())
    {
        parts.emit.warn(warning);
    }
    let of_fork = request.is_some_and(|it| it.context.report_only);
    if of_fork && is_new && parts.setup.reviewed.is_none() {
        parts.emit.warn_about(
            WarningTopic::FromFork,
            "the pull request is from a fork: nothing is pushed, the work is only reported",
        );
    }
    Ok(())
}

fn started(
    context: &Context,
    parts: &mut Parts<'_>,
    prepared: &Prepared,
    limits: Option<String>,
) -> RunStarted {
    let (asked, tasks) = (&prepared.asked, &prepared.tasks);
    // Warnings about the tree are emitted after this event.
    let exempt = parts.tree.exempt();
    let seen = parts.tree.repo.last_snapshot(&exempt).ok();
    let plan = &parts.tree.plan;
    let first = prepared.configs().next();
    let agent = first.filter(|_| asked.work.has_agent());
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
    let facts = RunFacts {
        run_id: parts.setup.run_id.clone(),
        plan: PlanLine {
            title: plan.plan.title.clone(),
            path: plan.file.as_ref().map(|file| file.name.clone()),
        },
        branch: seen.and_then(|seen| seen.known.branch.as_deref().map(short_branch)),
        base: parts.tree.repo.base().map(|id| id.0),
        agent: agent
            .map_or(NO_AGENT, |config| config.agent.name())
            .to_owned(),
        checks: first.map_or_else(Vec::new, |config| {
            let checks = ordered(&config.checks).into_iter();
            checks.map(|check| check.name.clone()).collect()
        }),
        run_dir: parts.setup.run_dir.root().display().to_string(),
        name: prepared
            .request()
            .map(|it| it.context.place.name.as_str().to_owned()),
        limits,
        model: agent.and_then(|config| config.settings.model.clone()),
        host: context.host(),
        sandbox: Some(parts.setup.isolation.line().clone()),
        gateway: parts.setup.gateway.lines(prepared.configs()),
        continuation: asked
            .work
            .continuation(context.in_actions(), prepared.request()),
        allow_dirty: prepared.run.settings.allow_dirty,
        directories: directories(context, asked.real.work_tree()),
    };
    RunStarted {
        facts,
        tasks: prepared.all.iter().map(line).collect(),
        resumed: asked.earlier.is_some(),
        understood: understood(parts, prepared),
    }
}

/// What a reader may not expect: where the run works, how the plan was read, and what of git does not run.
fn understood(parts: &Parts<'_>, prepared: &Prepared) -> Vec<String> {
    let first = prepared.tasks.first();
    let place = first.filter(|(_, config)| !config.directory.is_empty());
    let place = place.map(|(task, config)| {
        let below = &config.directory;
        let own = format!("{below}/{DEFAULT_FILE}");
        // The configuration of a task's own directory is not read.
        let is_read = task.directory.is_none();
        if is_read && prepared.asked.real.work_tree().join(&own).is_file() {
            format!("works in {below}, with the configuration {own}")
        } else {
            format!("works in {below}")
        }
    });
    let mut understood: Vec<String> = place.into_iter().collect();
    understood.extend(parts.tree.plan.plan.understood());
    let hooks = parts.tree.repo.idle_hooks();
    if !hooks.is_empty() {
        understood.push(format!("hooks that do not run: {}", hooks.join(", ")));
    }
    let filters = parts.tree.repo.lost_filters();
    if !filters.is_empty() {
        understood.push(format!(
            "filters of .gitattributes that are not set up here, so that files are committed as they are or not at all: {} (for lfs: install git-lfs and run `git lfs install`)",
            filters.join(", ")
        ));
    }
    understood
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

fn short_branch(name: &str) -> String {
    name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()
}
