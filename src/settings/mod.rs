//! Merges flags, action inputs, variables, task, plan and file, in this order of precedence, into one valid
//! configuration.

mod agent;
pub mod args;
pub mod flags;
pub mod inputs;
mod user;

use crate::agents::{self, Agent, CliSpec};
use crate::context::Context;
use crate::domain::attempt::{PhasesAsked, Role, phases};
use crate::domain::checks::verdict::Check;
use crate::domain::mcp::McpServer;
use crate::domain::plan::{self, Plan, Task, TaskKind};
use crate::domain::protected_paths::ProtectedPaths;
use crate::domain::settings::check::in_directory;
use crate::domain::settings::variables::{self, Unread};
use crate::domain::settings::{self, Resolved, Settings, input_name, variable_name};
use crate::domain::text_error::Located;
use crate::error::{Error, ErrorKind, Location, Result};
use agent::agent;
use args::SettingFlags;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use sprag_agent::access;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// The default path of the configuration file, relative to the work tree.
pub const DEFAULT_FILE: &str = ".sprag/config.yaml";

/// Names that the configuration file is given by mistake.
const MISPLACED: &str = ".sprag/config.yml .sprag/config.json .sprag/sprag.yaml .sprag.yaml .sprag.yml sprag.yaml \
                         sprag.yml";

/// Refuses a work tree in which the configuration seems to have another name: the work would be committed
/// without its checks. A plan may have any name.
///
/// # Errors
/// When there is such a file.
pub fn refuse_misplaced(work_tree: &Path) -> Result<()> {
    let is_plan = |path: &Path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().any(|line| line.starts_with("tasks:"))
    };
    let is_misplaced = |name: &&str| {
        let path = work_tree.join(name);
        path.is_file() && !is_plan(&path)
    };
    let Some(name) = MISPLACED.split(' ').find(is_misplaced) else {
        return Ok(());
    };
    let why = format!("{name} is not read: the configuration is {DEFAULT_FILE}");
    Err(Error::config(why).hint(format!("mkdir -p .sprag && git mv {name} {DEFAULT_FILE}")))
}

/// All sources of settings except the task.
#[derive(Debug, Clone)]
pub struct Sources {
    /// Flags, action inputs and variables, already merged.
    pub above: Settings,
    /// Plan and configuration file, already merged.
    pub below: Settings,
    in_actions: bool,
    globs: Globs,
    /// The variables that determine how a model is reached.
    models: Rc<HashMap<&'static str, String>>,
    /// What is wrong with the variables that may hold the key of a model.
    key_mistake: Option<String>,
    /// Whether a command stands in for each missing agent.
    stand_ins: bool,
    /// The agent that the action has installed, for `agent: auto`.
    installed: Option<&'static CliSpec>,
    /// The directory below the work tree in which agents and checks work.
    directory: String,
}

/// Cache of glob sets: most tasks of a plan share one.
type Globs = Rc<RefCell<HashMap<Vec<String>, Arc<ProtectedPaths>>>>;

impl Sources {
    /// Creates sources in which `above` takes precedence over `below`. The variables in `context` determine
    /// how a model is reached.
    ///
    /// # Errors
    /// When the user's own configuration cannot be used.
    pub fn new(context: &Context, above: Settings, below: Settings) -> Result<Self> {
        let value = |name: &str| match name {
            "GITHUB_TOKEN" => inputs::token(context),
            _ => context.var(name),
        };
        let keys: Vec<&str> = access::suggested_keys().collect();
        let set = access::variables().filter_map(|name| Some((name, value(name)?.to_owned())));
        Ok(Self {
            below: below.or(user::settings(context)?),
            above,
            in_actions: context.in_actions(),
            globs: Globs::default(),
            models: Rc::new(set.collect()),
            key_mistake: agents::key_mistake(&keys, &context.env, context.in_actions()),
            stand_ins: false,
            installed: inputs::input(context, "install-agent").and_then(agents::installed),
            directory: String::new(),
        })
    }

    /// The same sources for work in a directory below the work tree.
    #[must_use]
    pub fn within(self, directory: String) -> Self {
        Self { directory, ..self }
    }

    /// All settings of one task.
    fn of_task(&self, task: &Task) -> Resolved {
        let all = self.above.clone().or(task.settings.clone());
        all.or(self.below.clone()).resolve(self.in_actions)
    }

    /// The paths that these globs protect.
    fn set_of(&self, globs: &[String]) -> Result<Arc<ProtectedPaths>> {
        if let Some(known) = self.globs.borrow().get(globs) {
            return Ok(Arc::clone(known));
        }
        let built = Arc::new(protected_set(globs)?);
        let mut known = self.globs.borrow_mut();
        known.insert(globs.to_vec(), Arc::clone(&built));
        Ok(built)
    }
}

