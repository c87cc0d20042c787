//! A run from its opening to its last report.

use crate::cli::RunArgs;
use crate::context::Context;
use crate::domain::outcome::Outcome;
use crate::error::Result;
use crate::github::request::RunRequest;
use crate::process;
use crate::run::begin::beginning::{Earlier, Ready, RunPlan};
use crate::run::begin::branch_rules::require_pushable;
use crate::run::begin::mcp::decide_servers;
use crate::run::begin::open::{Opened, open};
use crate::run::begin::opening::{ReadyTasks, cancels, load, parts, report_start, run_plan};
use crate::run::begin::prepare::Prepared;
use crate::run::begin::required_agents::{fall_back, require_logins};
use crate::run::begin::resume::{clean_up_after, resume_run};
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
    ready: Ready,
    runtime: Runtime,
) -> Result<u8> {
    let Ready {
        mut prepared,
        request,
        beginning,
        mut lock,
    } = ready;
    // Before the first child starts, so that what is read from the repository stays valid until the
    // first turn.
    process::become_subreaper().map_err(anyhow::Error::from)?;
    let logins = prepared.run.setup.is_empty();
    let configs = prepared.tasks.iter_mut().map(|(_, config)| config);
    let replaced = fall_back(context, configs, logins);
    prepared.warnings.extend(replaced);
    let request = request.as_ref();
    decide_servers(context, args, &mut prepared, request)
        .inspect_err(|error| report_not_started(context, request, error, &runtime))?;
    let (opened, mut reporting) = open(context, args, &mut prepared, request, beginning, &runtime)
        .inspect_err(|error| report_not_started(context, request, error, &runtime))?;
    let run_dir = opened.place.run_dir.clone();
    let run_id = &opened.place.run_id;
    if let Some(answer) = &prepared.answer {
        run_dir.write_json(RunFile::Answer, answer)?;
    }
    if let Some(lock) = &mut lock {
        lock.name_run(run_id);
    }
    if let Some(request) = request {
        let text = serde_json::to_vec_pretty(request).map_err(anyhow::Error::from)?;
        run_dir.write(RunFile::Request, &text)?;
        pictures::save(&run_dir, &request.pictures)?;
        let resumed = opened.earlier.is_some();
        reporting.publish(context, request, &run_dir, run_id, resumed);
    }
    // Also for a run that ends before its first event.
    let is_draft = prepared.work.is_draft();
    reporting.note_continuation(prepared.work.continuation(context.in_actions(), request));
    let working = work(context, prepared, opened, request, &mut reporting);
    let ended = unless_it_panics(|| runtime.block_on(working));
    // Children that were ended late must not delay the exit.
    runtime.shutdown_timeout(Duration::from_millis(200));
    match ended {
        Ok(code) => {
            let last = reporting.finish(context, &run_dir);
            save_ended(&run_dir, code, last);
            Ok(code)
        }
        Err(error) => {
            let error = if is_draft { error } else { error.of_run() };
            // The error is always printed; the reports are finished if possible.
            reporting.record_error(&error);
            reporting.finish(context, &run_dir);
            Err(error)
        }
    }
}

/// Turns a panic into an error, so that no check run stays open and no child process keeps running.
fn unless_it_panics<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    // Only the reports use the state after a panic, and they are made from complete events.
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        process::kill_descendants();
        let words = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned());
        let words = words
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".into());
        let error = anyhow::anyhow!("internal error: {words}");
        Err(error.into())
    })
}

