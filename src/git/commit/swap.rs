//! Temporarily replaces the work tree with another tree, so that checks can run on it.
//!
//! Only files that differ are touched. Ignored files and the times of unchanged files stay, so that
//! incremental builds stay incremental. A replaced file gets a new time in both directions, since a build may
//! have read it in between.

use crate::domain::snapshot::RevId;
use crate::git::bytes::display_paths;
use crate::git::commit::request::CommitError;
use crate::git::commit::saved_files::{Saved, SavedFiles};
use crate::git::commit::stage::{Target, record, refuse_unreadable};
use crate::git::entries::{OnDisk, inspect_all};
use crate::git::error::{GitError, Result};
use crate::git::files::{
    copy_index, is_directory, is_there, make_dir, read_record, remove, write_record,
};
use crate::git::private::seal::MOVED_AWAY;
use crate::git::repo::Repo;
use crate::git::snapshot::change::{Change, ChangeKind, Exempt, RawSnapshot};
use crate::git::snapshot::listing::{GITLINK, RawDiff, Recorded};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// The id of a tree that Sprag has written or knows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TreeId(String);

impl TreeId {
    /// The id of a tree that is in the repository.
    pub(crate) fn known(id: String) -> Self {
        Self(id)
    }

    /// The id in hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why the work tree was not replaced or not restored.
#[derive(Debug, thiserror::Error)]
pub enum SwapError {
    /// git or the file system failed. [`Repo::swap_back`] may be repeated.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The present state cannot be saved. Nothing was changed.
    #[error(transparent)]
    Unkept(#[from] CommitError),
    /// Files that are in neither tree are where the other tree has files, or a submodule differs. Nothing was
    /// changed.
    #[error("these paths cannot be brought to the other tree: {}", display_paths(.0))]
    InTheWay(Vec<Vec<u8>>),
    /// Another tree is already in place.
    #[error("the work tree is already replaced by another tree")]
    Swapped,
    /// The work tree was not fully restored.
    #[error("the work tree could not be restored; these paths differ: {}", display_paths(.0))]
    NotRestored(Vec<Vec<u8>>),
}

/// A swap. The record is on disk from before the first change until the swap is undone.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// The fingerprint of the state to restore.
    fingerprint: String,
    #[serde(flatten)]
    files: SavedFiles,
    /// Untracked files, and unchanged files that git lists as different from the saved state. Files that only the
    /// saved index has changed are not among them: checks may rewrite them.
    listed: BTreeSet<Vec<u8>>,
    /// Untracked files that only rules of the work hide from git.
    #[serde(default)]
    hidden: BTreeSet<Vec<u8>>,
}

impl Record {
    /// Whether a state is the one to restore, also in files that do not count.
    fn is_restored(&self, found: &RawSnapshot) -> bool {
        let saved: BTreeSet<&Vec<u8>> = self.files.saved.iter().map(|(path, _)| path).collect();
        found.fingerprint().0 == self.fingerprint
            && found
                .uncounted
                .iter()
                .all(|change| self.listed.contains(&change.path) || saved.contains(&change.path))
    }
}

impl Repo {
    /// The tree of the base: the task's start.
    pub fn base_tree(&self) -> TreeId {
        TreeId(self.private.state.base_tree.clone())
    }

    /// How the base differs from another tree, by path.
    ///
    /// # Errors
    /// When git fails.
    pub fn base_since(&self, tree: &TreeId) -> Result<Vec<Change>> {
        let _open = self.unseal_to_read()?;
        let diffs = self.diff_trees(&tree.0, &self.private.state.base_tree)?;
        let kind = |before: &Recorded, after: &Recorded| match (before.mode, after.mode) {
            (0, _) => ChangeKind::Added,
            (_, 0) => ChangeKind::Deleted,
            (GITLINK, GITLINK) => ChangeKind::Submodule,
            (before, after) if before >> 12 != after >> 12 => ChangeKind::TypeChanged,
            _ if before.oid == after.oid => ChangeKind::ModeChanged,
            _ => ChangeKind::Modified,
        };
        let change = |diff: RawDiff| Change {
            kind: kind(&diff.before, &diff.after),
            path: diff.path,
            untracked: false,
            newly_ignored: false,
            unreadable: None,
        };
        Ok(diffs.into_iter().map(change).collect())
    }

    /// Writes the state of a snapshot as a tree in the private directory.
    ///
    /// # Errors
    /// When git fails or does not accept a file.
    pub fn write_snapshot_tree(&self, snapshot: &RawSnapshot) -> Result<TreeId, CommitError> {
        let _open = self.unseal()?;
        let index = self.scratch_index(&self.private.index())?;
        self.write_tree_of(snapshot, &index)
    }

