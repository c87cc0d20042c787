//! Why a push failed, and the rescue branch for work that its own branch does not accept.

use crate::domain::snapshot::RevId;
use crate::git::{BranchName, PushOutcome, PushSpec, RefusalKind, Remote, Repo};
use crate::process::Cancel;

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

/// The push of work to its rescue branch, which must not exist yet.
pub(crate) fn rescue_of(run_id: &str, work: &RevId) -> PushSpec {
    PushSpec {
        branch: BranchName::rescue(run_id),
        new: work.clone(),
        expected: None,
    }
}

/// Pushes work to its rescue branch. Returns the name and head of that branch.
pub(crate) fn rescued(
    repo: &Repo,
    remote: &Remote,
    run_id: &str,
    work: &RevId,
    cancel: &Cancel,
) -> Option<(String, RevId)> {
    let spec = rescue_of(run_id, work);
    let name = spec.branch.short().to_owned();
    match repo.push(remote, &spec, cancel) {
        Ok(PushOutcome::Pushed { head }) => Some((name, head)),
        Ok(PushOutcome::UpToDate) => Some((name, work.clone())),
        _ => None,
    }
}

pub(crate) fn refused(kind: RefusalKind, words: &str) -> PushFailure {
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
