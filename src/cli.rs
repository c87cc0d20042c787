//! The command line: types only.

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Runs a coding agent task by task, decides from the repository whether anything happened,
/// verifies with the project's own checks, and makes every commit itself.
#[derive(Debug, Parser)]
#[command(
    name = "sprag",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Work off a plan: the main job
    Run(Box<RunArgs>),
    /// Show the whole main job on a throw-away repository, without key or network
    Demo(DemoArgs),
    /// Validate configuration and plan and print the resolved result
    Check(CheckArgs),
    /// Write a configuration, an example plan and a workflow; never overwrites
    Init(InitArgs),
    /// Say whether a run could work here, and what to do where not; writes nothing
    Doctor(Box<DoctorArgs>),
    /// Push and report what a job did that could not write: the privileged half of two jobs
    Publish(PublishArgs),
    /// Render a finished run again
    Report(ReportArgs),
    /// Make the decisions of a recorded session once more and compare them; nothing is run or asked
    Replay(ReplayArgs),
    /// Say what a final message would be taken for if nothing had changed, and why
    Assess(AssessArgs),
    /// Print a JSON Schema
    Schema(SchemaArgs),
    /// Print shell completions
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

impl Command {
    /// The directory that `-C` names.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::Run(args) => args.common.directory.as_deref(),
            Self::Check(args) => args.common.directory.as_deref(),
            Self::Doctor(args) => args.common.directory.as_deref(),
            Self::Publish(args) => args.common.directory.as_deref(),
            Self::Init(args) => args.directory.as_deref(),
            _ => None,
        }
    }
}

/// `sprag run`.
#[derive(Debug, Clone, Args, Default)]
pub struct RunArgs {
    /// The plan: YAML, or Markdown with front matter
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// One task, as text
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// One task, as text in a file; - for standard input
    #[arg(long, value_name = "FILE|-")]
    pub prompt_file: Option<PathBuf>,
    /// An issue as the plan: its checklist, or else its text as one task
    #[arg(long, value_name = "N")]
    pub issue: Option<u64>,
    /// The next ready plan of this directory
    #[arg(long, value_name = "DIR")]
    pub queue: Option<PathBuf>,
    /// What the GitHub event asks for: the default inside Actions
    #[arg(long)]
    pub event: bool,
    /// Work on these tasks only
    #[arg(long = "task", value_name = "ID")]
    pub tasks: Vec<String>,
    /// Take up the newest unfinished run, or the one in --run-dir
    #[arg(long)]
    pub resume: bool,
    /// Print the resolved plan, prompts and checks; run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write every session of the built-in agent to a new file, for `sprag replay`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Where and how.
    #[command(flatten)]
    pub common: Common,
    /// What else can be set.
    #[command(flatten)]
    pub settings: SettingFlags,
    /// How much to say.
    #[command(flatten)]
    pub output: Output,
}

/// Where to work and which configuration to take.
#[derive(Debug, Clone, Args, Default)]
pub struct Common {
    /// Work in this directory; other paths are relative to it
    #[arg(short = 'C', value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Configuration file instead of .sprag/config.yaml
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Flags that override a setting of the same name. They are texts here: they are read by the same
/// code as the files, so that a wrong value has one message wherever it stands.
#[derive(Debug, Clone, Args, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SettingFlags {
    /// Where a run is taken up again, those that it was begun with: they hold where none of these
    /// says otherwise.
    #[arg(skip)]
    #[serde(skip)]
    pub earlier: Option<Box<Self>>,
    /// Agent: codex, claude or command
    #[arg(long, value_name = "NAME", help_heading = "Settings")]
    pub agent: Option<String>,
    /// Command line of the agent, run by sh -c; alone it means --agent command
    #[arg(long, value_name = "CMD", help_heading = "Settings")]
    pub agent_command: Option<String>,
    /// Argument added to the agent's own; may be repeated
    #[arg(
        long = "agent-arg",
        value_name = "ARG",
        help_heading = "Settings",
        allow_hyphen_values = true
    )]
    pub agent_args: Vec<String>,
    /// Model that the agent is told to use
    #[arg(long, value_name = "M", help_heading = "Settings")]
    pub model: Option<String>,
    /// Check that decides whether a tree is good; may be repeated
    #[arg(long, value_name = "CMD", help_heading = "Settings")]
    pub verify: Vec<String>,
    /// Attempts after the first (0-10)
    #[arg(
        long,
        value_name = "N",
        help_heading = "Settings",
        allow_hyphen_values = true
    )]
    pub max_retries: Option<String>,
    /// Limit of one turn (90s, 10m, 1h30m)
    #[arg(long, value_name = "D", help_heading = "Settings")]
    pub turn_timeout: Option<String>,
    /// Limit of silence of the agent
    #[arg(long, value_name = "D", help_heading = "Settings")]
    pub stall_timeout: Option<String>,
    /// Limit of one run of a check
    #[arg(long, value_name = "D", help_heading = "Settings")]
    pub verify_timeout: Option<String>,
    /// Limit of the whole run
    #[arg(long, value_name = "D", help_heading = "Settings")]
    pub deadline: Option<String>,
    /// Token limit of the run
    #[arg(long, value_name = "N", help_heading = "Settings")]
    pub max_tokens: Option<String>,
    /// Cost limit of the run in US dollars
    #[arg(long, value_name = "X", help_heading = "Settings")]
    pub max_cost_usd: Option<String>,
    /// Commits that the agent makes itself: accept, squash or reject
    #[arg(long, value_name = "POLICY", help_heading = "Settings")]
    pub agent_commits: Option<String>,
    /// A task that changed nothing: fail, warn or ok
    #[arg(long, value_name = "POLICY", help_heading = "Settings")]
    pub if_no_changes: Option<String>,
    /// A task without a check: accept or fail
    #[arg(long, value_name = "POLICY", help_heading = "Settings")]
    pub if_unverified: Option<String>,
    /// Text added to every prompt
    #[arg(long, value_name = "TEXT", help_heading = "Settings")]
    pub instructions: Option<String>,
    /// Start on a dirty tree; then nothing is committed
    #[arg(long, help_heading = "Settings")]
    pub allow_dirty: bool,
    /// Go on with tasks that do not depend on a failed one
    #[arg(long, help_heading = "Settings")]
    pub keep_going: bool,
    /// Directory for what the run leaves behind
    #[arg(long, value_name = "DIR", help_heading = "Settings")]
    pub run_dir: Option<PathBuf>,
    /// Push what was committed
    #[arg(long, overrides_with = "no_push", help_heading = "Settings")]
    pub push: bool,
    /// Push nothing
    #[arg(long, overrides_with = "push", help_heading = "Settings")]
    pub no_push: bool,
    /// Pull request for what was pushed: none, draft or ready
    #[arg(long, value_name = "KIND", help_heading = "Settings")]
    pub pull_request: Option<String>,
    /// How commits reach the remote: git, or api (signed by GitHub)
    #[arg(long, value_name = "WAY", help_heading = "Settings")]
    pub commit_via: Option<String>,
    /// Where the result is reported: auto, github or none
    #[arg(long, value_name = "WHERE", help_heading = "Settings")]
    pub report: Option<String>,
}

