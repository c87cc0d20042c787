//! Runs git in the private directory, and in the repository itself.

use crate::git::command::Call;
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
