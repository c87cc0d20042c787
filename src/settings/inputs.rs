//! Action inputs. Those that are not settings correspond to flags of `sprag run`. A flag takes precedence
//! over its input.

use super::args::{Common, RunArgs};
use crate::context::Context;
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// The input that corresponds to `-C`.
pub const DIRECTORY: &str = "working-directory";
/// The input with the token.
pub const TOKEN: &str = "github-token";

/// Inputs that each determine the work. Only one may be set.
const SOURCES: &[&str] = &["plan", "prompt", "prompt-file", "issue", "queue"];

/// The value of an input: `max-retries` is `INPUT_MAX-RETRIES`, or `INPUT_MAX_RETRIES` if a composite action
/// passes it on explicitly.
pub(super) fn input<'a>(context: &'a Context, name: &str) -> Option<&'a str> {
    let name = format!("INPUT_{}", name.to_ascii_uppercase());
    context
        .var(&name)
        .or_else(|| context.var(&name.replace('-', "_")))
}

/// The directory in the input `working-directory`.
pub fn working_directory(context: &Context) -> Option<PathBuf> {
    input(context, DIRECTORY).map(PathBuf::from)
}

/// The token for GitHub: the input, otherwise the variable.
pub fn token(context: &Context) -> Option<&str> {
    input(context, TOKEN).or_else(|| context.var("GITHUB_TOKEN"))
}

/// The input `plan`.
pub fn plan(context: &Context) -> Option<&Path> {
    input(context, "plan").map(Path::new)
}

/// The input `queue`.
pub fn queue(context: &Context) -> Option<&str> {
    input(context, "queue").map(str::trim)
}

/// The configuration file: that of the flag, otherwise that of the input.
pub fn config_file(context: &Context, common: &Common) -> Option<PathBuf> {
    let of_input = || input(context, "config").map(Path::new);
    let asked = common.config.as_deref().or_else(of_input);
    asked.map(|path| context.cwd.join(path))
}

/// Completes the command line with inputs and variables.
///
/// # Errors
/// An invalid input, by its name, or several inputs that each determine the work.
pub fn with_inputs(context: &Context, args: &RunArgs) -> Result<RunArgs> {
    let mut args = args.clone();
    args.resume = args.resume || truth(context, "resume")?;
    args.from_remote = args.from_remote || truth(context, "from-remote")?;
    // With these flags, the words are the id of a run.
    let names_a_run = args.resume && !args.from_remote;
    if let Some(words) = args.words.take_if(|_| !names_a_run) {
        refuse_path(context, &words)?;
        args.prompt = Some(words);
    }
    if !names_a_source(&args) {
        source(context, &mut args)?;
    }
    if args.tasks.is_empty() {
        // One per line, or as in a row of `sprag matrix`: no id contains a space.
        let tasks = input(context, "task").unwrap_or_default();
        args.tasks = tasks.split_whitespace().map(str::to_owned).collect();
    }
    let answer = input(context, "answer").filter(|answer| !answer.trim().is_empty());
    args.answer = args.answer.or_else(|| answer.map(str::to_owned));
    args.dry_run = args.dry_run || truth(context, "dry-run")?;
    if !args.output.quiet && args.output.verbose == 0 {
        args.output.verbose = u8::from(truth(context, "verbose")?);
        args.output.quiet = truth(context, "quiet")? && args.output.verbose == 0;
    }
    Ok(args)
}

/// Refuses a path as a prompt: `sprag run plan.yaml` is almost certainly not meant as one.
fn refuse_path(context: &Context, words: &str) -> Result<()> {
    if context.cwd.join(words).is_file() {
        let error = Error::usage(format!("the prompt `{words}` is a file name"));
        return Err(error.hint(format!(
            "run it with --plan {words}, or use its text as the prompt with --prompt-file {words}"
        )));
    }
    let ending = Path::new(words).extension();
    let ending = ending
        .and_then(|ending| ending.to_str())
        .unwrap_or_default();
    if words.contains(char::is_whitespace) || !["yaml", "yml", "md", "json"].contains(&ending) {
        return Ok(());
    }
    let why = "looks like the name of a file, and there is no such file";
    let error = Error::usage(format!("the prompt `{words}` {why}"));
    Err(error.hint(format!(
        "check the path, and run a plan with --plan {words}"
    )))
}

