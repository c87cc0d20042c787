//! Collects and validates everything that a run needs, before anything is changed.

use crate::cli::Common;
use crate::context::Context;
use crate::domain::answer::TaskAnswer;
use crate::domain::config_file::{self, ConfigFile};
use crate::domain::plan::{self, Plan, Task, TaskId, TaskStatus};
use crate::domain::settings::{COSTLY_RETRIES, Settings};
use crate::error::{Error, Result};
use crate::git::{Real, Repo, path_within};
use crate::github::request::RunRequest;
use crate::run::begin::beginning::{Earlier, Place};
use crate::run::begin::output_schema::SchemaSource;
use crate::run::begin::requirements::missing;
use crate::run::begin::work::{Source, Work};
use crate::run::state::lock::RunLock;
use crate::run::state::plan_state::{PlanFile, PlanState};
use crate::secrets::redact::MIN_SECRET_BYTES;
use crate::secrets::sources::holds_secret;
use crate::settings::{self, RunConfig, Sources, TaskConfig};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The file name in messages for a plan without a file.
const TEXT_NAME: &str = "plan.yaml";

/// What a run is asked to do, from every source that is read.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Flags, inputs and variables.
    pub(crate) above: Settings,
    /// The configuration that the run trusts.
    pub(crate) file: ConfigFile,
    pub(crate) source: Source,
    pub(crate) real: Real,
    /// What is done with the plan.
    pub(crate) work: Work,
    /// Who requested it on GitHub, and where the work goes.
    pub(crate) request: Option<RunRequest>,
    /// Ids of the selected tasks; all tasks if empty.
    pub(crate) tasks: Vec<String>,
    /// Whether the tasks are only shown, and not run.
    pub(crate) only_shown: bool,
    /// The directory below the work tree in which the run works; empty for its root.
    pub(crate) directory: String,
    /// The text of the configuration that is used instead of the one on the run's branch.
    pub(crate) trusted: Option<String>,
    /// Held until the run ends.
    pub(crate) lock: Option<RunLock>,
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
    /// The place of a run that began before, until it is opened.
    pub(crate) place: Option<Place>,
    /// The state that an earlier process of the run reached, if there was one.
    pub(crate) earlier: Option<Earlier>,
}

/// Everything that a run needs, validated.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) asked: Asked,
    /// The plan and its file.
    pub(crate) book: PlanState,
    /// The settings of the whole run.
    pub(crate) run: RunConfig,
    /// The selected unfinished tasks in order, with their settings.
    pub(crate) tasks: Vec<(Task, TaskConfig)>,
    /// Settings of tasks that an earlier process of the run may have done. Their checks apply to its
    /// commits.
    pub(crate) done: Vec<TaskConfig>,
    /// All tasks of the plan in order.
    pub(crate) all: Vec<Task>,
    /// The tasks that the user selected by id.
    pub(crate) named: Vec<TaskId>,
    /// The answers that a task has got.
    pub(crate) answer: Option<TaskAnswer>,
    /// The schema of the last task's structured output.
    pub(crate) output_schema: Option<SchemaSource>,
}

impl Prepared {
    /// The settings of the tasks to run.
    pub(crate) fn configs(&self) -> impl Iterator<Item = &TaskConfig> {
        self.tasks.iter().map(|(_, config)| config)
    }

    /// Who requested the run on GitHub.
    pub(crate) fn request(&self) -> Option<&RunRequest> {
        self.asked.request.as_ref()
    }
}

