//! The types of the command line.

pub use crate::settings::args::{Common, FlagsOf, Output, RunArgs, SettingFlags};

use crate::report::Format;
use crate::settings::args::{DEMO, INTEGRATE, PUBLISH};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Runs a coding agent task by task, decides from the repository whether anything happened,
/// verifies with the project's own checks, and makes every commit itself.
#[derive(Debug, Parser)]
#[command(name = "sprag", version = version(), max_term_width = 100)]
pub struct Cli {
    /// Directory to work in; other paths are relative to it
    #[arg(short = 'C', long, value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The version, with the commit and its date if the build was given them.
fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let commit = option_env!("SPRAG_COMMIT").zip(option_env!("SPRAG_COMMIT_DATE"));
    commit.map_or(version.to_owned(), |(commit, date)| {
        format!("{version} ({commit} {date})")
    })
}

const RUN_EXAMPLES: &str = "\
Examples:
  sprag run 'fix the flaky test' --verify 'cargo test'
  sprag run --plan plan.yaml --keep-going --max-retries 5
  sprag run --plan plan.yaml --dry-run
  sprag run --issue 12 --pull-request draft
  sprag run --resume";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a plan or a prompt, task by task
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Have the agent answer a question about the repository; changes nothing
    Ask(Box<AskArgs>),
    /// Draft a plan with the agent, check it and write it to a new file; commits nothing without --pull-request
    Plan(Box<PlanArgs>),
    /// Show a complete run in a temporary repository, without a key or a network
    Demo(DemoArgs),
    /// Check the configuration and a plan, and print the result
    Check(CheckArgs),
    /// Find the project's checks; write a configuration, an example plan and a workflow without overwriting files
    Init(InitArgs),
    /// List the runs of this repository, newest first, with the ids for other commands
    Runs(RunsArgs),
    /// Report the outcomes of Sprag's work in a period: tasks verified, merged and reverted, retries, cost
    Outcomes(OutcomesArgs),
    /// Check whether a run can work here, and how to fix what is missing; writes nothing
    Doctor(Box<DoctorArgs>),
    /// Push and report the work of a job without write access: the second of two jobs
    Publish(PublishArgs),
    /// Print the rows of a job matrix for the unfinished tasks of a plan, grouped by dependencies
    Matrix(MatrixArgs),
    /// Combine the work of several jobs on one plan: in plan order, verified after each
    Integrate(Box<IntegrateArgs>),
    /// Render a finished run again
    Report(ReportArgs),
    /// Classify a final message as if nothing had changed, and say why
    Assess(AssessArgs),
    /// Print a JSON Schema
    Schema(SchemaArgs),
    /// Print shell completions
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write the man pages of all commands to a directory
    Man {
        /// The directory, which exists.
        #[arg(value_name = "DIR")]
        to: PathBuf,
    },
}

/// `sprag demo`.
#[derive(Debug, Args, Default)]
pub struct DemoArgs {
    /// New directory for the demo's repository and run, which is kept, instead of a temporary one
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// How much to print.
    #[command(flatten)]
    pub output: Output,
    /// What else can be set.
    #[command(flatten)]
    pub settings: FlagsOf<DEMO>,
}

/// `sprag ask`.
#[derive(Debug, Clone, Args, Default)]
pub struct AskArgs {
    /// The question
    #[arg(value_name = "QUESTION")]
    pub question: String,
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

/// `sprag plan`.
#[derive(Debug, Clone, Args, Default)]
pub struct PlanArgs {
    /// Subject of the plan: the same as --prompt
    #[arg(value_name = "PROMPT", conflicts_with = "prompt")]
    pub words: Option<String>,
    /// Subject of the plan
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// Issue that the plan is about
    #[arg(long, value_name = "N")]
    pub issue: Option<u64>,
    /// New file for the plan, instead of one in .sprag/plans that is named after it
    #[arg(long = "output", value_name = "FILE")]
    pub output_file: Option<PathBuf>,
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

/// `sprag check`.
#[derive(Debug, Args, Default)]
pub struct CheckArgs {
    /// Plan to check; without one only the configuration is checked
    #[arg(value_name = "PLAN")]
    pub plan: Option<PathBuf>,
    /// The same as PLAN, as in `sprag run`
    #[arg(long = "plan", value_name = "FILE", conflicts_with = "plan")]
    pub plan_flag: Option<PathBuf>,
    /// Where to work.
    #[command(flatten)]
    pub common: Common,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `sprag doctor`.
#[derive(Debug, Args, Default)]
pub struct DoctorArgs {
    /// Where to work.
    #[command(flatten)]
    pub common: Common,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Run the setup commands and the checks once, in the sandbox, and print the results
    #[arg(long, conflicts_with = "json")]
    pub r#try: bool,
    /// What a run would be given.
    #[command(flatten)]
    pub settings: SettingFlags,
}

/// `sprag init`.
#[derive(Debug, Args, Default)]
pub struct InitArgs {
    /// Run each command of the configuration once, in the sandbox, and print the results
    #[arg(long)]
    pub r#try: bool,
    /// Write a workflow whose agent works in a job without write access, as public repositories need
    #[arg(long, visible_alias = "public")]
    pub two_jobs: bool,
}

/// `sprag runs`.
#[derive(Debug, Args, Default)]
pub struct RunsArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `sprag outcomes`.
#[derive(Debug, Args, Default)]
pub struct OutcomesArgs {
    /// Beginning of the period: a day such as 2026-01-31, or how long ago, such as 7d
    #[arg(long, value_name = "TIME", default_value = "30d")]
    pub since: String,
    /// Branch on which work counts as merged; by default the remote's default branch
    #[arg(long, value_name = "REF")]
    pub branch: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
}

/// `sprag publish`.
#[derive(Debug, Args, Default)]
pub struct PublishArgs {
    /// Directory with the run's summary.json and work.bundle, or the run's id
    #[arg(value_name = "RUN_DIR")]
    pub run_dir: PathBuf,
    /// Plan file of the run: the states of its tasks may change
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Issue of the run, if it was started with --issue
    #[arg(long, value_name = "N", conflicts_with = "queue")]
    pub issue: Option<u64>,
    /// Queue of the run, if it was started with --queue
    #[arg(long, value_name = "DIR", conflicts_with = "plan")]
    pub queue: Option<PathBuf>,
    /// Where to work.
    #[command(flatten)]
    pub common: Common,
    /// What else can be set.
    #[command(flatten)]
    pub settings: FlagsOf<PUBLISH>,
}

/// `sprag matrix`.
#[derive(Debug, Args, Default)]
pub struct MatrixArgs {
    /// Plan to split
    #[arg(value_name = "PLAN", required_unless_present = "plan")]
    pub path: Option<PathBuf>,
    /// The same as PLAN
    #[arg(long, value_name = "FILE", conflicts_with = "path")]
    pub plan: Option<PathBuf>,
    /// Maximum number of rows; by default one for each group of tasks that depend on each other
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_ROWS))]
    pub shards: Option<u16>,
}

