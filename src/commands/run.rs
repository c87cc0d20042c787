//! The commands that start a run: `sprag run`, `sprag ask`, `sprag plan` and `sprag integrate`.

use crate::cli::{AskArgs, IntegrateArgs, PlanArgs, RunArgs};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::print::print;
use crate::report::text;
use crate::run::begin::start::{draft, start};
use crate::settings::inputs;
use std::path::Path;

/// Runs a plan or a prompt and returns the process's exit code.
///
/// # Errors
/// When the run cannot start, or Sprag itself fails.
pub fn run(context: &Context, args: &RunArgs) -> Result<u8> {
    start(context, args)
}

/// Lets the agent answer a question, which changes nothing. Returns the process's exit code.
///
/// # Errors
/// When the run cannot start, or Sprag itself fails.
pub fn ask(context: &Context, args: &AskArgs) -> Result<u8> {
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

/// Lets the agent draft a plan, which is validated and written to a file. Returns the process's exit code.
///
/// # Errors
/// When the run cannot start, or Sprag itself fails.
pub fn plan(context: &Context, args: &PlanArgs) -> Result<u8> {
    let (code, written) = draft(context, args)?;
    if let Some(written) = written.filter(|_| code == 0) {
        let told = format!(
            "\n{path} is written: {} ({})\n  read it, then: sprag run --plan {path}\n",
            text::line(&written.title),
            text::count(written.tasks as u64, "task"),
            path = written.path,
        );
        print(context, &told)?;
    }
    Ok(code)
}

/// Integrates the work of several jobs on one plan. Returns the process's exit code.
///
/// # Errors
/// When the integration cannot start, or Sprag itself fails.
pub fn integrate(context: &Context, args: &IntegrateArgs) -> Result<u8> {
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
