//! The steps after a push on GitHub: the branch's pull request, and the workflows to start on it.

use crate::domain::event::{ClosedPull, PullRequestLine, PushLine};
use crate::domain::outcome::{Reason, RunStatus, TaskEnd};
use crate::domain::settings::PullRequest;
use crate::domain::summary::{RunSummary, TaskSummary};
use crate::domain::trigger::issue;
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::api::{Error, NewPull, Repo};
use crate::github::request::{Proposal, RunRequest, WorkBranch};
use crate::report::markdown::{escaped, pull_request};
use crate::report::text::short_line;
use std::time::Duration;

/// Time limit for everything on GitHub except the push itself.
pub const FOLLOW_UP_TIMEOUT: Duration = Duration::from_secs(120);

/// Time limit for asking whether the pull request is still open. The push waits for it.
const CLOSED_TIMEOUT: Duration = Duration::from_secs(15);

/// The result of delivering the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// There was nothing to push.
    Not,
    /// The work is at its destination.
    Done,
    /// The work is kept, but did not reach its destination.
    Failed,
    /// The same, because the pull request was closed or merged during the run.
    Closed(ClosedPull),
}

impl Delivered {
    /// The result for pushed work.
    pub fn of(done: bool) -> Self {
        if done { Self::Done } else { Self::Failed }
    }
}

/// The end of a run whose tasks ended with `ended` and whose work was delivered like this. `stopped` means
/// that a signal came, without which the delivery might have succeeded.
pub fn end_of(
    ended: (RunStatus, Reason),
    delivered: Delivered,
    stopped: bool,
) -> (RunStatus, Reason) {
    match (ended, delivered) {
        ((RunStatus::Cancelled, _), _) | (_, Delivered::Not | Delivered::Done) => ended,
        _ if stopped => (RunStatus::Cancelled, Reason::Cancelled),
        ((RunStatus::Environment, _), _) => ended,
        _ => (RunStatus::Environment, Reason::Environment),
    }
}

/// How the pull request of a run was closed during the run. `None` if it is open, if there is none, or if GitHub
/// does not say.
pub async fn closed_meanwhile(
    actions: &ActionsEnvironment,
    request: &RunRequest,
) -> Option<ClosedPull> {
    let number = request.number.filter(|_| request.is_pull)?;
    let repo = actions.repo().ok()?.within(CLOSED_TIMEOUT);
    let pull = repo.pull(number).await.ok()?;
    (pull.state == "closed").then_some(if pull.merged {
        ClosedPull::Merged
    } else {
        ClosedPull::Closed
    })
}

/// The steps after a push on GitHub.
#[derive(Debug, Clone, Copy)]
pub struct AfterPush<'a> {
    /// GitHub.
    pub actions: &'a ActionsEnvironment,
    /// The request of the run.
    pub request: &'a RunRequest,
    /// The branch that was pushed.
    pub branch: &'a WorkBranch,
    /// The summary for the description of the pull request.
    pub summary: &'a RunSummary,
    /// Time limit for all calls to GitHub.
    pub patience: Duration,
}

impl AfterPush<'_> {
    /// Opens or updates the pull request and starts workflows, if the branch has the work. Returns whether
    /// the work and its pull request are in place, and messages for the user.
    pub async fn follow_up(&self, push: &mut PushLine) -> (bool, Vec<String>) {
        if !push.pushed {
            return (false, Vec::new());
        }
        let request = self.request;
        let repo = match self.actions.repo() {
            Ok(repo) => repo.within(self.patience),
            Err(error) => return (false, vec![format!("GitHub cannot be queried: {error}")]),
        };
        let mut troubles = Vec::new();
        if request.delivery.pull_request != PullRequest::None {
            match opened(&repo, request, self.branch, self.summary).await {
                Ok(pull) => {
                    if pull.opened {
                        let proposal = &request.delivery.proposal;
                        troubles.extend(introduced(&repo, pull.number, proposal).await);
                    }
                    push.pull_request = Some(pull);
                }
                Err(error) => {
                    let why = needing(
                        &error,
                        "`pull-requests: write`, and the repository must allow GitHub Actions to create pull requests",
                    );
                    troubles.push(format!("no pull request: {why}"));
                    push.pull_request_error = Some(why);
                }
            }
        }
        if request.is_pull {
            push.pull_request = request.pull_request();
        }
        if let Some(number) = request.number.filter(|_| !request.is_pull)
            && let Err(error) = check_boxes(&repo, number, self.summary).await
        {
            let why = needing(&error, "`issues: write`");
            troubles.push(format!(
                "the checkboxes of issue #{number} were not changed: {why}"
            ));
        }
        for file in &request.delivery.dispatch {
            match repo.dispatch_workflow(file, &self.branch.name).await {
                Ok(()) => push.dispatched.push(file.clone()),
                Err(error) => {
                    troubles.push(format!("the workflow {file} was not started: {error}"));
                }
            }
        }
        (push.pull_request_error.is_none(), troubles)
    }
}

