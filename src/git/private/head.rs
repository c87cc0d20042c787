//! Reads HEAD of the repository.

use crate::domain::snapshot::{Head, RevId};
use crate::git::command::Output;
use crate::git::error::GitError;
use crate::git::private::calls::RealCall;

/// Where the repository's HEAD points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeadState {
    /// Full name of the branch, or `None` if HEAD is detached.
    pub(crate) branch: Option<String>,
    /// The commit, or `None` before the first commit.
    pub(crate) oid: Option<String>,
}

impl HeadState {
    pub(crate) fn head(&self) -> Head {
        self.oid
            .clone()
            .map_or(Head::Unborn, |oid| Head::At(RevId(oid)))
    }
}

/// HEAD of the repository, from git: it has several storages for refs.
pub(crate) fn read_head(call: &RealCall<'_>) -> Result<HeadState, GitError> {
    match asked_at_once(call)? {
        Some(head) => Ok(head),
        None => asked_one_by_one(call),
    }
}

/// Gets the usual answers from one command: an id, and the branch or `HEAD`.
fn asked_at_once(call: &RealCall<'_>) -> Result<Option<HeadState>, GitError> {
    let args = ["rev-parse", "HEAD", "--symbolic-full-name", "HEAD"];
    let output = call.git().args(args).status()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines();
    let (Some(0), Some(oid), Some(name), None) =
        (output.status, lines.next(), lines.next(), lines.next())
    else {
        return Ok(None);
    };
    let branch = (name != "HEAD").then(|| name.to_owned());
    let known = branch.as_ref().is_none_or(|name| name.starts_with("refs/"));
    Ok(known.then(|| HeadState {
        branch,
        oid: Some(oid.to_owned()),
    }))
}

/// Distinguishes an unborn branch from a HEAD that points nowhere.
fn asked_one_by_one(call: &RealCall<'_>) -> Result<HeadState, GitError> {
    let branch = call.git().args(["symbolic-ref", "-q", "HEAD"]).status()?;
    let oid = call
        .git()
        .args(["rev-parse", "-q", "--verify", "HEAD"])
        .status()?;
    let text = |output: Output| match output.status {
        Some(0) => Some(output.line()),
        _ => None,
    };
    Ok(HeadState {
        branch: text(branch),
        oid: text(oid),
    })
}
