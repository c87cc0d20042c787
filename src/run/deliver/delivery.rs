//! Delivers a finished run: pushes its commits to the remote and then updates GitHub.

use crate::context::Context;
use crate::domain::event::{ClosedPull, EventKind, PushLine, WarningTopic};
use crate::domain::kept_work::is_outdated;
use crate::domain::outcome::{Outcome, Reason, RunStatus, TaskEnd, run_end};
use crate::domain::plan::Task;
use crate::domain::settings::Report;
use crate::domain::snapshot::RevId;
use crate::error::Result;
use crate::git::{BranchName, KEPT_WORK_REFS, RawSnapshot};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::api_commits::{ApiCommitError, ApiPush, commit};
use crate::github::delivery::{self, AfterPush, Delivered, FOLLOW_UP_TIMEOUT, closed_meanwhile};
use crate::github::lookup::remote;
use crate::github::queue::count_run;
use crate::github::request::{RunRequest, WorkBranch};
use crate::github::review_comments::{Reviewed, post};
use crate::process::{Cancel, CancelReason};
use crate::run::begin::beginning::RunPlan;
use crate::run::begin::prepare::Prepared;
use crate::run::deliver::cost_limits;
use crate::run::deliver::finish::in_plan_order;
use crate::run::deliver::push_failure::Destination;
use crate::run::deliver::work_keeper::WorkKeeper;
use crate::run::state::parts::Parts;
use crate::run::steps::{PushRequest, follow_remote, keep_for_publish, push_work, secrets_in};
use crate::settings::TaskConfig;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long all requests to GitHub except the push may take while the job is being cancelled. GitHub
/// kills a job 10 s after the first signal.
const CANCELLED_TIMEOUT: Duration = Duration::from_secs(2);

/// Delivers the commits of a run, reports on the review that it answers or is, and counts its cost.
///
/// # Errors
/// When the run's own state cannot be read or written.
pub(crate) async fn deliver(
    context: &Context,
    parts: &mut Parts<'_>,
    prepared: &Prepared,
    plan: &RunPlan,
    outcomes: &BTreeMap<String, Outcome>,
) -> Result<Delivered> {
    let Some(request) = prepared.request() else {
        keep_if_unpushed(context, parts);
        return Ok(Delivered::Not);
    };
    let checks = configs_of_done(plan, &prepared.done, outcomes);
    let delivered = deliver_to(context, parts, request, &checks).await?;
    if delivered == Delivered::Not {
        warn_of_unpushed_commits(context, parts, request);
    }
    report_review(context, parts, request).await?;
    let in_order = in_plan_order(&parts.tree.plan.plan, outcomes);
    let (status, reason) = run_end(&in_order, plan.rules.no_changes);
    let closed = match delivered {
        Delivered::Not => warn_of_closed_pull(context, parts, request, status).await,
        _ => None,
    };
    let kept = closed.map_or(delivered, Delivered::Closed);
    let trigger = request.context.trigger_phrase.as_deref();
    let asks = reason == Reason::NeedsAnswer;
    save_or_remove(context, parts, status, asks, kept, trigger).await;
    cost_limits::count(context, parts, request).await;
    // If this job may not write to GitHub, the job that publishes the run counts it.
    if request.queued.is_some() && (request.delivery.push || request.delivery.report) {
        let uncounted = count_run(context, request, status, &parts.setup.run_id).await;
        uncounted.into_iter().for_each(|why| parts.warn(why));
    }
    Ok(delivered)
}

/// Answers the review threads that requested the run. If the run is a review, posts its findings.
async fn report_review(
    context: &Context,
    parts: &mut Parts<'_>,
    request: &RunRequest,
) -> Result<()> {
    let posts = parts.setup.config.settings.review_comments && request.delivery.report;
    let posted = parts.setup.reviewed.clone().filter(|_| posts);
    let actions = ActionsEnvironment::of(context);
    let Some(actions) = actions.filter(|_| request.review.is_some() || posted.is_some()) else {
        return Ok(());
    };
    let summary = parts.setup.summary()?;
    let patience = match parts.setup.cancel.beyond_deadline().reason() {
        Some(_) => Duration::ZERO,
        None => FOLLOW_UP_TIMEOUT,
    };
    let mut troubles = delivery::answer(&actions, request, &summary, patience).await;
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
    troubles.into_iter().for_each(|why| parts.warn(why));
    Ok(())
}

