//! Delivers a finished run: pushes its commits to the remote and then updates GitHub.

use crate::context::Context;
use crate::domain::event::{ClosedPull, EventKind, PushLine, WarningTopic};
use crate::domain::kept_work::is_outdated;
use crate::domain::outcome::{Outcome, Reason, RunStatus, TaskEnd, run_end};
use crate::domain::plan::Task;
use crate::domain::settings::Report;
use crate::domain::snapshot::RevId;
use crate::error::Result;
use crate::git::{BranchName, KEPT_WORK_REFS};
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

/// How long saving may take while the job is being cancelled.
const CANCELLED_SAVE_TIMEOUT: Duration = Duration::from_secs(3);

/// How long GitHub may take to list the saved work.
const LIST_TIMEOUT: Duration = Duration::from_secs(20);

/// The most outdated references that one run checks.
const MAX_CHECKED: usize = 5;

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
        // A publishing job gets the commits if this job does not push.
        let set = &parts.setup.config.settings;
        let is_wanted =
            context.in_actions() || set.push == Some(false) || set.report == Report::None;
        if let Some(start) = parts.setup.start_commit().filter(|_| is_wanted) {
            keep_for_publish(parts, &start);
        }
        return Ok(Delivered::Not);
    };
    let is_done = |task: &Task| {
        let outcome = outcomes.get(task.id.as_str());
        outcome.is_some_and(|outcome| outcome.task_end() == TaskEnd::Done)
    };
    // The checks of the work of this and of earlier processes of the run.
    let done = plan.tasks.iter().filter(|(task, _)| is_done(task));
    let done = done.map(|(_, start)| &start.config);
    let checks: Vec<TaskConfig> = done.chain(&prepared.done).cloned().collect();
    let in_order = in_plan_order(&parts.tree.plan.plan, outcomes);
    let (status, reason) = run_end(&in_order, plan.rules.no_changes);
    let mut delivery = Delivery {
        context,
        request,
        actions: ActionsEnvironment::of(context),
        stopped: parts.setup.cancel.beyond_deadline(),
        parts,
    };
    let delivered = delivery.deliver(&checks).await?;
    delivery.report_review().await?;
    let mut kept = delivered;
    if delivered == Delivered::Not
        && let Some(how) = delivery.warn_of_closed_pull(status).await
    {
        kept = Delivered::Closed(how);
    }
    let asks = reason == Reason::NeedsAnswer;
    delivery.save_or_remove(status, asks, kept).await;
    cost_limits::count(context, parts, request).await;
    // If this job may not write to GitHub, the job that publishes the run counts it.
    if request.queued.is_some() && (request.delivery.push || request.delivery.report) {
        let uncounted = count_run(context, request, status, &parts.setup.run_id).await;
        uncounted.into_iter().for_each(|why| parts.warn(why));
    }
    Ok(delivered)
}

/// The delivery of a run to whoever requested it.
struct Delivery<'a, 'e> {
    context: &'a Context,
    parts: &'a mut Parts<'e>,
    request: &'a RunRequest,
    actions: Option<ActionsEnvironment>,
    /// Set by a signal, and not by the deadline.
    stopped: Cancel,
}

