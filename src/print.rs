//! Prints the result of a command.

use crate::context::Context;
use crate::error::Result;
use crate::report::Format;
use crate::report::actions_log::{neutral, neutral_json};
use crate::report::buffered_output::write_to_end;
use crate::report::text::visible_lines;
use crate::secrets::sources::redactor;
use rustix::fs::{FileType, fstat};
use serde_json::Value;
use std::io::{ErrorKind, stdout};

/// Prints a text for people to standard output, without secrets, and with nothing that hides from them, that a
/// terminal executes, or that the runner of GitHub Actions does. A closed pipe is not an error.
///
/// # Errors
/// When it cannot be written for another reason.
pub fn print(context: &Context, text: &str) -> Result<()> {
    let text = visible_lines(&redactor(&context.env).redact(text));
    print_unmasked(&without_commands(context, text))
}

/// Prints a whole document as it is, without secrets, and in the log of a step without commands.
///
/// # Errors
/// As [`print`].
pub fn print_document(context: &Context, text: &str, format: Format) -> Result<()> {
    let text = redactor(&context.env).redact(text).into_owned();
    print_unmasked(&match format {
        Format::Json => neutral_json(text),
        Format::Md | Format::Html => without_commands(context, text),
    })
}

/// A text in which the runner finds no commands, if it may be its log that is printed to.
fn without_commands(context: &Context, text: String) -> String {
    let is_file = || {
        let mode = fstat(stdout()).map(|it| it.st_mode);
        mode.is_ok_and(|mode| FileType::from_raw_mode(mode).is_file())
    };
    if context.in_actions() && !is_file() {
        text.split_inclusive('\n')
            .map(|line| match line.strip_suffix('\n') {
                Some(line) => neutral(line) + "\n",
                None => neutral(line),
            })
            .collect()
    } else {
        text
    }
}

/// A function that returns a value without secrets.
pub fn masking(context: &Context) -> impl Fn(Value) -> Value {
    let redactor = redactor(&context.env);
    move |mut value| {
        redactor.redact_json(&mut value);
        value
    }
}

/// Prints a text that depends on nothing that a user has written, or only on data for programs: the ids of
/// tasks, and parts of which [`masking`] took the secrets.
///
/// # Errors
/// As [`print`].
pub fn print_unmasked(text: &str) -> Result<()> {
    match write_to_end(&stdout(), text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(anyhow::Error::from(error)
            .context("standard output cannot be written")
            .into()),
        _ => Ok(()),
    }
}
