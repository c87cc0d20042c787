//! `sprag run --resume`: reads the state that an earlier process of the run left, so that the run
//! continues.

use crate::cli::{Common, RunArgs, SettingFlags};
use crate::context::Context;
use crate::domain::attempt::{Record, Spend, fold};
use crate::domain::event::{Event, EventKind};
use crate::domain::outcome::{Outcome, TaskEnd};
use crate::domain::plan::{StatusUpdate, TaskStatus};
use crate::domain::summary::{RunSummary, TaskSummary};
use crate::error::{Error, Result, machine_fault, with_causes};
use crate::git::{Real, Repo};
use crate::github::request::RunRequest;
use crate::process::outlast;
use crate::run::begin::isolation::filters_before_the_run;
use crate::run::begin::prepare::{Before, Prepared, Selection, Source, in_base, prepare};
use crate::run::begin::resume::{finish_landing, undo_move};
use crate::run::state::cached_repo::CachedRepo;
use crate::run::state::directory::{Manifest, RunDir, newest_unfinished};
use crate::run::state::events_file::leave_out_events;
use crate::run::state::layout::{Folder, RunFile};
use crate::run::state::lock::{RunLock, lock};
use crate::run::state::orderly_end::was_configured_as_found;
use crate::run::state::past_runs::directory;
use crate::run::state::places::runs_of;
use crate::run::state::plan_state::{PlanState, completed_at};
use crate::secrets::sources::redactor;
use crate::settings;
use serde::Deserialize as _;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long a git process of the dead run may keep running.
const GIT_EXIT_TIMEOUT: Duration = Duration::from_secs(5);

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
    /// Whether the earlier process ran on another machine.
    pub(crate) elsewhere: bool,
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

/// The state of a resumed run.
pub(crate) struct ResumedState {
    pub(crate) run_dir: RunDir,
    pub(crate) run_id: String,
    pub(crate) earlier: Earlier,
    pub(crate) repo: CachedRepo,
}

/// A resumed run with everything that it needs.
pub(crate) struct Reopened {
    pub(crate) prepared: Prepared,
    pub(crate) request: Option<RunRequest>,
    pub(crate) resumed: ResumedState,
    /// Held until the run ends.
    pub(crate) lock: RunLock,
}

/// Reads what an earlier process of a run has left.
///
/// # Errors
/// When there is no such run, or it cannot be resumed.
pub(crate) fn reopen(context: &Context, args: &RunArgs) -> Result<Reopened> {
    let mut real = crate::run::begin::repository::repository(context)?;
    let above = settings::above(context, &args.settings)?;
    real.confine_filters(filters_before_the_run(context, &real, &above));
    let root = match (&args.words, above.run_dir) {
        (Some(id), Some(dir)) => {
            let message = format!("--resume {id} and --run-dir {dir} both name a run");
            return Err(Error::usage(message).hint("give one of them"));
        }
        (Some(id), None) => directory(context, id.as_ref())?,
        (None, Some(dir)) => directory(context, dir.as_ref())?,
        (None, None) => unfinished(context, &real)?,
    };
    let run_dir = RunDir::open(&root, Arc::new(redactor(&context.env)))
        .map_err(|error| Error::config(format!("{error:#}")))?;
    let manifest = run_dir
        .manifest()
        .map_err(|error| Error::config(format!("{error:#}")))?;
    if manifest.work_tree != real.work_tree() {
        return Err(Error::config(format!(
            "{} is a run of {}, not of {}",
            root.display(),
            manifest.work_tree.display(),
            real.work_tree().display()
        )));
    }
    if manifest.is_draft {
        let message = format!("{} drafts a plan and cannot be resumed", root.display());
        return Err(Error::config(message).hint("start sprag plan again"));
    }
    let lock = lock(context, &real)?;
    let request = request(&run_dir)?;
    resumed(context, args, real, (run_dir, request), lock)
}

/// Resumes a run whose directory was restored from another machine, for this request.
///
/// # Errors
/// As [`reopen`].
pub(crate) fn reopen_restored(
    context: &Context,
    args: &RunArgs,
    real: Real,
    (run_dir, request): (RunDir, RunRequest),
    lock: RunLock,
) -> Result<Reopened> {
    let mut reopened = resumed(context, args, real, (run_dir, Some(request)), lock)?;
    reopened.resumed.earlier.elsewhere = true;
    Ok(reopened)
}

