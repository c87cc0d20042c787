//! The arguments of a run on the command line. This module contains only types.

pub use super::flags::{DEMO, FlagsOf, INTEGRATE, PUBLISH, SettingFlags};
use clap::{ArgAction, Args};
use std::path::PathBuf;

/// `sprag run`.
#[derive(Debug, Clone, Args, Default)]
pub struct RunArgs {
    /// One task, as text: the same as --prompt. With --resume: the id of the run
    #[arg(value_name = "PROMPT", conflicts_with = "prompt")]
    pub words: Option<String>,
    /// Plan to run: YAML, or Markdown with front matter
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// One task, as text
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// One task, as text in a file; - for standard input
    #[arg(long, value_name = "FILE|-")]
    pub prompt_file: Option<PathBuf>,
    /// Issue to work on: its checklist, or otherwise its text as one task
    #[arg(long, value_name = "N")]
    pub issue: Option<u64>,
    /// Directory of plans; runs the next one that is ready
    #[arg(long, value_name = "DIR")]
    pub queue: Option<PathBuf>,
    /// Do the work that the GitHub event requests; the default in Actions
    #[arg(long)]
    pub event: bool,
    /// Id of a task to run, instead of all tasks; may be repeated
    #[arg(long = "task", value_name = "ID")]
    pub tasks: Vec<String>,
    /// Whether the prompt is a question, as in `sprag ask`.
    #[arg(skip)]
    pub asks: bool,
    /// The runs and branches of other jobs that `sprag integrate` combines.
    #[arg(skip)]
    pub shards: Vec<String>,
    /// Resume the newest unfinished run, or the one in --run-dir
    #[arg(long)]
    pub resume: bool,
    /// With --resume: resume the unfinished work kept on GitHub, on any machine
    #[arg(long, requires = "resume")]
    pub from_remote: bool,
    /// With --resume: the answer to the question with which a task ended
    #[arg(long, value_name = "TEXT", requires = "resume")]
    pub answer: Option<String>,
    /// Print the resolved plan, prompts and checks; run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Where to work.
    #[command(flatten)]
    pub common: Common,
    /// How much to print.
    #[command(flatten)]
    pub output: Output,
    /// What else can be set.
    #[command(flatten)]
    pub settings: SettingFlags,
}

/// Where to work and which configuration to take.
#[derive(Debug, Clone, Args, Default)]
pub struct Common {
    /// Configuration file to use instead of .sprag/config.yaml
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// How much to print.
#[derive(Debug, Clone, Copy, Args, Default)]
pub struct Output {
    /// Also print the agent's messages and actions; -vv for everything
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
    /// Print only the essential lines
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
}