/// Stores the commits for a publishing job if this job does not push.
fn keep_if_unpushed(context: &Context, parts: &mut Parts<'_>) {
    let set = &parts.setup.config.settings;
    let is_wanted = context.in_actions() || set.push == Some(false) || set.report == Report::None;
    if let Some(start) = parts.setup.start_commit().filter(|_| is_wanted) {
        keep_for_publish(parts, &start);
    }
}

/// Pushes the run's commits, opens or updates the pull request, and starts workflows.
///
/// # Errors
/// When the run's own state cannot be written.
async fn deliver_to(
    context: &Context,
    parts: &mut Parts<'_>,
    request: &RunRequest,
    checks: &[TaskConfig],
) -> Result<Delivered> {
    let Some(start) = parts.setup.start_commit() else {
        return Ok(Delivered::Not);
    };
    let actions = ActionsEnvironment::of(context).filter(|_| request.delivery.push);
    let (Some(actions), Some(branch)) = (actions, &request.branch) else {
        keep_for_publish(parts, &start);
        return Ok(Delivered::Not);
    };
    if parts.tree.repo.base().is_none_or(|head| head == start) {
        return Ok(Delivered::Not);
    }
    let named = BranchName::parse(&branch.name);
    let (remote, name) = match (remote(context, &actions), named) {
        (Ok(remote), Ok(name)) => (remote, name),
        (Err(error), _) | (_, Err(error)) => {
            parts.warn(format!("nothing can be pushed: {error}"));
            return Ok(Delivered::Failed);
        }
    };
    let stopped = parts.setup.cancel.beyond_deadline();
    let patience = context.after_signal(CANCELLED_TIMEOUT);
    let closed = tokio::select! {
        biased;
        closed = closed_meanwhile(&actions, request) => closed,
        () = after_signal(&stopped, patience) => None,
    };
    let push_request = PushRequest {
        to: Destination {
            remote: &remote,
            branch: name,
            closed,
            pauses: &actions.pauses,
            cancel: stopped,
        },
        expected: branch.at.clone().map(RevId),
        start,
        checks,
    };
    let mut pushed = None;
    if request.delivery.via_api && closed.is_none() {
        pushed = pushed_by_api(&actions, parts, &push_request).await;
    }
    if pushed.is_none() {
        pushed = push_work(parts, &push_request).await?;
    }
    let Some(mut push) = pushed else {
        return Ok(Delivered::Not);
    };
    let done = follow_up(&actions, parts, request, branch, patience, &mut push).await?;
    let delivered = match push.closed {
        Some(closed) => Delivered::Closed(closed),
        None => Delivered::of(done),
    };
    parts.emit.emit(EventKind::PushEnded(Box::new(push)));
    Ok(delivered)
}

/// Opens or updates the pull request and starts workflows after a push. After a signal, that may take as long as
/// `patience`. Returns whether all of it succeeded.
async fn follow_up(
    actions: &ActionsEnvironment,
    parts: &mut Parts<'_>,
    request: &RunRequest,
    branch: &WorkBranch,
    patience: Duration,
    push: &mut PushLine,
) -> Result<bool> {
    let stopped = parts.setup.cancel.beyond_deadline();
    let summary = parts.setup.summary()?;
    let after = AfterPush {
        actions,
        request,
        branch,
        summary: &summary,
        patience: match stopped.reason() {
            Some(_) => patience,
            None => FOLLOW_UP_TIMEOUT,
        },
    };
    let followed = tokio::select! {
        biased;
        followed = after.follow_up(push) => Some(followed),
        () = after_signal(&stopped, patience) => None,
    };
    let (done, troubles) = followed.unwrap_or_else(|| {
        let why = "the run was stopped before its pull request and workflows were handled";
        (false, vec![why.to_owned()])
    });
    troubles.into_iter().for_each(|why| parts.warn(why));
    Ok(done)
}

