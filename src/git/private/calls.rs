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

/// Commands in the repository itself. They may only read or move refs, or read the index.
pub(crate) struct RealCall<'a> {
    pub(crate) real: &'a Real,
    root: &'a Path,
}

pub(crate) fn real_call<'a>(real: &'a Real, root: &'a Path) -> RealCall<'a> {
    RealCall { real, root }
}

impl<'a> RealCall<'a> {
    pub(crate) fn git(&self) -> Call<'a> {
        let settings = [
            (
                "core.hooksPath",
                self.root.join("no-hooks").into_os_string(),
            ),
            ("core.fsmonitor", "false".into()),
            ("core.commitGraph", "false".into()),
            ("core.useReplaceRefs", "false".into()),
            ("core.quotePath", "false".into()),
        ];
        let mut call = call(self.real)
            .env("HOME", self.root.join(HOME))
            .env("GIT_DIR", &self.real.git_dir)
            .env("GIT_WORK_TREE", &self.real.work_tree)
            .env("GIT_OPTIONAL_LOCKS", "0")
            .watching(self.real.roots())
            .env("GIT_CONFIG_COUNT", settings.len().to_string());
        for (number, (key, value)) in settings.into_iter().enumerate() {
            call = call.env(format!("GIT_CONFIG_KEY_{number}"), key);
            call = call.env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        call
    }
}
