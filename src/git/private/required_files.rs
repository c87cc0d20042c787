//! Keeps the files readable that git always reads: removes special files in their place, and restores those
//! that git needs to start.

use crate::git::bytes::path_within;
use crate::git::damage::{INDEX_MOST, is_head, is_index, required_files};
use crate::git::entries::directories_of;
use crate::git::error::{GitError, Result};
use crate::git::files::{copy_index, is_there, make_dir, metadata, remove, write_atomically};
use crate::git::objects::reader::{Found, parents_in};
use crate::git::repo::Repo;
use crate::git::special_files::{below, is_special_file};
use crate::plain_file;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

impl Repo {
    /// Removes special files from the places that git always reads, and restores HEAD, the directory of refs
    /// and the index if git could not start without them. Returns what it did.
    pub(crate) fn clear_required_files(&self) -> Result<Vec<String>> {
        let dirs = [self.real.git_dir.as_path(), &self.real.common_dir];
        let required = required_files(dirs, self.private.state.branch.as_deref());
        let is_endless = |path: &PathBuf| {
            let length = path.symlink_metadata().map_or(0, |meta| meta.len());
            is_special_file(path) || length > INDEX_MOST
        };
        self.clear(required.into_iter().filter(is_endless))
    }

    /// Like [`Repo::clear_required_files`], but everywhere in the git directories.
    pub(crate) fn clear_git_dirs(&self) -> Result<Vec<String>> {
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
    pub(crate) fn clear(&self, found: impl IntoIterator<Item = PathBuf>) -> Result<Vec<String>> {
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
    pub(crate) fn clear_attribute_files(&self, paths: &[&[u8]]) -> Result<Vec<String>> {
        let directories: BTreeSet<&[u8]> = paths.iter().copied().flat_map(directories_of).collect();
        let rules = directories
            .into_iter()
            .map(|above| self.at(above).join(".gitattributes"));
        self.clear(rules.filter(|path| is_special_file(path)))
    }

    /// Restores HEAD and refs: git does not recognise a repository without them and a directory of objects.
    fn put_back(&self, warnings: &mut Vec<String>) -> Result<()> {
        let own = &self.real.git_dir;
        let shared = &self.real.common_dir;
        let objects = shared.join("objects");
        if !objects.is_dir() {
            return Err(GitError::Replaced(objects));
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
        if is_there(&index) && !is_index(&index) {
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

/// The largest boundary of a shallow clone that is read, in bytes, and the largest commit in it.
const LIMIT: u64 = 16 << 20;

impl Repo {
    /// Lets the boundary of a shallow clone, the commits whose parents git takes for absent, differ from the known one only as a fetch changes it, and takes it over: no commit may be new in
    /// it whose parents are there, since that hides history from git, and none may be gone whose parents are missing.
    /// Returns whether something was undone, for warnings.
    pub(crate) fn restore_shallow(&self) -> Result<Option<String>> {
        let own = self.real.common_dir.join("shallow");
        let copy = self.private.git_dir().join("shallow");
        let (then, now) = (commits(&copy), commits(&own));
        let is_plain = metadata(&own)?.is_none_or(|meta| meta.is_file());
        if then == now && is_plain {
            return Ok(None);
        }
        let mut right: BTreeSet<&String> = then.intersection(&now).collect();
        for commit in then.symmetric_difference(&now) {
            let (is_cut, is_root) = self.ends_history(commit)?;
            if is_cut || (is_root && now.contains(commit)) {
                right.insert(commit);
            }
        }
        let text: String = right.iter().map(|commit| format!("{commit}\n")).collect();
        let put = |path: &Path| match text.as_str() {
            "" => remove(path),
            text => write_atomically(path, text.as_bytes()),
        };
        if !right.iter().copied().eq(&then) {
            let _open = self.unseal()?;
            put(&copy)?;
        }
        if is_plain && right.iter().copied().eq(&now) {
            return Ok(None);
        }
        remove(&own)?;
        put(&own)?;
        Ok(Some("changes to .git/shallow were undone".to_owned()))
    }

    /// Whether one of the parents of a commit is missing, and whether it has none. Neither if it is no commit.
    fn ends_history(&self, commit: &str) -> Result<(bool, bool)> {
        let reader = self.objects();
        let Ok(content) = reader.commit(commit) else {
            return Ok((false, false));
        };
        let parents = parents_in(&content);
        for parent in &parents {
            if reader.read(parent, LIMIT, &mut |_| {})? == Found::Missing {
                return Ok((true, false));
            }
        }
        Ok((false, parents.is_empty()))
    }
}

/// The commits in a boundary. One that cannot be read has none.
fn commits(file: &Path) -> BTreeSet<String> {
    let text = plain_file::read(file, LIMIT).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().map(str::to_owned).collect()
}