/// Reads the plan and validates everything.
///
/// # Errors
/// The first problem that is found.
pub(crate) fn prepare(context: &Context, mut asked: Asked) -> Result<Prepared> {
    let (real, file) = (&asked.real, std::mem::take(&mut asked.file));
    let unread = settings::unread_variables(context).into_iter();
    let mut warnings: Vec<String> = unread
        .map(|unread| format!("{}: {}", unread.found, unread.remedy))
        .chain(file.warnings.iter().map(ToString::to_string))
        .collect();
    let (mut plan, text, plan_file) = load(&asked.source, real, &mut warnings)?;
    let is_foreign = asked
        .request
        .as_ref()
        .is_some_and(|it| it.context.report_only);
    if is_foreign && strip_settings(&mut plan) {
        warnings
            .push("the plan is from a fork: its settings and setup commands are ignored".into());
    }
    // The branch is checked out before the plan is read.
    if plan.settings.branch.is_some() {
        return Err(settings::set_in_plan("branch"));
    }
    refuse_unread(&asked.above, &plan, real.work_tree(), &asked.directory)?;
    let below = plan.settings.clone().or(file.settings);
    let setup = file.setup.into_iter().chain(plan.setup.iter().cloned());
    let sources =
        Sources::new(context, asked.above.clone(), below)?.within(asked.directory.clone());
    let mut run = settings::run_config(&sources, setup.collect())?;
    run.mcp = file.mcp;
    let has_agent = asked.work.has_agent();
    if !has_agent && run.settings.allow_dirty {
        let error = Error::usage("sprag integrate makes commits, and allow_dirty forbids them");
        let hint = "remove allow_dirty, and commit or stash the changes in the work tree";
        return Err(error.hint(hint));
    }
    // Drafting a plan changes no code.
    let is_draft = asked.work.is_draft();
    if is_draft {
        run.settings.allow_dirty = false;
        run.setup.clear();
    }
    let named = named_tasks(&plan, &asked.tasks)?;
    let all: Vec<Task> = select(&plan, &[])?;
    let book = PlanState::new(plan.clone(), plan_file, text);
    // A task that is named, or that an earlier process of the run left open, is done again.
    let (unfinished, done): (Vec<Task>, _) = select(&plan, &named)?.into_iter().partition(|task| {
        let is_open = |earlier: &Earlier| earlier.has_open(&task.id);
        !book.is_done(&task.id)
            || named.contains(&task.id)
            || asked.earlier.as_ref().is_some_and(is_open)
    });
    let config_of = |task: &Task| {
        // A task needs no agent if none runs.
        let mut config = if asked.only_shown || !has_agent {
            settings::shown_task_config(&sources, task)?
        } else {
            settings::task_config(&sources, task)?
        };
        if is_draft {
            config.checks.clear();
        }
        Ok(config)
    };
    let tasks: Result<Vec<_>> = unfinished
        .into_iter()
        .map(|task| config_of(&task).map(|config| (task, config)))
        .collect();
    let tasks = tasks?;
    let done = done.iter().filter(|_| asked.earlier.is_some());
    let done = done.map(config_of).collect::<Result<_>>()?;
    let has_own_programs = run.setup.is_empty() && has_agent;
    let found = warnings_of_tasks(context, real, &tasks, &named, &book, has_own_programs);
    warnings.extend(found);
    if sources.above.roles.is_some() {
        warnings.extend(warning_of_unused_roles(&tasks));
    }
    let written = book.ensure_writable(tasks.iter().map(|(task, _)| &task.id));
    written.map_err(|error| not_writable(&error))?;
    warnings.append(&mut asked.warnings);
    Ok(Prepared {
        output_schema: schema_source(context, &sources, &run, real),
        asked: Asked { warnings, ..asked },
        book,
        run,
        tasks,
        done,
        all,
        named,
        answer: None,
    })
}

/// The error for a plan that is written in a way that cannot be changed.
pub fn not_writable(error: &anyhow::Error) -> Error {
    Error::config(format!(
        "the plan's status cannot be written back: {error:#}"
    ))
    .hint("write the task as a plain mapping with each key on its own line")
}

/// The schema of the structured output. As everywhere, a path on the command line is relative to the
/// current directory.
pub fn schema_source(
    context: &Context,
    sources: &Sources,
    run: &RunConfig,
    real: &Real,
) -> Option<SchemaSource> {
    let directory = if sources.above.output_schema.is_some() {
        &context.cwd
    } else {
        real.work_tree()
    };
    let value = run.settings.output_schema.as_deref()?;
    Some(SchemaSource::of(value, directory))
}

