//! What can go wrong with a remote.

use crate::domain::snapshot::RevId;
use crate::git::error::GitError;
use crate::git::remote::refusal::Refusal;

/// Why a remote could not be asked, or not be used.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// Not the address of a repository.
    #[error("the remote's address is not of the form https://host/owner/repository.git")]
    BadUrl,
    /// Not a name that git takes.
    #[error("`{}` is not a name that git takes for a branch", .0.escape_debug())]
    BadName(String),
    /// Not the full name of an object.
    #[error("`{}` is not the id of a commit", .0.escape_debug())]
    BadId(String),
    /// The commit to be pushed does not continue the branch. Nothing was sent.
    #[error("{new} does not descend from {expected}, and a branch is never rewritten")]
    NotFastForward {
        /// Where the branch is.
        expected: RevId,
        /// What was to be pushed.
        new: RevId,
    },
    /// The remote says no; repeating it changes nothing.
    #[error("the remote refused: {}", .0.words)]
    Refused(Refusal),
    /// The network or the server failed; see [`crate::git::RETRY_PAUSES`].
    #[error("the remote could not be reached: {0}")]
    Transient(String),
    /// git itself failed.
    #[error(transparent)]
    Git(#[from] GitError),
}
