//! Collects and validates everything that a run needs, before anything is changed.

use crate::cli::{Common, RunArgs};
use crate::context::Context;
use crate::domain::config_file::{self, ConfigFile};
use crate::domain::plan::{self, Plan, Task, TaskId, TaskKind, TaskStatus};
use crate::domain::settings::Settings;
use crate::domain::text::{first_line, one_line};
use crate::error::{Error, Result};
use crate::git::{Real, Repo, path_within};
use crate::github::lookup::one_task;
use crate::run::begin::output_schema::SchemaSource;
use crate::run::begin::warnings;
use crate::run::begin::work::Work;
use crate::run::state::answer::TaskAnswer;
use crate::run::state::plan_state::{PlanFile, PlanState};
use crate::settings::{self, RunConfig, Sources, TaskConfig};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The file name in messages for a plan without a file.
const TEXT_NAME: &str = "plan.yaml";

/// The source of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// A prompt.
    Prompt(String),
    /// The text of a plan without a file, such as one from an issue.
    Text(String),
    /// A file with known content, for a resumed run: an interrupted turn may have changed the file in
    /// the work tree.
    Known {
        /// The file's resolved path.
        path: PathBuf,
        /// The plan's content.
        content: Vec<u8>,
    },
}

/// Everything that a run needs, validated.
#[derive(Debug)]
pub struct Prepared {
    /// The repository.
    pub real: Real,
    /// The source of the plan.
    pub source: Source,
    /// The plan and its file.
    pub book: PlanState,
    /// The settings of the whole run.
    pub run: RunConfig,
    /// The selected unfinished tasks in order, with their settings.
    pub tasks: Vec<(Task, TaskConfig)>,
    /// Settings of tasks that an earlier process of the run may have done. Their checks apply to its
    /// commits.
    pub done: Vec<TaskConfig>,
    /// All tasks of the plan in order.
    pub all: Vec<Task>,
    /// The tasks that the user selected by id.
    pub named: Vec<TaskId>,
    /// What is done with the plan.
    pub work: Work,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// The directory below the work tree in which the run works; empty for its root.
    pub directory: String,
    /// The text of the configuration that is used instead of the one on the run's branch.
    pub trusted: Option<String>,
    /// The answers that a task has got.
    pub(crate) answer: Option<TaskAnswer>,
    /// The schema of the last task's structured output.
    pub output_schema: Option<SchemaSource>,
}

impl Prepared {
    /// Leaves out what drafting a plan does not need, since it changes no code: setup commands and checks.
    pub(crate) fn drafts_only(&mut self) {
        self.run.settings.allow_dirty = false;
        self.run.setup.clear();
        for (_, config) in &mut self.tasks {
            config.checks.clear();
        }
    }
}

/// What a run is asked to do, from every source that is read.
pub struct Asked<'a> {
    /// Flags, inputs and variables.
    pub above: Settings,
    /// The configuration file.
    pub file: ConfigFile,
    /// The source of the plan.
    pub source: Source,
    /// The repository.
    pub real: Real,
    /// What is done with the plan.
    pub work: Work,
    /// Ids of the selected tasks; all tasks if empty.
    pub tasks: &'a [String],
    /// Whether the tasks are only shown, and not run.
    pub only_shown: bool,
    /// The directory below the work tree in which the run works.
    pub directory: String,
    /// Whether the plan is from a fork.
    pub is_foreign: bool,
    /// Tasks that an earlier process of the run started and did not end, regardless of their status in the plan.
    /// `None` for a new run.
    pub open: Option<&'a [String]>,
}

impl Asked<'_> {
    /// How to read a task's settings. A task needs no agent if none runs.
    fn settings_reader(&self) -> fn(&Sources, &Task) -> Result<TaskConfig> {
        if self.only_shown || !self.work.has_agent() {
            settings::shown_task_config
        } else {
            settings::task_config
        }
    }
}

