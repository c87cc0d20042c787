//! Properties of the base that matter beyond the paths that differ.

use crate::git::entries::split;
use crate::git::error::Result;
use crate::git::files::is_there;
use crate::git::repo::Repo;
use crate::git::snapshot::index_list::{Layout, add_directories, read_index};
use crate::git::snapshot::listing::{ChangedPath, GITLINK, SYMLINK};
use git2::{Repository, RepositoryOpenFlags, StatusOptions};
use std::ffi::OsStr;
use std::sync::{Arc, PoisonError};

impl Repo {
    /// Whether the base has a file below a directory, which is relative to the top of the work tree. True if
    /// this cannot be determined.
    pub fn has_tracked_files(&self, directory: &str) -> bool {
        let layout = self.unseal_to_read().and_then(|_open| self.layout());
        layout.map_or(true, |layout| {
            layout.directories.contains(directory.as_bytes())
        })
    }

    pub(crate) fn layout(&self) -> Result<Arc<Layout>> {
        let mut cached = self.layout.lock().unwrap_or_else(PoisonError::into_inner);
        let tree = &self.private.state.base_tree;
        if let Some((_, layout)) = cached.as_ref().filter(|(of, _)| of == tree) {
            return Ok(Arc::clone(layout));
        }
        let layout = Arc::new(read_index(self.call())?.layout);
        *cached = Some((tree.clone(), Arc::clone(&layout)));
        Ok(layout)
    }

    /// Reuses the layout of the base for a tree that differs in these paths, unless one of them is deleted, a
    /// submodule, a link or a rules file. Otherwise the layout is read again on demand.
    pub(crate) fn carry_layout(&self, tree: &str, changed: &[ChangedPath]) {
        let is_plain = |change: &ChangedPath| {
            let kinds = [change.before, change.after];
            let rules = [b".gitignore".as_slice(), b".gitattributes"];
            change.after != 0
                && !kinds.iter().any(|kind| [GITLINK, SYMLINK].contains(kind))
                && !rules.contains(&split(&change.path).1)
        };
        let mut cached = self.layout.lock().unwrap_or_else(PoisonError::into_inner);
        let base = &self.private.state.base_tree;
        let known = cached.as_mut().filter(|(of, _)| of == base);
        let Some((of, layout)) = known.filter(|_| changed.iter().all(is_plain)) else {
            return;
        };
        for change in changed {
            let directory = split(&change.path).0;
            if !layout.directories.contains(directory) {
                add_directories(&mut Arc::make_mut(layout).directories, directory);
            }
        }
        tree.clone_into(of);
    }

    /// Submodules with changed or new files inside, as far as libgit2 can tell, which runs no programs. git would run
    /// those that a submodule's own configuration names.
    pub fn dirty_submodules(&self) -> Vec<Vec<u8>> {
        let Ok(layout) = self.layout() else {
            return Vec::new();
        };
        let is_dirty = |path: &&Vec<u8>| self.is_dirty_inside(path).unwrap_or(false);
        layout.gitlinks.keys().filter(is_dirty).cloned().collect()
    }

    fn is_dirty_inside(&self, path: &[u8]) -> Option<bool> {
        let none: [&OsStr; 0] = [];
        let place = Some(self.at(path)).filter(|place| is_there(&place.join(".git")))?;
        let inside = Repository::open_ext(place, RepositoryOpenFlags::NO_SEARCH, none).ok()?;
        let mut options = StatusOptions::new();
        options.include_untracked(true).exclude_submodules(true);
        Some(!inside.statuses(Some(&mut options)).ok()?.is_empty())
    }
}
