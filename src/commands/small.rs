//! The commands that only look and print.

use crate::agents::builtin::Source;
use crate::agents::{Agent, CliAgent};
use crate::cli::{
    AssessArgs, CheckArgs, Cli, ReportArgs, ReportFormat, SchemaArgs, SchemaName, SettingFlags,
};
use crate::context::Context;
use crate::domain::assess::message::{MessageClass, read_message};
use crate::domain::builtin::trajectory;
use crate::domain::duration;
use crate::domain::plan::{self, Task};
use crate::domain::settings::Settings;
use crate::domain::summary::RunSummary;
use crate::error::{Error, ErrorKind, Result};
use crate::git::path_within;
use crate::report::{self, wire};
use crate::run::layout::RunFile;
use crate::run::prepare::{Prepared, config_file, read_plan};
use crate::run::repository::repository;
use crate::run::steps::first_prompt;
use crate::settings::{self, TaskConfig};
use anyhow::Context as _;
use clap::CommandFactory as _;
use serde::Deserialize;
use serde_json::json;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, Read as _, Write, stdin, stdout};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest final message that `assess` reads, in bytes.
const LONGEST_MESSAGE: u64 = 64 << 20;

/// The program of an agent that is one, and the command that installs it.
pub(crate) fn program_of(agent: &Agent) -> Option<(&'static str, &'static str)> {
    match agent {
        Agent::Cli(CliAgent::Codex) => Some(("codex", "npm install --global @openai/codex")),
        Agent::Cli(CliAgent::Claude) => {
            Some(("claude", "npm install --global @anthropic-ai/claude-code"))
        }
        Agent::Cli(CliAgent::Command { .. }) | Agent::Builtin(_) => None,
    }
}

/// The first program of this name on `PATH`.
pub(crate) fn find_program(context: &Context, program: &str) -> Option<PathBuf> {
    let path = context.var_os("PATH").unwrap_or(OsStr::new(""));
    let mut places = std::env::split_paths(path).map(|dir| dir.join(program));
    places.find(|place| is_executable(place))
}

/// Fails where an agent's program is not to be found, before anything is begun.
///
/// # Errors
/// When one is missing, naming how to get it.
pub fn require_agents(context: &Context, prepared: &Prepared) -> Result<()> {
    for (_, config) in &prepared.tasks {
        let Some((program, remedy)) = program_of(&config.agent) else {
            continue;
        };
        if find_program(context, program).is_none() {
            return Err(
                Error::environment(format!("the agent {program} was not found on PATH"))
                    .hint(format!("install it: {remedy}"))
                    .hint("or use another agent: --agent NAME or --agent-command 'COMMAND'"),
            );
        }
    }
    Ok(())
}

pub(crate) fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// `sprag run --dry-run`: what would be done, as text.
///
/// # Errors
/// When it cannot be printed.
pub fn dry_run(_context: &Context, prepared: &Prepared) -> Result<u8> {
    let plan = &prepared.book.plan;
    let mut text = format!("plan: {}\n", plan.title);
    for warning in &prepared.warnings {
        text += &format!("warning: {warning}\n");
    }
    for command in &prepared.run.setup {
        text += &format!("setup: {command}\n");
    }
    if prepared.tasks.is_empty() {
        text += "nothing to do: every selected task is done\n";
    }
    for (task, config) in &prepared.tasks {
        text += &format!("\ntask {}: {}\n", task.id, task.title);
        text += &described(config, None);
        let whole = first_prompt(&prepared.book, task, config.instructions.as_deref());
        text += "  prompt:\n";
        for line in whole.lines() {
            text += &format!("    {line}\n");
        }
    }
    print(&text)?;
    Ok(0)
}

/// A task's settings, one a line. `no_agent` says what to do where no agent is configured.
fn described(config: &TaskConfig, no_agent: Option<&Error>) -> String {
    let mut text = match no_agent {
        Some(error) => format!("  agent: none ({})", error.hints.join("; ")),
        None => format!("  agent: {}", config.agent.name()),
    };
    match (&config.agent, no_agent) {
        (Agent::Cli(CliAgent::Command { command }), None) => text += &format!(" ({command})"),
        (Agent::Builtin(builtin), None) => match &builtin.source {
            Source::Api(access) => {
                text += &format!(
                    " ({} by {} at {})",
                    access.model, access.provider, access.base
                );
            }
            Source::Recording(tape) => text += &format!(" ({})", tape.describe()),
        },
        _ => {}
    }
    if let Some(model) = &config.model {
        text += &format!(", model {model}");
    }
    text += &format!(
        "\n  retries: {}, nudges: {}\n",
        config.max_retries, config.nudges
    );
    match config.checks.is_empty() {
        true => text += "  checks: none (the task will end unverified; add `verify`)\n",
        false => text += "  checks:\n",
    }
    for check in crate::domain::checks::verdict::ordered(&config.checks) {
        let limit = duration::format(Duration::from_millis(check.timeout_ms));
        text += &format!(
            "    {} ({}, at most {limit}): {}\n",
            check.name,
            check.kind.as_str(),
            check.run
        );
    }
    text
}