/// The settings of the tasks whose work is delivered, in this and in earlier processes of the run.
fn configs_of_done(
    plan: &RunPlan,
    earlier: &[TaskConfig],
    outcomes: &BTreeMap<String, Outcome>,
) -> Vec<TaskConfig> {
    let is_done = |task: &Task| {
        let outcome = outcomes.get(task.id.as_str());
        outcome.is_some_and(|outcome| outcome.task_end() == TaskEnd::Done)
    };
    let done = plan.tasks.iter().filter(|(task, _)| is_done(task));
    let done = done.map(|(_, start)| &start.config);
    done.chain(earlier).cloned().collect()
}

/// Warns of commits that stay in the job: they cannot be pushed, because no branch of the remote is checked out.
fn warn_of_unpushed_commits(context: &Context, parts: &mut Parts<'_>, request: &RunRequest) {
    let wants = parts.setup.config.settings.push != Some(false);
    let has_commits = parts.tree.repo.base() != parts.setup.start_commit();
    if context.in_actions() && wants && has_commits && request.branch.is_none() {
        parts.warn(
            "the commits are only in this job, because the checkout is on no branch of the remote: check one out \
             before this step, or push them in a later step",
        );
    }
}

/// Warns if the pull request was closed during a run that is not a success and has nothing to push: it cannot
/// be asked for again until the pull request is open.
async fn warn_of_closed_pull(
    context: &Context,
    parts: &mut Parts<'_>,
    request: &RunRequest,
    status: RunStatus,
) -> Option<ClosedPull> {
    let is_stopped = parts.setup.cancel.beyond_deadline().reason().is_some();
    if status.is_complete() || is_stopped || !request.delivery.push {
        return None;
    }
    let actions = ActionsEnvironment::of(context)?;
    let how = closed_meanwhile(&actions, request).await?;
    parts
        .emit
        .warn_about(WarningTopic::PullRequestClosed { how }, how.why());
    Some(how)
}

/// Returns `patience` after a signal.
async fn after_signal(stopped: &Cancel, patience: Duration) {
    stopped.cancelled().await;
    tokio::time::sleep(patience).await;
}

/// Lets GitHub recreate the commits through its API. `None` if it cannot: a warning says so, and the
/// caller pushes with git.
async fn pushed_by_api(
    actions: &ActionsEnvironment,
    parts: &mut Parts<'_>,
    push_request: &PushRequest<'_>,
) -> Option<PushLine> {
    let push = ApiPush {
        repo: &parts.tree.repo,
        branch: &push_request.to.branch,
        expected: push_request.expected.as_ref(),
        start: &push_request.start,
    };
    match commit(actions, push).await {
        Ok(line) => {
            let line = line?;
            if let Some(head) = &line.head {
                follow_remote(parts, push_request, &RevId(head.clone()));
            }
            Some(line)
        }
        Err(ApiCommitError::Impossible(why)) => {
            parts.warn(format!(
                "the commits are pushed without GitHub's signature: {why}"
            ));
            None
        }
        Err(ApiCommitError::OtherTree(why)) => {
            parts.warn(why.clone());
            Some(PushLine {
                branch: push_request.to.branch.short().to_owned(),
                detail: why.clone(),
                cause: Some(why),
                ..PushLine::default()
            })
        }
    }
}

/// How long saving may take while the job is being cancelled.
const CANCELLED_SAVE_TIMEOUT: Duration = Duration::from_secs(3);

/// How long GitHub may take to list the saved work.
const LIST_TIMEOUT: Duration = Duration::from_secs(20);

/// The most outdated references that one run checks.
const MAX_CHECKED: usize = 5;