impl Delivery<'_, '_> {
    /// Pushes the run's commits, opens or updates the pull request, and starts workflows.
    ///
    /// # Errors
    /// When the run's own state cannot be written.
    async fn deliver(&mut self, checks: &[TaskConfig]) -> Result<Delivered> {
        let request = self.request;
        let start = self.parts.setup.start_commit();
        let has_commits = self.parts.tree.repo.base() != start;
        let wants = self.parts.setup.config.settings.push != Some(false);
        if self.context.in_actions() && wants && has_commits && request.branch.is_none() {
            self.parts.warn(
                "the commits are only in this job, because the checkout is on no branch of the remote: check one out \
                 before this step, or push them in a later step",
            );
        }
        let Some(start) = start else {
            return Ok(Delivered::Not);
        };
        let actions = self.actions.clone().filter(|_| request.delivery.push);
        let (Some(actions), Some(branch)) = (actions, &request.branch) else {
            keep_for_publish(self.parts, &start);
            return Ok(Delivered::Not);
        };
        if !has_commits {
            return Ok(Delivered::Not);
        }
        let named = BranchName::parse(&branch.name);
        let (remote, name) = match (remote(self.context, &actions), named) {
            (Ok(remote), Ok(name)) => (remote, name),
            (Err(error), _) | (_, Err(error)) => {
                self.parts.warn(format!("nothing can be pushed: {error}"));
                return Ok(Delivered::Failed);
            }
        };
        let patience = self.context.after_signal(CANCELLED_TIMEOUT);
        let closed = tokio::select! {
            biased;
            closed = closed_meanwhile(&actions, request) => closed,
            () = after_signal(&self.stopped, patience) => None,
        };
        let push_request = PushRequest {
            to: Destination {
                remote: &remote,
                branch: name,
                closed,
                pauses: &actions.pauses,
                cancel: self.stopped.clone(),
            },
            expected: branch.at.clone().map(RevId),
            start,
            checks,
        };
        let mut pushed = None;
        if request.delivery.via_api && closed.is_none() {
            pushed = pushed_by_api(&actions, self.parts, &push_request).await;
        }
        if pushed.is_none() {
            pushed = push_work(self.parts, &push_request).await?;
        }
        let Some(mut push) = pushed else {
            return Ok(Delivered::Not);
        };
        let done = self.follow_up(&actions, branch, &mut push).await?;
        let delivered = match push.closed {
            Some(closed) => Delivered::Closed(closed),
            None => Delivered::of(done),
        };
        self.parts.emit.emit(EventKind::PushEnded(Box::new(push)));
        Ok(delivered)
    }

    /// How long requests may take, which is less after a signal.
    fn patience(&self, after_signal: Duration) -> Duration {
        match self.stopped.reason() {
            Some(_) => after_signal,
            None => FOLLOW_UP_TIMEOUT,
        }
    }

    /// Opens or updates the pull request and starts workflows after a push. Returns whether all of it succeeded.
    async fn follow_up(
        &mut self,
        actions: &ActionsEnvironment,
        branch: &WorkBranch,
        push: &mut PushLine,
    ) -> Result<bool> {
        let patience = self.context.after_signal(CANCELLED_TIMEOUT);
        let after = AfterPush {
            actions,
            request: self.request,
            branch,
            summary: &self.parts.setup.summary()?,
            patience: self.patience(patience),
        };
        let (done, troubles) = tokio::select! {
            biased;
            followed = after.follow_up(push) => followed,
            () = after_signal(&self.stopped, patience) => {
                let why = "the run was stopped before its pull request and workflows were handled";
                (false, vec![why.to_owned()])
            }
        };
        troubles.into_iter().for_each(|why| self.parts.warn(why));
        Ok(done)
    }

    /// Answers the review threads that requested the run. If the run is a review, posts its findings.
    async fn report_review(&mut self) -> Result<()> {
        let (setup, request) = (&self.parts.setup, self.request);
        let posts = setup.config.settings.review_comments && request.delivery.report;
        let posted = setup.reviewed.as_ref().filter(|_| posts);
        let is_wanted = request.review.is_some() || posted.is_some();
        let Some(actions) = self.actions.as_ref().filter(|_| is_wanted) else {
            return Ok(());
        };
        let summary = setup.summary()?;
        let patience = self.patience(Duration::ZERO);
        let mut troubles = delivery::answer(actions, request, &summary, patience).await;
        if let Some(change) = posted {
            match self.parts.tree.repo.patch_between(&change.from, &change.to) {
                Ok(patch) => {
                    let reviewed = Reviewed {
                        head: &change.to.0,
                        patch: &patch,
                    };
                    troubles.extend(post(actions, request, &summary, reviewed, patience).await);
                }
                Err(error) => {
                    troubles.push(format!("the findings are not posted as a review: {error}"))
                }
            }
        }
        troubles.into_iter().for_each(|why| self.parts.warn(why));
        Ok(())
    }

    /// Warns if the pull request was closed during a run that is not a success and has nothing to push: it cannot
    /// be asked for again until the pull request is open.
    async fn warn_of_closed_pull(&mut self, status: RunStatus) -> Option<ClosedPull> {
        let is_stopped = self.stopped.reason().is_some();
        if status.is_complete() || is_stopped || !self.request.delivery.push {
            return None;
        }
        let how = closed_meanwhile(self.actions.as_ref()?, self.request).await?;
        let topic = WarningTopic::PullRequestClosed { how };
        self.parts.emit.warn_about(topic, how.why());
        Some(how)
    }

