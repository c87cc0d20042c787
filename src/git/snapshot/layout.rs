//! Properties of the base that matter beyond the paths that differ.

use crate::git::entries::split;
use crate::git::error::GitError;
use crate::git::repo::Repo;
use crate::git::snapshot::index_list::{Layout, add_directories, read_index};
use crate::git::snapshot::listing::{ChangedPath, GITLINK, SYMLINK};
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

    pub(crate) fn layout(&self) -> Result<Arc<Layout>, GitError> {
        let mut cached = self.layout.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tree = &self.private.state.base_tree;
        if let Some((of, layout)) = cached.as_ref()
            && of == tree
        {
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
            let is_rules =
                [b".gitignore".as_slice(), b".gitattributes"].contains(&split(&change.path).1);
            let is_listed = kinds.iter().any(|kind| [GITLINK, SYMLINK].contains(kind));
            change.after != 0 && !is_listed && !is_rules
        };
        let mut cached = self.layout.0.lock().unwrap_or_else(PoisonError::into_inner);
        let base = &self.private.state.base_tree;
        let Some((of, layout)) = cached.as_mut().filter(|(of, _)| of == base) else {
            return;
        };
        if !changed.iter().all(is_plain) {
            return;
        }
        let missing: Vec<&[u8]> = changed
            .iter()
            .map(|change| split(&change.path).0)
            .filter(|directory| !layout.directories.contains(*directory))
            .collect();
        if !missing.is_empty() {
            let mut wider = Layout::clone(layout);
            for directory in missing {
                add_directories(&mut wider.directories, directory);
            }
            *layout = Arc::new(wider);
        }
        tree.clone_into(of);
    }
}
