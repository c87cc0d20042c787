//! Reads HEAD of the repository.

use crate::domain::snapshot::{Head, RevId};
use crate::git::command::Output;
use crate::git::error::GitError;
use crate::git::private::calls::RealCall;
use crate::process::{Quiescence, quiescence};
use std::sync::{Mutex, PoisonError};

/// Where the repository's HEAD points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeadState {
    /// Full name of the branch, or `None` if HEAD is detached.
    pub(crate) branch: Option<String>,
    /// The commit, or `None` before the first commit.
    pub(crate) oid: Option<String>,
}

/// HEAD as it was read last. It is still there while nothing has run that Sprag started, except for git, whose moves of
/// HEAD are known.
#[derive(Debug, Default)]
pub(crate) struct LastHead(Mutex<Option<(Quiescence, HeadState)>>);

impl LastHead {
    pub(crate) fn get(&self) -> Option<HeadState> {
        let now = quiescence()?;
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (moment, head) = last.as_ref()?;
        (*moment == now).then(|| head.clone())
    }

    /// Keeps HEAD, which was read at this moment or later.
    pub(crate) fn keep(&self, since: Option<Quiescence>, head: &HeadState) {
        let since = since.filter(|since| quiescence() == Some(*since));
        let head = since.map(|since| (since, head.clone()));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = head;
    }

    pub(crate) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
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