/// How much to say, and where.
#[derive(Debug, Clone, Args, Default)]
pub struct Output {
    /// Write events as JSON lines to a file, or - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub events: Option<PathBuf>,
    /// Colours
    #[arg(long, value_enum, value_name = "WHEN")]
    pub color: Option<ColorChoice>,
    /// Say more; twice for everything
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
    /// Say only what matters
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// In a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// `sprag demo`.
#[derive(Debug, Args, Default)]
pub struct DemoArgs {
    /// Keep the demo's repository and run here instead of in a new temporary directory
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// How much to say.
    #[command(flatten)]
    pub output: Output,
}

/// `sprag check`.
#[derive(Debug, Args, Default)]
pub struct CheckArgs {
    /// The plan; without one only the configuration is checked
    #[arg(value_name = "PLAN")]
    pub plan: Option<PathBuf>,
    /// Where and how.
    #[command(flatten)]
    pub common: Common,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `sprag doctor`.
#[derive(Debug, Args, Default)]
pub struct DoctorArgs {
    /// Where and how.
    #[command(flatten)]
    pub common: Common,
    /// What a run would be given.
    #[command(flatten)]
    pub settings: SettingFlags,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Colours
    #[arg(long, value_enum, value_name = "WHEN")]
    pub color: Option<ColorChoice>,
}

/// `sprag init`.
#[derive(Debug, Args, Default)]
pub struct InitArgs {
    /// Work in this directory; other paths are relative to it
    #[arg(short = 'C', value_name = "DIR")]
    pub directory: Option<PathBuf>,
}

/// `sprag publish`.
#[derive(Debug, Args, Default)]
pub struct PublishArgs {
    /// The directory with the run's summary.json and work.bundle
    #[arg(value_name = "RUN_DIR")]
    pub run_dir: PathBuf,
    /// The plan of the run, where it was a file: the states of its tasks may change
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// The issue of the run, where it was begun with --issue
    #[arg(long, value_name = "N", conflicts_with = "queue")]
    pub issue: Option<u64>,
    /// The queue of the run, where it was begun with --queue
    #[arg(long, value_name = "DIR", conflicts_with = "plan")]
    pub queue: Option<PathBuf>,
    /// Where and how.
    #[command(flatten)]
    pub common: Common,
    /// Pull request for what was pushed: none, draft or ready
    #[arg(long, value_name = "KIND")]
    pub pull_request: Option<String>,
    /// Where the result is reported: github or none
    #[arg(long, value_name = "WHERE")]
    pub report: Option<String>,
}

/// `sprag report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The run's directory
    #[arg(value_name = "RUN_DIR")]
    pub run_dir: PathBuf,
    /// As what
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,
}

/// As what a run is rendered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Markdown.
    #[default]
    Md,
    /// One page for a browser, with prompts, diffs and logs.
    Html,
    /// The summary as JSON.
    Json,
}

/// `sprag replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// What sprag run --record made, one turns/NN-builtin.jsonl, or a run's directory with these
    #[arg(value_name = "TRAJECTORY")]
    pub trajectory: PathBuf,
    /// As what
    #[arg(long, value_enum, default_value_t)]
    pub format: ReplayFormat,
}

/// As what a replay is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ReplayFormat {
    /// An account for people.
    #[default]
    Text,
    /// JSON.
    Json,
}

/// `sprag assess`.
#[derive(Debug, Args)]
pub struct AssessArgs {
    /// The message; - for standard input
    #[arg(value_name = "FILE|-", default_value = "-")]
    pub file: PathBuf,
    /// Read {"id","text"} lines and print {"id","assessment","indicators"} lines
    #[arg(long)]
    pub jsonl: bool,
}

/// `sprag schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Which one
    #[arg(value_enum)]
    pub what: SchemaName,
}

/// The schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaName {
    /// The plan file.
    Plan,
    /// The configuration file.
    Config,
    /// One line of the events.
    Event,
    /// summary.json.
    Summary,
    /// One line of a recorded session.
    Trajectory,
}