/// Reduces a plan to its tasks, without settings and setup commands. Returns whether there were any.
fn strip_settings(plan: &mut Plan) -> bool {
    let empty = Settings::default();
    let had = !plan.setup.is_empty()
        || plan.settings != empty
        || plan.tasks.iter().any(|task| task.settings != empty);
    plan.setup.clear();
    plan.settings = empty.clone();
    for task in &mut plan.tasks {
        task.settings = empty.clone();
    }
    had
}

/// Refuses a plan with a task in a directory that has a configuration of its own, if the checks of the task are those
/// of the run's configuration, which works in the directory `own`.
///
/// # Errors
/// Names the configuration that is not read.
pub fn refuse_unread(above: &Settings, plan: &Plan, work_tree: &Path, own: &str) -> Result<()> {
    let mut others = plan.tasks.iter().filter(|task| {
        let set = [above, &plan.settings, &task.settings];
        task.status != TaskStatus::Done && set.iter().all(|settings| settings.verify.is_none())
    });
    let unread = others.find_map(|task| {
        let below = task.directory.as_deref()?;
        let places = Path::new(below).ancestors();
        let mut places = places.take_while(|at| *at != Path::new(own) && *at != Path::new(""));
        let place = places.find(|at| work_tree.join(at).join(settings::DEFAULT_FILE).is_file())?;
        Some((&task.id, below, place.display()))
    });
    let Some((id, below, place)) = unread else {
        return Ok(());
    };
    Err(Error::config(format!(
        "task {id} works in {below}, but this run does not read the configuration of {place}"
    ))
    .hint(format!(
        "give the task or the plan its own `verify`, or run the task with sprag run -C {below}"
    )))
}

/// The path of the configuration file that is named, or else of the nearest one: in the current directory or above
/// it, up to the root of the work tree.
pub fn config_path(context: &Context, common: &Common, work_tree: &Path) -> PathBuf {
    let mut places = config_places(context, common, work_tree).into_iter();
    let last = places.next_back().unwrap_or_default();
    places.find(|path| path.exists()).unwrap_or(last)
}

/// The places of the configuration, the nearest first: only the file that is named, if one is.
pub fn config_places(context: &Context, common: &Common, work_tree: &Path) -> Vec<PathBuf> {
    if let Some(named) = settings::inputs::config_file(context, common) {
        return vec![named];
    }
    let here = work_tree.join(current(context, work_tree));
    let directories = here.ancestors().take_while(|at| at.starts_with(work_tree));
    directories
        .map(|at| at.join(settings::DEFAULT_FILE))
        .collect()
}

/// The current directory, relative to the work tree.
fn current(context: &Context, work_tree: &Path) -> PathBuf {
    let here = context.cwd.canonicalize().unwrap_or_default();
    let here = here.strip_prefix(work_tree).unwrap_or(Path::new(""));
    here.to_path_buf()
}

/// The directory below the work tree in which agents and checks work: the one that is asked for, otherwise that of
/// the configuration. The current directory alone counts for nothing, because checks are written for their own.
pub fn directory(context: &Context, common: &Common, work_tree: &Path) -> String {
    let place = if context.cwd_is_chosen {
        current(context, work_tree)
    } else {
        let named = settings::inputs::config_file(context, common);
        let path = config_path(context, common, work_tree);
        let inside = path
            .strip_prefix(work_tree)
            .ok()
            .filter(|_| named.is_none());
        let above = inside.and_then(|path| path.parent()?.parent());
        above.map(Path::to_path_buf).unwrap_or_default()
    };
    place.to_string_lossy().into_owned()
}

/// Reads the configuration file that is named or found. With `repo`, a file in the work tree is read
/// from the base commit instead.
///
/// # Errors
/// When it cannot be read, or is named and does not exist.
pub fn config_file(
    context: &Context,
    common: &Common,
    work_tree: &Path,
    repo: Option<&Repo>,
) -> Result<ConfigFile> {
    config_text(context, common, work_tree, repo)?.parse()
}

/// The text of a configuration file, with its name; empty if there is none.
pub(crate) struct ConfigText {
    pub(crate) name: String,
    pub(crate) text: Vec<u8>,
}

