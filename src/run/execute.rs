//! A run from its opening to its last report.

use crate::cli::RunArgs;
use crate::context::Context;
use crate::domain::outcome::Outcome;
use crate::error::Result;
use crate::process;
use crate::run::begin::beginning::{Earlier, RunPlan};
use crate::run::begin::branch_rules::require_pushable;
use crate::run::begin::open::{Opened, open};
use crate::run::begin::opening::{cancels, load, parts, report_start, run_plan};
use crate::run::begin::prepare::Prepared;
use crate::run::begin::requirements::require_logins;
use crate::run::begin::resume::resume_run;
use crate::run::begin::source::report_not_started;
use crate::run::begin::work::Work;
use crate::run::deliver::delivery::deliver;
use crate::run::deliver::finish::{end, save_ended};
use crate::run::deliver::jj;
use crate::run::deliver::reporting::Reporting;
use crate::run::merge::base_merge::merge_base;
use crate::run::merge::integrate::integrate;
use crate::run::state::emitter::Emitter;
use crate::run::state::layout::RunFile;
use crate::run::state::parts::Parts;
use crate::run::state::pictures;
use crate::run::steps::credentials::{hide_credentials, restore_credentials};
use crate::run::steps::hooks::require_interpreters;
use crate::run::steps::identity::require_signature;
use crate::run::steps::{Services, draft_plan, record_plan_end, run_setup};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::runtime::Runtime;

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