/// The hint that lists the possible sources of a run.
pub const CHOICES: &str = "give exactly one of a prompt in quotes, --plan FILE, --prompt-file FILE|-, --issue N, --queue DIR, --event";

/// Whether the arguments name a plan or a prompt.
pub fn has_source(args: &RunArgs) -> bool {
    args.plan.is_some() || args.prompt.is_some() || args.prompt_file.is_some()
}

/// The one source that the command line names.
///
/// # Errors
/// When it names none or several, or standard input cannot be read.
pub fn source(context: &Context, args: &RunArgs) -> Result<Source> {
    let given = [
        args.plan.as_ref().map(|_| "--plan"),
        args.prompt.as_ref().map(|_| "--prompt"),
        args.prompt_file.as_ref().map(|_| "--prompt-file"),
    ];
    let given: Vec<&str> = given.into_iter().flatten().collect();
    if given.len() > 1 {
        let message = format!("{} were given together", given.join(" and "));
        return Err(Error::usage(message).hint(CHOICES));
    }
    if let Some(path) = &args.plan {
        return Ok(Source::File(context.cwd.join(path)));
    }
    if let Some(text) = args.prompt.as_ref().filter(|_| args.asks) {
        let title = one_line(first_line(text), 72);
        return Ok(Source::Text(one_task(&title, text, TaskKind::Ask)));
    }
    if let Some(text) = &args.prompt {
        return Ok(Source::Prompt(text.clone()));
    }
    if let Some(path) = &args.prompt_file {
        return prompt_file(context, path);
    }
    Err(nothing_asked())
}

/// The error for a command line without a source.
pub fn nothing_asked() -> Error {
    Error::usage("nothing to do: no plan and no prompt was given").hint(CHOICES)
}

fn prompt_file(context: &Context, path: &Path) -> Result<Source> {
    let bytes = if path == Path::new("-") {
        let limit = u64::try_from(plan::MAX_FILE_BYTES)
            .unwrap_or(u64::MAX)
            .saturating_add(1);
        let mut bytes = Vec::new();
        std::io::stdin()
            .take(limit)
            .read_to_end(&mut bytes)
            .map_err(|error| Error::usage(format!("standard input cannot be read: {error}")))?;
        plan::check_size(
            "standard input",
            u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        )
        .map_err(|located| Error::usage(located.to_string()))?;
        bytes
    } else {
        settings::read_file(&context.cwd.join(path), "prompt file")?
    };
    String::from_utf8(bytes)
        .map(Source::Prompt)
        .map_err(|_| Error::usage(format!("the prompt {} is not UTF-8 text", path.display())))
}

