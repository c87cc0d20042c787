//! The command line: types only.

pub use crate::settings::args::{ColorChoice, Common, Output, RunArgs, SettingFlags};
use clap::{Args, Parser, Subcommand, ValueEnum};
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