    pub(super) fn write_tree_of(
        &self,
        snapshot: &RawSnapshot,
        index: &Path,
    ) -> Result<TreeId, CommitError> {
        let changes: Vec<&Change> = snapshot.committed().collect();
        if changes.is_empty() {
            return Ok(self.base_tree());
        }
        refuse_unreadable(&changes)?;
        let target = Target {
            index,
            objects: self.own_objects(),
            durable: true,
        };
        let left_out = self.stage_changes(&target, &changes)?;
        if !left_out.is_empty() {
            return Err(CommitError::Impossible(left_out));
        }
        Ok(TreeId(self.write_tree(index)?))
    }

    /// Composes a tree from `tree`, with `paths` taken from `from` (removed if `from` does not have them) and
    /// with other `contents` for files that both have. With the result and the task's start as the two trees
    /// this gives "the old tests on the new code" or the reverse.
    ///
    /// # Errors
    /// When git fails.
    pub fn compose_tree(
        &self,
        tree: &TreeId,
        from: &TreeId,
        paths: &BTreeSet<Vec<u8>>,
        contents: &BTreeMap<Vec<u8>, Vec<u8>>,
    ) -> Result<TreeId> {
        let _open = self.unseal()?;
        let mut diffs = self.diff_trees(&tree.0, &from.0)?;
        diffs.retain(|diff| paths.contains(&diff.path) || contents.contains_key(&diff.path));
        for diff in &mut diffs {
            if let Some(content) = contents.get(&diff.path) {
                diff.after.oid = self.store("blob", content)?;
                diff.after.mode = diff.before.mode;
            }
        }
        if diffs.is_empty() {
            return Ok(tree.clone());
        }
        // Removals come first: a file may replace a directory.
        diffs.sort_by_key(|diff| diff.after.mode != 0);
        let record = |diff: RawDiff| record(diff.after.mode, &diff.after.oid, &diff.path);
        let records = diffs.into_iter().flat_map(record).collect();
        Ok(TreeId(self.tree_with(&tree.0, records)?))
    }

