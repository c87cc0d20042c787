//! Flags, action inputs, variables, task, plan and file become one configuration, in this order of
//! precedence. What leaves here is valid.

pub mod args;
pub mod inputs;
pub mod recording;

use crate::agents::builtin::{self, Builtin, NoAccess, Options, Tape};
use crate::agents::{Agent, CliAgent};
use crate::context::Context;
use crate::domain::checks::verdict::Check;
use crate::domain::outcome::NoChanges;
use crate::domain::plan::{self, Plan, Task};
use crate::domain::settings::{
    self, AgentCommits, CommitVia, IfUnverified, OnNoChanges, PullRequest, Report, Settings,
};
use crate::domain::text_error::Located;
use crate::error::{Error, Place, Result};
use args::SettingFlags;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Where the configuration file lies when no other is named, relative to the work tree.
pub const DEFAULT_FILE: &str = ".sprag/config.yaml";

/// Paths that no task may change where the configuration names none.
pub const PROTECTED_PATHS: &[&str] = &[
    ".github/**",
    "action.yml",
    "action.yaml",
    ".sprag/**",
    "**/CODEOWNERS",
    "**/AGENTS.md",
    "**/CLAUDE.md",
    "**/GEMINI.md",
    ".claude/**",
    ".codex/**",
    ".gemini/**",
    ".mcp.json",
    ".cursor/**",
    ".cursorrules",
];

/// Deadline of a run in Actions, where the runner does not tell a job's limit.
const ACTIONS_DEADLINE: Duration = Duration::from_secs(5 * 3600 + 30 * 60);

/// Every source of settings but the task.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Flags, action inputs and variables, already merged.
    pub above: Settings,
    /// Plan and configuration file, already merged.
    pub below: Settings,
    globs: Globs,
    /// The variables that say how a model is reached.
    models: Rc<HashMap<&'static str, String>>,
    /// What a relative path on the command line is relative to.
    cwd: PathBuf,
    tapes: Tapes,
}

/// Recordings that were read already: the tasks of a plan share one.
type Tapes = Rc<RefCell<HashMap<PathBuf, Arc<Tape>>>>;

/// Sets of globs that were built already: the tasks of a plan mostly share one.
type Globs = Rc<RefCell<HashMap<Option<Vec<String>>, Arc<GlobSet>>>>;

impl Sources {
    /// Sources of which `above` goes before `below`.
    pub fn new(above: Settings, below: Settings) -> Self {
        Self {
            above,
            below,
            globs: Globs::default(),
            models: Rc::default(),
            cwd: PathBuf::new(),
            tapes: Tapes::default(),
        }
    }

    /// The same where the variables of these surroundings are set. The job's token may come as an
    /// action input, too.
    pub fn within(self, context: &Context) -> Self {
        let value = |name: &str| match name {
            "GITHUB_TOKEN" => context.var(name).or_else(|| context.input("github-token")),
            _ => context.var(name),
        };
        let set = builtin::variables().filter_map(|name| Some((name, value(name)?.to_owned())));
        Self {
            models: Rc::new(set.collect()),
            cwd: context.cwd.clone(),
            ..self
        }
    }

    /// The same with more in front.
    pub fn below_of(&self, above: Settings) -> Self {
        Self {
            above: above.or(self.above.clone()),
            below: self.below.clone(),
            globs: Rc::clone(&self.globs),
            models: Rc::clone(&self.models),
            cwd: self.cwd.clone(),
            tapes: Rc::clone(&self.tapes),
        }
    }

    /// The recording whose responses are taken. Only who begins a run may name one, and not what the
    /// repository says of itself: a recording decides what the agent does.
    fn tape(&self, name: &Path) -> Result<Arc<Tape>> {
        if self.above.agent_args.is_none() {
            return Err(Error::config(
                "--replay stands in the agent_args of a plan or a configuration file",
            )
            .hint("give it on the command line: --agent builtin --agent-arg=--replay=FILE"));
        }
        let path = self.cwd.join(name);
        if let Some(known) = self.tapes.borrow().get(&path) {
            return Ok(Arc::clone(known));
        }
        let recording = recording::read(&path)?;
        let tape = Arc::new(Tape::new(name.to_path_buf(), &recording));
        self.tapes.borrow_mut().insert(path, Arc::clone(&tape));
        Ok(tape)
    }