impl ConfigText {
    /// Parses it.
    pub(crate) fn parse(&self) -> Result<ConfigFile> {
        parse_config(&self.name, &self.text)
    }
}

/// Parses the text of a configuration file with this name.
///
/// # Errors
/// When it is invalid.
pub fn parse_config(name: &str, text: &[u8]) -> Result<ConfigFile> {
    config_file::parse(name, text).map_err(settings::located)
}

/// The configuration file as [`config_file`] reads it.
pub(crate) fn config_text(
    context: &Context,
    common: &Common,
    work_tree: &Path,
    repo: Option<&Repo>,
) -> Result<ConfigText> {
    let is_asked_for = settings::inputs::config_file(context, common).is_some();
    let path = config_path(context, common, work_tree);
    let of_base = repo.map(|repo| in_base(repo, &path)).transpose()?.flatten();
    let text = match (of_base, repo.and(path.strip_prefix(work_tree).ok())) {
        (Some(text), _) => text,
        _ if is_asked_for => settings::read_file(&path, "configuration file")?,
        (None, Some(_)) => Vec::new(),
        _ if !path.exists() => {
            settings::refuse_misplaced(work_tree)?;
            Vec::new()
        }
        // Only a file that somebody named may be a pipe.
        _ if !path.is_file() && !path.is_dir() => {
            let message = format!("the configuration file {} is not a file", path.display());
            return Err(Error::config(message).hint("move it away"));
        }
        _ => settings::read_file(&path, "configuration file")?,
    };
    let name = path_within(&path, work_tree);
    Ok(ConfigText { name, text })
}

/// The content of a work-tree path in the run's base commit.
///
/// # Errors
/// When the repository cannot be read.
pub fn in_base(repo: &Repo, path: &Path) -> Result<Option<Vec<u8>>> {
    let Ok(inside) = path.strip_prefix(repo.real().work_tree()) else {
        return Ok(None);
    };
    Ok(repo.base_file(inside.as_os_str().as_bytes())?)
}

/// Reads a plan.
///
/// # Errors
/// When it cannot be read or is invalid.
pub fn read_plan(path: &Path, name: &str, warnings: &mut Vec<String>) -> Result<(Plan, String)> {
    parse_plan(&settings::read_file(path, "plan")?, name, warnings)
}

fn parse_plan(bytes: &[u8], name: &str, warnings: &mut Vec<String>) -> Result<(Plan, String)> {
    let parsed = plan::parse(name, bytes).map_err(settings::located)?;
    warnings.extend(parsed.warnings.iter().map(ToString::to_string));
    let text = String::from_utf8_lossy(bytes).into_owned();
    Ok((parsed.value, text))
}

fn load(
    source: &Source,
    real: &Real,
    warnings: &mut Vec<String>,
) -> Result<(Plan, String, Option<PlanFile>)> {
    // Resolved now and used for writing later, so that a link changed in between has no effect.
    let resolved = match source {
        Source::Prompt(text) => return Ok((settings::plan_of_prompt(text)?, String::new(), None)),
        Source::Text(text) => {
            let (plan, text) = parse_plan(text.as_bytes(), TEXT_NAME, warnings)?;
            return Ok((plan, text, None));
        }
        Source::File(path) => std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()),
        Source::Known { path, .. } => path.clone(),
    };
    let name = path_within(&resolved, real.work_tree());
    let (plan, text) = match source {
        Source::Known { content, .. } => parse_plan(content, &name, warnings)?,
        _ => read_plan(&resolved, &name, warnings)?,
    };
    let in_tree = resolved
        .strip_prefix(real.work_tree())
        .ok()
        .filter(|_| !real.ignores(&resolved))
        .map(|path| path.as_os_str().as_bytes().to_vec());
    Ok((
        plan,
        text,
        Some(PlanFile {
            path: resolved,
            name,
            in_tree,
        }),
    ))
}