    /// How those files of two trees differ whose paths are in `these`. Fails if the work tree cannot be brought
    /// from the first to the second: git would remove a directory in the place of a file with everything in it,
    /// and a submodule is not a file.
    pub(crate) fn swappable(
        &self,
        from: &str,
        to: &str,
        these: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<RawDiff>, SwapError> {
        let mut diffs = self.diff_trees(from, to)?;
        diffs.retain(|diff| these(&diff.path));
        let known: BTreeSet<&[u8]> = diffs.iter().map(|diff| diff.path.as_slice()).collect();
        let is_bad = |diff: &&RawDiff| {
            let full = self.at(&diff.path);
            [diff.before.mode, diff.after.mode].contains(&GITLINK)
                || (is_directory(&full) && has_others(&full, &diff.path, &known))
        };
        let bad = diffs.iter().filter(is_bad);
        let bad: Vec<Vec<u8>> = bad.map(|diff| diff.path.clone()).collect();
        if bad.is_empty() {
            Ok(diffs)
        } else {
            Err(SwapError::InTheWay(bad))
        }
    }

    /// Changes the work tree from the state of `snapshot`, which must be the present one, to `tree`, and
    /// moves what is at the paths `away` out of the way. Returns the paths at which the trees differ. HEAD, index
    /// and base do not move. The data for the way back is on disk before anything is changed, and
    /// [`Repo::reopen`] uses it after a crash.
    ///
    /// # Errors
    /// [`SwapError`]; after [`SwapError::Git`] call [`Repo::swap_back`].
    pub fn swap_to(
        &mut self,
        snapshot: &RawSnapshot,
        tree: &TreeId,
        away: &BTreeSet<Vec<u8>>,
    ) -> Result<Vec<Vec<u8>>, SwapError> {
        let _open = self.unseal()?;
        if is_there(&self.swap_record()) {
            return Err(SwapError::Swapped);
        }
        let dir = self.swap_dir();
        remove(&dir)?;
        make_dir(&dir)?;
        let kept = dir.join("index");
        copy_index(&self.private.index(), &kept)?;
        let now = self.write_tree_of(snapshot, &kept)?;
        let diffs = self.swappable(&now.0, &tree.0, |_| true)?;
        let differing = diffs.iter().map(|diff| diff.path.clone()).collect();
        let listed = self.converted_status(&kept)?.listed.into_iter();
        let listed = listed.filter(|one| !one.staged_only).map(|one| one.path);
        let mut files = self.saved_files(&diffs)?;
        let numbered = away.iter().enumerate();
        files
            .saved
            .extend(numbered.map(|(number, path)| (path.clone(), Saved::Moved(number))));
        let record = Record {
            fingerprint: snapshot.fingerprint().0.clone(),
            files,
            listed: listed.collect(),
            hidden: hidden(snapshot).cloned().collect(),
        };
        write_record(&self.swap_record(), &record)?;
        self.move_away(&record.files, &self.swapped_files())?;
        if !diffs.is_empty() {
            let index = self.index_with(&tree.0, &kept)?;
            self.exchange(&diffs, &index)?;
        }
        self.in_place = Some(tree.0.clone());
        Ok(differing)
    }

    /// Restores the work tree to the state before [`Repo::swap_to`]: content, kind and permissions of every
    /// file of the snapshot, whatever was changed in the meantime. New files that are not ignored are
    /// removed. Returns the state, or `None` if no other tree was in place.
    ///
    /// # Errors
    /// [`SwapError::NotRestored`] names the paths that still differ.
    pub fn swap_back(&mut self, exempt: &Exempt) -> Result<Option<RawSnapshot>, SwapError> {
        let _open = self.unseal()?;
        let Some(record) = read_record::<Record>(&self.swap_record())? else {
            return Ok(None);
        };
        self.in_place = None;
        self.put_back_all(&record.files, &self.swapped_files())?;
        self.remove_made(&record.files);
        let mut found = self.snapshot(exempt)?;
        if !record.is_restored(&found) {
            self.put_back_listed(&record)?;
            found = self.snapshot(exempt)?;
        }
        // Checks may write rules for what they make, which git then does not list.
        let made = hidden(&found).filter(|path| !record.hidden.contains(*path));
        let made: Vec<Vec<u8>> = made.cloned().collect();
        if !made.is_empty() {
            self.remove_files(&made)?;
            found = self.snapshot(exempt)?;
        }
        if found.fingerprint().0 != record.fingerprint {
            return Err(SwapError::NotRestored(found.dirty_paths()));
        }
        self.forget_swap()?;
        Ok(Some(found))
    }

    /// Undoes the swap of a dead process.
    pub(crate) fn undo_swap(&self) -> Result<()> {
        if let Some(record) = read_record::<Record>(&self.swap_record())? {
            self.put_back_all(&record.files, &self.swapped_files())?;
            self.put_back_listed(&record)?;
        }
        self.forget_swap()
    }

    fn forget_swap(&self) -> Result<()> {
        remove(&self.swap_record())?;
        self.remove_away_dirs()?;
        remove(&self.swap_dir())
    }

    fn swap_dir(&self) -> PathBuf {
        self.private.root.join("swap")
    }

    /// Where the files are that differ. A process that has one open may still write to it.
    fn swapped_files(&self) -> PathBuf {
        self.private.root.join(MOVED_AWAY).join("files")
    }

    fn swap_record(&self) -> PathBuf {
        self.private.root.join("swap.json")
    }

    /// Restores the files that were in both trees, and removes new ones.
    fn put_back_listed(&self, record: &Record) -> Result<()> {
        let kept = self.swap_dir().join("index");
        let saved = record.files.saved.iter().map(|(path, _)| &path[..]);
        let saved: BTreeSet<&[u8]> = saved.collect();
        let mut back = Vec::new();
        for one in self.converted_status(&kept)?.listed {
            let is_kept = record.listed.contains(&one.path);
            let is_saved = saved.contains(one.path.as_slice());
            match one.indexed {
                _ if is_kept || one.staged_only || (is_saved && one.indexed.is_some()) => {}
                Some(_) => back.push(one.path),
                None => self.remove_file(&one.path)?,
            }
        }
        back.iter()
            .try_for_each(|path| self.remove_obstacle(path))?;
        self.check_out(&kept, back.iter().map(Vec::as_slice))?;
        self.remove_made(&record.files);
        Ok(())
    }
}

/// The untracked files of a snapshot that only rules of the work hide from git.
fn hidden(snapshot: &RawSnapshot) -> impl Iterator<Item = &Vec<u8>> {
    let hidden = snapshot.all_changes().filter(|change| change.newly_ignored);
    hidden.map(|change| &change.path)
}

/// Whether a directory holds files that are not in `known`.
fn has_others(dir: &Path, name: &[u8], known: &BTreeSet<&[u8]>) -> bool {
    let mut open = vec![(dir.to_path_buf(), name.to_vec())];
    while let Some((dir, name)) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let below = [&name, b"/".as_slice(), &entry.file_name().into_vec()].concat();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push((entry.path(), below)),
                _ if known.contains(below.as_slice()) => {}
                _ => return true,
            }
        }
    }
    false
}