fn resumed(
    context: &Context,
    args: &RunArgs,
    real: Real,
    (run_dir, request): (RunDir, Option<RunRequest>),
    lock: RunLock,
) -> Result<Reopened> {
    let manifest = run_dir
        .manifest()
        .map_err(|error| Error::config(format!("{error:#}")))?;
    let (mut repo, changed) = reopen_repository(real, &run_dir)?;
    let earlier = read_earlier(&run_dir)?;
    let source = source_again(&repo, &run_dir, &manifest)?;
    let before = Before {
        repo: &repo,
        open: &earlier.open,
    };
    let (common, flags) = with_flags_of(&manifest, args)?;
    let mut prepared = prepare(
        context,
        &common,
        &flags,
        Selection {
            tasks: &manifest.tasks,
            shards: &manifest.shards,
            only_shown: args.dry_run,
        },
        (source, repo.real().clone()),
        request
            .as_ref()
            .is_some_and(|request| request.context.report_only),
        Some(before),
    )?;
    leave_out_events(context, &prepared.run.settings, &mut repo)
        .map_err(|error| Error::environment(error.to_string()))?;
    prepared.reviewed.clone_from(&manifest.reviewed);
    prepared
        .warnings
        .extend(not_asked_again(context, args, &manifest, request.as_ref()));
    prepared
        .warnings
        .extend(changed_plan(&prepared.source, &prepared.book, &run_dir));
    prepared.warnings.extend(changed);
    let resumed = ResumedState {
        run_dir,
        run_id: manifest.run_id,
        earlier,
        repo: CachedRepo::new(repo),
    };
    Ok(Reopened {
        prepared,
        request,
        resumed,
        lock,
    })
}

/// The request from GitHub, if there was one.
fn request(run_dir: &RunDir) -> Result<Option<RunRequest>> {
    let path = run_dir.path(RunFile::Request);
    let Ok(bytes) = fs::read(&path) else {
        return Ok(None);
    };
    let read = serde_json::from_slice(&bytes);
    read.map(Some)
        .map_err(|error| Error::config(format!("{} is damaged: {error}", path.display())))
}

/// Opens the repository as the dead process left it, after that process's git commands have ended. Returns also a
/// warning about what somebody changed in its configuration meanwhile.
fn reopen_repository(real: Real, run_dir: &RunDir) -> Result<(Repo, Option<String>)> {
    let private = run_dir.folder(Folder::Git);
    outlast(&Repo::mark_of_children(&private), GIT_EXIT_TIMEOUT);
    let opened = Repo::reopen(real, &private).and_then(|mut repo| {
        let changed = if was_configured_as_found(run_dir) {
            repo.adopt_changed_configuration()?
        } else {
            None
        };
        Ok((repo, changed))
    });
    let (mut repo, changed) = opened.map_err(|error| {
        let error = anyhow::Error::from(error);
        let message = format!("the run cannot be resumed: {}", with_causes(&error));
        match machine_fault(&error) {
            Some(remedy) => Error::machine(message, remedy).of_run(),
            None => Error::config(message).hint("start a new run; the commits of this one stay"),
        }
    })?;
    let has_base = repo
        .has_base()
        .map_err(|error| Error::environment(error.to_string()))?;
    if let (Some(base), false) = (repo.base(), has_base) {
        let message = format!(
            "the run cannot be resumed: this repository no longer has its start commit {}",
            base.0
        );
        return Err(Error::config(message).hint("fetch that commit, or start a new run"));
    }
    let settled = finish_landing(&mut repo, run_dir).and_then(|()| undo_move(&mut repo, run_dir));
    settled.map_err(|error| {
        let message = format!("the run cannot be resumed: {}", with_causes(&error));
        match machine_fault(&error) {
            Some(remedy) => Error::machine(message, remedy).of_run(),
            None => Error::environment(message),
        }
    })?;
    Ok((repo, changed))
}

/// A warning about which plan is used, if the plan was edited since the run started.
fn changed_plan(source: &Source, book: &PlanState, run_dir: &RunDir) -> Option<String> {
    let (path, other) = match source {
        Source::Prompt(_) | Source::Text(_) => return None,
        Source::File(path) => (path, run_dir.path(RunFile::Plan)),
        Source::Known { path, .. } => (path, path.clone()),
    };
    let shown = path.display();
    book.is_otherwise_in(&other).then(|| match source {
        Source::Known { .. } => format!(
            "{shown} was edited; the run continues with the last committed version; start a new run for the edited one"
        ),
        _ => format!("{shown} was edited since the run started; the run continues with the new version"),
    })
}

