//! Errors of operations on a remote.

use crate::domain::snapshot::RevId;
use crate::git::error::GitError;
use crate::git::remote::refusal::Refusal;

/// Why an operation on a remote failed.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// Not the URL of a repository.
    #[error("the remote's address is not of the form https://host/owner/repository.git")]
    BadUrl,
    /// A name that git does not accept.
    #[error("git does not accept `{}` as the name of a branch", .0.escape_debug())]
    BadName(String),
    /// Not a full object id.
    #[error("`{}` is not the id of a commit", .0.escape_debug())]
    BadId(String),
    /// The pushed commit does not continue the branch. Nothing was sent.
    #[error("{new} does not descend from {expected}, and a branch is never rewritten")]
    NotFastForward {
        /// The current commit of the branch.
        expected: RevId,
        /// The commit to push.
        new: RevId,
    },
    /// The remote refuses. Repeating the operation changes nothing.
    #[error("the remote refused: {}", .0.words)]
    Refused(Refusal),
    /// The network or the server failed. See [`crate::git::RETRY_PAUSES`].
    #[error("the remote could not be reached: {0}")]
    Transient(String),
    /// git itself failed.
    #[error(transparent)]
    Git(#[from] GitError),
}
