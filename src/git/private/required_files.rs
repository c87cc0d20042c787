//! Keeps the files readable that git always reads: removes special files in their place, and restores those
//! that git needs to start.

use crate::git::bytes::{as_path, path_within};
use crate::git::damage::{INDEX_MOST, is_head, is_index, required_files};
use crate::git::entries::directories_of;
use crate::git::error::GitError;
use crate::git::files::{copy_index, make_dir, metadata, remove, write_atomically};
use crate::git::repo::Repo;
use crate::git::special_files::{below, is_special_file};
use std::collections::BTreeSet;
use std::path::PathBuf;

impl Repo {
    /// Removes special files from the places that git always reads, and restores HEAD, the directory of refs
    /// and the index if git could not start without them. Returns what it did.
    pub(crate) fn clear_required_files(&self) -> Result<Vec<String>, GitError> {
        let dirs = [self.real.git_dir.as_path(), &self.real.common_dir];
        let required = required_files(dirs, self.private.state.branch.as_deref());
        let is_endless = |path: &PathBuf| {
            let length = path.symlink_metadata().map_or(0, |meta| meta.len());
            is_special_file(path) || length > INDEX_MOST
        };
        self.clear(required.into_iter().filter(is_endless))
    }

    /// Like [`Repo::clear_required_files`], but everywhere in the git directories.
    pub(crate) fn clear_git_dirs(&self) -> Result<Vec<String>, GitError> {
        let mut found = BTreeSet::new();
        let mut dirs = vec![&self.real.git_dir];
        if !self.real.common_dir.starts_with(&self.real.git_dir) {
            dirs.push(&self.real.common_dir);
        }
        for dir in dirs {
            below(dir, |_| true, &mut found);
        }
        self.clear(found)
    }

    /// Removes special files that block git.
    pub(crate) fn clear(
        &self,
        found: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Vec<String>, GitError> {
        let mut warnings = Vec::new();
        for path in found.into_iter().collect::<BTreeSet<PathBuf>>() {
            remove(&path)?;
            let shown = path_within(&path, &self.real.work_tree);
            warnings.push(format!(
                "{shown} was a pipe or device on which git would block forever, or too large; it was removed"
            ));
        }
        self.put_back(&mut warnings)?;
        Ok(warnings)
    }

    /// Removes special files that would block git when it reads the attributes for these paths.
    pub(crate) fn clear_attribute_files(&self, paths: &[&[u8]]) -> Result<Vec<String>, GitError> {
        let directories: BTreeSet<&[u8]> = paths.iter().copied().flat_map(directories_of).collect();
        let top = &self.real.work_tree;
        let file = |directory| top.join(as_path(directory)).join(".gitattributes");
        let rules = directories.into_iter().map(file);
        self.clear(rules.filter(|path| is_special_file(path)))
    }

    /// Restores HEAD and refs: git does not recognise a repository without them and a directory of objects.
    fn put_back(&self, warnings: &mut Vec<String>) -> Result<(), GitError> {
        let own = &self.real.git_dir;
        let shared = &self.real.common_dir;
        let objects = shared.join("objects");
        if !objects.is_dir() {
            return Err(GitError::Replaced { path: objects });
        }
        let refs = shared.join("refs");
        if !refs.is_dir() {
            remove(&refs)?;
            make_dir(&refs)?;
            warnings.push("changes to .git/refs were undone".to_owned());
        }
        let head = own.join("HEAD");
        if !is_head(&head)
            && let Some(line) = self.head_line()
        {
            remove(&head)?;
            write_atomically(&head, line.as_bytes())?;
            warnings.push("changes to .git/HEAD were undone".to_owned());
        }
        let index = own.join("index");
        if metadata(&index)?.is_some() && !is_index(&index) {
            remove(&index)?;
            copy_index(&self.private.index(), &index)?;
            warnings.push("the repository's index was invalid and was restored".to_owned());
        }
        Ok(())
    }

    /// The content of HEAD unless somebody has switched it.
    fn head_line(&self) -> Option<String> {
        let state = &self.private.state;
        if self.real.common_dir.join("reftable").is_dir() {
            return Some("ref: refs/heads/.invalid\n".to_owned());
        }
        let branch = state.branch.as_ref().map(|name| format!("ref: {name}\n"));
        branch.or_else(|| state.base.as_ref().map(|oid| format!("{oid}\n")))
    }
}
