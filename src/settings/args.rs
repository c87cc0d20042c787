//! What a run can be told on the command line: types only.

use clap::{ArgAction, Args, ValueEnum};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

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
