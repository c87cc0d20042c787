//! The end of a run beyond the repository: its commits on the remote, its pull request, the workflows
//! that are to run on it.

use crate::context::Context;
use crate::domain::event::{EventKind, PullRequestLine, PushLine};
use crate::domain::outcome::{Outcome, Reason, RunStatus, TaskEnd};
use crate::domain::settings::PullRequest;
use crate::domain::snapshot::RevId;
use crate::domain::summary::RunSummary;
use crate::error::Result;
use crate::git::BranchName;
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::api::{Error, NewPull, PullChange, Repo};
use crate::github::lookup::remote;
use crate::github::publisher::Known;
use crate::github::request::{RunRequest, WorkBranch};
use crate::process::Cancel;
use crate::report::markdown::pull_request;
use crate::run::RunPlan;
use crate::run::steps::{Parcel, Performer};
use crate::secrets::sources::redactor;
use crate::settings::TaskConfig;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long GitHub may take for everything but the push itself.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// The same when the job is being cancelled: GitHub kills it 10 s after its first signal.
const PATIENCE_OF_CANCELLED: Duration = Duration::from_secs(2);

/// What became of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// Nothing was to leave this machine.
    Not,
    /// It is where it was meant to be.
    Done,
    /// It is kept, but not where it was meant to be.
    Failed,
}

/// Pushes what the run has committed, opens or updates its pull request, and starts workflows.
///
/// # Errors
/// When the run's own state cannot be written.
pub(crate) async fn deliver(
    context: &Context,
    performer: &mut Performer<'_>,
    request: &RunRequest,
    plan: &RunPlan,
    done: &[TaskConfig],
    outcomes: &BTreeMap<String, Outcome>,
) -> Result<Delivered> {
    let Some(start) = performer.begun_at()? else {
        return Ok(Delivered::Not);
    };
    let pushes = request.delivery.push;
    let (true, Some(actions), Some(branch)) =
        (pushes, ActionsEnvironment::of(context), &request.branch)
    else {
        performer.keep_for_publish(&start)?;
        return Ok(Delivered::Not);
    };
    let checks: Vec<TaskConfig> = plan
        .tasks
        .iter()
        .filter(|(task, _)| {
            let outcome = outcomes.get(task.id.as_str());
            outcome.is_some_and(|outcome| outcome.task_end() == TaskEnd::Done)
        })
        .map(|(_, start)| start.config.clone())
        .chain(done.iter().cloned())
        .collect();
    let mut push = match push(
        context, &actions, performer, request, branch, start, &checks,
    )
    .await?
    {
        Sent::Nothing => return Ok(Delivered::Not),
        Sent::Impossible => return Ok(Delivered::Failed),
        Sent::Line(line) => *line,
    };
    let stopped = performer.cancel.beyond_deadline();
    let patience = match stopped.reason() {
        Some(_) => PATIENCE_OF_CANCELLED,
        None => PATIENCE,
    };
    let summary =
        redactor(context).redact_summary(&RunSummary::of(&performer.run_dir.read_events()?));
    let after = AfterPush {
        actions: &actions,
        request,
        branch,
        summary: &summary,
        patience,
    };
    let followed = tokio::select! {
        biased;
        followed = after.follow_up(&mut push) => Some(followed),
        () = hurried(&stopped) => None,
    };
    let (done, troubles) = followed.unwrap_or_else(|| {
        let why = "the run was stopped before its pull request and workflows were seen to";
        (false, vec![why.to_owned()])
    });
    troubles.into_iter().for_each(|why| performer.warn(why));
    performer.emit.emit(EventKind::PushEnded(Box::new(push)));
    Ok(Delivered::of(done))
}

/// Ends a little while after a signal.
async fn hurried(stopped: &Cancel) {
    stopped.cancelled().await;
    tokio::time::sleep(PATIENCE_OF_CANCELLED).await;
}

impl Delivered {
    pub(crate) fn of(done: bool) -> Self {
        match done {
            true => Self::Done,
            false => Self::Failed,
        }
    }
}

/// How a run ends whose tasks came to `ended` when this became of its work. `stopped` says that a
/// signal came, without which the work might have arrived.
pub(crate) fn end_of(
    ended: (RunStatus, Reason),
    delivered: Delivered,
    stopped: bool,
) -> (RunStatus, Reason) {
    match (ended, delivered) {
        ((RunStatus::Cancelled, _), _) => ended,
        (_, Delivered::Failed) if stopped => (RunStatus::Cancelled, Reason::Cancelled),
        ((RunStatus::Environment, _), _) => ended,
        (_, Delivered::Failed) => (RunStatus::Environment, Reason::Environment),
        (_, Delivered::Not | Delivered::Done) => ended,
    }
}

