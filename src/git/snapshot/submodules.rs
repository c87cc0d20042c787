//! Reads the state of submodules with libgit2, which runs no programs. git would run those that a submodule's own
//! configuration names.

use crate::git::bytes::as_path;
use crate::git::repo::Repo;
use git2::{Repository, RepositoryOpenFlags, StatusOptions};
use std::ffi::OsStr;

impl Repo {
    /// Submodules with changed or new files inside, as far as libgit2 can tell.
    pub fn dirty_submodules(&self) -> Vec<Vec<u8>> {
        let Ok(layout) = self.layout() else {
            return Vec::new();
        };
        let is_dirty = |path: &&Vec<u8>| self.is_dirty_inside(path).unwrap_or(false);
        layout.gitlinks.keys().filter(is_dirty).cloned().collect()
    }

    fn is_dirty_inside(&self, path: &[u8]) -> Option<bool> {
        let none: [&OsStr; 0] = [];
        let place = self.real.work_tree.join(as_path(path));
        place.join(".git").symlink_metadata().ok()?;
        let inside = Repository::open_ext(place, RepositoryOpenFlags::NO_SEARCH, none).ok()?;
        let mut options = StatusOptions::new();
        options.include_untracked(true).exclude_submodules(true);
        Some(!inside.statuses(Some(&mut options)).ok()?.is_empty())
    }
}