/// Reads the plan and validates everything.
///
/// # Errors
/// The first problem that is found.
pub fn prepare(context: &Context, asked: Asked<'_>) -> Result<Prepared> {
    let task_config = asked.settings_reader();
    let (real, source, file) = (asked.real, asked.source, asked.file);
    let mut warnings: Vec<String> = settings::unread_variables(context)
        .into_iter()
        .map(|unread| format!("{}: {}", unread.found, unread.remedy))
        .collect();
    warnings.extend(file.warnings.iter().map(ToString::to_string));
    let (mut plan, text, plan_file) = load(&source, &real, &mut warnings)?;
    if asked.is_foreign && strip_settings(&mut plan) {
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
    let sources = Sources::new(context, asked.above, below)?.within(asked.directory.clone());
    let mut run = settings::run_config(&sources, setup.collect())?;
    run.mcp = file.mcp;
    if !asked.work.has_agent() && run.settings.allow_dirty {
        return Err(no_commits_allowed());
    }
    let named = named_tasks(&plan, asked.tasks)?;
    let all: Vec<Task> = select(&plan, &[])?;
    let book = PlanState::new(plan.clone(), plan_file, text);
    let (unfinished, done) = by_progress(select(&plan, &named)?, &named, &book, asked.open);
    let with_config = |task: Task| task_config(&sources, &task).map(|config| (task, config));
    let done = done
        .iter()
        .filter(|_| asked.open.is_some())
        .map(|task| task_config(&sources, task));
    let mut prepared = Prepared {
        tasks: unfinished
            .into_iter()
            .map(with_config)
            .collect::<Result<_>>()?,
        done: done.collect::<Result<_>>()?,
        output_schema: schema_source(context, &sources, &run, &real),
        real,
        source,
        book,
        run,
        all,
        named,
        work: asked.work,
        warnings,
        directory: asked.directory,
        trusted: None,
        answer: None,
    };
    let has_own_programs = prepared.run.setup.is_empty() && prepared.work.has_agent();
    let found = warnings::of_tasks(
        context,
        &prepared.real,
        &prepared.tasks,
        &prepared.named,
        &prepared.book,
        has_own_programs,
    );
    prepared.warnings.extend(found);
    if sources.above.roles.is_some() {
        let unused = warnings::of_unused_roles(&prepared.tasks);
        prepared.warnings.extend(unused);
    }
    let tasks = prepared.tasks.iter().map(|(task, _)| &task.id);
    let written = prepared.book.ensure_writable(tasks);
    written.map_err(|error| not_writable(&error))?;
    Ok(prepared)
}

fn no_commits_allowed() -> Error {
    Error::usage("sprag integrate makes commits, and allow_dirty forbids them")
        .hint("remove allow_dirty, and commit or stash the changes in the work tree")
}

/// The selected tasks that are not done, then those that are. A task that is named, or that an earlier
/// process of the run left open, is done again.
fn by_progress(
    tasks: Vec<Task>,
    named: &[TaskId],
    book: &PlanState,
    open: Option<&[String]>,
) -> (Vec<Task>, Vec<Task>) {
    tasks.into_iter().partition(|task| {
        let is_open = |open: &[String]| open.iter().any(|id| id == task.id.as_str());
        !book.is_done(&task.id) || named.contains(&task.id) || open.is_some_and(is_open)
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
    let path = config_path(context, common, work_tree);
    let text = config_text(context, common, work_tree, repo)?;
    parse_config(&path_within(&path, work_tree), &text)
}

/// Parses the text of a configuration file with this name.
///
/// # Errors
/// When it is invalid.
pub fn parse_config(name: &str, text: &[u8]) -> Result<ConfigFile> {
    config_file::parse(name, text).map_err(settings::located)
}

/// The text of the configuration file, as [`config_file`] reads it; empty if there is none.
///
/// # Errors
/// When it cannot be read, or is named and does not exist.
pub fn config_text(
    context: &Context,
    common: &Common,
    work_tree: &Path,
    repo: Option<&Repo>,
) -> Result<Vec<u8>> {
    let is_asked_for = settings::inputs::config_file(context, common).is_some();
    let path = config_path(context, common, work_tree);
    let of_base = repo.map(|repo| in_base(repo, &path)).transpose()?.flatten();
    match (of_base, repo.and(path.strip_prefix(work_tree).ok())) {
        (Some(text), _) => Ok(text),
        (None, Some(_)) if !is_asked_for => Ok(Vec::new()),
        _ if !is_asked_for && !path.exists() => {
            settings::refuse_misplaced(work_tree)?;
            Ok(Vec::new())
        }
        // Only a file that somebody named may be a pipe.
        _ if !is_asked_for && !path.is_file() && !path.is_dir() => {
            let message = format!("the configuration file {} is not a file", path.display());
            Err(Error::config(message).hint("move it away"))
        }
        _ => settings::read_file(&path, "configuration file"),
    }
}

/// The content of a work-tree path in the run's base commit.
///
/// # Errors
/// When the repository cannot be read.
pub fn in_base(repo: &Repo, path: &Path) -> Result<Option<Vec<u8>>> {
    let Ok(inside) = path.strip_prefix(repo.real().work_tree()) else {
        return Ok(None);
    };
    repo.base_file(inside.as_os_str().as_bytes())
        .map_err(|error| Error::environment(error.to_string()))
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