/// The configuration of the whole run.
#[derive(Debug, Clone)]
pub struct RunConfig {
    /// The resolved settings.
    pub settings: Resolved,
    /// The changes that do not count as progress.
    pub progress_ignore: GlobSet,
    /// Commands that run once in the root of the work tree, before the first turn.
    pub setup: Vec<String>,
    /// The MCP servers that agents get.
    pub mcp: Vec<McpServer>,
}

impl RunConfig {
    /// The directory for the files of the run, if one is configured.
    pub fn run_dir(&self, context: &Context) -> Option<PathBuf> {
        let dir = self.settings.run_dir.as_ref();
        dir.map(|dir| context.cwd.join(dir))
    }
}

/// The configuration of one task.
#[derive(Debug, Clone)]
pub struct TaskConfig {
    /// The resolved settings.
    pub settings: Resolved,
    /// The agent of the current role, which is the implementer until [`Self::take_role`].
    pub agent: Agent,
    /// The agents of all roles that the task needs.
    agents: Vec<(Role, RoleAgent)>,
    /// The agents for the attempts after a failed verification.
    escalate: Vec<RoleAgent>,
    /// The agent to use when another is unavailable.
    fallback: Option<RoleAgent>,
    /// The directory in which the agent works, relative to the work tree; empty for its root.
    pub directory: String,
    /// The checks, each with its time limit.
    pub checks: Vec<Check>,
    /// Whether the task only asks a question.
    pub asks: bool,
    /// Paths that the task may not change.
    pub protected_paths: Arc<ProtectedPaths>,
    /// An agent that the task needs and that is missing. A run has none: see [`shown_task_config`].
    pub missing: Option<Arc<MissingAgent>>,
}

/// An agent that is not configured, or that cannot reach its model.
#[derive(Debug)]
pub struct MissingAgent {
    /// What is missing, with remedies.
    pub error: Error,
    /// Whether it is the task's own agent, and not one of its roles, escalations or its fallback.
    pub is_own: bool,
}

/// An agent with its model and its arguments.
#[derive(Debug, Clone)]
struct RoleAgent {
    agent: Agent,
    model: Option<String>,
    agent_args: Vec<String>,
}

impl TaskConfig {
    /// The directory in which the agent works, as an absolute path.
    pub fn place(&self, work_tree: &Path) -> PathBuf {
        let below = Path::new(&self.directory).components();
        work_tree.components().chain(below).collect()
    }

    /// The text to add to every prompt.
    pub fn instructions(&self) -> Option<String> {
        let dir = &self.directory;
        let place = (!dir.is_empty()).then(|| {
            format!(
                "The work belongs in the directory `{dir}`. Paths in these prompts are relative to the root of the repository."
            )
        });
        let texts = place.into_iter().chain(self.settings.instructions.clone());
        texts.reduce(|place, text| format!("{place}\n\n{text}"))
    }

    /// Selects the agent of this role, with its model and its arguments.
    pub fn take_role(&mut self, role: Role) {
        let mut agents = self.agents.iter();
        if let Some((_, of_role)) = agents.find(|(known, _)| *known == role) {
            self.take(&of_role.clone());
        }
    }

    /// Selects the agent for the attempt after this number of failed verifications. Returns its number in
    /// `escalate`, from 1, or `None` if the task's own agent stays.
    pub fn take_escalation(&mut self, failures: usize) -> Option<usize> {
        let number = failures.min(self.escalate.len());
        let other = self.escalate.get(number.checked_sub(1)?)?.clone();
        self.take(&other);
        Some(number)
    }

    /// Every agent that may work on the task.
    pub fn every_agent(&self) -> impl Iterator<Item = &Agent> {
        let of_roles = self.agents.iter().map(|(_, other)| other);
        let others = of_roles.chain(&self.escalate).chain(&self.fallback);
        std::iter::once(&self.agent).chain(others.map(|other| &other.agent))
    }

    /// Selects the fallback agent. Returns whether there is one.
    pub fn take_fallback(&mut self) -> bool {
        let fallback = self.fallback.clone();
        fallback.iter().for_each(|other| self.take(other));
        fallback.is_some()
    }

    /// Whether there is a fallback agent.
    pub fn has_fallback(&self) -> bool {
        self.fallback.is_some()
    }

    /// Makes the fallback the task's own agent. Returns whether there is one.
    pub fn begin_with_fallback(&mut self) -> bool {
        let Some(other) = self.fallback.take() else {
            return false;
        };
        self.take(&other);
        for (role, agent) in &mut self.agents {
            if *role == Role::Implementer {
                agent.clone_from(&other);
            }
        }
        true
    }

    fn take(&mut self, other: &RoleAgent) {
        self.agent = other.agent.clone();
        self.settings.model.clone_from(&other.model);
        self.settings.agent_args.clone_from(&other.agent_args);
    }

