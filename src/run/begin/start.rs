//! The front door: a run from its command line to its exit code.

use crate::cli::{PlanArgs, RunArgs};
use crate::context::Context;
use crate::domain::outcome::Outcome;
use crate::domain::settings::PullRequest;
use crate::error::{Error, Result};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::lookup::NoRun;
use crate::github::request::RunRequest;
use crate::print::print;
use crate::process;
use crate::run::begin::beginning::{Earlier, RunPlan};
use crate::run::begin::branch_rules::require_pushable;
use crate::run::begin::described::dry_run;
use crate::run::begin::open::{Opened, open};
use crate::run::begin::opening::{cancels, load, parts, report_start, run_plan};
use crate::run::begin::prepare::{Prepared, prepare};
use crate::run::begin::reopen::{LeftRun, find, reopen, restore};
use crate::run::begin::requirements::require_logins;
use crate::run::begin::resume::{give_answer, resume_run};
use crate::run::begin::source::{decide, report_not_started};
use crate::run::begin::work::{DraftRequest, Work, Written};
use crate::run::deliver::delivery::deliver;
use crate::run::deliver::finish::{end, save_ended};
use crate::run::deliver::jj;
use crate::run::deliver::reporting::Reporting;
use crate::run::merge::base_merge::merge_base;
use crate::run::merge::integrate::integrate;
use crate::run::state::emitter::Emitter;
use crate::run::state::layout::RunFile;
use crate::run::state::lock::lock;
use crate::run::state::parts::Parts;
use crate::run::state::pictures;
use crate::run::steps::credentials::{hide_credentials, restore_credentials};
use crate::run::steps::hooks::require_interpreters;
use crate::run::steps::identity::require_signature;
use crate::run::steps::{Services, draft_plan, record_plan_end, run_setup};
use crate::settings::inputs::with_inputs;
use crate::settings::set_in_plan;
use std::collections::BTreeMap;
use std::io::stdout;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::time::Duration;
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

/// Opens the run, performs it, and reports its end.
pub(crate) fn execute(
    context: &Context,
    args: &RunArgs,
    mut prepared: Prepared,
    runtime: Runtime,
) -> Result<u8> {
    // Before the first child starts, so that what is read from the repository stays valid until the
    // first turn.
    process::become_subreaper()?;
    // Held until the run has ended.
    let mut lock = prepared.asked.lock.take();
    let opened = open(context, args, &mut prepared, &runtime);
    let (opened, mut reporting) = opened.inspect_err(|error| {
        report_not_started(context, prepared.request(), error, &runtime);
    })?;
    let run_dir = opened.place.run_dir.clone();
    let run_id = &opened.place.run_id;
    if let Some(answer) = &prepared.answer {
        run_dir.write_json(RunFile::Answer, answer)?;
    }
    if let Some(lock) = &mut lock {
        lock.name_run(run_id);
    }
    if let Some(request) = prepared.request() {
        let text = serde_json::to_vec_pretty(request)?;
        run_dir.write(RunFile::Request, &text)?;
        pictures::save(&run_dir, &request.pictures)?;
        let resumed = prepared.asked.earlier.is_some();
        reporting.publish(context, request, run_id, resumed);
    }
    // Also for a run that ends before its first event.
    let work = &prepared.asked.work;
    let is_draft = work.is_draft();
    reporting.note_continuation(work.continuation(context.in_actions(), prepared.request()));
    let working = perform(context, prepared, opened, &mut reporting);
    let ended = unless_it_panics(|| runtime.block_on(working));
    // Children that were ended late must not delay the exit.
    runtime.shutdown_timeout(Duration::from_millis(200));
    match ended {
        Ok(code) => {
            let last = reporting.finish(context);
            save_ended(&run_dir, code, last);
            Ok(code)
        }
        Err(error) => {
            let error = if is_draft { error } else { error.of_run() };
            // The error is always printed; the reports are finished if possible.
            reporting.record_error(&error);
            reporting.finish(context);
            Err(error)
        }
    }
}

/// Turns a panic into an error, so that no check run stays open and no child process keeps running.
fn unless_it_panics<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    // Only the reports use the state after a panic, and they are made from complete events.
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        process::kill_descendants();
        let fixed = payload.downcast_ref::<&str>().copied();
        let words = fixed.or(payload.downcast_ref::<String>().map(String::as_str));
        let words = words.unwrap_or("no message");
        let error = anyhow::anyhow!("internal error: {words}");
        Err(error.into())
    })
}

