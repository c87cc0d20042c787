//! A run from its directory to its last report.

use crate::cli::RunArgs;
use crate::context::Context;
use crate::domain::event::{EventKind, WarningTopic};
use crate::domain::outcome::{Outcome, run_end};
use crate::domain::output_schema::OutputSchema;
use crate::domain::settings::{OnFinding, Report};
use crate::error::{Error, Result};
use crate::github::delivery::{Delivered, FOLLOW_UP_TIMEOUT};
use crate::github::queue::count_run;
use crate::github::request::RunRequest;
use crate::github::review_comments::{Reviewed, post};
use crate::github::{actions_environment, review_threads};
use crate::process;
use crate::run::begin::draft_request::DraftRequest;
use crate::run::begin::isolation::{Isolation, Scope, isolation};
use crate::run::begin::model_gateway::require_gateway;
use crate::run::begin::new_run::{OpenRun, begin_new, refuse_read_only, refuse_signer};
use crate::run::begin::opening::{ends, parts, recall, run_plan};
use crate::run::begin::prepare::{Prepared, Source};
use crate::run::begin::reopen::{Earlier, ResumedState, spent_of};
use crate::run::begin::required_agents::{
    fall_back, require_commands_of_roles, require_logins, require_programs,
};
use crate::run::begin::resume::{clean_up_after, resume_run};
use crate::run::begin::run_plan::RunPlan;
use crate::run::begin::source;
use crate::run::begin::started::{StartFacts, continuation, started};
use crate::run::deliver::delivery::{deliver, warn_of_closed_pull, warn_of_unpushed_commits};
use crate::run::deliver::finish::{end, in_plan_order, note_ended};
use crate::run::deliver::jj;
use crate::run::deliver::reporting::Reporting;
use crate::run::deliver::work_keeper::WorkKeeper;
use crate::run::deliver::{cost_limits, unfinished_work};
use crate::run::merge::base_merge::merge_base;
use crate::run::merge::integrate::integrate;
use crate::run::state::agent_files::AgentFiles;
use crate::run::state::emitter::Emitter;
use crate::run::state::layout::RunFile;
use crate::run::state::lock::RunLock;
use crate::run::state::parts::Parts;
use crate::run::steps::credentials::{hide_credentials, restore_credentials};
use crate::run::steps::identity::require_signature;
use crate::run::steps::{Services, draft_plan, keep_for_publish, record_plan_end, run_setup};
use crate::settings::TaskConfig;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::runtime::Runtime;

/// A run that is ready for its first event.
struct Opened {
    run: OpenRun,
    isolation: Isolation,
    schema: Option<OutputSchema>,
}