/// `sprag check`.
///
/// # Errors
/// What is wrong with configuration or plan.
pub fn check(context: &Context, args: &CheckArgs) -> Result<u8> {
    let real = repository(context)?;
    let mut warnings = Vec::new();
    let file = config_file(context, &args.common, real.work_tree(), None, &mut warnings)?;
    let above = settings::above(context, &SettingFlags::default())?;
    let Some(path) = &args.plan else {
        let sources = crate::run::prepare::without_plan(file.settings, above).within(context);
        return check_configuration(context, &sources, file.setup, &warnings);
    };
    let path = context.cwd.join(path);
    let name = path_within(&path, real.work_tree());
    let (plan, _) = read_plan(&path, &name, &mut warnings)?;
    let sources =
        settings::Sources::new(above, plan.settings.clone().or(file.settings)).within(context);
    settings::run_config(context, &sources, Vec::new())?;
    let order = plan::selection(&plan, &[]).map_err(|error| Error::usage(error.to_string()))?;
    let mut tasks = Vec::new();
    for task in order {
        tasks.push((task, without_agent(&sources, task)?));
    }
    if args.json {
        return check_json(&plan, &tasks, &warnings);
    }
    let mut text: String = warnings
        .iter()
        .map(|warning| format!("warning: {warning}\n"))
        .collect();
    text += &format!(
        "{name} is valid: {} ({})\n",
        plan.title,
        report::text::count(plan.tasks.len() as u64, "task")
    );
    for (task, (config, no_agent)) in &tasks {
        text += &format!(
            "\ntask {} ({}): {}\n",
            task.id,
            task.status.word(),
            task.title
        );
        text += &described(config, no_agent.as_ref());
    }
    print(&text)?;
    Ok(0)
}

/// A task's settings, and why there is no agent if there is none: a plan is no worse for it.
pub(crate) fn without_agent(
    sources: &settings::Sources,
    task: &Task,
) -> Result<(TaskConfig, Option<Error>)> {
    match settings::task_config(sources, task) {
        Err(missing) if missing.kind == ErrorKind::Environment => {
            let stand_in = Settings {
                agent: Some("codex".to_owned()),
                ..Settings::default()
            };
            let sources = sources.below_of(stand_in);
            Ok((settings::task_config(&sources, task)?, Some(missing)))
        }
        config => Ok((config?, None)),
    }
}

/// What is in force for a task that overrides nothing.
fn check_configuration(
    context: &Context,
    sources: &settings::Sources,
    setup: Vec<String>,
    warnings: &[String],
) -> Result<u8> {
    let run = settings::run_config(context, sources, setup)?;
    let plan = settings::plan_of_prompt("any")?;
    let mut text: String = warnings
        .iter()
        .map(|warning| format!("warning: {warning}\n"))
        .collect();
    text += "the configuration is valid\n";
    for command in &run.setup {
        text += &format!("  setup: {command}\n");
    }
    for task in &plan.tasks {
        let (config, no_agent) = without_agent(sources, task)?;
        text += &described(&config, no_agent.as_ref());
    }
    print(&text)?;
    Ok(0)
}

fn check_json(
    plan: &plan::Plan,
    tasks: &[(&Task, (TaskConfig, Option<Error>))],
    warnings: &[String],
) -> Result<u8> {
    let tasks: Vec<_> = tasks
        .iter()
        .map(|(task, (config, no_agent))| {
            json!({
                "id": task.id.as_str(),
                "title": task.title,
                "status": task.status.word(),
                "depends_on": task.depends_on.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "agent": no_agent.is_none().then(|| config.agent.name()),
                "max_retries": config.max_retries,
                "checks": config.checks,
                "line": task.line,
            })
        })
        .collect();
    let value = json!({"title": plan.title, "tasks": tasks, "warnings": warnings});
    print(&format!("{value:#}\n"))?;
    Ok(0)
}

/// `sprag init`.
///
/// # Errors
/// When a file cannot be written.
pub fn init(context: &Context) -> Result<u8> {
    let real = repository(context)?;
    let written = crate::init::write_new(real.work_tree())
        .map_err(|error| Error::environment(format!("{error:#}")))?;
    let mut text = String::new();
    for path in &written.created {
        text += &format!("wrote {}\n", path.display());
    }
    for path in &written.kept {
        text += &format!("left alone {}: it is there already\n", path.display());
    }
    text += &format!(
        "next: name an agent and read the checks in {config}, commit these files, then\n  \
         sprag check {plan}\n  sprag run --plan {plan}\n",
        config = crate::init::CONFIG,
        plan = crate::init::EXAMPLE_PLAN,
    );
    print(&text)?;
    Ok(0)
}