fn named_tasks(plan: &Plan, named: &[String]) -> Result<Vec<TaskId>> {
    let known = plan.tasks.iter().map(|task| task.id.as_str());
    named
        .iter()
        .map(
            |name| match plan.tasks.iter().find(|task| task.id.as_str() == name) {
                Some(task) => Ok(task.id.clone()),
                None => {
                    let nearest = crate::domain::suggest::did_you_mean(name, known.clone());
                    let all: Vec<&str> = known.clone().take(20).collect();
                    Err(
                        Error::usage(format!("--task {name}: the plan has no such task{nearest}"))
                            .hint(format!("its tasks are {}", all.join(", "))),
                    )
                }
            },
        )
        .collect()
}

fn select(plan: &Plan, only: &[TaskId]) -> Result<Vec<Task>> {
    plan::selection(plan, only)
        .map(|tasks| tasks.into_iter().cloned().collect())
        .map_err(|error| Error::usage(error.to_string()))
}

/// The warnings of what may be wrong with the selected tasks. `has_own_programs` says that their checks use only what
/// is installed now.
fn warnings_of_tasks(
    context: &Context,
    real: &Real,
    tasks: &[(Task, TaskConfig)],
    named: &[TaskId],
    book: &PlanState,
    has_own_programs: bool,
) -> Vec<String> {
    let mut warnings = Vec::new();
    for (task, config) in tasks {
        let id = &task.id;
        if !config.place(real.work_tree()).is_dir() {
            let place = &config.directory;
            warnings.push(format!(
                "task {id} works in {place}, which does not exist yet"
            ));
        }
        // A task that is selected by id runs although a dependency is not done.
        let open = |id: &&TaskId| !named.is_empty() && !named.contains(id) && !book.is_done(id);
        let undone = task.depends_on.iter().filter(open).map(TaskId::as_str);
        let undone: Vec<&str> = undone.collect();
        if !undone.is_empty() {
            let undone = undone.join(", ");
            warnings.push(format!(
                "task {id} is run alone: it depends on {undone}, which is not done"
            ));
        }
        let retries = config.settings.max_retries;
        if retries > COSTLY_RETRIES {
            warnings.push(format!(
                "task {id} has up to {retries} retries: more than {COSTLY_RETRIES} are costly"
            ));
        }
        let mut of_settings = short_secrets(context, config);
        if has_own_programs {
            of_settings.extend(missing_programs(context, real, config));
        }
        for warning in of_settings {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    warnings
}

/// The warning of roles that no task uses.
fn warning_of_unused_roles(tasks: &[(Task, TaskConfig)]) -> Option<String> {
    let has_phases = |(_, config): &(Task, TaskConfig)| {
        let set = &config.settings;
        set.review || set.tdd || set.review_only
    };
    let is_unused = !tasks.is_empty() && !tasks.iter().any(has_phases);
    is_unused.then(|| "`roles` has no effect: no task has `review` or `tdd`".to_owned())
}

/// Warnings of checks that cannot start here: each turn would be paid for before the run finds out.
fn missing_programs(context: &Context, real: &Real, config: &TaskConfig) -> Vec<String> {
    let missing = missing(context, real.work_tree(), &[], &config.checks);
    let told = missing.into_iter().map(|missing| {
        let other = missing.also_called.map_or_else(
            || "`sprag doctor` looks for all of them".to_owned(),
            |other| format!("{other} is, so write {other} there"),
        );
        format!(
            "{} needs {}, which is not installed here; {other}",
            missing.of, missing.program
        )
    });
    told.collect()
}

/// Warnings of secrets that children get and that are too short to be redacted.
fn short_secrets(context: &Context, config: &TaskConfig) -> Vec<String> {
    let set = &config.settings;
    let names = set.agent_env.iter().chain(&set.verify_env);
    let short = names.filter(|name| {
        let value = context.var(name).unwrap_or_default().trim();
        !value.is_empty() && value.len() < MIN_SECRET_BYTES && holds_secret(name)
    });
    let told = short.map(|name| {
        format!(
            "{name} is passed on, and its value is not redacted: it has fewer than {MIN_SECRET_BYTES} bytes"
        )
    });
    told.collect()
}