    /// The protected paths of these globs, or of [`PROTECTED_PATHS`] where there are none.
    fn protected(&self, globs: Option<&[String]>) -> Result<Arc<GlobSet>> {
        let key = globs.map(<[String]>::to_vec);
        if let Some(known) = self.globs.borrow().get(&key) {
            return Ok(Arc::clone(known));
        }
        let built = Arc::new(match globs {
            Some(globs) => glob_set(globs)?,
            None => glob_set(PROTECTED_PATHS)?,
        });
        self.globs.borrow_mut().insert(key, Arc::clone(&built));
        Ok(built)
    }
}

/// What concerns the whole run.
#[derive(Debug, Clone)]
pub struct RunConfig {
    /// Limit of the run.
    pub deadline: Option<Duration>,
    /// Token limit.
    pub max_tokens: Option<u64>,
    /// Cost limit in US dollars.
    pub max_cost_usd: Option<f64>,
    /// Start on a dirty tree and commit nothing.
    pub allow_dirty: bool,
    /// Go on after a failed task.
    pub keep_going: bool,
    /// What a task that changed nothing counts as.
    pub no_changes: NoChanges,
    /// Changes that are no progress.
    pub progress_ignore: GlobSet,
    /// Where the run keeps what it leaves behind, when that is asked for.
    pub run_dir: Option<PathBuf>,
    /// Commands that run once before the first turn.
    pub setup: Vec<String>,
    /// What becomes of the work on GitHub.
    pub delivery: DeliveryConfig,
}

/// What becomes of a run's commits and of its result on GitHub, as far as it was said.
#[derive(Debug, Clone)]
pub struct DeliveryConfig {
    /// Whether to push; `None` leaves it to where the run is.
    pub push: Option<bool>,
    /// Whether to open a pull request; `None` leaves it to what the run was asked for by.
    pub pull_request: Option<PullRequest>,
    /// How commits reach the remote.
    pub commit_via: CommitVia,
    /// Workflow files to dispatch on the pushed branch.
    pub dispatch_workflows: Vec<String>,
    /// Where the result is reported.
    pub report: Report,
    /// Whether there is a comment that is kept up to date.
    pub status_comment: bool,
}

/// What concerns one task.
#[derive(Debug, Clone)]
pub struct TaskConfig {
    /// The agent.
    pub agent: Agent,
    /// Arguments added to the agent's own.
    pub agent_args: Vec<String>,
    /// The model.
    pub model: Option<String>,
    /// Text added to every prompt.
    pub instructions: Option<String>,
    /// The checks.
    pub checks: Vec<Check>,
    /// Attempts after the first.
    pub max_retries: u32,
    /// Nudges.
    pub nudges: u32,
    /// Identical failures in a row that end the task.
    pub identical_failures: u32,
    /// Limit of a turn.
    pub turn_timeout: Duration,
    /// Limit of silence.
    pub stall_timeout: Duration,
    /// What becomes of the agent's own commits.
    pub agent_commits: AgentCommits,
    /// Whether work without a check is taken.
    pub accept_unverified: bool,
    /// What is said when the agent changes tests.
    pub test_changes: OnNoChanges,
    /// Paths that the task may not change.
    pub protected_paths: Arc<GlobSet>,
    /// Variables that the agent may see.
    pub agent_env: Vec<String>,
    /// Variables that checks and hooks may see.
    pub verify_env: Vec<String>,
}

/// Flags over action inputs over `SPRAG_*` variables.
///
/// # Errors
/// A value that cannot be read, named by the flag, input or variable that has it.
pub fn above(context: &Context, flags: &SettingFlags) -> Result<Settings> {
    let mut inputs = Settings::default();
    let mut variables = Settings::default();
    for (key, _) in settings::NAMES {
        let input = key.replace('_', "-");
        if let Some(text) = context.input(&input) {
            set(&mut inputs, key, text, &format!("action input {input}"))?;
        }
        let variable = format!("SPRAG_{}", key.to_ascii_uppercase());
        if let Some(text) = context.var(&variable) {
            set(&mut variables, key, text, &variable)?;
        }
    }
    let mut given = flag_settings(flags)?;
    if let Some(earlier) = &flags.earlier {
        given = given.or(flag_settings(earlier)?);
    }
    Ok(given.or(inputs).or(variables))
}