    /// Saves undelivered work, or removes the saved copy of delivered work.
    async fn save_or_remove(&mut self, status: RunStatus, asks: bool, delivered: Delivered) {
        let Some(mut keeper) = self.parts.keeper.take() else {
            return;
        };
        let has_landed =
            status.is_complete() && matches!(delivered, Delivered::Not | Delivered::Done);
        let (raw, _) = self.parts.snapshot();
        let dirty = raw.filter(|raw| !raw.changes.is_empty());
        let base = self.parts.tree.repo.base();
        let has_commits = base != self.parts.setup.start_commit() && delivered != Delivered::Done;
        let cancel = match self.stopped.reason() {
            Some(_) => ends_after(self.context.after_signal(CANCELLED_SAVE_TIMEOUT)),
            None => self.stopped.clone(),
        };
        // An answer needs the question, which a comment cannot keep: other workflows write with the same account.
        let has_words = self.parts.notes.has_own() || asks;
        if has_landed || (dirty.is_none() && !has_commits && !has_words) {
            if self.stopped.reason().is_none() {
                self.remove_outdated(&mut keeper, &cancel).await;
            }
            return;
        }
        let clean = dirty.filter(|raw| {
            let secrets = secrets_in(self.parts, raw, true);
            if !secrets.is_empty() {
                let told = secrets.join("; ");
                let warning = format!("the work tree is not saved on GitHub: {told}");
                self.parts.warn(warning);
            }
            secrets.is_empty()
        });
        if clean.is_none() && !has_commits && !has_words {
            return;
        }
        let parts = &mut *self.parts;
        let (ended, tree) = (parts.emit.last(), &mut parts.tree);
        let trigger = self.request.context.trigger_phrase.as_ref();
        let rerun = "a rerun of the job";
        let how = match (delivered, trigger) {
            (Delivered::Closed(ClosedPull::Merged), _) => String::new(),
            (Delivered::Closed(ClosedPull::Closed), _) => {
                format!(": {rerun} continues it once the pull request is open again")
            }
            (_, Some(phrase)) => format!(": `{phrase} continue`, or {rerun}, continues it"),
            (_, None) => format!(": {rerun}, or `sprag run --resume --from-remote`, continues it"),
        };
        match keeper.keep(&parts.setup, tree, clean.as_deref(), ended, &cancel) {
            Ok(()) => {
                let name = keeper.name.full();
                parts.warn(format!(
                    "the unfinished work is kept for 30 days as {name}{how}"
                ));
            }
            Err(why) => parts.emit.warn_about(
                WarningTopic::OnlyInJob,
                format!("the unfinished work is only in this job: {why}"),
            ),
        }
    }

    /// Removes the saved copy of delivered work, and saved work of any request that is too old.
    async fn remove_outdated(&mut self, keeper: &mut WorkKeeper, cancel: &Cancel) {
        let Some(Ok(repo)) = self.actions.as_ref().map(ActionsEnvironment::repo) else {
            return;
        };
        let repo = repo.within(LIST_TIMEOUT);
        // If the list cannot be read, the next run tries again.
        let there = repo.refs_below(KEPT_WORK_REFS).await.unwrap_or_default();
        let own = keeper.name.full().to_owned();
        keeper.is_there |= there.iter().any(|(name, _)| *name == own);
        if keeper.is_there
            && let Err(why) = keeper.remove(&self.parts.tree, cancel)
        {
            self.parts
                .warn(format!("{own} could not be removed: {why}"));
        }
        let now = jiff::Timestamp::now().as_second();
        let others = there.iter().filter(|(name, _)| *name != own);
        for (name, commit) in others.take(MAX_CHECKED) {
            let facts = repo.git_commit(commit).await;
            if facts.is_ok_and(|facts| is_outdated(&facts.message, now)) {
                // If this fails, a later run tries again.
                let _ = repo.delete_ref(name).await;
            }
        }
    }
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
