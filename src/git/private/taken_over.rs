//! Takes over what somebody changed in the git directories while the run was interrupted.

use crate::git::bytes::as_path;
use crate::git::copy_tree::{remove, same};
use crate::git::error::GitError;
use crate::git::private::adopted::{copy_hooks, hooks, record, recorded_places};
use crate::git::private::calls::git_dir;
use crate::git::private::config::{Settings, start_call};
use crate::git::real::Real;
use crate::git::repo::Repo;
use std::fs;
use std::path::Path;

impl Repo {
    /// Whether the repository's configuration, hooks and similar files are as the run found them.
    pub fn is_configured_as_found(&self) -> bool {
        let mut places = recorded_places(&self.real, &self.private.root).into_iter();
        places.all(|(place, copy)| same(&place, &copy).unwrap_or(false))
    }

    /// Takes the repository's configuration, hooks and similar files as they are now, if somebody changed them since
    /// the run was interrupted. What the work tree has of them may be the agent's work, and is not taken.
    ///
    /// # Errors
    /// When one of them cannot be read or copied. Repeating it is safe.
    pub fn adopt_changed_configuration(&mut self) -> Result<(), GitError> {
        if self.is_configured_as_found() {
            return Ok(());
        }
        let with_jj = self.started_with_jj();
        let _open = self.unseal()?;
        let (real, private) = (&self.real, &mut self.private);
        if is_configured_in_work_tree(real)? {
            return record(real, &private.root);
        }
        let settings = Settings::read(real)?;
        remove(&git_dir(&private.root).join("info"))?;
        private
            .state
            .adopt(real, &private.root, &settings, with_jj)?;
        let hooks = hooks(real, &settings)?;
        if !hooks.as_deref().is_some_and(|it| is_in_work_tree(real, it)) {
            private.state.hooks = copy_hooks(real, &private.root, hooks.as_deref())?;
        }
        private.save()?;
        record(real, &private.root)
    }
}

/// Whether a file of the work tree is part of git's configuration.
fn is_configured_in_work_tree(real: &Real) -> Result<bool, GitError> {
    let args = [
        "config",
        "--list",
        "--show-origin",
        "--name-only",
        "-z",
        "--includes",
    ];
    let listed = start_call(real).args(args).run()?.stdout;
    let mut origins = listed.split(|byte| *byte == 0).step_by(2);
    Ok(origins.any(|origin| {
        let file = origin.strip_prefix(b"file:");
        file.is_some_and(|file| is_in_work_tree(real, &real.work_tree.join(as_path(file))))
    }))
}

/// Whether a path leads into the work tree, outside of the git directories.
fn is_in_work_tree(real: &Real, path: &Path) -> bool {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let is_below = |dir: &Path| path.starts_with(fs::canonicalize(dir).as_deref().unwrap_or(dir));
    is_below(&real.work_tree) && !is_below(&real.git_dir) && !is_below(&real.common_dir)
}