/// `sprag report`.
///
/// # Errors
/// When there is no such run.
pub fn report(context: &Context, args: &ReportArgs) -> Result<u8> {
    let path = context
        .cwd
        .join(&args.run_dir)
        .join(&*RunFile::Summary.path());
    let bytes = fs::read(&path).map_err(|error| {
        Error::usage(format!("{} cannot be read: {error}", path.display()))
            .hint("name the directory of a run that has ended; sprag run prints it")
    })?;
    let summary: RunSummary = serde_json::from_slice(&bytes)
        .map_err(|error| Error::usage(format!("{} is damaged: {error}", path.display())))?;
    let text = match args.format {
        ReportFormat::Md => report::render(&summary, report::Format::Markdown),
        ReportFormat::Json => report::render(&summary, report::Format::Json),
        ReportFormat::Html => {
            let sources = crate::run::setting_sources::sources(&context.cwd.join(&args.run_dir));
            report::html::report(&summary, &sources)
        }
    };
    print(&text)?;
    Ok(0)
}

/// `sprag schema`.
///
/// # Errors
/// When it cannot be printed.
pub fn schema(args: &SchemaArgs) -> Result<u8> {
    let schema = match args.what {
        SchemaName::Plan => plan::schema::plan(),
        SchemaName::Config => plan::schema::config(),
        SchemaName::Event => wire::schema(),
        SchemaName::Summary => wire::summary_schema(),
        SchemaName::Trajectory => trajectory::schema(),
    };
    print(&format!("{schema:#}\n"))?;
    Ok(0)
}

/// `sprag completions`.
///
/// # Errors
/// When they cannot be printed.
pub fn completions(shell: clap_complete::Shell) -> Result<u8> {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sprag", &mut bytes);
    print(&String::from_utf8_lossy(&bytes))?;
    Ok(0)
}

#[derive(Deserialize)]
struct MessageLine {
    id: serde_json::Value,
    text: String,
}

/// `sprag assess`.
///
/// # Errors
/// When the message cannot be read.
pub fn assess(context: &Context, args: &AssessArgs) -> Result<u8> {
    let mut input: Box<dyn std::io::BufRead> = if args.file == Path::new("-") {
        Box::new(stdin().lock())
    } else {
        let path = context.cwd.join(&args.file);
        let file = fs::File::open(&path)
            .map_err(|error| Error::usage(format!("{} cannot be read: {error}", path.display())))?;
        Box::new(std::io::BufReader::new(file))
    };
    if args.jsonl {
        return assess_lines(&mut input);
    }
    let mut bytes = Vec::new();
    input
        .take(LONGEST_MESSAGE)
        .read_to_end(&mut bytes)
        .context("the message cannot be read")?;
    let reading = read_message(&String::from_utf8_lossy(&bytes), false);
    let mut text = format!("{}\n", word(reading.class));
    for indicator in &reading.indicators {
        text += &format!("  {indicator}\n");
    }
    print(&text)?;
    Ok(0)
}

fn assess_lines(input: &mut dyn std::io::BufRead) -> Result<u8> {
    let mut out = std::io::BufWriter::new(stdout().lock());
    for (number, line) in input.lines().enumerate() {
        let line = line.with_context(|| format!("line {} cannot be read", number + 1))?;
        if line.trim().is_empty() {
            continue;
        }
        let message: MessageLine = serde_json::from_str(&line).map_err(|error| {
            Error::usage(format!(
                "line {} is not {{\"id\", \"text\"}}: {error}",
                number + 1
            ))
        })?;
        let reading = read_message(&message.text, false);
        let said = json!({
            "id": message.id,
            "assessment": word(reading.class),
            "indicators": reading.indicators,
        });
        writeln!(out, "{said}").context("the assessment cannot be printed")?;
    }
    out.flush().context("the assessment cannot be printed")?;
    Ok(0)
}

/// The assessment that an unchanged turn with such a message gets.
fn word(class: MessageClass) -> &'static str {
    match class {
        MessageClass::FailedReport => "failed_report",
        MessageClass::AwaitingInput => "awaiting_input",
        MessageClass::ReportsBlocked => "reports_blocked",
        MessageClass::AlreadySatisfied => "already_satisfied",
        MessageClass::ClaimsDone => "claims_done",
        MessageClass::PlanningOnly => "planning_only",
        MessageClass::Error => "error",
        MessageClass::Empty => "empty",
        MessageClass::Other => "no_change",
    }
}

/// Prints to standard output; a reader that has gone away is no error.
///
/// # Errors
/// When it cannot be written for another reason.
pub fn print(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::from(error)
                .context("standard output cannot be written")
                .into())
        }
        _ => Ok(()),
    }
}
