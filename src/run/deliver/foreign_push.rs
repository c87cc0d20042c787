//! Pushes the work of another job: to its branch as it is, or to a separate branch. It is never rebased,
//! because the result would have to be verified by running the project's own code.

use crate::domain::event::{ClosedPull, PushLine};
use crate::domain::snapshot::RevId;
use crate::domain::text::count;
use crate::git::{BranchName, PushOutcome, PushSpec, RETRY_PAUSES, Remote, RemoteError, Repo};
use crate::process::Cancel;
use crate::run::deliver::push_failure::{PushFailure, refused, rescued};

/// A push of another job's commits.
pub struct ForeignPush<'a> {
    /// The repository that has the commits.
    pub repo: &'a Repo,
    /// The remote repository.
    pub remote: &'a Remote,
    /// The branch on the remote.
    pub branch: BranchName,
    /// The expected commit of the branch; `None` if the branch does not exist.
    pub expected: Option<RevId>,
    /// The last of the commits.
    pub head: RevId,
    /// The number of commits.
    pub count: usize,
    /// The run's id. It names the separate branch for commits that their own branch does not accept.
    pub run_id: &'a str,
    /// Whether the branch takes no work any more, because its pull request was closed.
    pub closed: Option<ClosedPull>,
    /// Cancels the push.
    pub cancel: &'a Cancel,
}

impl ForeignPush<'_> {
    /// Pushes the commits to their branch, or to a separate one if that fails.
    pub async fn push(&self) -> PushLine {
        if let Some(closed) = self.closed {
            return self.kept(&PushFailure::here(closed.why()));
        }
        let mut pauses = RETRY_PAUSES.iter();
        let spec = PushSpec {
            branch: self.branch.clone(),
            new: self.head.clone(),
            expected: self.expected.clone(),
        };
        let failure = loop {
            break match self.repo.push(self.remote, &spec, self.cancel) {
                Ok(PushOutcome::Pushed { head }) => return self.done(head),
                Ok(PushOutcome::UpToDate) => return self.done(self.head.clone()),
                Ok(PushOutcome::Moved { now: None }) => {
                    PushFailure::here("the branch is gone from the remote")
                }
                Ok(PushOutcome::Moved { .. }) | Err(RemoteError::NotFastForward { .. }) => {
                    return self.moved();
                }
                Ok(PushOutcome::Refused(refusal)) => refused(refusal.kind, &refusal.words),
                Ok(PushOutcome::Transient { words }) => match pauses.next() {
                    Some(pause) => {
                        tokio::select! {
                            () = tokio::time::sleep(*pause) => continue,
                            _ = self.cancel.cancelled() => PushFailure::everywhere(words),
                        }
                    }
                    None => PushFailure::everywhere(words),
                },
                Err(error) => PushFailure::everywhere(error.to_string()),
            };
        };
        self.kept(&failure)
    }

    /// Pushes the commits to a separate branch, because the remote branch has moved.
    pub fn moved(&self) -> PushLine {
        let moved = "the branch has moved, and this job runs no code of the project, so it cannot verify the work on top of the new commits";
        self.kept(&PushFailure::here(
            self.closed.map_or(moved, ClosedPull::why),
        ))
    }

    /// The result of a successful push.
    pub fn done(&self, head: RevId) -> PushLine {
        PushLine {
            head: Some(head.0),
            pushed: true,
            ..self.line(count(self.count as u64, "commit"))
        }
    }

    fn kept(&self, failure: &PushFailure) -> PushLine {
        let elsewhere = failure
            .elsewhere
            .then(|| rescued(self.repo, self.remote, self.run_id, &self.head, self.cancel));
        match elsewhere.flatten() {
            Some((name, head)) => PushLine {
                head: Some(head.0),
                rescue: Some(name),
                ..self.failed(failure, failure.why.clone())
            },
            None => self.failed(
                failure,
                format!(
                    "{}; the commits are in the bundle of the job that made them",
                    failure.why
                ),
            ),
        }
    }

    fn failed(&self, failure: &PushFailure, detail: String) -> PushLine {
        PushLine {
            cause: Some(failure.why.clone()),
            closed: self.closed,
            ..self.line(detail)
        }
    }

    fn line(&self, detail: String) -> PushLine {
        PushLine {
            branch: self.branch.short().to_owned(),
            detail,
            ..PushLine::default()
        }
    }
}