/// Works on the tasks and delivers what is done.
async fn perform(
    context: &Context,
    mut prepared: Prepared,
    opened: Opened,
    reporting: &mut Reporting,
) -> Result<u8> {
    let cancel = cancels(context, prepared.run.settings.deadline)?;
    reporting.hurry_after(&cancel);
    let mut sink = |event| reporting.take(event);
    let earlier = prepared.asked.earlier.as_ref();
    let (seq, before_ms) = earlier.map_or((0, 0), |it| (it.seq, it.summary.elapsed_ms));
    let just_failed = earlier.and_then(Earlier::just_failed).cloned();
    let emit = Emitter::new(&mut sink, seq, before_ms).reporting(cancel.clone());
    let mut parts = parts(context, opened, &prepared, cancel, emit);
    let parts = &mut parts;
    let limits = load(context, parts, &prepared).await?;
    report_start(context, parts, &prepared, limits)?;
    require_pushable(context, parts, &prepared).await?;
    let resumed = prepared.asked.earlier.is_some();
    let plan = run_plan(parts, &mut prepared);
    if resumed {
        resume_run(parts, &plan, just_failed.as_ref())?;
    }
    // Setup, agent, checks and services run untrusted code.
    hide_credentials(parts);
    let worked = match outcomes(context, parts, &plan, &prepared).await {
        Ok(outcomes) => deliver(context, parts, &prepared, &plan, &outcomes)
            .await
            .map(|delivered| (outcomes, delivered)),
        Err(error) => Err(error),
    };
    restore_credentials(parts);
    let (outcomes, delivered) = worked?;
    jj::import_commits(&parts.setup, &mut parts.tree, &mut parts.emit).await;
    Ok(end(parts, &outcomes, plan.rules.no_changes, delivered))
}

/// Does the work and saves the plan's status.
async fn outcomes(
    context: &Context,
    parts: &mut Parts<'_>,
    plan: &RunPlan,
    prepared: &Prepared,
) -> Result<BTreeMap<String, Outcome>> {
    let outcomes = match (&prepared.asked.work, plan.tasks.first()) {
        (Work::Draft(draft), Some((task, start))) => {
            if draft.commits {
                require_signature(&parts.setup, &parts.tree.repo)?;
            }
            let outcome = draft_plan(parts, task, start, draft).await?;
            parts.emit.at(None, None, None);
            BTreeMap::from([(task.id.to_string(), outcome)])
        }
        _ => outcomes_of_tasks(context, parts, plan, prepared).await?,
    };
    // All children have ended, so nothing else writes to the repository.
    for violation in parts.setup.violations() {
        parts.warn(violation);
    }
    if outcomes.values().all(|outcome| !outcome.ends_run())
        && let Err(error) = record_plan_end(parts)
    {
        let why = format!("the plan's status could not be saved: {error:#}");
        parts.warn(why);
    }
    Ok(outcomes)
}

/// Runs the setup commands and then the tasks.
async fn outcomes_of_tasks(
    context: &Context,
    parts: &mut Parts<'_>,
    plan: &RunPlan,
    prepared: &Prepared,
) -> Result<BTreeMap<String, Outcome>> {
    let mut services = Services::default();
    let merge = prepared.request().filter(|it| it.context.merges_base);
    let is_without_agent = merge.is_some() || !prepared.asked.work.has_agent();
    let mut stopped = None;
    if !plan.tasks.is_empty() {
        stopped = run_setup(parts, &mut services).await?;
    }
    if stopped.is_none()
        && let Err(error) = require_ready(context, parts, plan, is_without_agent)
    {
        services.end(&parts.setup).await;
        return Err(error);
    }
    let outcomes = match (stopped, &prepared.asked.work, merge) {
        (Some(outcome), ..) => BTreeMap::from([("setup".to_owned(), outcome)]),
        (None, Work::Integration(shards), _) => integrate(context, parts, plan, shards).await?,
        (None, _, Some(request)) => merge_base(context, parts, plan, request).await?,
        (None, ..) => crate::run::run(parts, plan).await?,
    };
    services.end(&parts.setup).await;
    Ok(outcomes)
}

/// Requires what the setup commands may have provided: a key to sign commits with, and the agents' logins.
fn require_ready(
    context: &Context,
    parts: &Parts<'_>,
    plan: &RunPlan,
    is_without_agent: bool,
) -> Result<()> {
    if is_without_agent || !plan.tasks.is_empty() {
        require_signature(&parts.setup, &parts.tree.repo)?;
        require_interpreters(&parts.setup, &parts.tree.repo)?;
    }
    if is_without_agent {
        return Ok(());
    }
    require_logins(context, plan.tasks.iter().map(|(_, start)| &start.config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_words() {
        let still = std::panic::catch_unwind(|| unless_it_panics(|| Ok(7)));
        assert!(matches!(still, Ok(Ok(7))));
        let number = 3;
        for (ended, words) in [
            (unless_it_panics::<()>(|| panic!("constant")), "constant"),
            (unless_it_panics(|| panic!("number {number}")), "number 3"),
        ] {
            let error = ended.unwrap_err();
            assert_eq!(error.exit_code(), 70);
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
