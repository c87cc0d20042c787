//! Opens a run: its confinement, its directory, its repository and its reports, after the last checks.

use crate::cli::RunArgs;
use crate::context::Context;
use crate::domain::attempt::Spend;
use crate::domain::mcp::credentials;
use crate::domain::output_schema::OutputSchema;
use crate::domain::settings::Sandbox;
use crate::error::{Error, ErrorKind, Result};
use crate::git::{self, Change, ChangeKind, Exempt, GitError, Real, Repo, display_path};
use crate::github::request::RunRequest;
use crate::run::begin::beginning::{Beginning, Earlier, Place, spent_of};
use crate::run::begin::isolation::{Isolation, Scope, isolation};
use crate::run::begin::model_gateway::require_gateway;
use crate::run::begin::prepare::{Prepared, Source, config_path};
use crate::run::begin::repository;
use crate::run::begin::required_agents::{
    require_commands_of_roles, require_logins, require_programs,
};
use crate::run::begin::work::Work;
use crate::run::deliver::jj;
use crate::run::deliver::reporting::Reporting;
use crate::run::state::cached_repo::CachedRepo;
use crate::run::state::directory::{Manifest, PlanPath, RunDir};
use crate::run::state::events_file::leave_out_events;
use crate::run::state::layout::{Folder, RunFile};
use crate::run::state::past_runs::{check_artifacts, lies_in};
use crate::run::state::places::{resolved, runs_of};
use crate::secrets::sources::redactor_of;
use crate::settings::DEFAULT_FILE;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// A run that is ready for its first event.
pub(crate) struct Opened {
    pub(crate) place: Place,
    /// Where an earlier process of the run stopped.
    pub(crate) earlier: Option<Earlier>,
    /// The spend of that process, if it ran on another machine.
    pub(crate) spent_elsewhere: Option<Spend>,
    pub(crate) isolation: Isolation,
    pub(crate) schema: Option<OutputSchema>,
}

/// Opens the run directory and the reports, after the last checks.
pub(crate) fn open(
    context: &Context,
    args: &RunArgs,
    prepared: &mut Prepared,
    request: Option<&RunRequest>,
    mut beginning: Beginning,
    runtime: &Runtime,
) -> Result<(Opened, Reporting)> {
    let schema = prepared
        .output_schema
        .as_ref()
        .map(|source| source.load(context, &prepared.real, request, beginning.repo()))
        .transpose()?;
    let configs = || prepared.tasks.iter().map(|(_, config)| config);
    let run_dir = beginning.place().map(|place| place.run_dir.root());
    let scope = Scope::of(context, &prepared.real, &prepared.run, configs(), run_dir);
    let isolation = runtime.block_on(isolation(&scope))?;
    let filters = isolation.filters(Vec::new());
    prepared.real.confine_filters(filters.clone());
    let is_new = match beginning.place_mut() {
        Some(place) => {
            place.repo.confine_filters(filters);
            false
        }
        None => true,
    };
    runtime.block_on(jj::prepare(context, &prepared.real, &isolation, !is_new))?;
    require_agents(context, prepared)?;
    refuse_read_only(&prepared.real, !prepared.run.settings.allow_dirty)?;
    let (place, earlier, spent_elsewhere, reporting) = place(context, args, prepared, beginning)?;
    isolation.make_directories();
    let opened = Opened {
        place,
        earlier,
        spent_elsewhere,
        isolation,
        schema,
    };
    Ok((opened, reporting))
}

/// Requires the agents' programs and logins, as far as no setup command may provide them.
fn require_agents(context: &Context, prepared: &Prepared) -> Result<()> {
    if !prepared.work.has_agent() {
        return Ok(());
    }
    let configs = || prepared.tasks.iter().map(|(_, config)| config);
    require_programs(context, configs())?;
    if prepared.run.setup.is_empty() {
        require_commands_of_roles(context, prepared.real.work_tree(), configs())?;
        require_logins(context, configs())?;
    }
    require_gateway(context, &prepared.run, configs())
}

