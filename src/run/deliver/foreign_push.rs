//! Pushes the work of another job: to its branch as it is, or to a separate branch. It is never rebased,
//! because the result would have to be verified by running the project's own code.

use crate::domain::event::{ClosedPull, PushLine};
use crate::domain::snapshot::RevId;
use crate::domain::text::count;
use crate::git::{BranchName, PushSpec, RETRY_PAUSES, Remote, Repo};
use crate::process::Cancel;
use crate::run::deliver::push_failure::{self, PushEnd, PushFailure, push_patiently};

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
            return self.kept(&PushFailure::here(closed.why())).await;
        }
        let spec = PushSpec {
            branch: self.branch.clone(),
            new: self.head.clone(),
            expected: self.expected.clone(),
        };
        let pushed = push_patiently(self.repo, self.remote, &spec, &RETRY_PAUSES, self.cancel);
        match pushed.await {
            PushEnd::Pushed(head) => self.done(head),
            PushEnd::Moved(_) => self.moved().await,
            PushEnd::Failed(failure) => self.kept(&failure).await,
        }
    }

    /// Pushes the commits to a separate branch, because the remote branch has moved.
    pub async fn moved(&self) -> PushLine {
        let moved = "the branch has moved, and this job runs no code of the project, so it cannot verify the work on top of the new commits";
        let why = self.closed.map_or(moved, ClosedPull::why);
        self.kept(&PushFailure::here(why)).await
    }

    /// The result of a successful push.
    pub fn done(&self, head: RevId) -> PushLine {
        PushLine {
            head: Some(head.0),
            pushed: true,
            ..self.line(count(self.count as u64, "commit"))
        }
    }

    async fn kept(&self, failure: &PushFailure) -> PushLine {
        let (repo, remote) = (self.repo, self.remote);
        let mut rescued = None;
        if failure.elsewhere {
            let (head, cancel) = (&self.head, self.cancel);
            rescued =
                push_failure::rescued(repo, remote, self.run_id, head, &RETRY_PAUSES, cancel).await;
        }
        match rescued {
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
