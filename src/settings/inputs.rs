//! Action inputs and variables that stand for flags of `sprag run`: each flag that is given goes
//! before its input. What is a setting besides is read with the settings.

use super::args::{ColorChoice, RunArgs};
use crate::context::Context;
use crate::error::{Error, Result};
use clap::ValueEnum as _;
use std::path::PathBuf;

/// Inputs that stand for flags and are no settings, in the order of the documentation.
pub const FLAG_INPUTS: &[&str] = &[
    "plan",
    "prompt",
    "prompt-file",
    "issue",
    "queue",
    "event",
    "task",
    "resume",
    "dry-run",
    "record",
    "working-directory",
    "config",
    "github-token",
];

/// Inputs of which each says what is to be done.
const SOURCES: &[&str] = &["plan", "prompt", "prompt-file", "issue", "queue"];

/// The directory that the input `working-directory` names.
pub fn working_directory(context: &Context) -> Option<PathBuf> {
    context.input("working-directory").map(PathBuf::from)
}

/// The command line, and what inputs and variables say where it says nothing.
///
/// # Errors
/// An input that cannot be read, by its name, and several that say what is to be done.
pub fn with_inputs(context: &Context, args: &RunArgs) -> Result<RunArgs> {
    let mut args = args.clone();
    if !names_a_source(&args) {
        source(context, &mut args)?;
    }
    if args.tasks.is_empty() {
        let tasks = context.input("task").unwrap_or_default().lines();
        let tasks = tasks.map(str::trim).filter(|id| !id.is_empty());
        args.tasks = tasks.map(str::to_owned).collect();
    }
    args.resume = args.resume || truth(context, "resume")?;
    args.dry_run = args.dry_run || truth(context, "dry-run")?;
    if args.record.is_none() {
        args.record = given(context, "record").map(|(_, path)| PathBuf::from(path));
    }
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

/// Whether the command line says what is to be done: then no input does.
fn names_a_source(args: &RunArgs) -> bool {
    args.plan.is_some()
        || args.prompt.is_some()
        || args.prompt_file.is_some()
        || args.issue.is_some()
        || args.queue.is_some()
        || args.event
}

/// The inputs `issue`, `queue` and `event`. Plan and prompt are read, and refused together, where the
/// plan is.
fn source(context: &Context, args: &mut RunArgs) -> Result<()> {
    let given = SOURCES.iter().filter(|name| context.input(name).is_some());
    let given: Vec<&str> = given.copied().collect();
    let is_read_here = |name: &&str| matches!(*name, "issue" | "queue");
    if given.len() > 1 && given.iter().any(is_read_here) {
        let message = format!("the inputs {} were given together", given.join(" and "));
        return Err(Error::usage(message).hint(format!("give one of {}", SOURCES.join(", "))));
    }
    args.issue = context.input("issue").map(issue).transpose()?;
    args.queue = context.input("queue").map(|dir| dir.trim().into());
    args.event = truth(context, "event")?;
    Ok(())
}

/// The number of an issue, as `12` or, as people write it, `#12`.
fn issue(text: &str) -> Result<u64> {
    let number = text.trim();
    let number = number.strip_prefix('#').unwrap_or(number);
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    match number.parse() {
        Ok(number) if is_number && number > 0 => Ok(number),
        _ => Err(Error::usage(format!(
            "action input issue must be the number of an issue, got `{text}`"
        ))),
    }
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
            ("INPUT_RECORD", "r.jsonl"),
            ("INPUT_EVENTS", "events.jsonl"),
            ("INPUT_COLOR", "never"),
            ("INPUT_RUN_DIR", "runs/1"),
        ]);
        assert_eq!(args.tasks, ["one", "two"]);
        assert_eq!(args.record, Some("r.jsonl".into()));
        assert!(args.resume && args.dry_run);
        assert_eq!(args.output.events, Some("events.jsonl".into()));
        assert_eq!(args.output.color, Some(ColorChoice::Never));
        assert_eq!(args.settings.run_dir, Some("runs/1".into()));
    }

    #[test]
    fn issue_queue_and_event_say_what_is_to_be_done() {
        let args = read(&[("INPUT_ISSUE", " #12\n")]);
        assert_eq!((args.issue, args.event), (Some(12), false));
        let args = read(&[("INPUT_QUEUE", ".sprag/queue"), ("INPUT_EVENT", "true")]);
        assert_eq!(args.queue, Some(".sprag/queue".into()));
        assert!(args.event && args.issue.is_none());
    }

    #[test]
    fn a_flag_that_says_what_is_to_be_done_leaves_those_inputs_alone() {
        let inputs = context(&[("INPUT_ISSUE", "x"), ("INPUT_PLAN", "a.yaml")]);
        let flags = RunArgs {
            queue: Some("plans".into()),
            ..RunArgs::default()
        };
        let args = with_inputs(&inputs, &flags).unwrap();
        assert_eq!((args.queue, args.issue), (Some("plans".into()), None));
    }

    #[test]
    fn nothing_given_is_nothing_changed() {
        let empty = [
            "TASK", "RESUME", "DRY_RUN", "EVENTS", "COLOR", "RUN_DIR", "ISSUE", "QUEUE", "EVENT",
        ];
        let names = empty.map(|name| format!("INPUT_{name}"));
        let blank: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
        for args in [read(&[]), read(&blank)] {
            assert!(args.tasks.is_empty() && !args.resume && !args.dry_run);
            assert!(args.issue.is_none() && args.queue.is_none() && !args.event);
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
                "INPUT_EVENT",
                "push",
                "action input event must be true or false, got `push`",
            ),
            (
                "INPUT_ISSUE",
                "0",
                "action input issue must be the number of an issue, got `0`",
            ),
            (
                "INPUT_ISSUE",
                "+1",
                "action input issue must be the number of an issue, got `+1`",
            ),
            (
                "INPUT_ISSUE",
                "99999999999999999999",
                "action input issue must be the number of an issue, got `99999999999999999999`",
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

    #[test]
    fn inputs_that_say_different_things_to_do_are_refused() {
        let inputs = context(&[("INPUT_PLAN", "a.yaml"), ("INPUT_ISSUE", "1")]);
        let error = with_inputs(&inputs, &RunArgs::default()).unwrap_err();
        assert_eq!(
            error.message,
            "the inputs plan and issue were given together"
        );
        assert_eq!(error.exit_code(), 2);
    }
}
