//! Action inputs and variables that stand for flags of `sprag run`: each flag that is given goes
//! before its input. What is a setting besides is read with the settings.

use crate::cli::{ColorChoice, RunArgs};
use crate::context::Context;
use crate::error::{Error, Result};
use clap::ValueEnum as _;
use std::path::PathBuf;

/// Inputs that stand for flags and are no settings, in the order of the documentation.
pub const FLAG_INPUTS: &[&str] = &[
    "plan",
    "prompt",
    "prompt-file",
    "task",
    "resume",
    "dry-run",
    "working-directory",
    "config",
];

/// The directory that the input `working-directory` names.
pub fn working_directory(context: &Context) -> Option<PathBuf> {
    context.input("working-directory").map(PathBuf::from)
}

/// The command line, and what inputs and variables say where it says nothing.
///
/// # Errors
/// An input that cannot be read, by its name.
pub fn with_inputs(context: &Context, args: &RunArgs) -> Result<RunArgs> {
    let mut args = args.clone();
    if args.tasks.is_empty() {
        let tasks = context.input("task").unwrap_or_default().lines();
        let tasks = tasks.map(str::trim).filter(|id| !id.is_empty());
        args.tasks = tasks.map(str::to_owned).collect();
    }
    args.resume = args.resume || truth(context, "resume")?;
    args.dry_run = args.dry_run || truth(context, "dry-run")?;
    let output = &mut args.output;
    if output.events.is_none() {
        output.events = given(context, "events").map(|(_, path)| PathBuf::from(path));
    }
    if output.color.is_none() {
        output.color = given(context, "color")
            .map(|(place, word)| color(&place, word))
            .transpose()?;
    }
    // A new run has its directory with the other settings; one that is taken up is found by it.
    if args.resume && args.settings.run_dir.is_none() {
        args.settings.run_dir = given(context, "run-dir").map(|(_, path)| PathBuf::from(path));
    }
    Ok(args)
}

/// Where a value stands, and the value: the input, else the variable.
fn given<'a>(context: &'a Context, input: &str) -> Option<(String, &'a str)> {
    let variable = format!("SPRAG_{}", input.to_ascii_uppercase().replace('-', "_"));
    let of_input = context
        .input(input)
        .map(|value| (format!("action input {input}"), value));
    of_input
        .or_else(|| context.var(&variable).map(|value| (variable, value)))
        .map(|(place, value)| (place, value.trim()))
        .filter(|(_, value)| !value.is_empty())
}

fn truth(context: &Context, input: &str) -> Result<bool> {
    match context.input(input).map_or("", str::trim) {
        "true" | "True" | "TRUE" => Ok(true),
        "" | "false" | "False" | "FALSE" => Ok(false),
        other => Err(Error::usage(format!(
            "action input {input} must be true or false, got `{other}`"
        ))),
    }
}

fn color(place: &str, word: &str) -> Result<ColorChoice> {
    ColorChoice::from_str(word, false).map_err(|_| {
        Error::usage(format!(
            "{place} must be one of auto, always, never, got `{word}`"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(variables: &[(&str, &str)]) -> Context {
        let pair = |&(name, value): &(&str, &str)| (name.into(), value.into());
        Context {
            cwd: PathBuf::from("/work"),
            env: variables.iter().map(pair).collect(),
            stdout_is_terminal: false,
            stderr_is_terminal: false,
            is_root: false,
            first_argument: None,
        }
    }

    fn read(variables: &[(&str, &str)]) -> RunArgs {
        with_inputs(&context(variables), &RunArgs::default()).unwrap()
    }

    #[test]
    fn inputs_stand_for_flags() {
        let args = read(&[
            ("INPUT_TASK", "one\n\n  two \n"),
            ("INPUT_RESUME", "true"),
            ("INPUT_DRY_RUN", "true"),
            ("INPUT_EVENTS", "events.jsonl"),
            ("INPUT_COLOR", "never"),
            ("INPUT_RUN_DIR", "runs/1"),
        ]);
        assert_eq!(args.tasks, ["one", "two"]);
        assert!(args.resume && args.dry_run);
        assert_eq!(args.output.events, Some("events.jsonl".into()));
        assert_eq!(args.output.color, Some(ColorChoice::Never));
        assert_eq!(args.settings.run_dir, Some("runs/1".into()));
    }

    #[test]
    fn nothing_given_is_nothing_changed() {
        let empty = ["TASK", "RESUME", "DRY_RUN", "EVENTS", "COLOR", "RUN_DIR"];
        let names = empty.map(|name| format!("INPUT_{name}"));
        let blank: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
        for args in [read(&[]), read(&blank)] {
            assert!(args.tasks.is_empty() && !args.resume && !args.dry_run);
            assert_eq!(args.output.events, None);
            assert_eq!(args.output.color, None);
            assert_eq!(args.settings.run_dir, None);
        }
    }

    #[test]
    fn flags_go_before_inputs_and_inputs_before_variables() {
        let mut flags = RunArgs {
            tasks: vec!["flag".into()],
            resume: true,
            ..RunArgs::default()
        };
        flags.output.events = Some("flag".into());
        flags.settings.run_dir = Some("flag".into());
        let inputs = context(&[
            ("INPUT_TASK", "input"),
            ("INPUT_RESUME", "false"),
            ("INPUT_EVENTS", "input"),
            ("INPUT_RUN-DIR", "input"),
            ("INPUT_COLOR", "always"),
            ("SPRAG_COLOR", "never"),
        ]);
        let args = with_inputs(&inputs, &flags).unwrap();
        assert_eq!(args.tasks, ["flag"]);
        assert!(args.resume);
        assert_eq!(args.output.events, Some("flag".into()));
        assert_eq!(args.settings.run_dir, Some("flag".into()));
        assert_eq!(args.output.color, Some(ColorChoice::Always));
        let args = read(&[("SPRAG_COLOR", "never"), ("SPRAG_EVENTS", "variable")]);
        assert_eq!(args.output.color, Some(ColorChoice::Never));
        assert_eq!(args.output.events, Some("variable".into()));
    }

    #[test]
    fn a_new_run_leaves_its_directory_to_the_settings() {
        assert_eq!(read(&[("INPUT_RUN_DIR", "runs/1")]).settings.run_dir, None);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (name, value, message) in [
            (
                "INPUT_RESUME",
                "yes",
                "action input resume must be true or false, got `yes`",
            ),
            (
                "INPUT_DRY-RUN",
                "1",
                "action input dry-run must be true or false, got `1`",
            ),
            (
                "INPUT_COLOR",
                "red",
                "action input color must be one of auto, always, never, got `red`",
            ),
            (
                "SPRAG_COLOR",
                "red",
                "SPRAG_COLOR must be one of auto, always, never, got `red`",
            ),
        ] {
            let error = with_inputs(&context(&[(name, value)]), &RunArgs::default()).unwrap_err();
            assert_eq!(error.message, message);
            assert_eq!(error.exit_code(), 2);
        }
    }
}