fn unfinished(context: &Context, real: &Real) -> Result<PathBuf> {
    let parent = runs_of(context, real.work_tree());
    newest_unfinished(&parent, real.work_tree()).ok_or_else(|| {
        Error::config(format!(
            "there is no unfinished run in {}",
            parent.display()
        ))
        .hint("start one with sprag run --plan FILE, or name one with --run-dir DIR")
    })
}

/// The plan of a resumed run: as last committed, or as it was when the run started. The agent may have
/// changed the file in the work tree.
fn source_again(repo: &Repo, run_dir: &RunDir, manifest: &Manifest) -> Result<Source> {
    let path = match (&manifest.plan, &manifest.prompt) {
        (Some(path), _) => path.0.clone(),
        (None, Some(prompt)) => return Ok(Source::Prompt(prompt.clone())),
        (None, None) if manifest.text.is_some() => {
            return Ok(Source::Text(manifest.text.clone().unwrap_or_default()));
        }
        (None, None) => {
            return Err(Error::config(
                "the run's manifest names neither plan nor prompt",
            ));
        }
    };
    if !path.starts_with(repo.real().work_tree()) {
        return Ok(Source::File(path));
    }
    let content = match in_base(repo, &path)? {
        Some(content) => content,
        None if repo.real().ignores(&path) => return Ok(Source::File(path)),
        None => settings::read_file(&run_dir.path(RunFile::Plan), "copy of the plan")?,
    };
    Ok(Source::Known { path, content })
}

/// A warning about what the command line asks for and the run does not do, since it keeps its plan and tasks.
fn not_asked_again(
    context: &Context,
    args: &RunArgs,
    manifest: &Manifest,
    request: Option<&RunRequest>,
) -> Option<String> {
    let plan = manifest.plan.as_ref().map(|plan| &plan.0);
    let place = |path: &PathBuf| context.cwd.join(path).canonicalize().ok();
    let is_plan = |path: &PathBuf| place(path).is_some_and(|path| Some(&path) == plan);
    let in_queue = |dir: &PathBuf| {
        place(dir).is_some_and(|dir| plan.is_some_and(|plan| plan.starts_with(dir)))
    };
    let is_prompt = |text: &String| manifest.prompt.as_ref() == Some(text);
    // Standard input is not read: what it has cannot be used.
    let holds_prompt = |path: &PathBuf| {
        let text = fs::read_to_string(context.cwd.join(path));
        path.as_os_str() != "-" && text.is_ok_and(|text| is_prompt(&text))
    };
    let is_issue = |number: &u64| request.is_some_and(|it| it.number == Some(*number));
    // Every argument that selects work, and whether it selects something else than the run has.
    let ignored = [
        ("--plan", args.plan.as_ref().is_some_and(|it| !is_plan(it))),
        (
            "--prompt",
            args.prompt.as_ref().is_some_and(|it| !is_prompt(it)),
        ),
        (
            "--prompt-file",
            args.prompt_file
                .as_ref()
                .is_some_and(|it| !holds_prompt(it)),
        ),
        (
            "--issue",
            args.issue.as_ref().is_some_and(|it| !is_issue(it)),
        ),
        (
            "--queue",
            args.queue.as_ref().is_some_and(|it| !in_queue(it)),
        ),
        ("--event", args.event && request.is_none()),
        (
            "--task",
            !args.tasks.is_empty() && args.tasks != manifest.tasks,
        ),
    ];
    let names: Vec<&str> = ignored
        .iter()
        .filter_map(|(name, is_ignored)| is_ignored.then_some(*name))
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "{} changes nothing: the resumed run keeps its plan and its tasks",
            names.join(" and ")
        )
    })
}

/// The flags of this command line, completed with those that the run was started with.
fn with_flags_of(manifest: &Manifest, args: &RunArgs) -> Result<(Common, SettingFlags)> {
    let common = Common {
        directory: args.common.directory.clone(),
        config: args.common.config.clone().or(manifest.config.clone()),
    };
    let mut flags = args.settings.clone();
    if !manifest.flags.is_null() {
        let earlier = SettingFlags::deserialize(&manifest.flags).map_err(|error| {
            Error::config(format!("the run's manifest has unknown flags: {error}"))
        })?;
        flags.earlier = Some(Box::new(earlier));
    }
    Ok((common, flags))
}

/// Reads the state of an earlier process. A failed task starts again with fresh counters, unless the
/// process died before it reported the run's end: then the task's outcome stands. An interrupted task
/// continues.
fn read_earlier(run_dir: &RunDir) -> Result<Earlier> {
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
        elsewhere: false,
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
pub(crate) fn recall_statuses(book: &mut PlanState, earlier: &Earlier, keep_going: bool) {
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
