//! The front door: a run from its command line to its exit code.

use crate::cli::{PlanArgs, RunArgs};
use crate::context::Context;
use crate::domain::settings::PullRequest;
use crate::error::{Error, Result};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::lookup::NoRun;
use crate::github::request::RunRequest;
use crate::print::print;
use crate::process;
use crate::run::begin::described::dry_run;
use crate::run::begin::prepare::{Prepared, prepare};
use crate::run::begin::reopen::{LeftRun, find, reopen, restore};
use crate::run::begin::resume::give_answer;
use crate::run::begin::source::{decide, report_not_started};
use crate::run::begin::work::{DraftRequest, Written};
use crate::run::execute::execute;
use crate::run::state::lock::lock;
use crate::settings::inputs::with_inputs;
use crate::settings::set_in_plan;
use std::io::stdout;
use std::path::PathBuf;
use tokio::runtime::Runtime;

/// Starts or resumes a run. Returns the process's exit code.
///
/// # Errors
/// When the run cannot start, or Sprag itself fails.
pub fn start(context: &Context, args: &RunArgs) -> Result<u8> {
    launch(context, &with_inputs(context, args)?, None)
}

/// Lets the agent draft a plan and writes it to a new file. Returns the process's exit code, and the plan if one was
/// written.
///
/// # Errors
/// When the run cannot start, or Sprag itself fails.
pub fn draft(context: &Context, args: &PlanArgs) -> Result<(u8, Option<Written>)> {
    let prompt = args.words.clone().or(args.prompt.clone());
    let refused = match (&prompt, args.issue) {
        (Some(_), Some(_)) => Some("--prompt and --issue were given together"),
        (Some(text), None) if text.trim().is_empty() => {
            Some("nothing to plan: no prompt was given")
        }
        (None, None) => Some("nothing to plan: no prompt was given"),
        _ => None,
    };
    if let Some(why) = refused {
        return Err(Error::usage(why).hint("give exactly one of --prompt TEXT, --issue N"));
    }
    let kind = args.settings.settings()?.pull_request;
    let draft = DraftRequest {
        output: output(context, args)?,
        commits: kind.is_some_and(|kind| kind != PullRequest::None),
        ..DraftRequest::default()
    };
    let push = ("push", draft.commits.to_string());
    let run = RunArgs {
        prompt,
        issue: args.issue,
        common: args.common.clone(),
        output: args.output,
        settings: args
            .settings
            .clone()
            .and([push, ("report", "none".to_owned())]),
        ..RunArgs::default()
    };
    let code = launch(context, &run, Some(draft.clone()))?;
    Ok((code, draft.written.take()))
}

/// The path given with `--output`, which must be a new file.
fn output(context: &Context, args: &PlanArgs) -> Result<Option<PathBuf>> {
    let Some(path) = &args.output_file else {
        return Ok(None);
    };
    let path = context.cwd.join(path);
    let refused = |why: &str| Error::usage(format!("--output {}: {why}", path.display()));
    if path.symlink_metadata().is_ok() {
        return Err(refused("this file already exists").hint("name a new file, or remove that one"));
    }
    let ending = path.extension().unwrap_or_default();
    if ending != "yaml" && ending != "yml" {
        return Err(refused("a plan is a YAML file").hint("name a file that ends in .yaml"));
    }
    Ok(Some(path))
}

/// Starts or resumes a run, or lets the agent draft a plan.
fn launch(context: &Context, args: &RunArgs, draft: Option<DraftRequest>) -> Result<u8> {
    process::hide_from_same_user()?;
    let runtime = runtime()?;
    let mut asker = None;
    let mut prepared = match begin(context, args, draft, &runtime, &mut asker) {
        Ok(prepared) => prepared,
        Err(no_run) => {
            if let NoRun::Failed(error) = &no_run {
                report_not_started(context, asker.as_ref(), error, &runtime);
            }
            return no_run.report(context, &mut stdout());
        }
    };
    give_answer(args, &mut prepared)?;
    if args.dry_run {
        print(context, &dry_run(&prepared))?;
        return Ok(0);
    }
    execute(context, args, prepared, runtime)
}

/// Prepares a new run, or one that an earlier process has left. Whoever asked for it on GitHub becomes the `asker`.
fn begin(
    context: &Context,
    args: &RunArgs,
    draft: Option<DraftRequest>,
    runtime: &Runtime,
    asker: &mut Option<RunRequest>,
) -> Result<Prepared, NoRun> {
    if args.resume && !args.from_remote {
        return Ok(reopen(context, args, find(context, args)?)?);
    }
    let is_drafted = draft.is_some();
    let asked = decide(context, args, draft, runtime, asker)?;
    if !is_drafted && let Some(run_dir) = restore(context, args, &asked)? {
        let left = LeftRun {
            lock: asked.lock.map_or_else(|| lock(context, &asked.real), Ok)?,
            real: asked.real,
            run_dir,
            request: asked.request,
            elsewhere: Some(asked.file),
        };
        return Ok(reopen(context, args, left)?);
    }
    let mut prepared = prepare(context, asked)?;
    let reviews = prepared.asked.work.reviewed().is_some();
    // Only trusted sources may turn a run into a review: the plan that it runs may not.
    if !is_drafted && prepared.run.settings.review_only != reviews {
        return Err(set_in_plan("review_only").into());
    }
    let asked = &mut prepared.asked;
    match &prepared.output_schema {
        Some(schema) if args.dry_run => {
            schema.load(context, &asked.real, asked.request.as_ref(), None)?;
        }
        _ => {}
    }
    if let Some(request) = &mut asked.request {
        let token = ActionsEnvironment::of(context).is_some();
        request.resolve(&prepared.run.settings, context.in_actions(), token);
    }
    if asked.lock.is_none() && !args.dry_run {
        asked.lock = Some(lock(context, &asked.real)?);
    }
    Ok(prepared)
}

/// The single-threaded runtime of a run.
///
/// # Errors
/// When the system cannot create it.
pub(crate) fn runtime() -> Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async { process::survive_file_size_limit() })?;
    Ok(runtime)
}