/// Prepares everything, performs the run, and reports its end.
pub(crate) fn execute(
    context: &Context,
    args: &RunArgs,
    mut prepared: Prepared,
    request: Option<RunRequest>,
    resumed: Option<ResumedState>,
    runtime: Runtime,
    lock: &mut RunLock,
) -> Result<u8> {
    // Before the first child starts, so that what is read from the repository stays valid until the
    // first turn.
    process::become_subreaper().map_err(anyhow::Error::from)?;
    let logins = prepared.run.setup.is_empty();
    let configs = prepared.tasks.iter_mut().map(|(_, config)| config);
    let replaced = fall_back(context, configs, logins);
    prepared.warnings.extend(replaced);
    let request = request.as_ref();
    let opened = open(context, args, &mut prepared, request, resumed, &runtime);
    let (opened, mut reporting) =
        opened.inspect_err(|error| report_not_started(context, request, error, &runtime))?;
    let run_dir = opened.run.run_dir.clone();
    lock.name_run(&opened.run.run_id);
    if let Some(request) = request {
        let text = serde_json::to_vec_pretty(request).map_err(anyhow::Error::from)?;
        run_dir.write(RunFile::Request, &text)?;
        let resumed = opened.run.earlier.is_some();
        reporting.publish(context, request, &run_dir, &opened.run.run_id, resumed);
    }
    // Also for a run that ends before its first event.
    let is_draft = prepared.draft.is_some();
    let kind = (is_draft, prepared.reviewed.is_some());
    reporting.note_continuation(continuation(context, request, kind));
    let working = work(context, prepared, opened, request, &mut reporting);
    let ended = unless_it_panics(|| runtime.block_on(working));
    // Children that were ended late must not delay the exit.
    runtime.shutdown_timeout(Duration::from_millis(200));
    match ended {
        Ok(code) => {
            let last = reporting.finish(context, &run_dir);
            note_ended(&run_dir, code, last);
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

/// Opens the run directory and the reports, after the last checks.
fn open(
    context: &Context,
    args: &RunArgs,
    prepared: &mut Prepared,
    request: Option<&RunRequest>,
    mut resumed: Option<ResumedState>,
    runtime: &Runtime,
) -> Result<(Opened, Reporting)> {
    let (real, source) = (&prepared.real, prepared.output_schema.as_ref());
    let repo = resumed.as_ref().map(|it| &*it.repo);
    let schema = source
        .map(|it| it.load(context, real, request, repo))
        .transpose()?;
    let isolation = runtime.block_on(confined(context, prepared, resumed.as_ref()))?;
    let filters = isolation.filters(Vec::new());
    prepared.real.confine_filters(filters.clone());
    if let Some(resumed) = &mut resumed {
        resumed.repo.confine_filters(filters);
    }
    let real = &prepared.real;
    runtime.block_on(jj::prepare(context, real, &isolation, resumed.is_some()))?;
    let (run, reporting) = open_run(context, args, prepared, resumed)?;
    isolation.make_directories();
    let opened = Opened {
        run,
        isolation,
        schema,
    };
    Ok((opened, reporting))
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

/// Determines how the run's children are confined.
async fn confined(
    context: &Context,
    prepared: &Prepared,
    resumed: Option<&ResumedState>,
) -> Result<Isolation> {
    let tasks = prepared.tasks.iter().map(|(_, config)| config);
    let run_dir = resumed.map(|it| it.run_dir.root());
    isolation(&Scope::of(
        context,
        &prepared.real,
        &prepared.run,
        tasks,
        run_dir,
    ))
    .await
}

pub(crate) fn report_not_started(
    context: &Context,
    request: Option<&RunRequest>,
    error: &Error,
    runtime: &Runtime,
) {
    if let Some(request) = request {
        source::report_refusal(context, request, error, runtime);
    }
}

fn open_run(
    context: &Context,
    args: &RunArgs,
    prepared: &Prepared,
    resumed: Option<ResumedState>,
) -> Result<(OpenRun, Reporting)> {
    if prepared.shards.is_empty() {
        let configs = || prepared.tasks.iter().map(|(_, config)| config);
        require_programs(context, configs())?;
        // A setup command may install a program or log the agent in.
        if prepared.run.setup.is_empty() {
            require_commands_of_roles(context, prepared.real.work_tree(), configs())?;
            require_logins(context, configs())?;
        }
        require_gateway(context, &prepared.run, configs())?;
    }
    refuse_read_only(&prepared.real, !prepared.run.settings.allow_dirty)?;
    match resumed {
        None => begin_new(context, args, prepared),
        Some(it) => go_on(context, args, prepared, it),
    }
}

fn go_on(
    context: &Context,
    args: &RunArgs,
    prepared: &Prepared,
    it: ResumedState,
) -> Result<(OpenRun, Reporting)> {
    refuse_signer(prepared, &it.repo)?;
    let reporting = Reporting::open(
        context,
        &prepared.run.settings,
        args.output,
        (&it.run_dir, prepared.real.work_tree()),
        Some(&it.earlier.summary),
    )?;
    let open_run = OpenRun {
        run_dir: it.run_dir,
        run_id: it.run_id,
        earlier: Some(it.earlier),
        repo: it.repo,
    };
    Ok((open_run, reporting))
}

async fn work(
    context: &Context,
    prepared: Prepared,
    mut opened: Opened,
    request: Option<&RunRequest>,
    reporting: &mut Reporting,
) -> Result<u8> {
    let cancel = ends(context, prepared.run.settings.deadline)?;
    reporting.shorten_waits_after(&cancel);
    let mut sink = |event| reporting.take(event);
    let earlier = opened.run.earlier.take();
    let (seq, before_ms) = earlier
        .as_ref()
        .map_or((0, 0), |earlier| (earlier.seq, earlier.summary.elapsed_ms));
    let emit = Emitter::new(&mut sink, seq, before_ms).reporting(cancel.clone());
    let no_changes = prepared.run.settings.if_no_changes;
    let (made, config) = ((opened.run, opened.isolation), prepared.run);
    let mut parts = parts(context, made, prepared.book, config, cancel, emit);
    parts.setup.reviewed = prepared.reviewed;
    parts.setup.output_schema = opened.schema;
    let resumed = earlier.is_some();
    // Integration runs no agent, so it has no cost, and the other jobs already keep the work.
    let has_agent = prepared.shards.is_empty();
    let sources = (&prepared.source, earlier.as_ref());
    let limits = recall_and_limit(context, &mut parts, sources, request, has_agent).await?;
    let facts = StartFacts {
        all: &prepared.all,
        tasks: &prepared.tasks,
        resumed,
        has_agent,
        is_draft: prepared.draft.is_some(),
        is_review: parts.setup.reviewed.is_some(),
        limits,
    };
    tell_start(context, &mut parts, request, facts, &prepared.warnings)?;
    let just_failed = earlier.as_ref().and_then(Earlier::just_failed);
    let mut plan = run_plan(&parts, prepared.tasks, &prepared.named, earlier, no_changes);
    plan.shards = prepared.shards;
    let (setup, tree, emit) = (&parts.setup, &mut parts.tree, &mut parts.emit);
    if resumed {
        resume_run(setup, tree, emit, plan.tasks.iter().map(|(_, start)| start))?;
    }
    if let Some((task, outcome)) = just_failed {
        clean_up_after(setup, tree, emit, &task, &outcome);
    }
    // Setup, agent, checks and services run untrusted code.
    hide_credentials(setup, tree, emit);
    let asked = (request, prepared.draft.as_ref());
    let done = &prepared.done;
    let worked = run_and_deliver(context, &mut parts, &plan, done, asked, no_changes).await;
    restore_credentials(&parts.setup, &mut parts.tree, &mut parts.emit);
    let (outcomes, delivered) = worked?;
    jj::import_commits(&parts.setup, &mut parts.tree, &mut parts.emit).await;
    Ok(end(&mut parts, &outcomes, no_changes, delivered))
}

/// Loads what the run's earlier processes left, determines where unfinished work is kept, and applies the daily
/// cost limit. Returns the limits for people.
async fn recall_and_limit(
    context: &Context,
    parts: &mut Parts<'_>,
    (source, earlier): (&Source, Option<&Earlier>),
    request: Option<&RunRequest>,
    has_agent: bool,
) -> Result<Option<String>> {
    match earlier {
        Some(earlier) => recall(parts, earlier)?,
        // Files that the checks of earlier runs left behind.
        None => {
            parts.tree.recall_artifacts(&mut parts.emit);
            warn_of_left_files(parts);
        }
    }
    let set = parts.setup.config.settings.agent_config;
    parts.setup.agent_files = AgentFiles::resolve(context, &parts.tree.repo, set, request)?;
    let base = parts.tree.repo.base();
    parts.setup.note_start_commit(base.clone())?;
    jj::record_operation(&parts.setup, &parts.tree, &mut parts.emit).await?;
    if !has_agent {
        return Ok(None);
    }
    let elsewhere = earlier.filter(|it| it.elsewhere).map(spent_of);
    // A merge is always made anew from its two sides, so it needs no saved work.
    let keeps_work = |it: &&RunRequest| !it.context.merges_base && parts.setup.reviewed.is_none();
    let kept = request.filter(keeps_work);
    let work_tree = parts.tree.repo.real().work_tree().to_path_buf();
    parts.keeper = WorkKeeper::of(
        context,
        kept,
        (source, &work_tree, base),
        elsewhere.is_some(),
    );
    Ok(cost_limits::apply_daily_limit(context, parts, request, elsewhere).await)
}

/// Names what runs that died have moved out of this work tree, on a machine that keeps its checkout.
fn warn_of_left_files(parts: &mut Parts<'_>) {
    for dir in parts.tree.repo.left_away() {
        parts.emit.warn(format!(
            "a run that was killed has left files of the work tree that are not under version control in {}: resume \
             that run, or move them back (N.from says where N was) and remove the directory",
            dir.display()
        ));
    }
}

/// Loads the notes that earlier runs left for this one.
fn recall_notes(context: &Context, parts: &mut Parts<'_>) -> Result<()> {
    let kept = parts.keeper.as_mut();
    let elsewhere = kept.and_then(|keeper| keeper.notes(&parts.tree));
    let (run_dir, work_tree) = (&parts.setup.run_dir, parts.tree.repo.real().work_tree());
    parts
        .notes
        .recall(context, work_tree, (run_dir, elsewhere))?;
    Ok(())
}

/// Loads the notes for a new run. Emits the start of the run and then the warnings for the user.
fn tell_start(
    context: &Context,
    parts: &mut Parts<'_>,
    request: Option<&RunRequest>,
    facts: StartFacts<'_>,
    warnings: &[String],
) -> Result<()> {
    let (resumed, has_agent) = (facts.resumed, facts.has_agent);
    let started = started(context, parts, request, facts);
    if !resumed && has_agent && !request.is_some_and(|it| it.context.merges_base) {
        recall_notes(context, parts)?;
    }
    let detached = started.branch.is_none() && started.base.is_some() && !context.in_actions();
    parts.emit.emit(EventKind::RunStarted(Box::new(started)));
    if detached {
        warn_of_detached_head(parts);
    }
    warn_of_held_lock(parts);
    for warning in warnings.iter().chain(parts.setup.isolation.warnings()) {
        parts.emit.warn(warning);
    }
    let of_fork = request.is_some_and(|it| it.context.report_only);
    if of_fork && !resumed && parts.setup.reviewed.is_none() {
        parts.emit.warn_about(
            WarningTopic::FromFork,
            "the pull request is from a fork: nothing is pushed, the work is only reported",
        );
    }
    Ok(())
}

fn warn_of_detached_head(parts: &mut Parts<'_>) {
    if parts.tree.repo.started_with_jj() {
        parts.emit.warn_about(
            WarningTopic::NoBookmark,
            "no bookmark follows the commits of this run; its end says how to create one",
        )
    } else {
        parts.emit.warn(
            "HEAD is detached: commits will not be on a branch; the end of the run says how to create one",
        )
    }
}

/// Warns of a lock that another git process holds, if this run is to commit. It may be released before the first
/// commit, which waits for it for a while.
fn warn_of_held_lock(parts: &mut Parts<'_>) {
    let lock = parts.tree.repo.real().held_lock();
    if let Some(lock) = lock.filter(|_| parts.setup.commits()) {
        parts.emit.warn(format!(
            "{} is held by another git process, and nothing can be committed until it is gone: remove the file if no git is running",
            lock.display()
        ));
    }
}

/// Runs the plan and delivers the commits.
async fn run_and_deliver(
    context: &Context,
    parts: &mut Parts<'_>,
    plan: &RunPlan,
    done: &[TaskConfig],
    (request, draft): (Option<&RunRequest>, Option<&DraftRequest>),
    no_changes: OnFinding,
) -> Result<(BTreeMap<String, Outcome>, Delivered)> {
    let outcomes = match (draft, plan.tasks.first()) {
        (Some(draft), Some(task)) => {
            if draft.commits {
                require_signature(&parts.setup, &parts.tree.repo)?;
            }
            let outcome = draft_plan(parts, task, draft).await?;
            parts.emit.at(None, None, None);
            BTreeMap::from([(task.0.id.to_string(), outcome)])
        }
        _ => outcomes(context, parts, plan, request).await?,
    };
    // All children have ended, so nothing else writes to the repository.
    for what in parts.setup.violations() {
        parts.emit.warn(what);
    }
    if outcomes.values().all(|outcome| !outcome.ends_run())
        && let Err(error) = record_plan_end(&parts.setup, &mut parts.tree, &mut parts.emit)
    {
        let why = format!("the plan's status could not be saved: {error:#}");
        parts.emit.warn(why);
    }
    let delivered = match request {
        Some(request) => deliver(context, parts, request, plan, done, &outcomes).await?,
        None => {
            keep_if_unpushed(context, parts);
            Delivered::Not
        }
    };
    if delivered == Delivered::Not {
        warn_of_unpushed_commits(context, parts, request);
    }
    if let Some(request) = request {
        tell_review(context, parts, request).await?;
        let (status, _) = run_end(&in_plan_order(&parts.tree.plan.plan, &outcomes), no_changes);
        let trigger = request.context.trigger_phrase.as_deref();
        let closed = match delivered {
            Delivered::Not => warn_of_closed_pull(context, parts, request, status).await,
            _ => None,
        };
        let kept = (status, closed.map_or(delivered, Delivered::Closed));
        unfinished_work::save_or_remove(context, parts, kept, trigger).await;
        cost_limits::count(context, parts, request).await;
    }
    // If this job may not write to GitHub, the job that publishes the run counts it.
    let counts = |request: &&RunRequest| request.delivery.push || request.delivery.report;
    if let Some(request) = request.filter(|it| it.queued.is_some()).filter(counts) {
        let (status, _) = run_end(&in_plan_order(&parts.tree.plan.plan, &outcomes), no_changes);
        let uncounted = count_run(context, request, status, &parts.setup.run_id).await;
        uncounted.into_iter().for_each(|why| parts.emit.warn(why));
    }
    Ok((outcomes, delivered))
}

/// Answers the review threads that requested the run. If the run is a review, posts its findings.
async fn tell_review(context: &Context, parts: &mut Parts<'_>, request: &RunRequest) -> Result<()> {
    let posted = parts.setup.reviewed.clone();
    let posts = parts.setup.config.settings.review_comments && request.delivery.report;
    let posted = posted.filter(|_| posts);
    let actions = actions_environment::ActionsEnvironment::of(context);
    let Some(actions) = actions.filter(|_| request.review.is_some() || posted.is_some()) else {
        return Ok(());
    };
    let summary = parts.setup.summary()?;
    let patience = match parts.setup.cancel.beyond_deadline().reason() {
        Some(_) => Duration::ZERO,
        None => FOLLOW_UP_TIMEOUT,
    };
    let mut troubles = review_threads::answer(&actions, request, &summary, patience).await;
    if let Some(change) = posted {
        match parts.tree.repo.patch_between(&change.from, &change.to) {
            Ok(patch) => {
                let reviewed = Reviewed {
                    head: &change.to.0,
                    patch: &patch,
                };
                troubles.extend(post(&actions, request, &summary, reviewed, patience).await);
            }
            Err(error) => {
                troubles.push(format!("the findings are not posted as a review: {error}"))
            }
        }
    }
    troubles.into_iter().for_each(|why| parts.emit.warn(why));
    Ok(())
}

/// Runs the setup commands and then the tasks.
async fn outcomes(
    context: &Context,
    parts: &mut Parts<'_>,
    plan: &RunPlan,
    request: Option<&RunRequest>,
) -> Result<BTreeMap<String, Outcome>> {
    let (setup, tree, emit) = (&parts.setup, &mut parts.tree, &mut parts.emit);
    let mut services = Services::default();
    let stopped = if plan.tasks.is_empty() {
        None
    } else {
        run_setup(setup, tree, emit, &mut services).await?
    };
    if stopped.is_none()
        && let Err(error) = require_ready(context, parts, plan, request)
    {
        services.end(&parts.setup).await;
        return Err(error);
    }
    let outcomes = match stopped {
        None if !plan.shards.is_empty() => integrate(context, parts, plan).await?,
        None => match request.filter(|it| it.context.merges_base) {
            Some(request) => merge_base(context, parts, plan, request).await?,
            None => crate::run::run(parts, plan).await?,
        },
        Some(outcome) => BTreeMap::from([("setup".to_owned(), outcome)]),
    };
    services.end(&parts.setup).await;
    Ok(outcomes)
}

/// Requires what the setup commands may have provided: a key to sign commits with, and the agents' logins.
fn require_ready(
    context: &Context,
    parts: &Parts<'_>,
    plan: &RunPlan,
    request: Option<&RunRequest>,
) -> Result<()> {
    let integrates = !plan.shards.is_empty();
    let merges = request.is_some_and(|it| it.context.merges_base);
    if integrates || merges || !plan.tasks.is_empty() {
        require_signature(&parts.setup, &parts.tree.repo)?;
    }
    let configs = plan.tasks.iter().map(|(_, start)| &start.config);
    if integrates || merges {
        Ok(())
    } else {
        require_logins(context, configs)
    }
}

/// Stores the commits for a publishing job if this job does not push.
fn keep_if_unpushed(context: &Context, parts: &mut Parts<'_>) {
    let set = &parts.setup.config.settings;
    let is_wanted = context.in_actions() || set.push == Some(false) || set.report == Report::None;
    if let Some(start) = parts.setup.start_commit().filter(|_| is_wanted) {
        keep_for_publish(&parts.setup, &parts.tree, &mut parts.emit, &start);
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
