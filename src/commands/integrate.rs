//! `sprag integrate`: integrates the work of several jobs on one plan.

use crate::cli::{IntegrateArgs, RunArgs};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::run::begin::start::start;
use crate::settings::inputs;
use std::path::Path;

/// Runs the command and returns the process's exit code.
///
/// # Errors
/// When the integration cannot start, or Sprag itself fails.
pub fn command(context: &Context, args: &IntegrateArgs) -> Result<u8> {
    let plan = args
        .plan
        .clone()
        .or_else(|| inputs::plan(context).map(Path::to_path_buf));
    let plan = plan.ok_or_else(|| {
        Error::usage("sprag integrate needs the plan that the jobs worked on")
            .hint("name it with --plan FILE; in a job, with the input plan")
    })?;
    let run = RunArgs {
        plan: Some(plan),
        shards: args.shards.clone(),
        common: args.common.clone(),
        output: args.output,
        settings: args.settings.0.clone(),
        ..RunArgs::default()
    };
    start(context, &run)
}
