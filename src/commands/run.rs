//! `sprag run`.

use crate::cli::RunArgs;
use crate::context::Context;
use crate::error::Result;
use crate::run::begin::start::start;

/// Runs the command and returns the process's exit code.
///
/// # Errors
/// When the run cannot start, or Sprag itself fails.
pub fn command(context: &Context, args: &RunArgs) -> Result<u8> {
    start(context, args)
}