/// The place of the run and its reports.
fn place(
    context: &Context,
    args: &RunArgs,
    prepared: &Prepared,
    beginning: Beginning,
) -> Result<(Place, Option<Earlier>, Option<Spend>, Reporting)> {
    let (place, earlier, elsewhere) = match beginning {
        Beginning::New => {
            let (place, reporting) = begin_new(context, args, prepared)?;
            return Ok((place, None, None, reporting));
        }
        Beginning::Resumed(place, earlier) => (place, earlier, None),
        Beginning::Restored(place, earlier) => {
            let spent = spent_of(&earlier);
            (place, earlier, Some(spent))
        }
    };
    refuse_signer(prepared, &place.repo)?;
    let reporting = Reporting::open(
        context,
        &prepared.run.settings,
        args.output,
        &place.run_dir,
        prepared.real.work_tree(),
        Some(&earlier.summary),
    )?;
    Ok((place, Some(earlier), elsewhere, reporting))
}

const ELSEWHERE: &str =
    "fix its permissions or free space, or name another directory with --run-dir";

const GIT_FAILS: &str = "`git status` must work in the work tree, and the run directory needs free space; name another one with --run-dir";

/// Creates the run directory and the private git directory of a new run, after the last checks.
pub(crate) fn begin_new(
    context: &Context,
    args: &RunArgs,
    prepared: &Prepared,
) -> Result<(Place, Reporting)> {
    if let Some(closed) = prepared.real.closed() {
        return Err(
            Error::environment(format!("{} cannot be written", closed.display()))
                .hint("run as its owner, or change its permissions"),
        );
    }
    let run_id = uuid::Uuid::now_v7().to_string();
    let runs = runs_of(context, prepared.real.work_tree());
    let named = prepared.run.run_dir(context);
    let is_named = named.is_some();
    let root = named.unwrap_or_else(|| runs.join(&run_id));
    let variable = (!is_named).then(|| context.names_place_of_runs());
    refuse_directory(&prepared.real, &root, variable)?;
    let existed = root.exists();
    let redactor = redactor_of(&context.env, &credentials(&prepared.run.mcp));
    let run_dir = RunDir::create(&root, Arc::new(redactor))
        .map_err(|error| Error::environment(format!("{error:#}")))
        .map_err(|error| match variable {
            None => error.hint(ELSEWHERE),
            Some(variable) => error.hint(format!("{ELSEWHERE} or in {variable}")),
        })?;
    let ready = open_repository(context, prepared, &run_dir).and_then(|repo| {
        let reporting = Reporting::open(
            context,
            &prepared.run.settings,
            args.output,
            &run_dir,
            prepared.real.work_tree(),
            None,
        )
        .map_err(elsewhere)?;
        record(context, args, prepared, &run_dir, &run_id).map_err(elsewhere)?;
        Ok((repo, reporting))
    });
    let (repo, reporting) = ready.inspect_err(|_| discard(&run_dir, existed))?;
    if is_named {
        // The run works without the link, but later commands do not find it by its id.
        drop(run_dir.list_in(&runs, &run_id))
    } else {
        run_dir.prune_siblings()
    }
    let place = Place {
        run_dir,
        run_id,
        repo,
    };
    Ok((place, reporting))
}

/// Refuses a run directory inside of the repository, or one that is in use. The variable is the one that decides
/// where it is, if nobody has named it.
fn refuse_directory(real: &Real, root: &Path, variable: Option<&str>) -> Result<()> {
    if real.contains(&resolved(root)) {
        let chosen = variable.map_or("choose a place".to_owned(), |variable| {
            format!("set {variable} to a directory, or choose one with --run-dir,")
        });
        return Err(Error::usage(format!(
            "the run directory {} lies inside the repository",
            root.display()
        ))
        .hint(format!(
            "{chosen} outside of the work tree: the agent could write there"
        )));
    }
    let in_use = std::fs::read_dir(root).is_ok_and(|mut entries| entries.next().is_some());
    if in_use || (root.exists() && !root.is_dir()) {
        return Err(Error::usage(format!(
            "the run directory {} exists and is not an empty directory",
            root.display()
        ))
        .hint("name a new directory, or add --resume to continue the run in it"));
    }
    Ok(())
}

