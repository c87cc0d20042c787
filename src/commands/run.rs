//! `sprag run`.

use crate::cli::RunArgs;
use crate::context::Context;
use crate::error::Result;
use crate::run::start::start;

/// Runs the command and says the process's exit code.
///
/// # Errors
/// What keeps the run from beginning, or Sprag's own failure.
pub fn command(context: &Context, args: &RunArgs) -> Result<u8> {
    start(context, args)
}
