//! Prints the result of a command.

use crate::error::Result;
use std::io::{ErrorKind, Write as _, stdout};

/// Prints to standard output. A closed pipe is not an error.
///
/// # Errors
/// When it cannot be written for another reason.
pub fn print(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(anyhow::Error::from(error)
            .context("standard output cannot be written")
            .into()),
        _ => Ok(()),
    }
}
