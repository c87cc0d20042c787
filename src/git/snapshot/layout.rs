//! Properties of the base that matter beyond the paths that differ.

use crate::git::bytes::as_path;
use crate::git::entries::split;
use crate::git::error::GitError;
use crate::git::repo::Repo;
use crate::git::snapshot::cache::Layout;
use crate::git::snapshot::index_list::{add_directories, layout_of};
use crate::git::snapshot::listing::{ChangedPath, GITLINK, SYMLINK};
use std::os::unix::ffi::OsStrExt;
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

    pub(in crate::git) fn layout(&self) -> Result<Arc<Layout>, GitError> {
        let mut cached = self.layout.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tree = &self.private.state.base_tree;
        if let Some((of, layout)) = cached.as_ref()
            && of == tree
        {
            return Ok(Arc::clone(layout));
        }
        let layout = Arc::new(self.read_layout()?);
        *cached = Some((tree.clone(), Arc::clone(&layout)));
        Ok(layout)
    }

    fn read_layout(&self) -> Result<Layout, GitError> {
        layout_of(self.call())
    }

    /// Reuses the layout of the base for a tree that differs in these paths, unless one of them is deleted, a
    /// submodule, a link or a rules file. Otherwise the layout is read again on demand.
    pub(in crate::git) fn carry_layout(&self, tree: &str, changed: &[ChangedPath]) {
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

    /// Whether a directory with tracked files has a file `name` that the base does not have there. git does
    /// not list such a file if the current rules ignore it.
    pub(in crate::git) fn has_stray(
        &self,
        name: &[u8],
        layout: &Layout,
        is_known: impl Fn(&[u8]) -> bool,
    ) -> bool {
        let mut place = self.real.work_tree.as_os_str().as_bytes().to_vec();
        place.push(b'/');
        let top = place.len();
        layout.directories.iter().any(|directory| {
            place.truncate(top);
            if !directory.is_empty() {
                place.extend_from_slice(directory);
                place.push(b'/');
            }
            place.extend_from_slice(name);
            !is_known(&place[top..]) && as_path(&place).symlink_metadata().is_ok()
        })
    }
}
