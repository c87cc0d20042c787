//! `sprag run --resume`: reads the state that an earlier process of the run left, so that the run
//! continues.

use crate::cli::{Common, RunArgs, SettingFlags};
use crate::context::Context;
use crate::domain::config_file::ConfigFile;
use crate::domain::mcp::credentials;
use crate::error::{Error, Result, machine_fault, with_causes};
use crate::git::{Real, Repo};
use crate::github::request::RunRequest;
use crate::process::outlast;
use crate::run::begin::beginning::{Beginning, Place, Ready, read_earlier};
use crate::run::begin::isolation::filters_before_the_run;
use crate::run::begin::prepare::{Asked, Source, config_file, in_base, parse_config, prepare};
use crate::run::begin::repository::repository;
use crate::run::begin::resume::{finish_landing, undo_move};
use crate::run::begin::work::Work;
use crate::run::state::cached_repo::CachedRepo;
use crate::run::state::directory::{Manifest, RunDir, newest_unfinished};
use crate::run::state::events_file::leave_out_events;
use crate::run::state::layout::{Folder, RunFile};
use crate::run::state::lock::{RunLock, lock};
use crate::run::state::orderly_end::was_configured_as_found;
use crate::run::state::past_runs::directory;
use crate::run::state::places::runs_of;
use crate::run::state::plan_state::PlanState;
use crate::secrets::sources::{redactor, redactor_of};
use crate::settings;
use serde::Deserialize as _;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long a git process of the dead run may keep running.
const GIT_EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// A run that an earlier process has left.
pub(crate) struct LeftRun {
    pub(crate) real: Real,
    pub(crate) run_dir: RunDir,
    pub(crate) request: Option<RunRequest>,
    /// Held until the run ends.
    pub(crate) lock: RunLock,
    /// If the process was on another machine: the configuration of the job that continues the run here.
    pub(crate) elsewhere: Option<ConfigFile>,
}

/// Finds the run that `--resume` names, or else the newest unfinished one.
///
/// # Errors
/// When there is no such run, or it cannot be resumed.
pub(crate) fn find(context: &Context, args: &RunArgs) -> Result<LeftRun> {
    let mut real = repository(context)?;
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
    let manifest = manifest_of(&run_dir)?;
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
    Ok(LeftRun {
        request: request(&run_dir)?,
        real,
        run_dir,
        lock,
        elsewhere: None,
    })
}

fn manifest_of(run_dir: &RunDir) -> Result<Manifest> {
    run_dir
        .manifest()
        .map_err(|error| Error::config(format!("{error:#}")))
}

/// Reads what an earlier process of a run has left.
///
/// # Errors
/// When the run cannot be resumed.
pub(crate) fn reopen(context: &Context, args: &RunArgs, left: LeftRun) -> Result<Ready> {
    let run_dir = left.run_dir;
    let manifest = manifest_of(&run_dir)?;
    let (mut repo, changed) = reopen_repository(left.real, &run_dir)?;
    let earlier = read_earlier(&run_dir)?;
    let source = source_again(&repo, &run_dir, &manifest)?;
    let is_restored = left.elsewhere.is_some();
    let file = match (left.elsewhere, &manifest.trusted) {
        (Some(file), _) => file,
        (None, Some(text)) if args.common.config.is_none() => {
            parse_config("the configuration of the run", text.as_bytes())?
        }
        (None, _) => {
            let common = Common {
                config: args.common.config.clone().or(manifest.config.clone()),
            };
            config_file(context, &common, repo.real().work_tree(), Some(&repo))?
        }
    };
    let mut request = left.request;
    let asked = Asked {
        above: settings::above(context, &with_flags_of(&manifest, args)?)?,
        file,
        source,
        real: repo.real().clone(),
        work: match (&manifest.reviewed, &manifest.shards[..]) {
            (Some(change), _) => Work::Review(change.clone()),
            (None, []) => Work::Tasks,
            (None, shards) => Work::Integration(shards.to_vec()),
        },
        tasks: &manifest.tasks,
        directory: manifest.directory.clone(),
        only_shown: args.dry_run,
        is_foreign: request.as_ref().is_some_and(|it| it.context.report_only),
        open: Some(&earlier.open),
    };
    let mut prepared = prepare(context, asked)?;
    leave_out_events(context, &prepared.run.settings, &mut repo)
        .map_err(|error| Error::environment(error.to_string()))?;
    let warnings = [
        not_asked_again(context, args, &manifest, request.as_ref()),
        changed_plan(&prepared.source, &prepared.book, &run_dir),
        changed,
    ];
    prepared.warnings.extend(warnings.into_iter().flatten());
    if let Some(request) = request.as_mut().filter(|_| is_restored) {
        request.resolve(&prepared.run.settings, context.in_actions(), true);
    }
    let redactor = redactor_of(&context.env, &credentials(&prepared.run.mcp));
    let place = Place {
        run_dir: run_dir.redacted_by(redactor),
        run_id: manifest.run_id,
        repo: CachedRepo::new(repo),
    };
    Ok(Ready {
        prepared,
        request,
        beginning: if is_restored {
            Beginning::Restored(place, earlier)
        } else {
            Beginning::Resumed(place, earlier)
        },
        lock: Some(left.lock),
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
fn with_flags_of(manifest: &Manifest, args: &RunArgs) -> Result<SettingFlags> {
    let mut flags = args.settings.clone();
    if !manifest.flags.is_null() {
        let earlier = SettingFlags::deserialize(&manifest.flags).map_err(|error| {
            Error::config(format!("the run's manifest has unknown flags: {error}"))
        })?;
        flags.earlier = Some(Box::new(earlier));
    }
    Ok(flags)
}
