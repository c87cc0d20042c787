//! Runs git in the private directory, and in the repository itself.

use crate::domain::snapshot::{Head, RevId};
use crate::git::command::Call;
use crate::git::error::Result;
use crate::git::real::Real;
use std::path::{Path, PathBuf};

/// The home directory of every git that works for the run, relative to the private directory.
pub(crate) const HOME: &str = "home";

pub(crate) fn git_dir(root: &Path) -> PathBuf {
    root.join("git")
}

/// A command in the time zone of the run, in which this process writes commits, too.
fn call(real: &Real) -> Call<'_> {
    let call = real.git.call(&real.work_tree);
    match real.environment.get("TZ") {
        Some(zone) => call.env("TZ", zone),
        None => call,
    }
}

pub(crate) fn private_call<'a>(real: &'a Real, root: &Path) -> Call<'a> {
    let dir = git_dir(root);
    call(real)
        .env("HOME", root.join(HOME))
        .env("TMPDIR", root.join("tmp"))
        .env("GIT_INDEX_FILE", dir.join("index"))
        .env("GIT_DIR", dir)
        .env("GIT_WORK_TREE", &real.work_tree)
        .watching(real.roots())
}

/// A command in the repository itself. It may only read or move refs, or read the index.
pub(crate) fn real_call<'a>(real: &'a Real, root: &Path) -> Call<'a> {
    let no_hooks = root.join("no-hooks");
    call(real)
        .env("HOME", root.join(HOME))
        .env("GIT_DIR", &real.git_dir)
        .env("GIT_WORK_TREE", &real.work_tree)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .watching(real.roots())
        .with_settings(&[
            ("core.hooksPath", no_hooks.as_os_str()),
            ("core.fsmonitor", "false".as_ref()),
            ("core.commitGraph", "false".as_ref()),
            ("core.useReplaceRefs", "false".as_ref()),
            ("core.quotePath", "false".as_ref()),
        ])
}

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
        let oid = self.oid.clone();
        oid.map_or(Head::Unborn, |oid| Head::At(RevId(oid)))
    }
}

/// HEAD of the repository, from git: it has several storages for refs.
pub(crate) fn read_head<'c>(call: impl Fn() -> Call<'c>) -> Result<HeadState> {
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
