//! Temporarily replaces a few files of the work tree with those of another commit, for an agent that must not
//! see the present ones. Unlike a swap of the whole tree, all other changes to the work tree are kept.

use crate::domain::snapshot::RevId;
use crate::git::commit::saved_files::{Saved, SavedFiles};
use crate::git::commit::swap::{SwapError, TreeId};
use crate::git::copy_tree::{make_dir, metadata, remove};
use crate::git::error::{GitError, io_error};
use crate::git::files::{read_record, write_record};
use crate::git::repo::Repo;
use crate::git::snapshot::change::RawSnapshot;
use std::fs;
use std::path::PathBuf;

/// The replaced files.
#[derive(Debug, Default)]
pub struct Replaced {
    /// The files that were put in place, each with a copy.
    placed: Vec<(Vec<u8>, Saved)>,
}

impl Replaced {
    /// The paths in git's order.
    pub fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.placed.iter().map(|(path, _)| path.as_slice())
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
        if metadata(&self.replaced_record())?.is_some() {
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
        make_dir(&dir)?;
        let saved = self.save_all(&diffs, &dir)?;
        write_record(&self.replaced_record(), &saved)?;
        self.exchange(&diffs, &index)?;
        let mut replaced = Replaced::default();
        for (number, diff) in diffs.into_iter().enumerate() {
            let number = PLACED + number;
            let placed = self.save(&diff.path, &dir, number, &mut Vec::new())?;
            replaced.placed.push((diff.path, placed));
        }
        Ok(replaced)
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
    pub fn put_back_replaced(&mut self, replaced: &Replaced) -> Result<Vec<Vec<u8>>, GitError> {
        let _open = self.unseal()?;
        let mut changed = Vec::new();
        if metadata(&self.replaced_record())?.is_none() {
            return Ok(changed);
        }
        for (path, placed) in &replaced.placed {
            if !self.is_as_saved(path, placed)? {
                changed.push(path.clone());
            }
        }
        self.undo_replaced()?;
        Ok(changed)
    }

    /// Restores the files that a dead process had replaced.
    pub(crate) fn undo_replaced(&self) -> Result<(), GitError> {
        if let Some(saved) = read_record::<SavedFiles>(&self.replaced_record())? {
            self.put_back_all(&saved, &self.replaced_dir())?;
            self.remove_made(&saved);
        }
        remove(&self.replaced_record())?;
        remove(&self.replaced_dir())
    }

    fn is_as_saved(&self, path: &[u8], saved: &Saved) -> Result<bool, GitError> {
        let dir = self.replaced_dir().join("now");
        remove(&dir)?;
        make_dir(&dir)?;
        let now = self.save(path, &dir, 0, &mut Vec::new())?;
        Ok(match (saved, &now) {
            (Saved::File { number, mode }, Saved::File { mode: other, .. }) => {
                let content = |path: PathBuf| fs::read(&path).map_err(io_error("read", &path));
                let before = content(self.replaced_dir().join(number.to_string()))?;
                mode == other && before == content(dir.join("0"))?
            }
            (saved, now) => saved == now,
        })
    }

    fn replaced_dir(&self) -> PathBuf {
        self.private.root.join("replaced")
    }

    fn replaced_record(&self) -> PathBuf {
        self.private.root.join("replaced.json")
    }
}

/// First number for the copies of the placed files, above the numbers of the saved files.
const PLACED: usize = 1 << 20;
