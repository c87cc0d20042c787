//! Starts a run from its command line.

use crate::cli::RunArgs;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::lookup;
use crate::github::request::RunRequest;
use crate::print::print;
use crate::process;
use crate::run::begin::described::dry_run;
use crate::run::begin::execute::{execute, report_not_started};
use crate::run::begin::prepare::{Prepared, Selection, prepare};
use crate::run::begin::reopen::{Reopened, reopen, reopen_restored};
use crate::run::begin::restore::{restore, restore_mode};
use crate::run::begin::source::{self, PreparedSource, Start};
use crate::run::begin::take_over::take_over;
use crate::run::state::directory::RunDir;
use crate::run::state::lock::lock as take_lock;
use crate::settings::inputs::with_inputs;
use std::io::stdout;
use tokio::runtime::Runtime;

/// Starts or resumes a run. Returns the process's exit code.
///
/// # Errors
/// When the run cannot start, or Sprag itself fails.
pub fn start(context: &Context, args: &RunArgs) -> Result<u8> {
    process::hide_from_same_user().map_err(anyhow::Error::from)?;
    let args = &with_inputs(context, args)?;
    let runtime = runtime()?;
    if args.resume && !args.from_remote {
        let reopened = reopen(context, args)?;
        if args.dry_run {
            print(context, &dry_run(&reopened.prepared))?;
            return Ok(0);
        }
        return go_on(context, args, reopened, runtime);
    }
    let ready = match source::decide(context, args, &runtime)? {
        Start::Over(ended) => return Ok(lookup::ended(context, &ended, &mut stdout())),
        Start::Run(ready) => *ready,
    };
    let mut args = args.clone();
    if ready.config.is_some() {
        args.common.config.clone_from(&ready.config);
    }
    match restored(context, &args, &ready, &runtime)? {
        Some(restored) => resume_restored(context, &args, ready, restored, runtime),
        None => start_new(context, &args, ready, runtime),
    }
}

/// The restored unfinished work that this run continues, and the request for it. `None` if it continues none.
fn restored(
    context: &Context,
    args: &RunArgs,
    ready: &PreparedSource,
    runtime: &Runtime,
) -> Result<Option<(RunDir, RunRequest)>> {
    let Some(request) = &ready.request else {
        return Ok(None);
    };
    let Some(mode) = restore_mode(context, args, request) else {
        return Ok(None);
    };
    let run_dir = restore(context, args, &ready.real, (request, &ready.source), mode)
        .inspect_err(|error| report_not_started(context, Some(request), error, runtime))?;
    Ok(run_dir.map(|run_dir| (run_dir, request.clone())))
}

fn resume_restored(
    context: &Context,
    args: &RunArgs,
    ready: PreparedSource,
    restored: (RunDir, RunRequest),
    runtime: Runtime,
) -> Result<u8> {
    let PreparedSource { real, lock, .. } = ready;
    let lock = lock.map_or_else(|| take_lock(context, &real), Ok)?;
    let mut reopened = reopen_restored(context, args, real, restored, lock)?;
    if let Some(request) = &mut reopened.request {
        let set = &reopened.prepared.run.settings;
        request.resolve(set, context.in_actions(), true);
    }
    go_on(context, args, reopened, runtime)
}

fn start_new(
    context: &Context,
    args: &RunArgs,
    ready: PreparedSource,
    runtime: Runtime,
) -> Result<u8> {
    let (held, mut request) = (ready.lock, ready.request);
    let selection = Selection {
        tasks: &args.tasks,
        shards: &args.shards,
        only_shown: args.dry_run,
    };
    let source = (ready.source, ready.real);
    let is_foreign = request.as_ref().is_some_and(|it| it.context.report_only);
    let (common, flags) = (&args.common, &args.settings);
    let prepared = prepare(context, common, flags, selection, source, is_foreign, None);
    let prepared = prepared
        .and_then(|mut prepared| {
            prepared.reviewed = ready.reviewed;
            prepared.warnings.extend(ready.warnings);
            reviews_or_works(&prepared).map(|()| prepared)
        })
        .inspect_err(|error| report_not_started(context, request.as_ref(), error, &runtime))?;
    if args.dry_run {
        if let Some(schema) = &prepared.output_schema {
            schema.load(context, &prepared.real, request.as_ref(), None)?;
        }
        print(context, &dry_run(&prepared))?;
        return Ok(0);
    }
    let mut lock = held.map_or_else(|| take_lock(context, &prepared.real), Ok)?;
    if let Some(request) = &mut request {
        let token = ActionsEnvironment::of(context).is_some();
        request.resolve(&prepared.run.settings, context.in_actions(), token);
    }
    execute(context, args, prepared, request, None, runtime, &mut lock)
}

/// Only trusted sources may turn a run into a review: the plan that it runs may not.
fn reviews_or_works(prepared: &Prepared) -> Result<()> {
    if prepared.run.settings.review_only == prepared.reviewed.is_some() {
        Ok(())
    } else {
        Err(review_only_in_plan())
    }
}

/// The error for a plan that asks for a review.
pub(crate) fn review_only_in_plan() -> Error {
    Error::config("review_only is set in the plan")
        .hint("give it on the command line, as an input of the action or in the configuration")
}

/// The single-threaded runtime of a run.
///
/// # Errors
/// When the system cannot create it.
pub(crate) fn runtime() -> Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)?;
    runtime
        .block_on(async { process::survive_file_size_limit() })
        .map_err(anyhow::Error::from)?;
    Ok(runtime)
}

fn go_on(context: &Context, args: &RunArgs, reopened: Reopened, runtime: Runtime) -> Result<u8> {
    let Reopened {
        mut prepared,
        request,
        mut resumed,
        mut lock,
    } = reopened;
    let warning = take_over(&mut resumed, &prepared)
        .inspect_err(|error| report_not_started(context, request.as_ref(), error, &runtime))?;
    prepared.warnings.extend(warning);
    let resumed = Some(resumed);
    execute(
        context, args, prepared, request, resumed, runtime, &mut lock,
    )
}