/// The files that were put in the place of others, as they were then.
#[derive(Debug, Default)]
pub struct Replaced(Vec<(Vec<u8>, OnDisk)>);

impl Replaced {
    /// The paths in git's order.
    pub fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|(path, _)| path.as_slice())
    }
}

impl Repo {
    /// Replaces every file whose path is in `these` with that of the commit `from`. A file that `from` does
    /// not have is removed; without `from`, all are. `snapshot` is the present state. HEAD, index and base do
    /// not move. The replaced content is on disk before anything is changed, and [`Repo::reopen`] restores it
    /// after a crash.
    ///
    /// # Errors
    /// [`SwapError`]; after [`SwapError::Git`] call [`Repo::put_back_replaced`].
    pub fn replace_files(
        &mut self,
        snapshot: &RawSnapshot,
        from: Option<&RevId>,
        these: impl Fn(&[u8]) -> bool,
    ) -> Result<Replaced, SwapError> {
        let _open = self.unseal()?;
        if is_there(&self.replaced_record()) {
            return Err(SwapError::Swapped);
        }
        let now = self.write_tree_of(snapshot, &self.scratch_index(&self.private.index())?)?;
        let to = match from {
            Some(commit) => commit.0.clone(),
            None => self.store("tree", b"")?,
        };
        let diffs = self.swappable(now.as_str(), &to, these)?;
        if diffs.is_empty() {
            return Ok(Replaced::default());
        }
        let index = self.index_with(&to, &self.private.index())?;
        let dir = self.replaced_dir();
        remove(&dir)?;
        let saved = self.saved_files(&diffs)?;
        write_record(&self.replaced_record(), &saved)?;
        self.move_away(&saved, &dir)?;
        self.exchange(&diffs, &index)?;
        let paths: Vec<Vec<u8>> = diffs.into_iter().map(|diff| diff.path).collect();
        let placed = inspect_all(&self.real.work_tree, &paths);
        Ok(Replaced(paths.into_iter().zip(placed).collect()))
    }

    /// Restores every file whose path is in `these` to a tree for good, and removes those that the tree does not
    /// have. `snapshot` is the present state. Returns the paths that differed.
    ///
    /// # Errors
    /// [`SwapError`]; after [`SwapError::InTheWay`] nothing was changed.
    pub fn restore_from_tree(
        &mut self,
        snapshot: &RawSnapshot,
        to: &TreeId,
        these: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<Vec<u8>>, SwapError> {
        let _open = self.unseal()?;
        let now = self.write_tree_of(snapshot, &self.scratch_index(&self.private.index())?)?;
        let diffs = self.swappable(now.as_str(), to.as_str(), these)?;
        let index = self.index_with(to.as_str(), &self.private.index())?;
        self.exchange(&diffs, &index)?;
        Ok(diffs.into_iter().map(|diff| diff.path).collect())
    }

    /// Restores the files that [`Repo::replace_files`] replaced, and returns those of the temporary files
    /// that somebody changed. Does nothing if nothing is replaced.
    ///
    /// # Errors
    /// When a file cannot be written. Repeating it is safe.
    pub fn put_back_replaced(&mut self, replaced: &Replaced) -> Result<Vec<Vec<u8>>> {
        let _open = self.unseal()?;
        if !is_there(&self.replaced_record()) {
            return Ok(Vec::new());
        }
        let paths: Vec<&[u8]> = replaced.paths().collect();
        let now = inspect_all(&self.real.work_tree, &paths);
        let all = replaced.0.iter().zip(&now);
        let changed = all.filter(|((_, placed), now)| placed != *now);
        let changed = changed.map(|((path, _), _)| path.clone()).collect();
        self.undo_replaced()?;
        Ok(changed)
    }

    /// Restores the files that a dead process had replaced.
    pub(crate) fn undo_replaced(&self) -> Result<()> {
        if let Some(saved) = read_record::<SavedFiles>(&self.replaced_record())? {
            self.put_back_all(&saved, &self.replaced_dir())?;
            self.remove_made(&saved);
        }
        remove(&self.replaced_record())?;
        remove(&self.replaced_dir())
    }

    fn replaced_dir(&self) -> PathBuf {
        self.private.root.join("replaced")
    }

    fn replaced_record(&self) -> PathBuf {
        self.private.root.join("replaced.json")
    }
}
