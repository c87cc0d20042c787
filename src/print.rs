//! Prints the result of a command.

use crate::context::Context;
use crate::error::Result;
use crate::secrets::sources::redactor;
use serde_json::Value;
use std::io::{ErrorKind, Write as _, stdout};

/// Prints to standard output, without secrets. A closed pipe is not an error.
///
/// # Errors
/// When it cannot be written for another reason.
pub fn print(context: &Context, text: &str) -> Result<()> {
    print_unmasked(&redactor(&context.env).redact(text))
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
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(anyhow::Error::from(error)
            .context("standard output cannot be written")
            .into()),
        _ => Ok(()),
    }
}