fn flag_settings(flags: &SettingFlags) -> Result<Settings> {
    let mut settings = Settings::default();
    let verify = (!flags.verify.is_empty()).then(|| flags.verify.join("\n"));
    let run_dir = flags.run_dir.as_ref().map(|dir| dir.display().to_string());
    let texts = [
        ("agent", &flags.agent),
        ("agent_command", &flags.agent_command),
        ("model", &flags.model),
        ("verify", &verify),
        ("max_retries", &flags.max_retries),
        ("turn_timeout", &flags.turn_timeout),
        ("stall_timeout", &flags.stall_timeout),
        ("verify_timeout", &flags.verify_timeout),
        ("deadline", &flags.deadline),
        ("max_tokens", &flags.max_tokens),
        ("max_cost_usd", &flags.max_cost_usd),
        ("agent_commits", &flags.agent_commits),
        ("if_no_changes", &flags.if_no_changes),
        ("if_unverified", &flags.if_unverified),
        ("instructions", &flags.instructions),
        ("run_dir", &run_dir),
        ("pull_request", &flags.pull_request),
        ("commit_via", &flags.commit_via),
        ("report", &flags.report),
    ];
    for (key, text) in texts {
        let Some(text) = text else { continue };
        let flag = format!("--{}", key.replace('_', "-"));
        if text.trim().is_empty() {
            return Err(Error::usage(format!("{flag} has an empty value"))
                .hint("give it a value, or leave the flag out"));
        }
        set(&mut settings, key, text, &flag)?;
    }
    if !flags.agent_args.is_empty() {
        settings.agent_args = Some(flags.agent_args.clone());
    }
    settings.allow_dirty = flags.allow_dirty.then_some(true);
    settings.keep_going = flags.keep_going.then_some(true);
    settings.push = match (flags.push, flags.no_push) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    };
    Ok(settings)
}

fn set(settings: &mut Settings, key: &str, text: &str, place: &str) -> Result<()> {
    settings.set_from_text(key, text).map_err(|why| {
        // The place says the key already, in the spelling that the person used.
        Error::usage(match why.strip_prefix(key) {
            Some(rest) => format!("{place}{rest}"),
            None => format!("{place}: {why}"),
        })
    })
}

/// The error of a place in a plan or configuration file.
pub fn located(located: Located) -> Error {
    let whole = located.to_string();
    let place = Place {
        file: located.file,
        line: located.at.line,
        what: located.message,
    };
    Error::located(whole, place)
}

/// Reads a whole text file within the limit for plans and configuration.
///
/// # Errors
/// When it is missing, no file, too large or unreadable.
pub fn read_file(path: &Path, what: &str) -> Result<Vec<u8>> {
    let shown = path.display();
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::config(format!("there is no {what} {shown}"))
            .hint("check the path; it is relative to the current directory"),
        _ => Error::config(format!("the {what} {shown} cannot be read: {error}")),
    })?;
    if metadata.is_dir() {
        return Err(
            Error::config(format!("the {what} {shown} is a directory, not a file"))
                .hint("name a file in it"),
        );
    }
    plan::check_size(&shown.to_string(), metadata.len()).map_err(located)?;
    let limit = u64::try_from(plan::MAX_FILE_BYTES)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(limit).read_to_end(&mut bytes))
        .map_err(|error| Error::config(format!("the {what} {shown} cannot be read: {error}")))?;
    Ok(bytes)
}

