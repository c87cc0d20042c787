//! Answers the threads of a review after the run that it requested: one reply each. Threads whose work is in
//! the branch are resolved.

use crate::domain::outcome::{Reason, TaskEnd};
use crate::domain::summary::{RunSummary, TaskSummary};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::api::{Error, Identity, Repo};
use crate::github::request::{Review, RunRequest};
use crate::report::markdown::escaped;
use crate::report::text::short_line;
use std::time::Duration;

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
    let asked = async {
        let repo = actions.repo()?.within(patience);
        let identity = repo.identity().await?;
        Ok::<_, Error>((repo, identity))
    };
    match asked.await {
        Ok((repo, identity)) => {
            let answers = Answers {
                repo: &repo,
                identity: &identity,
                request,
                review,
                summary,
                number,
            };
            answers.post_replies().await
        }
        Err(error) => vec![format!(
            "the threads of the review are not answered: {error}"
        )],
    }
}

struct Answers<'a> {
    repo: &'a Repo,
    identity: &'a Identity,
    request: &'a RunRequest,
    review: &'a Review,
    summary: &'a RunSummary,
    number: u64,
}

impl Answers<'_> {
    async fn post_replies(&self) -> Vec<String> {
        let mut troubles = Vec::new();
        let mut fixed = Vec::new();
        let marker = self
            .request
            .context
            .place
            .name
            .thread_marker(self.review.id);
        for of_task in &self.review.threads {
            let Some(task) = self.summary.task(&of_task.task) else {
                continue;
            };
            let (text, is_fixed) = self.reply(task);
            let told = self
                .repo
                .answer_thread(self.number, of_task.thread, &marker, &text, self.identity)
                .await;
            if let Err(error) = told {
                troubles.push(format!(
                    "a reply to a review thread could not be posted: {error}"
                ));
            }
            if is_fixed {
                fixed.push(of_task.thread);
            }
        }
        if fixed.is_empty() {
            return troubles;
        }
        if let Err(why) = resolve(self.repo, self.number, &fixed).await {
            troubles.push(format!("fixed threads could not be resolved: {why}"));
        }
        if !self.review.author.is_empty()
            && let Err(error) = self
                .repo
                .request_review(self.number, &[&self.review.author], &[])
                .await
        {
            troubles.push(format!("the review could not be requested again: {error}"));
        }
        troubles
    }

    /// The reply to a thread about its task, and whether the task is fixed.
    fn reply(&self, task: &TaskSummary) -> (String, bool) {
        let push = self.summary.push.as_ref();
        let pushed = push.is_some_and(|push| push.pushed);
        let is_closed = push.is_some_and(|push| push.closed.is_some());
        let why = escaped(&short_line(&task.message, WORDS));
        let next = match &self.request.context.trigger_phrase {
            Some(phrase) if !is_closed => format!(" `{phrase} continue` continues it."),
            _ => String::new(),
        };
        match (task.status, &task.commit) {
            (TaskEnd::Done, Some(commit)) if pushed => (format!("Fixed in {commit}: {why}."), true),
            (TaskEnd::Done, Some(_)) => (
                format!("Not fixed here: the work is done, but it did not reach the branch.{next}"),
                false,
            ),
            (TaskEnd::Done, None) => (format!("Nothing was changed: {why}."), false),
            (TaskEnd::Failed | TaskEnd::Blocked, _) => (format!("Not fixed: {why}."), false),
            (TaskEnd::Pending | TaskEnd::Skipped, _) => {
                let why = match self.failed_first() {
                    Some(failed) if task.reason.is_none_or(|it| it == Reason::DependencyFailed) => {
                        format!("the run ended before it, at \"{}\"", escaped(&failed.title))
                    }
                    _ => why,
                };
                (format!("Not done yet: {why}.{next}"), false)
            }
        }
    }

    fn failed_first(&self) -> Option<&TaskSummary> {
        let is_failed =
            |task: &&TaskSummary| matches!(task.status, TaskEnd::Failed | TaskEnd::Blocked);
        self.summary.tasks.iter().find(is_failed)
    }
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
