//! Reads HEAD of the repository.

use crate::domain::snapshot::{Head, RevId};
use crate::git::command::Call;
use crate::git::error::GitError;

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
pub(crate) fn read_head<'c>(call: impl Fn() -> Call<'c>) -> Result<HeadState, GitError> {
    let answer = |args: &[&str]| call().args(args).answer();
    let both = answer(&["rev-parse", "HEAD", "--symbolic-full-name", "HEAD"])?;
    if let Some((oid, name)) = both.as_deref().and_then(|both| both.split_once('\n')) {
        let oid = Some(oid.to_owned());
        match name {
            "HEAD" => return Ok(HeadState { branch: None, oid }),
            name if name.starts_with("refs/") && !name.contains('\n') => {
                let branch = Some(name.to_owned());
                return Ok(HeadState { branch, oid });
            }
            _ => {}
        }
    }
    // The branch has no commit yet, or HEAD points nowhere.
    Ok(HeadState {
        branch: answer(&["symbolic-ref", "-q", "HEAD"])?,
        oid: answer(&["rev-parse", "-q", "--verify", "HEAD"])?,
    })
}