/// The settings that concern the whole run.
///
/// # Errors
/// A combination that makes no sense, or a setting that this version does not have.
pub fn run_config(context: &Context, sources: &Sources, setup: Vec<String>) -> Result<RunConfig> {
    let all = sources.above.clone().or(sources.below.clone());
    refuse_unsupported(&all)?;
    let allow_dirty = all.allow_dirty.unwrap_or(false);
    let keep_going = all.keep_going.unwrap_or(false);
    if allow_dirty && keep_going {
        return Err(
            Error::usage("--allow-dirty and --keep-going exclude each other").hint(
                "going on restores the tree after a failed task, which would destroy your changes",
            ),
        );
    }
    let in_actions = context.in_actions().then_some(ACTIONS_DEADLINE);
    Ok(RunConfig {
        deadline: all.deadline.or(in_actions),
        max_tokens: all.max_tokens,
        max_cost_usd: all.max_cost_usd,
        allow_dirty,
        keep_going,
        no_changes: match all.if_no_changes {
            None | Some(OnNoChanges::Fail) => NoChanges::Fail,
            Some(OnNoChanges::Warn) => NoChanges::Warn,
            Some(OnNoChanges::Ok) => NoChanges::Ok,
        },
        progress_ignore: glob_set(&all.progress.unwrap_or_default().ignore)?,
        run_dir: all.run_dir.map(|dir| context.cwd.join(dir)),
        setup,
        delivery: DeliveryConfig {
            push: all.push,
            pull_request: all.pull_request,
            commit_via: all.commit_via.unwrap_or(CommitVia::Git),
            dispatch_workflows: all.dispatch_workflows.unwrap_or_default(),
            report: all.report.unwrap_or(Report::Auto),
            status_comment: all.status_comment.unwrap_or(true),
        },
    })
}

/// Paths that no task may change as far as these sources say; a task may say otherwise.
///
/// # Errors
/// A glob that is none.
pub fn protected_paths(sources: &Sources) -> Result<Arc<GlobSet>> {
    let all = sources.above.clone().or(sources.below.clone());
    sources.protected(all.protected_paths.as_deref())
}

/// The settings that hold for one task.
///
/// # Errors
/// An unknown agent, or no agent at all.
pub fn task_config(sources: &Sources, task: &Task) -> Result<TaskConfig> {
    let all = sources
        .above
        .clone()
        .or(task.settings.clone())
        .or(sources.below.clone());
    refuse_unsupported(&all)?;
    let protected = sources.protected(all.protected_paths.as_deref())?;
    Ok(TaskConfig {
        agent: agent(&all, sources)?,
        agent_args: all.agent_args.clone().unwrap_or_default(),
        model: all.model.clone(),
        instructions: all.instructions.clone(),
        checks: all.checks(),
        max_retries: all.max_retries.unwrap_or(settings::DEFAULT_MAX_RETRIES),
        nudges: all.nudges.unwrap_or(settings::DEFAULT_NUDGES),
        identical_failures: all
            .identical_failures
            .unwrap_or(settings::DEFAULT_IDENTICAL_FAILURES),
        turn_timeout: all.turn_timeout.unwrap_or(settings::DEFAULT_TURN_TIMEOUT),
        stall_timeout: all.stall_timeout.unwrap_or(settings::DEFAULT_STALL_TIMEOUT),
        agent_commits: all.agent_commits.unwrap_or(AgentCommits::Accept),
        accept_unverified: all.if_unverified != Some(IfUnverified::Fail),
        test_changes: all.test_changes.unwrap_or(OnNoChanges::Warn),
        protected_paths: protected,
        agent_env: all.agent_env.clone().unwrap_or_default(),
        verify_env: all.verify_env.clone().unwrap_or_default(),
    })
}

