//! Finds or restores a run that an earlier process has left, on this machine or on another, and reads its state so
//! that it continues.

use crate::cli::{Common, RunArgs, SettingFlags};
use crate::context::Context;
use crate::domain::config_file::ConfigFile;
use crate::domain::kept_work::KeptMeta;
use crate::domain::mcp::credentials;
use crate::error::{Error, Result, machine_fault, with_causes};
use crate::git::{BranchName, KeptWork, Real, Repo};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::lookup::remote;
use crate::github::request::RunRequest;
use crate::process::{Cancel, outlast};
use crate::run::begin::beginning::{Earlier, Place};
use crate::run::begin::isolation::filters_before_the_run;
use crate::run::begin::prepare::{Asked, Prepared, config_file, in_base, parse_config, prepare};
use crate::run::begin::repository::repository;
use crate::run::begin::resume::{finish_landing, undo_move};
use crate::run::begin::work::{Source, Work};
use crate::run::deliver::work_keeper::{KEPT_FILES, META, reference};
use crate::run::state::cached_repo::CachedRepo;
use crate::run::state::directory::{Manifest, PlanPath, RunDir, newest_unfinished};
use crate::run::state::layout::{Folder, RunFile};
use crate::run::state::lock::{RunLock, lock};
use crate::run::state::orderly_end::was_configured_as_found;
use crate::run::state::past_runs::directory;
use crate::run::state::places::{create_run_dir, leave_out_events, runs_of};
use crate::run::state::plan_state::PlanState;
use crate::secrets::sources::{redactor, redactor_of};
use crate::settings;
use serde::Deserialize as _;
use std::fs;
use std::path::{Path, PathBuf};
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
    let run_dir = RunDir::open(&root, Arc::new(redactor(&context.env))).map_err(unusable)?;
    let manifest = run_dir.manifest().map_err(unusable)?;
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

fn unusable(error: anyhow::Error) -> Error {
    Error::config(format!("{error:#}"))
}

/// Reads what an earlier process of a run has left.
///
/// # Errors
/// When the run cannot be resumed.
pub(crate) fn reopen(context: &Context, args: &RunArgs, left: LeftRun) -> Result<Prepared> {
    let run_dir = left.run_dir;
    let manifest = run_dir.manifest().map_err(unusable)?;
    let (repo, changed) = reopen_repository(left.real, &run_dir)?;
    let is_restored = left.elsewhere.is_some();
    let file = match (left.elsewhere, &manifest.trusted) {
        (Some(file), _) => file,
        (None, Some(text)) if args.common.config.is_none() => {
            parse_config("the configuration of the run", text.as_bytes())?
        }
        (None, _) => {
            let config = args.common.config.clone().or(manifest.config.clone());
            config_file(
                context,
                &Common { config },
                repo.real().work_tree(),
                Some(&repo),
            )?
        }
    };
    let warnings = [
        not_asked_again(context, args, &manifest, left.request.as_ref()),
        changed,
    ];
    let mut prepared = prepare(
        context,
        Asked {
            above: settings::above(context, &with_flags_of(&manifest, args)?)?,
            file,
            source: source_again(&repo, &run_dir, &manifest)?,
            real: repo.real().clone(),
            work: match manifest.reviewed {
                Some(change) => Work::Review(change),
                None => Work::of_shards(&manifest.shards),
            },
            request: left.request,
            tasks: manifest.tasks,
            only_shown: args.dry_run,
            directory: manifest.directory,
            trusted: manifest.trusted,
            lock: Some(left.lock),
            warnings: warnings.into_iter().flatten().collect(),
            place: None,
            earlier: Some(Earlier::read(&run_dir, is_restored)?),
        },
    )?;
    let mut repo = CachedRepo::new(repo);
    leave_out_events(context, &prepared.run.settings, repo.change())?;
    let asked = &mut prepared.asked;
    asked
        .warnings
        .extend(changed_plan(&asked.source, &prepared.book, &run_dir));
    if let Some(request) = asked.request.as_mut().filter(|_| is_restored) {
        request.resolve(&prepared.run.settings, context.in_actions(), true);
    }
    let redactor = redactor_of(&context.env, &credentials(&prepared.run.mcp));
    asked.place = Some(Place {
        run_dir: run_dir.redacted_by(redactor),
        run_id: manifest.run_id,
        repo,
    });
    Ok(prepared)
}

/// The request from GitHub, if there was one.
fn request(run_dir: &RunDir) -> Result<Option<RunRequest>> {
    let Some(bytes) = run_dir.read(RunFile::Request) else {
        return Ok(None);
    };
    let path = run_dir.path(RunFile::Request);
    let read = serde_json::from_slice(&bytes);
    read.map_err(|error| Error::config(format!("{} is damaged: {error}", path.display())))
}

