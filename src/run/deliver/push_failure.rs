//! A push to the end: its retries, why it failed, and the rescue branch for work that its own branch does not accept.

use crate::domain::event::{ClosedPull, PushLine};
use crate::domain::snapshot::RevId;
use crate::git::{BranchName, PushOutcome, PushSpec, RefusalKind, Remote, RemoteError, Repo};
use crate::process::Cancel;
use std::time::Duration;

/// Why the branch did not accept the work.
pub(crate) struct PushFailure {
    pub(crate) why: String,
    /// Whether another branch of the remote may accept it.
    pub(crate) elsewhere: bool,
}

impl PushFailure {
    pub(crate) fn here(why: impl Into<String>) -> Self {
        let why = why.into();
        let elsewhere = true;
        Self { why, elsewhere }
    }

    pub(crate) fn everywhere(why: impl Into<String>) -> Self {
        let why = why.into();
        let elsewhere = false;
        Self { why, elsewhere }
    }
}

/// How a push has ended.
pub(crate) enum PushEnd {
    /// The branch is at this commit.
    Pushed(RevId),
    /// Somebody else has moved the branch to this commit.
    Moved(RevId),
    Failed(PushFailure),
}

/// Where work is pushed to, and how patiently.
pub struct Destination<'a> {
    /// The remote repository.
    pub remote: &'a Remote,
    /// The branch on the remote.
    pub branch: BranchName,
    /// Whether the branch takes no work any more, because its pull request was closed.
    pub closed: Option<ClosedPull>,
    /// The pauses between attempts after a transient failure.
    pub pauses: &'a [Duration],
    /// Cancels the push.
    pub cancel: Cancel,
}

impl Destination<'_> {
    /// Pushes a commit to the branch, which is expected to be at another one, or not to exist.
    pub(crate) async fn push(&self, repo: &Repo, new: &RevId, expected: Option<&RevId>) -> PushEnd {
        if let Some(closed) = self.closed {
            return PushEnd::Failed(PushFailure::here(closed.why()));
        }
        let spec = PushSpec {
            branch: self.branch.clone(),
            new: new.clone(),
            expected: expected.cloned(),
        };
        self.push_patiently(repo, &spec).await
    }

    /// Pushes, and retries after transient failures, as often as there are pauses.
    async fn push_patiently(&self, repo: &Repo, spec: &PushSpec) -> PushEnd {
        let mut pauses = self.pauses.iter();
        loop {
            let outcome = repo.push(self.remote, spec, &self.cancel);
            let passes = match &outcome {
                Ok(PushOutcome::Transient { .. }) => true,
                Ok(PushOutcome::Refused(refusal)) => refusal.kind == RefusalKind::Locked,
                _ => false,
            };
            if let Some(pause) = pauses.next().filter(|_| passes) {
                tokio::select! {
                    () = tokio::time::sleep(*pause) => continue,
                    _ = self.cancel.cancelled() => {}
                }
            }
            return match outcome {
                Ok(PushOutcome::Pushed { head }) => PushEnd::Pushed(head),
                Ok(PushOutcome::UpToDate) => PushEnd::Pushed(spec.new.clone()),
                Ok(PushOutcome::Moved { now: Some(now) })
                | Err(RemoteError::NotFastForward { expected: now, .. }) => PushEnd::Moved(now),
                Ok(PushOutcome::Moved { now: None }) => {
                    PushEnd::Failed(PushFailure::here("the branch is gone from the remote"))
                }
                Ok(PushOutcome::Refused(refusal)) => {
                    PushEnd::Failed(refused(refusal.kind, &refusal.words))
                }
                Ok(PushOutcome::Transient { words }) => {
                    PushEnd::Failed(PushFailure::everywhere(words))
                }
                Err(error) => PushEnd::Failed(PushFailure::everywhere(error.to_string())),
            };
        }
    }

    /// The report of work that is on the branch.
    pub(crate) fn pushed(&self, head: RevId, detail: String) -> PushLine {
        PushLine {
            branch: self.branch.short().to_owned(),
            head: Some(head.0),
            pushed: true,
            detail,
            ..PushLine::default()
        }
    }

    /// Keeps work that the branch does not accept on a rescue branch, which must not exist yet, if another branch may
    /// accept it. The caller has to keep it if there is no rescue branch.
    pub(crate) async fn keep(
        &self,
        repo: &Repo,
        run_id: &str,
        work: &RevId,
        failure: PushFailure,
    ) -> PushLine {
        let mut line = PushLine {
            branch: self.branch.short().to_owned(),
            detail: failure.why.clone(),
            cause: Some(failure.why),
            closed: self.closed,
            ..PushLine::default()
        };
        let spec = PushSpec {
            branch: BranchName::rescue(run_id),
            new: work.clone(),
            expected: None,
        };
        if failure.elsewhere
            && let PushEnd::Pushed(head) = self.push_patiently(repo, &spec).await
        {
            line.head = Some(head.0);
            line.rescue = Some(spec.branch.short().to_owned());
        }
        line
    }
}

fn refused(kind: RefusalKind, words: &str) -> PushFailure {
    let (why, elsewhere) = match kind {
        RefusalKind::Protected if words.contains("verified signatures") => (
            "the branch takes signed commits only (`commit-via: api` lets GitHub sign them)",
            true,
        ),
        RefusalKind::Protected => ("the branch is protected", true),
        RefusalKind::Workflows => (
            "the token cannot change workflow files (only an app with the permission `workflows` may)",
            false,
        ),
        RefusalKind::LargeFile => ("a file is too large for the remote", false),
        RefusalKind::Secret => ("the remote found a secret in the commits", false),
        RefusalKind::Hook => ("a hook of the remote declined", true),
        RefusalKind::Permission => (
            "the token cannot push (the job needs the permission `contents: write`)",
            false,
        ),
        RefusalKind::Credential => (
            "the remote does not accept the token, which is wrong, revoked or expired; that of a job ends with the job",
            false,
        ),
        RefusalKind::Archived => ("the repository is archived", false),
        RefusalKind::NotFound => (
            "the repository does not exist, or this token cannot access it",
            false,
        ),
        RefusalKind::Renamed => (
            "the repository has another name now (set GITHUB_REPOSITORY to it, or start the job again)",
            false,
        ),
        RefusalKind::Locked => ("another process has locked the branch", true),
        RefusalKind::Other => ("the remote refused the push", true),
    };
    let why = if words.trim().is_empty() {
        why.to_owned()
    } else {
        format!("{why}: {}", words.trim())
    };
    PushFailure { why, elsewhere }
}