/// Whether the command line determines the work. Then no input does.
fn names_a_source(args: &RunArgs) -> bool {
    args.plan.is_some()
        || args.prompt.is_some()
        || args.prompt_file.is_some()
        || args.issue.is_some()
        || args.queue.is_some()
        || args.event
}

/// Sets the source of the work from the inputs.
fn source(context: &Context, args: &mut RunArgs) -> Result<()> {
    let mut given = SOURCES.to_vec();
    given.retain(|name| input(context, name).is_some());
    if given.len() > 1 {
        let message = format!("the inputs {} were given together", given.join(" and "));
        return Err(Error::usage(message).hint(format!("give one of {}", SOURCES.join(", "))));
    }
    args.plan = plan(context).map(Path::to_path_buf);
    args.prompt = input(context, "prompt").map(str::to_owned);
    args.prompt_file = input(context, "prompt-file").map(PathBuf::from);
    args.issue = input(context, "issue").map(issue).transpose()?;
    args.queue = queue(context).map(PathBuf::from);
    args.event = truth(context, "event")?;
    Ok(())
}

/// Parses the number of an issue, `12` or `#12`.
fn issue(text: &str) -> Result<u64> {
    let number = text.trim();
    let number = number.strip_prefix('#').unwrap_or(number);
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    match number.parse() {
        Ok(number) if is_number && number > 0 => Ok(number),
        _ => {
            let why = "action input issue must be the number of an issue";
            Err(Error::usage(format!("{why}, got `{text}`")))
        }
    }
}

fn truth(context: &Context, name: &str) -> Result<bool> {
    match input(context, name).map_or("", str::trim) {
        "true" | "True" | "TRUE" => Ok(true),
        "" | "false" | "False" | "FALSE" => Ok(false),
        other => Err(Error::usage(format!(
            "action input {name} must be true or false, got `{other}`"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(variables: &[(&str, &str)]) -> Context {
        let pair = |&(name, value): &(&str, &str)| (name.into(), value.into());
        Context {
            cwd: PathBuf::from("/work"),
            cwd_is_chosen: false,
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
            ("INPUT_TASK", "one\n\n  two three\n"),
            ("INPUT_RESUME", "true"),
            ("INPUT_DRY_RUN", "true"),
            ("INPUT_VERBOSE", "true"),
        ]);
        assert_eq!(args.tasks, ["one", "two", "three"]);
        assert!(args.resume && args.dry_run);
        assert_eq!((args.output.verbose, args.output.quiet), (1, false));
    }

    #[test]
    fn a_plan_or_a_prompt_may_be_an_input() {
        let args = read(&[("INPUT_PLAN", "p.yaml")]);
        assert_eq!((args.plan, args.prompt), (Some("p.yaml".into()), None));
        let args = read(&[("INPUT_PROMPT", "Mend it.")]);
        assert_eq!((args.plan, args.prompt), (None, Some("Mend it.".into())));
        let args = read(&[("INPUT_PROMPT-FILE", "p.md")]);
        assert_eq!(args.prompt_file, Some("p.md".into()));
    }

    #[test]
    fn the_argument_is_the_prompt() {
        let args = RunArgs {
            words: Some("Mend it.".into()),
            ..RunArgs::default()
        };
        let args = with_inputs(&context(&[("INPUT_PLAN", "p.yaml")]), &args).unwrap();
        assert_eq!((args.prompt, args.plan), (Some("Mend it.".into()), None));
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
            assert!(args.plan.is_none() && args.prompt.is_none());
        }
    }

    #[test]
    fn flags_go_before_inputs_and_inputs_before_variables() {
        let flags = RunArgs {
            tasks: vec!["flag".into()],
            resume: true,
            ..RunArgs::default()
        };
        let inputs = context(&[("INPUT_TASK", "input"), ("INPUT_RESUME", "false")]);
        let args = with_inputs(&inputs, &flags).unwrap();
        assert_eq!(args.tasks, ["flag"]);
        assert!(args.resume);
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
        let inputs = context(&[("INPUT_PLAN", "a.yaml"), ("INPUT_PROMPT", "b")]);
        let error = with_inputs(&inputs, &RunArgs::default()).unwrap_err();
        assert_eq!(
            error.message,
            "the inputs plan and prompt were given together"
        );
    }
}
