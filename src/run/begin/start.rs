//! The front door: a run from its command line to its exit code.

use crate::cli::RunArgs;
use crate::context::Context;
use crate::error::Result;
use crate::github::actions_environment::ActionsEnvironment;
use crate::print::print;
use crate::process;
use crate::run::begin::answer::give_answer;
use crate::run::begin::beginning::{Beginning, Ready};
use crate::run::begin::described::dry_run;
use crate::run::begin::prepare::{Asked, Prepared, directory, prepare};
use crate::run::begin::reopen::{find, reopen};
use crate::run::begin::restore::restore;
use crate::run::begin::source::{self, PreparedSource, report_not_started};
use crate::run::begin::take_over::take_over;
use crate::run::execute::execute;
use crate::run::state::lock::lock;
use crate::settings::inputs::with_inputs;
use crate::settings::set_in_plan;
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
    let mut ready = if args.resume && !args.from_remote {
        let left = find(context, args)?;
        reopen(context, args, left)?
    } else {
        let source = match source::decide(context, args, &runtime) {
            Ok(source) => source,
            Err(no_run) => return no_run.report(context, &mut stdout()),
        };
        let restored = restore(context, args, &source).inspect_err(|error| {
            report_not_started(context, source.request.as_ref(), error, &runtime);
        })?;
        match restored {
            Some(run_dir) => reopen(context, args, source.continued_in(context, run_dir)?)?,
            None => prepare_new(context, args, source, &runtime)?,
        }
    };
    give_answer(args, &mut ready)?;
    if args.dry_run {
        print(context, &dry_run(&ready.prepared))?;
        return Ok(0);
    }
    let warning = take_over(&mut ready).inspect_err(|error| {
        report_not_started(context, ready.request.as_ref(), error, &runtime);
    })?;
    ready.prepared.warnings.extend(warning);
    execute(context, args, ready, runtime)
}

fn prepare_new(
    context: &Context,
    args: &RunArgs,
    source: PreparedSource,
    runtime: &Runtime,
) -> Result<Ready> {
    let mut request = source.request;
    let directory = directory(context, &args.common, source.real.work_tree());
    let is_foreign = request.as_ref().is_some_and(|it| it.context.report_only);
    let asked = Asked {
        above: source.above,
        file: source.file,
        source: source.source,
        real: source.real,
        work: source.work,
        tasks: &args.tasks,
        only_shown: args.dry_run,
        directory,
        is_foreign,
        open: None,
    };
    let mut prepared = prepare(context, asked)
        .and_then(|prepared| reviews_or_works(&prepared).map(|()| prepared))
        .inspect_err(|error| report_not_started(context, request.as_ref(), error, runtime))?;
    prepared.warnings.extend(source.warnings);
    if prepared.work.is_draft() {
        prepared.drafts_only();
    }
    prepared.trusted = source.trusted;
    if args.dry_run
        && let Some(schema) = &prepared.output_schema
    {
        schema.load(context, &prepared.real, request.as_ref(), None)?;
    }
    if let Some(request) = &mut request {
        let token = ActionsEnvironment::of(context).is_some();
        request.resolve(&prepared.run.settings, context.in_actions(), token);
    }
    let lock = match source.lock {
        Some(lock) => Some(lock),
        None if args.dry_run => None,
        None => Some(lock(context, &prepared.real)?),
    };
    Ok(Ready {
        prepared,
        request,
        beginning: Beginning::New,
        lock,
    })
}

/// Only trusted sources may turn a run into a review: the plan that it runs may not.
fn reviews_or_works(prepared: &Prepared) -> Result<()> {
    if prepared.run.settings.review_only == prepared.work.reviewed().is_some() {
        Ok(())
    } else {
        Err(set_in_plan("review_only"))
    }
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