/// The most jobs that GitHub starts for one matrix.
const MAX_ROWS: i64 = crate::domain::plan::MAX_ROWS as i64;

/// `sprag integrate`.
#[derive(Debug, Args, Default)]
pub struct IntegrateArgs {
    /// Directory or id of a run with some tasks of the plan, a directory of such runs, or a branch
    #[arg(value_name = "RUN_DIR|BRANCH", required = true)]
    pub shards: Vec<String>,
    /// Plan that the jobs worked on
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Where to work.
    #[command(flatten)]
    pub common: Common,
    /// How much to print.
    #[command(flatten)]
    pub output: Output,
    /// What else can be set.
    #[command(flatten)]
    pub settings: FlagsOf<INTEGRATE>,
}

/// `sprag report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Id of the run from `sprag runs`, or its directory; by default the newest finished run
    #[arg(value_name = "RUN")]
    pub run_dir: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `sprag assess`.
#[derive(Debug, Args)]
pub struct AssessArgs {
    /// Message to classify; - for standard input
    #[arg(value_name = "FILE|-", default_value = "-")]
    pub file: PathBuf,
    /// Read {"id","text"} lines and print {"id","assessment","indicators"} lines
    #[arg(long)]
    pub jsonl: bool,
}

/// `sprag schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// The schema to print
    #[arg(value_enum)]
    pub what: SchemaName,
}

/// The shells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// Bash.
    Bash,
    /// Elvish.
    Elvish,
    /// Fish.
    Fish,
    /// Nushell.
    Nushell,
    /// `PowerShell`.
    #[value(name = "powershell")]
    PowerShell,
    /// Zsh.
    Zsh,
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
}

/// What the user most likely meant, if the command line has a prompt without quotes or lacks the command.
pub fn tip(error: &clap::Error) -> Option<&'static str> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let usage = error.get(ContextKind::Usage).map(ToString::to_string);
    // After the heading and the program's name, which may be another one.
    let command = usage
        .as_deref()
        .and_then(|usage| usage.split_whitespace().nth(2))
        .filter(|word| !word.starts_with(['[', '<', '-']));
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let argument = text(ContextKind::InvalidArg)?;
            match (argument.starts_with('-'), command) {
                (false, Some("run")) => {
                    Some("put the prompt in quotes: sprag run 'fix the flaky test'")
                }
                (true, None) if error.get(ContextKind::SuggestedArg).is_none() => {
                    Some("name a command first: sprag run --plan plan.yaml")
                }
                _ => None,
            }
        }
        ErrorKind::InvalidSubcommand => text(ContextKind::InvalidSubcommand)?
            .contains(' ')
            .then_some("a prompt is given to run: sprag run 'fix the flaky test'"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Cli, tip};
    use clap::Parser as _;

    #[test]
    fn a_prompt_without_quotes_or_without_its_command_is_recognised() {
        let of = |line: &[&str]| {
            let error = Cli::try_parse_from(["sprag"].iter().chain(line)).unwrap_err();
            tip(&error).unwrap_or_default()
        };
        assert!(of(&["run", "fix", "the", "test"]).starts_with("put the prompt in quotes"));
        assert!(of(&["fix the test"]).contains("sprag run"));
        assert!(of(&["--plan", "p.yaml"]).starts_with("name a command"));
        assert_eq!(of(&["run", "--agnet", "x"]), "");
        assert_eq!(of(&["run", "--setup", "x"]), "");
        assert_eq!(of(&["check", "--setup", "x"]), "");
        assert_eq!(of(&["ruun"]), "");
    }
}
