//! The command line: parse, run, exit.

use clap::Parser as _;
use sprag::cli::{Cli, Command};
use sprag::commands::{refusal, run, small};
use sprag::context::Context;
use sprag::error::{Error, Result};
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors, and clap prints them to where they belong.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let context = match Context::of_process() {
        Ok(context) => context.within(cli.command.directory()),
        Err(error) => return failed(&Error::environment(format!("{error:#}")), false),
    };
    match dispatch(&context, &cli.command) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let in_actions = context.in_actions();
            if in_actions && matches!(cli.command, Command::Run(_)) {
                refusal::tell(&context, &error, &mut std::io::stdout());
            }
            failed(&error, in_actions)
        }
    }
}

fn failed(error: &Error, in_actions: bool) -> ExitCode {
    let text = match in_actions {
        true => refusal::shielded(error),
        false => error.to_string(),
    };
    // There is nowhere else to say it.
    let _ = writeln!(std::io::stderr(), "error: {text}");
    ExitCode::from(error.exit_code())
}

fn dispatch(context: &Context, command: &Command) -> Result<u8> {
    match command {
        Command::Run(args) => run::command(context, args),
        Command::Demo(args) => sprag::commands::demo::command(context, args),
        Command::Check(args) => small::check(context, args),
        Command::Init(_) => small::init(context),
        Command::Report(args) => small::report(context, args),
        Command::Assess(args) => small::assess(context, args),
        Command::Schema(args) => small::schema(args),
        Command::Completions { shell } => small::completions(*shell),
    }
}
