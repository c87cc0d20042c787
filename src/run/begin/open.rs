//! Opens a run: its confinement, its directory, its repository and its reports, after the last checks.

use crate::agents::{Agent, CliAgent};
use crate::cli::RunArgs;
use crate::context::Context;
use crate::domain::mcp::{McpServer, credentials};
use crate::domain::output_schema::OutputSchema;
use crate::domain::settings::Sandbox;
use crate::error::{Error, ErrorKind, Result};
use crate::git::{self, Change, ChangeKind, Exempt, GitError, Real, Repo, display_path};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::lookup::Checkout;
use crate::github::request::RunRequest;
use crate::run::begin::beginning::Place;
use crate::run::begin::isolation::{Isolation, Scope, isolation};
use crate::run::begin::model_gateway::require_gateway;
use crate::run::begin::prepare::{Prepared, config_path, parse_config};
use crate::run::begin::repository;
use crate::run::begin::requirements::{
    fall_back, require_commands_of_roles, require_logins, require_programs,
};
use crate::run::begin::resume::take_over;
use crate::run::begin::work::{Source, Work};
use crate::run::deliver::jj;
use crate::run::deliver::reporting::Reporting;
use crate::run::state::cached_repo::CachedRepo;
use crate::run::state::directory::{Manifest, PlanPath, RunDir};
use crate::run::state::layout::{Folder, RunFile};
use crate::run::state::past_runs::{check_artifacts, lies_in};
use crate::run::state::places::leave_out_events;
use crate::run::state::places::{resolved, runs_of};
use crate::secrets::sources::redactor_of;
use crate::settings::{DEFAULT_FILE, TaskConfig};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// A run that is ready for its first event.
pub(crate) struct Opened {
    pub(crate) place: Place,
    pub(crate) isolation: Isolation,
    pub(crate) schema: Option<OutputSchema>,
}

/// Opens the run directory and the reports, after the last checks.
pub(crate) fn open(
    context: &Context,
    args: &RunArgs,
    prepared: &mut Prepared,
    runtime: &Runtime,
) -> Result<(Opened, Reporting)> {
    let mut place = prepared.asked.place.take();
    if let Some(place) = &mut place {
        let ended = take_over(prepared, place)?;
        prepared.asked.warnings.extend(ended);
    }
    let logins = prepared.run.setup.is_empty();
    let configs = prepared.tasks.iter_mut().map(|(_, config)| config);
    let replaced = fall_back(context, configs, logins);
    prepared.asked.warnings.extend(replaced);
    decide_servers(context, args, prepared)?;
    let asked = &prepared.asked;
    let repo = place.as_ref().map(|place| &*place.repo);
    let schema = prepared.output_schema.as_ref();
    let schema = schema
        .map(|source| source.load(context, &asked.real, prepared.request(), repo))
        .transpose()?;
    let run_dir = place.as_ref().map(|place| place.run_dir.root());
    let scope = Scope::of(
        context,
        &asked.real,
        &prepared.run,
        prepared.configs(),
        run_dir,
    );
    let isolation = runtime.block_on(isolation(&scope))?;
    prepared
        .asked
        .real
        .confine_filters(isolation.filters(Vec::new()));
    let real = &prepared.asked.real;
    runtime.block_on(jj::prepare(context, real, &isolation, place.is_some()))?;
    // The agents' programs and logins, as far as no setup command may provide them.
    if prepared.asked.work.has_agent() {
        require_programs(context, prepared.configs())?;
        if logins {
            require_commands_of_roles(context, real.work_tree(), prepared.configs())?;
            require_logins(context, prepared.configs())?;
        }
        require_gateway(context, &prepared.run, prepared.configs())?;
    }
    refuse_read_only(real, !prepared.run.settings.allow_dirty)?;
    let (place, reporting) = match place {
        None => begin_new(context, args, prepared)?,
        Some(mut place) => {
            place.repo.confine_filters(isolation.filters(Vec::new()));
            refuse_signer(prepared, &place.repo)?;
            let reporting = open_reports(context, args, prepared, &place.run_dir)?;
            (place, reporting)
        }
    };
    isolation.make_directories();
    let opened = Opened {
        place,
        isolation,
        schema,
    };
    Ok((opened, reporting))
}