    /// A copy of these settings for each role that the task needs.
    pub fn in_each_role(&self) -> impl Iterator<Item = Self> + '_ {
        self.by_role().map(|(_, config)| config)
    }

    /// Each role that the task needs, with a copy of these settings for it.
    pub fn by_role(&self) -> impl Iterator<Item = (Role, Self)> + '_ {
        self.agents.iter().map(|(role, _)| {
            let mut config = self.clone();
            config.take_role(*role);
            (*role, config)
        })
    }

    /// The settings that determine the phases of the task.
    pub fn phases_asked(&self) -> PhasesAsked {
        PhasesAsked {
            tdd: self.settings.tdd,
            review: self.settings.review,
            tester: self.settings.roles.get(Role::Tester).is_some(),
            review_only: self.settings.review_only,
            asks: self.asks,
            retries: self.settings.max_retries,
            nudges: self.settings.nudges,
        }
    }
}

/// The error for a plan with a setting that is needed before the plan is read.
pub(crate) fn set_in_plan(key: &str) -> Error {
    Error::config(format!("{key} is set in the plan"))
        .hint("give it on the command line, as an input of the action or in the configuration")
}

/// Merges the flags, action inputs and `SPRAG_*` variables, in this order of precedence.
///
/// # Errors
/// An invalid value, named by its flag, input or variable.
pub fn above(context: &Context, flags: &SettingFlags) -> Result<Settings> {
    let mut inputs = Settings::default();
    let mut variables = Settings::default();
    for (key, _) in settings::NAMES {
        let name = input_name(key);
        if let Some(text) = inputs::input(context, &name) {
            let set = inputs.set_from_text(key, text);
            set.map_err(|why| unreadable(key, &format!("action input {name}"), &why))?;
        }
        let name = variable_name(key);
        if let Some(text) = context.var(&name) {
            let set = variables.set_from_text(key, text);
            set.map_err(|why| unreadable(key, &name, &why))?;
        }
    }
    Ok(flags.settings()?.or(inputs).or(variables))
}

/// The variables that are named like Sprag's own but that nothing reads.
pub fn unread_variables(context: &Context) -> Vec<Unread> {
    let set = context.env.iter().filter(|(_, value)| !value.is_empty());
    variables::unread(set.filter_map(|(name, _)| name.to_str()))
}

/// The error for a value whose place already names the key, in the spelling that the user chose.
fn unreadable(key: &str, place: &str, why: &str) -> Error {
    Error::usage(match why.strip_prefix(key) {
        Some(rest) => format!("{place}{rest}"),
        None => format!("{place}: {why}"),
    })
}

/// The error for a place in a plan or configuration file.
pub fn located(located: Located) -> Error {
    let whole = located.to_string();
    let place = Location {
        file: located.file,
        line: located.at.line,
        what: located.message,
    };
    Error::located(whole, place)
}

/// Reads a complete text file within the size limit for plans and configuration.
///
/// # Errors
/// When it is missing, not a file, too large or unreadable.
pub fn read_file(path: &Path, what: &str) -> Result<Vec<u8>> {
    let shown = path.display();
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::config(format!("there is no {what} {shown}"))
            .hint("check the path; it is relative to the current directory"),
        _ => Error::config(format!("the {what} {shown} cannot be read: {error}")),
    })?;
    if metadata.is_dir() {
        let why = format!("the {what} {shown} is a directory, not a file");
        return Err(Error::config(why).hint("name a file in it"));
    }
    plan::check_size(&shown.to_string(), metadata.len()).map_err(located)?;
    let limit = plan::MAX_FILE_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(limit).read_to_end(&mut bytes))
        .map_err(|error| Error::config(format!("the {what} {shown} cannot be read: {error}")))?;
    Ok(bytes)
}

/// The settings for the whole run.
///
/// # Errors
/// Settings that contradict each other.
pub fn run_config(sources: &Sources, setup: Vec<String>) -> Result<RunConfig> {
    let all = sources.above.clone().or(sources.below.clone());
    let settings = all.resolve(sources.in_actions);
    if settings.allow_dirty && settings.keep_going {
        let error = Error::usage("--allow-dirty and --keep-going exclude each other");
        return Err(error.hint(
            "--keep-going restores the tree after a failed task, which would destroy your changes",
        ));
    }
    let setup = setup
        .iter()
        .map(|line| in_directory(line, &sources.directory));
    Ok(RunConfig {
        mcp: Vec::new(),
        progress_ignore: glob_set(&settings.progress.ignore)?,
        settings,
        setup: setup.collect(),
    })
}