/// Refuses a work tree, or a git directory to commit to, that is read-only, before an agent has worked.
pub(crate) fn refuse_read_only(real: &Real, commits: bool) -> Result<()> {
    let of_git = [
        real.common_dir().to_path_buf(),
        real.common_dir().join("objects"),
    ];
    let written = std::iter::once(real.work_tree().to_path_buf())
        .chain(of_git.into_iter().filter(|_| commits));
    for place in written {
        if let Err(error) = rustix::fs::access(&place, rustix::fs::Access::WRITE_OK) {
            let message = format!("{} cannot be written: {error}", place.display());
            return Err(Error::environment(message)
                .hint("run as a user that can write there, or mount it writable"));
        }
    }
    Ok(())
}

/// Writes what is fixed from now on. The manifest comes last: a directory without one is not a run.
fn record(
    context: &Context,
    args: &RunArgs,
    prepared: &Prepared,
    run_dir: &RunDir,
    run_id: &str,
) -> Result<()> {
    let work_tree = prepared.real.work_tree();
    let manifest = Manifest {
        v: 1,
        run_id: run_id.to_owned(),
        work_tree: work_tree.to_path_buf(),
        plan: prepared
            .book
            .file
            .as_ref()
            .map(|file| PlanPath(file.path.clone())),
        prompt: match &prepared.source {
            Source::Prompt(text) => Some(text.clone()),
            _ => None,
        },
        text: match &prepared.source {
            Source::Text(text) => Some(text.clone()),
            _ => None,
        },
        tasks: args.tasks.clone(),
        shards: match &prepared.work {
            Work::Integration(shards) => shards.clone(),
            _ => Vec::new(),
        },
        config: Some(config_path(context, &args.common, work_tree))
            .filter(|path| *path != work_tree.join(DEFAULT_FILE)),
        directory: prepared.directory.clone(),
        trusted: prepared.trusted.clone(),
        flags: serde_json::to_value(&args.settings).map_err(anyhow::Error::from)?,
        is_draft: prepared.work.is_draft(),
        reviewed: prepared.work.reviewed().cloned(),
    };
    run_dir.write(RunFile::Plan, prepared.book.text().as_bytes())?;
    run_dir.write_manifest(&manifest)?;
    Ok(())
}

/// Removes the directory of a run that did not start. A directory that existed before stays.
fn discard(run_dir: &RunDir, existed: bool) {
    let _ = std::fs::remove_dir_all(run_dir.root());
    if existed {
        let _ = std::fs::create_dir(run_dir.root());
    } else if let Some(parent) = run_dir.root().parent() {
        // This fails, as it should, if another run is in the directory.
        let _ = std::fs::remove_dir(parent);
    }
}

/// The remedy for a run directory that cannot be used.
fn elsewhere(error: Error) -> Error {
    match error.kind {
        ErrorKind::Environment => Error::environment(error.message).hint(ELSEWHERE),
        _ => error,
    }
}

/// The error of a git operation at the start of a run.
fn of_git(error: &GitError) -> Error {
    repository::of_git(
        error,
        match error {
            GitError::Failed { .. } => GIT_FAILS,
            _ => ELSEWHERE,
        },
    )
}

fn open_repository(context: &Context, prepared: &Prepared, run_dir: &RunDir) -> Result<CachedRepo> {
    let repo = Repo::create(prepared.real.clone(), &run_dir.folder(Folder::Git));
    let repo = repo
        .and_then(|mut repo| {
            leave_out_events(context, &prepared.run.settings, &mut repo)?;
            Ok(repo)
        })
        .map_err(|error| of_git(&error))?;
    refuse_signer(prepared, &repo)?;
    let mut repo = CachedRepo::new(repo);
    if !prepared.run.settings.allow_dirty {
        let known = check_artifacts(context, prepared.real.work_tree());
        let there = refuse_dirty(prepared, &mut repo, known)?;
        if !there.is_empty() {
            let written = run_dir.write_json(RunFile::CheckArtifacts, &there);
            written.map_err(|error| elsewhere(error.into()))?;
        }
    }
    Ok(repo)
}