fn open_reports(
    context: &Context,
    args: &RunArgs,
    prepared: &Prepared,
    run_dir: &RunDir,
) -> Result<Reporting> {
    let earlier = prepared.asked.earlier.as_ref();
    Reporting::open(
        context,
        &prepared.run.settings,
        args.output,
        run_dir,
        prepared.asked.real.work_tree(),
        earlier.map(|earlier| &earlier.summary),
    )
}

const ELSEWHERE: &str =
    "fix its permissions or free space, or name another directory with --run-dir";

const GIT_FAILS: &str = "`git status` must work in the work tree, and the run directory needs free space; name another one with --run-dir";

/// Creates the run directory and the private git directory of a new run, after the last checks.
fn begin_new(context: &Context, args: &RunArgs, prepared: &Prepared) -> Result<(Place, Reporting)> {
    let real = &prepared.asked.real;
    if let Some(closed) = real.closed() {
        return Err(
            Error::environment(format!("{} cannot be written", closed.display()))
                .hint("run as its owner, or change its permissions"),
        );
    }
    let run_id = uuid::Uuid::now_v7().to_string();
    let runs = runs_of(context, real.work_tree());
    let named = prepared.run.run_dir(context);
    let is_named = named.is_some();
    let root = named.unwrap_or_else(|| runs.join(&run_id));
    let variable = (!is_named).then(|| context.names_place_of_runs());
    refuse_directory(real, &root, variable)?;
    let existed = root.exists();
    let redactor = redactor_of(&context.env, &credentials(&prepared.run.mcp));
    let run_dir = RunDir::create(&root, Arc::new(redactor)).map_err(|error| {
        let error = Error::environment(format!("{error:#}"));
        match variable {
            None => error.hint(ELSEWHERE),
            Some(variable) => error.hint(format!("{ELSEWHERE} or in {variable}")),
        }
    })?;
    let ready = open_repository(context, prepared, &run_dir).and_then(|repo| {
        let reporting = open_reports(context, args, prepared, &run_dir).map_err(elsewhere)?;
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
fn refuse_read_only(real: &Real, commits: bool) -> Result<()> {
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
    let asked = &prepared.asked;
    let work_tree = asked.real.work_tree();
    let file = prepared.book.file.as_ref();
    let (prompt, text) = match &asked.source {
        Source::Prompt(text) => (Some(text.clone()), None),
        Source::Text(text) => (None, Some(text.clone())),
        Source::File(_) | Source::Known { .. } => (None, None),
    };
    let config = config_path(context, &args.common, work_tree);
    let manifest = Manifest {
        v: 1,
        run_id: run_id.to_owned(),
        work_tree: work_tree.to_path_buf(),
        plan: file.map(|file| PlanPath(file.path.clone())),
        prompt,
        text,
        tasks: args.tasks.clone(),
        shards: args.shards.clone(),
        config: Some(config).filter(|path| *path != work_tree.join(DEFAULT_FILE)),
        directory: asked.directory.clone(),
        trusted: asked.trusted.clone(),
        flags: serde_json::to_value(&args.settings)?,
        is_draft: asked.work.is_draft(),
        reviewed: asked.work.reviewed().cloned(),
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
    let remedy = match error {
        GitError::Failed { .. } => GIT_FAILS,
        _ => ELSEWHERE,
    };
    repository::of_git(error, remedy)
}

fn open_repository(context: &Context, prepared: &Prepared, run_dir: &RunDir) -> Result<CachedRepo> {
    let real = &prepared.asked.real;
    let mut repo =
        Repo::create(real.clone(), &run_dir.folder(Folder::Git)).map_err(|error| of_git(&error))?;
    leave_out_events(context, &prepared.run.settings, &mut repo).map_err(|error| of_git(&error))?;
    refuse_signer(prepared, &repo)?;
    let mut repo = CachedRepo::new(repo);
    if !prepared.run.settings.allow_dirty {
        let known = check_artifacts(context, real.work_tree());
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
fn refuse_signer(prepared: &Prepared, repo: &Repo) -> Result<()> {
    let is_open = prepared.run.settings.sandbox == Sandbox::Off;
    match repo.signer_in_repository().filter(|_| !is_open) {
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

/// The most changed files that an error lists.
const LISTED: usize = 20;

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
    let file = prepared.book.file.as_ref();
    let plan = file.and_then(|file| file.in_tree.as_deref());
    let real = &prepared.asked.real;
    let in_jj = jj::has_jj(real);
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
    let dirty = entries(&dirty, real);
    let shown = dirty[..dirty.len().min(LISTED)].join("\n    ");
    let more = match dirty.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!("\n    and {more} more"),
    };
    let error = Error::config(format!("the work tree is not clean:\n    {shown}{more}"));
    let said = state.warnings.iter().take(SAID);
    let error = said.fold(error, |error, warning| error.hint(warning.clone()));
    let is_run = matches!(prepared.asked.work, Work::Tasks | Work::Review(_));
    let error = if in_jj {
        error.hint(remedy)
    } else if is_run && !prepared.run.settings.keep_going {
        error.hint("commit or stash these files, or use --allow-dirty (then nothing is committed)")
    } else {
        // This excludes `allow_dirty`.
        error.hint("commit or stash these files")
    };
    Err(if is_run {
        error.hint("to continue an interrupted run, use --resume")
    } else {
        error
    })
}

/// The changed files for a message. Files in an untracked directory are shown as that directory.
fn entries(dirty: &[&Change], real: &Real) -> Vec<String> {
    let changes = git::uncommitted_changes(real);
    let folded = changes.map(|changes| changes.untracked).unwrap_or_default();
    let entry = |change: &&Change| {
        let path = display_path(&change.path);
        let within = folded.iter().find(|it| lies_in(&path, it));
        within.filter(|_| change.untracked).cloned().unwrap_or(path)
    };
    let mut entries: Vec<String> = dirty.iter().map(entry).collect();
    entries.dedup();
    entries
}

/// Decides which servers the agents get. On a pull request, a declaration in its head does not count.
///
/// # Errors
/// When the base cannot be read, or its configuration is invalid.
pub(crate) fn decide_servers(
    context: &Context,
    args: &RunArgs,
    prepared: &mut Prepared,
) -> Result<()> {
    let declared = std::mem::take(&mut prepared.run.mcp);
    // A fork's configuration is that of the default branch already.
    let of_head = |request: &&RunRequest| request.is_pull && !request.context.report_only;
    prepared.run.mcp = match prepared.request().filter(of_head) {
        Some(request) if !declared.is_empty() => {
            let base = request.base_ref.clone().unwrap_or_default();
            let trusted = of_branch(context, args, prepared, &base)?;
            let ignored = declared.iter().filter(|server| !trusted.contains(server));
            let ignored: Vec<&str> = ignored.map(|server| server.name.as_str()).collect();
            if !ignored.is_empty() {
                prepared.asked.warnings.push(format!(
                    "the MCP servers of the pull request's head are ignored, since its base {base} does not declare them so: {}",
                    ignored.join(", ")
                ));
            }
            trusted
        }
        _ => declared,
    };
    let gets_none = |task: &TaskConfig| matches!(task.agent, Agent::Cli(CliAgent::Command { .. }));
    if !prepared.run.mcp.is_empty() && prepared.configs().any(gets_none) {
        let warning = "the agents of `agent_command` get no MCP servers";
        prepared.asked.warnings.push(warning.into());
    }
    Ok(())
}

/// The servers in the configuration of a branch. A file outside of the work tree is nobody's head.
fn of_branch(
    context: &Context,
    args: &RunArgs,
    prepared: &Prepared,
    base: &str,
) -> Result<Vec<McpServer>> {
    let real = &prepared.asked.real;
    let path = config_path(context, &args.common, real.work_tree());
    let (Ok(inside), Some(actions)) = (
        path.strip_prefix(real.work_tree()),
        ActionsEnvironment::of(context),
    ) else {
        return Ok(Vec::new());
    };
    let checkout = Checkout::of(context, &actions, real);
    let text = checkout.file_of_branch(base, inside)?.unwrap_or_default();
    let name = format!("{}, on {base}", inside.display());
    Ok(parse_config(&name, &text)?.mcp)
}
