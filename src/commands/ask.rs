//! `sprag ask`: the agent answers a question and changes nothing.

use crate::cli::{AskArgs, RunArgs};
use crate::context::Context;
use crate::error::Result;
use crate::run::begin::start::start;

/// Runs the command and returns the process's exit code.
///
/// # Errors
/// When the run cannot start, or Sprag itself fails.
pub fn command(context: &Context, args: &AskArgs) -> Result<u8> {
    let run = RunArgs {
        prompt: Some(args.question.clone()),
        asks: true,
        common: args.common.clone(),
        output: args.output,
        settings: args.settings.clone(),
        ..RunArgs::default()
    };
    start(context, &run)
}