/// Ticks the boxes of the issue's finished tasks in its current text.
async fn check_boxes(repo: &Repo, number: u64, summary: &RunSummary) -> Result<(), Error> {
    let is_done = |task: &TaskSummary| task.status == TaskEnd::Done;
    if !summary.tasks.iter().any(is_done) {
        return Ok(());
    }
    let tasks = summary.tasks.iter();
    let tasks: Vec<_> = tasks
        .map(|task| (task.title.as_str(), is_done(task)))
        .collect();
    let body = repo.issue(number).await?.body;
    let checked = issue::with_done_checked(&body, &tasks);
    if checked != body {
        repo.set_issue_body(number, &checked).await?;
    }
    Ok(())
}

fn needing(error: &Error, what: &str) -> String {
    if error.is_forbidden() {
        format!("{error}; the job needs {what}")
    } else {
        error.to_string()
    }
}

async fn opened(
    repo: &Repo,
    request: &RunRequest,
    branch: &WorkBranch,
    summary: &RunSummary,
) -> Result<PullRequestLine, Error> {
    let (title, mut body) = pull_request(summary, &request.context);
    if let Some(number) = request.number.filter(|_| !request.is_pull) {
        let how = if is_complete(summary) {
            "Closes"
        } else {
            "Part of"
        };
        body += &format!("\n\n{how} #{number}.\n");
    }
    let proposal = &request.delivery.proposal;
    let base = match proposal.base.as_ref().or(request.base_ref.as_ref()) {
        Some(base) => base.clone(),
        None => repo.default_branch().await?,
    };
    let mut there = repo.open_pulls_of(&branch.name, &base).await?.into_iter();
    let (pull, opened) = if let Some(pull) = there.next() {
        repo.set_pull_body(pull.number, &body).await?;
        (pull, false)
    } else {
        let new = NewPull {
            title: match &proposal.title {
                Some(form) => form.replace("{title}", &title),
                None => title,
            },
            body,
            head: branch.name.clone(),
            base,
            draft: request.delivery.pull_request == PullRequest::Draft,
        };
        (repo.create_pull(&new).await?, true)
    };
    Ok(PullRequestLine {
        number: pull.number,
        url: pull.html_url,
        opened,
    })
}

/// Gives a new pull request its labels, assignees and reviewers. Returns what GitHub refused: the pull request is there.
async fn introduced(repo: &Repo, number: u64, proposal: &Proposal) -> Vec<String> {
    let (mut people, mut teams) = (Vec::new(), Vec::new());
    for reviewer in &proposal.reviewers {
        match reviewer.rsplit_once('/') {
            Some((_, team)) => teams.push(team),
            None => people.push(reviewer.as_str()),
        }
    }
    let mut troubles = Vec::new();
    let names = [&proposal.labels[..], &proposal.assignees].concat();
    if !names.is_empty() {
        let marked = repo.set_marks(number, &proposal.labels, &proposal.assignees);
        if let Err(error) = marked.await {
            let (names, why) = (names.join(", "), needing(&error, "`issues: write`"));
            troubles.push(format!("pull request #{number} has no {names}: {why}"));
        }
    }
    if !proposal.reviewers.is_empty()
        && let Err(error) = repo.request_review(number, &people, &teams).await
    {
        let names = proposal.reviewers.join(", ");
        let why = needing(&error, "`pull-requests: write`");
        troubles.push(format!(
            "{names} were not asked for a review of #{number}: {why}"
        ));
    }
    troubles
}

/// Whether every task of the plan is done and verified, so that merging the work closes its issue.
fn is_complete(summary: &RunSummary) -> bool {
    let reserved = [Reason::Unverified, Reason::ChangedExpectations].map(Some);
    let mut tasks = summary.tasks.iter();
    tasks.all(|task| task.status == TaskEnd::Done && !reserved.contains(&task.reason))
}