/// The paths that no task may change according to these sources. A task may override them.
///
/// # Errors
/// An invalid glob.
pub fn protected_paths(sources: &Sources) -> Result<Arc<ProtectedPaths>> {
    let all = sources.above.clone().or(sources.below.clone());
    sources.set_of(&all.resolve(sources.in_actions).protected_paths)
}

/// The settings for one task.
///
/// # Errors
/// When no usable agent is configured.
pub fn task_config(sources: &Sources, task: &Task) -> Result<TaskConfig> {
    let settings = sources.of_task(task);
    let asks = task.kind == TaskKind::Ask;
    if settings.tdd && !asks && settings.verify.is_empty() && !settings.review_only {
        let why = "uses `tdd`, but no check is configured that runs its tests";
        return Err(Error::config(format!("task {} {why}", task.id))
            .hint("name one: --verify 'COMMAND', or `verify` in plan or configuration"));
    }
    let other = |choice: &settings::RoleAgent| role_agent(settings.with_agent(choice), sources);
    let directory = task.directory.as_ref().unwrap_or(&sources.directory);
    let mut config = TaskConfig {
        agent: agent(&settings, sources)?,
        agents: Vec::new(),
        escalate: settings.escalate.iter().map(other).collect::<Result<_>>()?,
        fallback: settings.fallback.as_ref().map(other).transpose()?,
        checks: if settings.review_only || asks {
            // Nothing is changed, so there is nothing to check.
            Vec::new()
        } else {
            settings.checks(directory)
        },
        directory: directory.clone(),
        asks,
        protected_paths: sources.set_of(&settings.protected_paths)?,
        missing: None,
        settings,
    };
    config.agents = role_agents(&config, sources)?;
    Ok(config)
}

/// The settings for one task, also if an agent is missing. They are only for display.
///
/// # Errors
/// When another setting of the task is invalid.
pub fn shown_task_config(sources: &Sources, task: &Task) -> Result<TaskConfig> {
    let error = match task_config(sources, task) {
        Err(error) if error.kind == ErrorKind::Environment => error,
        config => return config,
    };
    let is_own = agent(&sources.of_task(task), sources).is_err();
    let stand_ins = Sources {
        stand_ins: true,
        ..sources.clone()
    };
    let mut config = task_config(&stand_ins, task)?;
    config.missing = Some(Arc::new(MissingAgent { error, is_own }));
    Ok(config)
}

/// The agent of every role that has a phase.
fn role_agents(config: &TaskConfig, sources: &Sources) -> Result<Vec<(Role, RoleAgent)>> {
    let rows = phases(config.phases_asked());
    let roles: BTreeSet<Role> = rows.iter().map(|row| row.role).collect();
    let of_role = |role| Ok((role, role_agent(config.settings.of_role(role), sources)?));
    roles.into_iter().map(of_role).collect()
}

fn role_agent(settings: Resolved, sources: &Sources) -> Result<RoleAgent> {
    Ok(RoleAgent {
        agent: agent(&settings, sources)?,
        model: settings.model,
        agent_args: settings.agent_args,
    })
}

fn protected_set(globs: &[impl AsRef<str>]) -> Result<ProtectedPaths> {
    ProtectedPaths::of(globs).map_err(|error| Error::config(format!("invalid glob: {error}")))
}

/// The set of paths that match one of these globs of agent configuration files, with the same rules as
/// [`protected_paths`].
///
/// # Errors
/// An invalid glob.
pub fn agent_file_set<'a>(globs: impl Iterator<Item = &'a str>) -> Result<GlobSet> {
    Ok(protected_set(&globs.collect::<Vec<_>>())?.paths())
}

fn glob_set(globs: &[impl AsRef<str>]) -> Result<GlobSet> {
    let invalid = |error| Error::config(format!("invalid glob: {error}"));
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        let glob = GlobBuilder::new(glob.as_ref())
            .literal_separator(true)
            .build();
        builder.add(glob.map_err(invalid)?);
    }
    builder.build().map_err(invalid)
}

/// Makes a plan with one task from a prompt, whose first line is the title.
///
/// # Errors
/// When the prompt is empty.
pub fn plan_of_prompt(prompt: &str) -> Result<Plan> {
    let text = prompt.trim();
    let Some(first) = text.lines().next() else {
        return Err(Error::usage("the prompt is empty").hint("describe the work to do"));
    };
    let title = crate::domain::text::cap_chars(first.trim_start_matches(['#', ' ']), 72);
    let text = if text == title { "" } else { text };
    let task = serde_json::json!({ "id": "t1", "title": title, "description": text });
    let yaml = serde_json::json!({ "title": title, "tasks": [task] });
    let bytes = yaml.to_string().into_bytes();
    plan::parse("prompt.yaml", &bytes)
        .map(|parsed| parsed.value)
        .map_err(|located| Error::usage(format!("the prompt cannot be used: {}", located.message)))
}