/// At the end of a run: saves undelivered work, or removes the saved copy of delivered work.
pub(crate) async fn save_or_remove(
    context: &Context,
    parts: &mut Parts<'_>,
    status: RunStatus,
    asks: bool,
    delivered: Delivered,
    trigger: Option<&str>,
) {
    let Some(mut keeper) = parts.keeper.take() else {
        return;
    };
    let has_landed = status.is_complete() && matches!(delivered, Delivered::Not | Delivered::Done);
    let (raw, _) = parts.snapshot();
    let dirty = raw.filter(|raw| !raw.changes.is_empty());
    let base = parts.tree.repo.base();
    let has_commits = base != parts.setup.start_commit() && delivered != Delivered::Done;
    let stopped = parts.setup.cancel.beyond_deadline();
    let cancel = match stopped.reason() {
        Some(_) => ends_after(context.after_signal(CANCELLED_SAVE_TIMEOUT)),
        None => stopped.clone(),
    };
    // An answer needs the question, which a comment cannot keep: other workflows write with the same account.
    let has_words = parts.notes.has_own() || asks;
    if has_landed || (dirty.is_none() && !has_commits && !has_words) {
        if stopped.reason().is_none() {
            remove_outdated(context, &mut keeper, parts, &cancel).await;
        }
        return;
    }
    let clean = dirty.filter(|raw| may_be_saved(parts, raw));
    if clean.is_none() && !has_commits && !has_words {
        return;
    }
    let (ended, tree) = (parts.emit.last(), &mut parts.tree);
    match keeper.keep(&parts.setup, tree, clean.as_deref(), ended, &cancel) {
        Ok(()) => parts.warn(format!(
            "the unfinished work is kept for 30 days as {}{}",
            keeper.name.full(),
            how_to_continue(delivered, trigger)
        )),
        Err(why) => parts.emit.warn_about(
            WarningTopic::OnlyInJob,
            format!("the unfinished work is only in this job: {why}"),
        ),
    }
}

/// Whether the work tree contains no secret. Warns if it does.
fn may_be_saved(parts: &mut Parts<'_>, raw: &RawSnapshot) -> bool {
    let secrets = secrets_in(parts, raw, true);
    if secrets.is_empty() {
        return true;
    }
    let secrets = secrets.join("; ");
    parts.warn(format!("the work tree is not saved on GitHub: {secrets}"));
    false
}

fn how_to_continue(delivered: Delivered, trigger: Option<&str>) -> String {
    match (delivered, trigger) {
        (Delivered::Closed(ClosedPull::Merged), _) => String::new(),
        (Delivered::Closed(ClosedPull::Closed), _) => {
            ": a rerun of the job continues it once the pull request is open again".to_owned()
        }
        (_, Some(phrase)) => format!(": `{phrase} continue`, or a rerun of the job, continues it"),
        (_, None) => {
            ": a rerun of the job, or `sprag run --resume --from-remote`, continues it".to_owned()
        }
    }
}

/// Removes the saved copy of delivered work, and saved work of any request that is too old.
async fn remove_outdated(
    context: &Context,
    keeper: &mut WorkKeeper,
    parts: &mut Parts<'_>,
    cancel: &Cancel,
) {
    let Some(Ok(repo)) = ActionsEnvironment::of(context).map(|actions| actions.repo()) else {
        return;
    };
    let repo = repo.within(LIST_TIMEOUT);
    let there = repo.refs_below(KEPT_WORK_REFS).await;
    // If the list cannot be read, the next run tries again.
    let there = there.unwrap_or_default();
    keeper.is_there |= there.iter().any(|(name, _)| name == keeper.name.full());
    if keeper.is_there
        && let Err(why) = keeper.remove(&parts.tree, cancel)
    {
        let name = keeper.name.full();
        parts.warn(format!("{name} could not be removed: {why}"));
    }
    let now = jiff::Timestamp::now().as_second();
    let others = there.iter().filter(|(name, _)| name != keeper.name.full());
    for (name, commit) in others.take(MAX_CHECKED) {
        let facts = repo.git_commit(commit).await;
        if facts.is_ok_and(|facts| is_outdated(&facts.message, now)) {
            // If this fails, a later run tries again.
            let _ = repo.delete_ref(name).await;
        }
    }
}

/// A cancellation that triggers itself after `patience`, or at once if nothing can wait for that.
fn ends_after(patience: Duration) -> Cancel {
    let cancel = Cancel::new();
    let raised = cancel.clone();
    let waiting = std::thread::Builder::new().spawn(move || {
        std::thread::sleep(patience);
        raised.trigger(CancelReason::Terminate);
    });
    if waiting.is_err() {
        cancel.trigger(CancelReason::Terminate);
    }
    cancel
}