/// Maximum number of characters of a reason.
const WORDS: usize = 600;

/// Answers every thread, resolves those whose work was pushed, and requests the review again. Returns what
/// failed.
pub async fn answer(
    actions: &ActionsEnvironment,
    request: &RunRequest,
    summary: &RunSummary,
    patience: Duration,
) -> Vec<String> {
    let (Some(review), Some(number)) = (&request.review, request.number) else {
        return Vec::new();
    };
    let tells = request.delivery.push && request.delivery.report;
    if !tells || review.threads.is_empty() {
        return Vec::new();
    }
    if patience.is_zero() {
        return vec!["the threads of the review are not answered: the run was stopped".to_owned()];
    }
    let mut troubles = Vec::new();
    let posted = async {
        let repo = actions.repo()?.within(patience);
        let identity = repo.identity().await?;
        let marker = request.context.place.name.thread_marker(review.id);
        let mut fixed = Vec::new();
        for of_task in &review.threads {
            let Some(task) = summary.task(&of_task.task) else {
                continue;
            };
            let (text, is_fixed) = reply(request, summary, task);
            let first = of_task.thread;
            let told = repo.answer_thread(number, first, &marker, &text, &identity);
            if let Err(error) = told.await {
                troubles.push(format!(
                    "a reply to a review thread could not be posted: {error}"
                ));
            }
            fixed.extend(is_fixed.then_some(first));
        }
        if fixed.is_empty() {
            return Ok(());
        }
        if let Err(why) = resolve(&repo, number, &fixed).await {
            troubles.push(format!("fixed threads could not be resolved: {why}"));
        }
        if !review.author.is_empty()
            && let Err(error) = repo.request_review(number, &[&review.author], &[]).await
        {
            troubles.push(format!("the review could not be requested again: {error}"));
        }
        Ok::<_, Error>(())
    };
    if let Err(error) = posted.await {
        troubles.push(format!(
            "the threads of the review are not answered: {error}"
        ));
    }
    troubles
}

/// The reply to a thread about its task, and whether the task is fixed.
fn reply(request: &RunRequest, summary: &RunSummary, task: &TaskSummary) -> (String, bool) {
    let push = summary.push.as_ref();
    let pushed = push.is_some_and(|push| push.pushed);
    let is_closed = push.is_some_and(|push| push.closed.is_some());
    let why = escaped(&short_line(&task.message, WORDS));
    let next = match &request.context.trigger_phrase {
        Some(phrase) if !is_closed => format!(" `{phrase} continue` continues it."),
        _ => String::new(),
    };
    let text = match (task.status, &task.commit) {
        (TaskEnd::Done, Some(commit)) if pushed => {
            return (format!("Fixed in {commit}: {why}."), true);
        }
        (TaskEnd::Done, Some(_)) => {
            format!("Not fixed here: the work is done, but it did not reach the branch.{next}")
        }
        (TaskEnd::Done, None) => format!("Nothing was changed: {why}."),
        (TaskEnd::Failed | TaskEnd::Blocked, _) => format!("Not fixed: {why}."),
        (TaskEnd::Pending | TaskEnd::Skipped, _) => {
            let is_failed =
                |task: &&TaskSummary| matches!(task.status, TaskEnd::Failed | TaskEnd::Blocked);
            let why = match summary.tasks.iter().find(is_failed) {
                Some(failed) if task.reason.is_none_or(|it| it == Reason::DependencyFailed) => {
                    format!("the run ended before it, at \"{}\"", escaped(&failed.title))
                }
                _ => why,
            };
            format!("Not done yet: {why}.{next}")
        }
    };
    (text, false)
}

/// Resolves the threads that start with these comments and are still open.
///
/// # Errors
/// Why they are not resolved, as text.
pub(super) async fn resolve(repo: &Repo, number: u64, firsts: &[u64]) -> Result<(), String> {
    let resolved = async {
        let threads = repo.review_threads(number).await?;
        let open = threads.iter().filter(|thread| !thread.is_resolved);
        for thread in open.filter(|thread| firsts.contains(&thread.first)) {
            repo.resolve_thread(thread).await?;
        }
        Ok::<_, Error>(())
    };
    resolved.await.map_err(|error| {
        if error.is_not_found() {
            format!("GraphQL is not available here, or not with this token ({error})")
        } else {
            error.to_string()
        }
    })
}