/// The agent that the settings choose; without a choice, the built-in one where a model can be
/// reached.
fn agent(all: &Settings, sources: &Sources) -> Result<Agent> {
    const REMEDY: &str =
        "--agent codex, --agent claude, --agent builtin, or --agent-command 'COMMAND'";
    match (all.agent.as_deref(), all.agent_command.as_deref()) {
        (None | Some("command" | "auto"), Some(command)) => Ok(Agent::Cli(CliAgent::Command {
            command: command.to_owned(),
        })),
        (Some("codex"), _) => Ok(Agent::Cli(CliAgent::Codex)),
        (Some("claude"), _) => Ok(Agent::Cli(CliAgent::Claude)),
        (Some("builtin"), _) => built_in(all, sources)?.map_err(no_access),
        (Some("command"), None) => Err(Error::config("agent `command` needs a command")
            .hint("give one with --agent-command, or agent_command in plan or configuration")),
        (None | Some("auto"), None) => built_in(all, sources)?.map_err(|missing| {
            let none = Error::environment("no agent is configured").hint(format!(
                "name one: {REMEDY}; or set `agent` in {DEFAULT_FILE}"
            ));
            let mut hints = missing.hints.into_iter();
            let first = hints.next().unwrap_or_default();
            let none = none.hint(format!("or let the built-in agent work: {first}"));
            hints.fold(none, Error::hint)
        }),
        (Some(known @ ("gemini" | "opencode" | "acp")), _) => Err(Error::config(format!(
            "agent `{known}` is not part of this version"
        ))
        .hint(format!("use {REMEDY}"))),
        (Some(other), _) => {
            let known = ["codex", "claude", "builtin", "command"];
            let nearest = crate::domain::suggest::did_you_mean(other, known);
            Err(Error::config(format!("unknown agent `{other}`{nearest}"))
                .hint(format!("use {REMEDY}")))
        }
    }
}

/// The built-in agent, or why its model cannot be reached.
fn built_in(all: &Settings, sources: &Sources) -> Result<std::result::Result<Agent, NoAccess>> {
    let args = all.agent_args.as_deref().unwrap_or_default();
    let read = Options::read(args).map_err(Error::config);
    if let Ok(options) = &read
        && let Some(name) = &options.replay
    {
        let source = builtin::Source::Recording(sources.tape(name)?);
        let options = options.clone();
        return Ok(Ok(Agent::Builtin(Box::new(Builtin { source, options }))));
    }
    let var = |name: &str| sources.models.get(name).cloned();
    let access = match builtin::choose(all.model.as_deref(), &var) {
        Ok(access) => access,
        Err(missing) => return Ok(Err(missing)),
    };
    let source = builtin::Source::Api(access);
    let options = read?;
    Ok(Ok(Agent::Builtin(Box::new(Builtin { source, options }))))
}

fn no_access(missing: NoAccess) -> Error {
    let error = Error::environment(missing.message);
    missing.hints.into_iter().fold(error, Error::hint)
}

/// Settings that are read, so that a plan can carry them, and that this version cannot honour.
fn refuse_unsupported(all: &Settings) -> Result<()> {
    let asked = [
        ("tdd", all.tdd == Some(true)),
        ("review", all.review == Some(true)),
        ("roles", all.roles.is_some()),
        ("baseline", all.baseline == Some(true)),
        ("flaky_reruns", all.flaky_reruns.is_some_and(|n| n > 0)),
        (
            "sandbox: required",
            all.sandbox == Some(settings::Sandbox::Required),
        ),
    ];
    match asked.iter().find(|(_, asked)| *asked) {
        Some((name, _)) => Err(
            Error::config(format!("`{name}` is not part of this version"))
                .hint("leave it out; CHANGELOG.md says what each version can do"),
        ),
        None => Ok(()),
    }
}

fn glob_set(globs: &[impl AsRef<str>]) -> Result<GlobSet> {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        let glob = GlobBuilder::new(glob.as_ref())
            .literal_separator(true)
            .build()
            .map_err(|error| Error::config(format!("a glob cannot be read: {error}")))?;
        builder.add(glob);
    }
    builder
        .build()
        .map_err(|error| Error::config(format!("the globs cannot be used: {error}")))
}

/// A plan of one task from a prompt: the first line is its title.
///
/// # Errors
/// When the prompt is empty.
pub fn plan_of_prompt(prompt: &str) -> Result<Plan> {
    let text = prompt.trim();
    let Some(first) = text.lines().next() else {
        return Err(Error::usage("the prompt is empty").hint("say what is to be done"));
    };
    let title = crate::domain::text::cap_chars(first.trim_start_matches(['#', ' ']), 72);
    let whole = text == title;
    let yaml = serde_json::json!({
        "title": title,
        "tasks": [{
            "id": "t1",
            "title": title,
            "description": if whole { "" } else { text },
        }],
    });
    let bytes = yaml.to_string().into_bytes();
    plan::parse("prompt.yaml", &bytes)
        .map(|parsed| parsed.value)
        .map_err(|located| Error::usage(format!("the prompt cannot be used: {}", located.message)))
}