/// Opens the repository as the dead process left it, after that process's git commands have ended. Returns also a
/// warning about what somebody changed in its configuration meanwhile.
fn reopen_repository(real: Real, run_dir: &RunDir) -> Result<(Repo, Option<String>)> {
    let private = run_dir.folder(Folder::Git);
    outlast(&Repo::mark_of_children(&private), GIT_EXIT_TIMEOUT);
    let refused = |error: anyhow::Error, kind: fn(String) -> Error| {
        let message = format!("the run cannot be resumed: {}", with_causes(&error));
        match machine_fault(&error) {
            Some(remedy) => Error::machine(message, remedy).of_run(),
            None => kind(message),
        }
    };
    let opened = Repo::reopen(real, &private).and_then(|mut repo| {
        let adopts = was_configured_as_found(run_dir);
        let changed = if adopts {
            repo.adopt_changed_configuration()?
        } else {
            None
        };
        Ok((repo, changed))
    });
    let (mut repo, changed) = opened.map_err(|error| {
        refused(error.into(), |message| {
            Error::config(message).hint("start a new run; the commits of this one stay")
        })
    })?;
    if let (Some(base), false) = (repo.base(), repo.has_base()?) {
        let message = format!(
            "the run cannot be resumed: this repository no longer has its start commit {}",
            base.0
        );
        return Err(Error::config(message).hint("fetch that commit, or start a new run"));
    }
    finish_landing(&mut repo, run_dir)
        .and_then(|()| undo_move(&mut repo, run_dir))
        .map_err(|error| refused(error, Error::environment))?;
    Ok((repo, changed))
}