async fn work(
    context: &Context,
    prepared: Prepared,
    mut opened: Opened,
    request: Option<&RunRequest>,
    reporting: &mut Reporting,
) -> Result<u8> {
    let cancel = cancels(context, prepared.run.settings.deadline)?;
    reporting.hurry_after(&cancel, &opened.place.run_dir);
    let mut sink = |event| reporting.take(event);
    let earlier = opened.earlier.take();
    let spent_elsewhere = opened.spent_elsewhere;
    let (seq, before_ms) = earlier
        .as_ref()
        .map_or((0, 0), |earlier| (earlier.seq, earlier.summary.elapsed_ms));
    let emit = Emitter::new(&mut sink, seq, before_ms).reporting(cancel.clone());
    let no_changes = prepared.run.settings.if_no_changes;
    let (book, config, work) = (prepared.book, prepared.run, prepared.work);
    let mut parts = parts(context, opened, book, config, &work, cancel, emit);
    let ready = ReadyTasks {
        request,
        work: &work,
        source: &prepared.source,
        all: &prepared.all,
        tasks: &prepared.tasks,
        resumed: earlier.is_some(),
    };
    let limits = load(
        context,
        &mut parts,
        &ready,
        earlier.as_ref(),
        spent_elsewhere,
    )
    .await?;
    report_start(context, &mut parts, &ready, limits, &prepared.warnings)?;
    require_pushable(context, &mut parts, &ready).await?;
    let resumed = ready.resumed;
    let just_failed = earlier.as_ref().and_then(Earlier::just_failed);
    let plan = run_plan(
        &parts,
        prepared.tasks,
        &prepared.named,
        earlier,
        prepared.answer.as_ref(),
        no_changes,
    );
    if resumed {
        resume_run(&mut parts, plan.tasks.iter().map(|(_, start)| start))?;
    }
    if let Some((task, outcome)) = just_failed {
        clean_up_after(&mut parts, &task, &outcome);
    }
    // Setup, agent, checks and services run untrusted code.
    hide_credentials(&mut parts);
    let worked = match outcomes(context, &mut parts, &plan, &work, request).await {
        Ok(outcomes) => deliver(
            context,
            &mut parts,
            request,
            &plan,
            &prepared.done,
            &outcomes,
        )
        .await
        .map(|delivered| (outcomes, delivered)),
        Err(error) => Err(error),
    };
    restore_credentials(&mut parts);
    let (outcomes, delivered) = worked?;
    jj::import_commits(&parts.setup, &mut parts.tree, &mut parts.emit).await;
    Ok(end(&mut parts, &outcomes, no_changes, delivered))
}

/// Does the work and saves the plan's status.
async fn outcomes(
    context: &Context,
    parts: &mut Parts<'_>,
    plan: &RunPlan,
    work: &Work,
    request: Option<&RunRequest>,
) -> Result<BTreeMap<String, Outcome>> {
    let outcomes = match (work, plan.tasks.first()) {
        (Work::Draft(draft), Some(task)) => {
            if draft.commits {
                require_signature(&parts.setup, &parts.tree.repo)?;
            }
            let outcome = draft_plan(parts, &task.0, &task.1, draft).await?;
            parts.emit.at(None, None, None);
            BTreeMap::from([(task.0.id.to_string(), outcome)])
        }
        _ => outcomes_of_tasks(context, parts, plan, work, request).await?,
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
    work: &Work,
    request: Option<&RunRequest>,
) -> Result<BTreeMap<String, Outcome>> {
    let mut services = Services::default();
    let stopped = if plan.tasks.is_empty() {
        None
    } else {
        run_setup(parts, &mut services).await?
    };
    let merge = request.filter(|request| request.context.merges_base);
    if stopped.is_none()
        && let Err(error) = require_ready(context, parts, plan, work, merge.is_some())
    {
        services.end(&parts.setup).await;
        return Err(error);
    }
    let outcomes = match (stopped, work, merge) {
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
    work: &Work,
    merges: bool,
) -> Result<()> {
    let is_without_agent = merges || !work.has_agent();
    if is_without_agent || !plan.tasks.is_empty() {
        require_signature(&parts.setup, &parts.tree.repo)?;
        require_interpreters(&parts.setup, &parts.tree.repo)?;
    }
    if is_without_agent {
        Ok(())
    } else {
        require_logins(context, plan.tasks.iter().map(|(_, start)| &start.config))
    }
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