/// Refuses to sign commits with a program of the work tree: it would run with all rights of Sprag's user, and an
/// agent can change it.
pub(crate) fn refuse_signer(prepared: &Prepared, repo: &Repo) -> Result<()> {
    let signer = repo
        .signer_in_repository()
        .filter(|_| prepared.run.settings.sandbox != Sandbox::Off);
    match signer {
        None => Ok(()),
        Some(signer) => Err(Error::config(format!(
            "commits are signed with {}, which the agent can change",
            signer.display()
        ))
        .hint("keep the program elsewhere and name that place in gpg.program or gpg.ssh.program")
        .hint("or set commit.gpgSign to false, or `sandbox: off`")),
    }
}

/// The most warnings of git that an error repeats, such as one about a filter that fails.
const SAID: usize = 5;

/// Requires a clean work tree, so that all later changes are the agent's work. An untracked plan is
/// allowed, because it becomes part of the first commit. So are the untracked files in `known`, which
/// only the checks of earlier runs made; those that exist are returned.
fn refuse_dirty(
    prepared: &Prepared,
    repo: &mut CachedRepo,
    known: BTreeSet<Vec<u8>>,
) -> Result<Vec<Vec<u8>>> {
    let exempt = Exempt {
        check_artifacts: known,
        progress_ignore: prepared.run.progress_ignore.clone(),
        plan: prepared.book.exempt(),
    };
    let state = repo.snapshot(&exempt).map_err(|error| of_git(&error))?;
    let plan = prepared
        .book
        .file
        .as_ref()
        .and_then(|file| file.in_tree.as_deref());
    let in_jj = jj::has_jj(&prepared.real);
    // jj puts every new file into git's index.
    let is_new = |change: &Change| change.untracked || (in_jj && change.kind == ChangeKind::Added);
    let is_new_plan = |change: &Change| Some(change.path.as_slice()) == plan && is_new(change);
    // Changes that do not count as progress are dirty, too, because they would be committed.
    let mut dirty: Vec<&Change> = state.changes.iter().chain(&state.uncounted).collect();
    dirty.retain(|change| !change.newly_ignored && !is_new_plan(change));
    dirty.sort_by(|one, other| one.path.cmp(&other.path));
    if dirty.is_empty() {
        return Ok(state.check_artifacts.clone());
    }
    let remedy = git::jj_remedy(dirty.iter().map(|change| &*change.path));
    let dirty = entries(&dirty, &prepared.real);
    let shown = dirty
        .iter()
        .take(20)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n    ");
    let more = match dirty.len() {
        0..=20 => String::new(),
        n => format!("\n    and {} more", n - 20),
    };
    let error = Error::config(format!("the work tree is not clean:\n    {shown}{more}"));
    let said = state.warnings.iter().take(SAID);
    let error = said.fold(error, |error, warning| error.hint(warning.clone()));
    let is_run = matches!(prepared.work, Work::Tasks | Work::Review(_));
    let error = match (in_jj, is_run && !prepared.run.settings.keep_going) {
        (true, _) => error.hint(remedy),
        (false, true) => error
            .hint("commit or stash these files, or use --allow-dirty (then nothing is committed)"),
        // These exclude `allow_dirty`.
        (false, false) => error.hint("commit or stash these files"),
    };
    Err(if is_run {
        error.hint("to continue an interrupted run, use --resume")
    } else {
        error
    })
}

/// The changed files for a message. Files in an untracked directory are shown as that directory.
fn entries(dirty: &[&Change], real: &Real) -> Vec<String> {
    let folded =
        git::uncommitted_changes(real).map(|uncommitted_changes| uncommitted_changes.untracked);
    let folded = folded.unwrap_or_default();
    let entry = |change: &&Change| {
        let path = display_path(&change.path);
        let within = folded.iter().find(|it| lies_in(&path, it));
        within.filter(|_| change.untracked).cloned().unwrap_or(path)
    };
    let mut entries: Vec<String> = dirty.iter().map(entry).collect();
    entries.dedup();
    entries
}