/// What follows a push on GitHub.
pub(crate) struct AfterPush<'a> {
    pub(crate) actions: &'a ActionsEnvironment,
    pub(crate) request: &'a RunRequest,
    pub(crate) branch: &'a WorkBranch,
    pub(crate) summary: &'a RunSummary,
    pub(crate) patience: Duration,
}

impl AfterPush<'_> {
    /// Opens or updates the pull request and starts workflows, if the branch has the work. Says
    /// whether all is where it was meant to be, and what a person should know.
    pub(crate) async fn follow_up(&self, push: &mut PushLine) -> (bool, Vec<String>) {
        let request = self.request;
        let mut troubles = Vec::new();
        let repo = self.actions.client().and_then(|client| {
            client
                .until(Instant::now() + self.patience)
                .repo(&request.place.repository)
        });
        let repo = match repo {
            Ok(repo) => repo,
            Err(error) => {
                troubles.push(format!("GitHub cannot be asked: {error}"));
                return (false, troubles);
            }
        };
        let mut done = push.pushed;
        if push.pushed && request.delivery.pull_request != PullRequest::None {
            match opened(&repo, request, self.branch, self.summary).await {
                Ok(pull) => push.pull_request = Some(pull),
                Err(error) => {
                    done = false;
                    troubles.push(format!("no pull request: {}", not_opened(&error)));
                }
            }
        }
        if push.pushed && request.is_pull {
            push.pull_request = request.pull_request();
        }
        for file in request.delivery.dispatch.iter().filter(|_| push.pushed) {
            let started = repo
                .dispatch_workflow(file, &self.branch.name, &BTreeMap::new())
                .await;
            match started {
                Ok(()) => push.dispatched.push(file.clone()),
                Err(error) => {
                    troubles.push(format!("the workflow {file} was not started: {error}"));
                }
            }
        }
        (done, troubles)
    }
}

/// What became of a push.
enum Sent {
    /// There is nothing to push.
    Nothing,
    /// It could not be tried.
    Impossible,
    /// It was tried.
    Line(Box<PushLine>),
}

async fn push(
    context: &Context,
    actions: &ActionsEnvironment,
    performer: &mut Performer<'_>,
    request: &RunRequest,
    branch: &WorkBranch,
    start: RevId,
    checks: &[TaskConfig],
) -> Result<Sent> {
    let named = BranchName::parse(&branch.name);
    let (remote, name) = match (remote(context, actions), named) {
        (Ok(remote), Ok(name)) => (remote, name),
        (Err(error), _) | (_, Err(error)) => {
            performer.warn(format!("nothing can be pushed: {error}"));
            return Ok(Sent::Impossible);
        }
    };
    let parcel = Parcel {
        remote: &remote,
        branch: name,
        expected: branch.at.clone().map(RevId),
        start,
        checks,
        pauses: &actions.pauses,
        cancel: performer.cancel.beyond_deadline(),
    };
    let pushed = match request.delivery.via_api {
        true => crate::github::api_commits::commit(actions, performer, &parcel).await?,
        false => None,
    };
    let pushed = match pushed {
        Some(line) => Some(line),
        None => performer.push_work(&parcel).await?,
    };
    Ok(pushed.map_or(Sent::Nothing, |line| Sent::Line(Box::new(line))))
}

async fn opened(
    repo: &Repo,
    request: &RunRequest,
    branch: &WorkBranch,
    summary: &RunSummary,
) -> Result<PullRequestLine, Error> {
    let scene = request.scene();
    let (title, body) = pull_request(summary, &scene.surroundings(&Known::default(), None));
    let body = match request.number.filter(|_| !request.is_pull) {
        Some(number) => format!("{body}\n\nCloses #{number}.\n"),
        None => body,
    };
    let base = request.base_ref.clone().unwrap_or_default();
    let there = repo.open_pulls_of(&branch.name, &base).await?;
    if let Some(pull) = there.first() {
        let change = PullChange {
            body: Some(body),
            ..PullChange::default()
        };
        repo.update_pull(pull.number, &change).await?;
        return Ok(PullRequestLine {
            number: pull.number,
            url: pull.html_url.clone(),
            opened: false,
        });
    }
    let new = NewPull {
        title,
        body,
        head: branch.name.clone(),
        base,
        draft: request.delivery.pull_request == PullRequest::Draft,
    };
    let pull = repo.create_pull(&new).await?;
    Ok(PullRequestLine {
        number: pull.number,
        url: pull.html_url,
        opened: true,
    })
}

fn not_opened(error: &Error) -> String {
    match error.is_permission() {
        true => format!(
            "{error}; the job needs `pull-requests: write`, and the repository must allow GitHub Actions to create pull requests"
        ),
        false => error.to_string(),
    }
}