/// A warning about which plan is used, if the plan was edited since the run started.
fn changed_plan(source: &Source, book: &PlanState, run_dir: &RunDir) -> Option<String> {
    let (path, other, what) = match source {
        Source::Prompt(_) | Source::Text(_) => return None,
        Source::File(path) => (
            path,
            run_dir.path(RunFile::Plan),
            "edited since the run started; the run continues with the new version",
        ),
        Source::Known { path, .. } => (
            path,
            path.clone(),
            "edited; the run continues with the last committed version; start a new run for the edited one",
        ),
    };
    let is_changed = book.is_otherwise_in(&other);
    is_changed.then(|| format!("{} was {what}", path.display()))
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
    let path = match (&manifest.plan, &manifest.prompt, &manifest.text) {
        (Some(path), ..) => path.0.clone(),
        (None, Some(prompt), _) => return Ok(Source::Prompt(prompt.clone())),
        (None, None, Some(text)) => return Ok(Source::Text(text.clone())),
        (None, None, None) => {
            let message = "the run's manifest names neither plan nor prompt";
            return Err(Error::config(message));
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
        place(dir)
            .zip(plan)
            .is_some_and(|(dir, plan)| plan.starts_with(dir))
    };
    let is_prompt = |text: &String| manifest.prompt.as_ref() == Some(text);
    // Standard input is not read: what it has cannot be used.
    let holds_prompt = |path: &PathBuf| {
        let text = fs::read_to_string(context.cwd.join(path));
        path.as_os_str() != "-" && text.is_ok_and(|text| is_prompt(&text))
    };
    let is_issue = |number: &u64| request.is_some_and(|it| it.number == Some(*number));
    // Every argument that selects work, and whether it selects what the run has.
    let given = [
        ("--plan", args.plan.as_ref().map(is_plan)),
        ("--prompt", args.prompt.as_ref().map(is_prompt)),
        ("--prompt-file", args.prompt_file.as_ref().map(holds_prompt)),
        ("--issue", args.issue.as_ref().map(is_issue)),
        ("--queue", args.queue.as_ref().map(in_queue)),
        ("--event", args.event.then_some(request.is_some())),
        (
            "--task",
            args.tasks.first().map(|_| args.tasks == manifest.tasks),
        ),
    ];
    let ignored = given.iter().filter(|(_, is_same)| *is_same == Some(false));
    let names: Vec<&str> = ignored.map(|(name, _)| *name).collect();
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

/// A file of a run directory and its content, if it was kept.
type KeptFile = (RunFile<'static>, Option<Vec<u8>>);

/// Whether a job only continues unfinished work, because that was asked for, or also does without: on a request to
/// continue or in a rerun. `None` if it does not look for any.
fn must_exist(context: &Context, args: &RunArgs, request: &RunRequest) -> Option<bool> {
    let may_push = request.branch.is_some() && !request.context.report_only;
    let attempt = context.var("GITHUB_RUN_ATTEMPT").unwrap_or("1");
    match (args.from_remote, request.continues || attempt != "1") {
        // A dry run changes nothing, and an integration can read its shards again.
        _ if args.dry_run || !args.shards.is_empty() => None,
        (true, _) => Some(true),
        _ if request.continues && request.state.asked.is_none() => Some(true),
        (false, true) if may_push => Some(false),
        _ => None,
    }
}

/// Restores unfinished work: the branch at its last verified commit, the work tree as it was, and a run
/// directory with the state of the run. `None` if there is none.
///
/// # Errors
/// When it cannot be fetched or does not match this request.
pub(crate) fn restore(context: &Context, args: &RunArgs, asked: &Asked) -> Result<Option<RunDir>> {
    let real = &asked.real;
    let Some(request) = &asked.request else {
        return Ok(None);
    };
    let Some(must_exist) = must_exist(context, args, request) else {
        return Ok(None);
    };
    let nothing = |why: &str| {
        if !must_exist {
            return Ok(None);
        }
        let remedy = if request.continues {
            "describe the work to do"
        } else {
            "start a new run, without --resume and --from-remote"
        };
        Err(Error::config(format!("there is no unfinished work: {why}")).hint(remedy))
    };
    let name = reference(request, &asked.source, real.work_tree());
    let (Some(actions), Some(name)) = (ActionsEnvironment::of(context), name) else {
        return nothing("the branch or the access to GitHub is unknown");
    };
    let restored = || -> anyhow::Result<Result<RunDir, String>> {
        let remote = remote(context, &actions)?;
        let place = context.place_for_a_moment("sprag-restore-")?;
        let mut repo = Repo::create(real.clone(), &place.path().join(Folder::Git.name()))?;
        let cancel = Cancel::new();
        let Some(work) = repo.fetch_kept_work(&remote, &name, 0, &cancel)? else {
            return Ok(Err(format!("there is no {}", name.full())));
        };
        let (meta, kept) = match files_for(request, &repo, &work) {
            Ok(kept) => kept,
            Err(why) => return Ok(Err(why.to_owned())),
        };
        let branch = request.branch.as_ref().map(|branch| branch.name.as_str());
        let branch = BranchName::parse(branch.unwrap_or_default())?;
        repo.switch_to(&remote, &branch, &work.base, &cancel)?;
        // Switching fetched only the history that it needs. The start commit of the run is needed, too.
        repo.fetch_kept_work(&remote, &name, meta.commits, &cancel)?;
        drop(repo);
        let root = asked.above.run_dir.as_ref();
        let root = root.map(|dir| context.cwd.join(dir));
        let run_dir = create_run_dir(context, real.work_tree(), root)?;
        let mut own = Repo::create(real.clone(), &run_dir.folder(Folder::Git))?;
        if let Some(tree) = &work.tree {
            own.check_out_tree(tree)?;
        }
        write(&run_dir, real, &kept, meta)?;
        Ok(Ok(run_dir))
    };
    match restored() {
        Ok(Ok(run_dir)) => Ok(Some(run_dir)),
        Ok(Err(why)) => nothing(&why),
        Err(error) => Err(error.downcast::<Error>().unwrap_or_else(|error| {
            Error::environment(format!("{} cannot be restored: {error}", name.full()))
                .hint("rerun the job, or make a new request; the kept work stays where it is")
        })),
    }
}

/// The files that are kept with the work of this request, or why they are not used.
fn files_for(
    request: &RunRequest,
    repo: &Repo,
    work: &KeptWork,
) -> Result<(KeptMeta, Vec<KeptFile>), &'static str> {
    let file = |name: &str| repo.file_of_kept_work(work, name).ok().flatten();
    let meta = file(META)
        .and_then(|bytes| KeptMeta::read(&bytes))
        .ok_or("the kept work is from another version of Sprag")?;
    let kept = KEPT_FILES.map(|it| (it, file(&it.path())));
    let earlier = kept.iter().find_map(|(it, bytes)| {
        let bytes = bytes.as_ref().filter(|_| *it == RunFile::Request)?;
        serde_json::from_slice::<RunRequest>(bytes).ok()
    });
    match earlier.map(|earlier| earlier.state.asked) {
        Some(asked)
            if request.continues && request.state.asked.is_none()
                || asked == request.state.asked =>
        {
            Ok((meta, kept.into()))
        }
        _ => Err("the kept work is for a different request"),
    }
}

/// Writes the saved files, with the paths of this machine. The manifest comes last.
fn write(run_dir: &RunDir, real: &Real, kept: &[KeptFile], meta: KeptMeta) -> anyhow::Result<()> {
    let mut manifest = None;
    for (file, bytes) in kept {
        match (file, bytes) {
            (_, None) => {}
            (RunFile::Manifest, Some(bytes)) => manifest = Some(bytes),
            // This run has a request of its own.
            (RunFile::Request, _) => {}
            (file, Some(bytes)) => drop(run_dir.write(*file, bytes)?),
        }
    }
    run_dir.write(RunFile::Ended, meta.ended.to_string().as_bytes())?;
    let manifest = manifest.ok_or_else(|| anyhow::anyhow!("it has no manifest"))?;
    let mut manifest: Manifest = serde_json::from_slice(manifest)?;
    let moved = |path: &Path| match path.strip_prefix(&manifest.work_tree) {
        Ok(inside) => real.work_tree().join(inside),
        Err(_) => path.to_path_buf(),
    };
    manifest.plan = manifest.plan.as_ref().map(|plan| PlanPath(moved(&plan.0)));
    manifest.config = None;
    manifest.trusted = None;
    // The flags come from this job's command line, never from a reference that other people may write.
    manifest.flags = serde_json::Value::Null;
    manifest.work_tree = real.work_tree().to_path_buf();
    run_dir.write_manifest(&manifest)
}
