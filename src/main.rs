//! The command line: parse, run, exit.

use clap::Parser as _;
use sprag::cli::{Cli, Command};
use sprag::commands;
use sprag::context::Context;
use sprag::error::{Error, Result};
use sprag::github::refusal;
use sprag::process::{kill_descendants, restore_signals};
use sprag::report::buffered_output::{BufferedOutput, Time, drain_timeout, print_to_stderr};
use sprag::report::text::block;
use sprag::run::begin::repository::for_others;
use sprag::secrets::sources::redactor;
use sprag::settings::inputs;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Replaces the allocator of musl, which is slow.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    if let Some(code) = sprag::sandbox::main(std::env::args_os().skip(1)) {
        return code;
    }
    // What has panicked has told why by now; its own exit code is one that nothing documents.
    std::panic::catch_unwind(run).unwrap_or_else(|_| {
        kill_descendants();
        failed(&Error::from(anyhow::anyhow!("internal error")), false)
    })
}

fn run() -> ExitCode {
    if let Err(error) = restore_signals() {
        return failed(&Error::environment(format!("signals: {error}")), false);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_parsed(&error),
    };
    let context = match Context::of_process() {
        Ok(context) => {
            let directory = directory(&context, &cli);
            context.within(directory.as_deref())
        }
        Err(error) => return failed(&Error::environment(format!("{error:#}")), false),
    };
    match dispatch(&context, &cli.command) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let in_actions = context.in_actions();
            let redactor = redactor(&context.env);
            let mut error = error.with_texts(|text| redactor.redact(text).into_owned());
            if in_actions {
                error = for_others(&context, &error);
            }
            if in_actions && is_step(&cli.command) {
                report(&context, &error);
            }
            failed(&error, in_actions)
        }
    }
}

/// The working directory: from `-C`, else from the action input for steps of a job.
fn directory(context: &Context, cli: &Cli) -> Option<PathBuf> {
    let is_step = is_step(&cli.command) || matches!(cli.command, Command::Doctor(_));
    let input = inputs::working_directory(context).filter(|_| is_step);
    cli.directory.clone().or(input)
}

/// Whether the command is one that a step of a job runs.
fn is_step(command: &Command) -> bool {
    matches!(
        command,
        Command::Run(_) | Command::Publish(_) | Command::Matrix(_) | Command::Integrate(_)
    )
}

/// Prints help, the version or an error of the command line. In a step of a job, an error also sets the
/// outputs.
fn not_parsed(error: &clap::Error) -> ExitCode {
    let in_actions = Context::of_process().ok().filter(Context::in_actions);
    let Some(context) = in_actions.filter(|_| error.use_stderr()) else {
        if error.use_stderr() && !std::io::stderr().is_terminal() {
            print_to_stderr(&error.to_string(), Time::Enough)
        } else {
            drop(error.print())
        }
        if let Some(tip) = sprag::cli::tip(error) {
            print_to_stderr(&format!("\n  tip: {tip}\n"), Time::Enough);
        }
        return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
    };
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let what = text.split("\n\nUsage:").next().unwrap_or(text).trim_end();
    let error = Error::usage(what).hint("sprag run --help lists the flags");
    if context.is_run() {
        report(&context, &error);
    }
    failed(&error, true)
}

/// Reports the error to the job. Does not wait long for a log that nobody reads.
fn report(context: &Context, error: &Error) {
    if let Ok(mut log) = BufferedOutput::new(&std::io::stdout()) {
        refusal::report(context, error, &mut log);
        let _ = log.drain(drain_timeout(Time::Enough, false));
    }
}

fn failed(error: &Error, in_actions: bool) -> ExitCode {
    let text = if in_actions {
        refusal::actions_log(error)
    } else {
        block(&error.to_string())
    };
    print_to_stderr(&format!("error: {text}\n"), Time::Enough);
    ExitCode::from(error.exit_code())
}

fn dispatch(context: &Context, command: &Command) -> Result<u8> {
    match command {
        Command::Run(args) => commands::run::run(context, args),
        Command::Ask(args) => commands::run::ask(context, args),
        Command::Plan(args) => commands::run::plan(context, args),
        Command::Demo(args) => commands::demo::command(context, args),
        Command::Check(args) => commands::check::check(context, args),
        Command::Init(args) => commands::init::init(context, args),
        Command::Runs(args) => commands::runs::runs(context, args),
        Command::Outcomes(args) => commands::runs::outcomes(context, args),
        Command::Doctor(args) => commands::init::doctor(context, args),
        Command::Publish(args) => sprag::publish::command(context, args),
        Command::Matrix(args) => commands::check::matrix(context, args),
        Command::Integrate(args) => commands::run::integrate(context, args),
        Command::Report(args) => commands::runs::report(context, args),
        Command::Assess(args) => commands::assess::command(context, args),
        Command::Schema(args) => commands::generate::json_schema(args),
        Command::Completions { shell } => commands::generate::completions(*shell),
        Command::Man { to } => commands::generate::man(&context.cwd.join(to)),
    }
}
