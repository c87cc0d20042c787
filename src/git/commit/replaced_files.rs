//! A few files of the work tree as another commit has them, while somebody works who is not to see the
//! present ones, and put back afterwards. Unlike a swap of the whole tree, whatever else happens to the
//! work tree meanwhile stays.

use crate::domain::snapshot::RevId;
use crate::git::commit::saved_files::{Saved, SavedFiles, read_record, write_record};
use crate::git::commit::swap::{SwapError, TreeId};
use crate::git::copy_tree::{look, make_dir, remove};
use crate::git::error::{GitError, io_error};
use crate::git::repo::Repo;
use crate::git::snapshot::change::RawSnapshot;
use std::fs;
use std::path::PathBuf;

/// Files that lie in the place of others.
#[derive(Debug, Default)]
pub struct Replaced {
    /// What was put there, each with a copy.
    placed: Vec<(Vec<u8>, Saved)>,
}

impl Replaced {
    /// The paths, in the order of git.
    pub fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.placed.iter().map(|(path, _)| path.as_slice())
    }
}

impl Repo {
    /// Has every file whose path is one of `these` be as the commit `from` has it: absent where it has
    /// none, and everywhere without `from`. `snapshot` is the present state. Neither HEAD nor index nor
    /// base moves. What lay there is on the disk before anything is changed, and [`Repo::reopen`] puts
    /// it back after a crash.
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
        if look(&self.replaced_record())?.is_some() {
            return Err(SwapError::Swapped);
        }
        let now = self.write_tree_of(snapshot, &self.scratch_index(&self.private.index())?)?;
        let to = match from {
            Some(commit) => format!("{}^{{tree}}", commit.0),
            None => self.empty_tree()?,
        };
        let mut diffs = self.diff_trees(now.as_str(), &to)?;
        diffs.retain(|diff| these(&diff.path));
        if diffs.is_empty() {
            return Ok(Replaced::default());
        }
        let bad = self.unswappable(&diffs);
        if !bad.is_empty() {
            return Err(SwapError::InTheWay(bad));
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
            let placed = self.save(&diff.path, (&dir, number), &mut Vec::new())?;
            replaced.placed.push((diff.path, placed));
        }
        Ok(replaced)
    }

    /// Brings every file whose path is one of `these` to what the base has there, for good: one that it has not
    /// goes. `snapshot` is the present state.
    ///
    /// # Errors
    /// [`SwapError`]; after [`SwapError::InTheWay`] nothing was changed.
    pub fn take_back(
        &mut self,
        snapshot: &RawSnapshot,
        these: impl Fn(&[u8]) -> bool,
    ) -> Result<(), SwapError> {
        let base = self.base_tree();
        self.bring_back(snapshot, &base, these).map(drop)
    }

    /// The same to what another tree has there, and the paths that differed.
    ///
    /// # Errors
    /// [`SwapError`]; after [`SwapError::InTheWay`] nothing was changed.
    pub fn bring_back(
        &mut self,
        snapshot: &RawSnapshot,
        to: &TreeId,
        these: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<Vec<u8>>, SwapError> {
        let _open = self.unseal()?;
        let now = self.write_tree_of(snapshot, &self.scratch_index(&self.private.index())?)?;
        let mut diffs = self.diff_trees(now.as_str(), to.as_str())?;
        diffs.retain(|diff| these(&diff.path));
        let bad = self.unswappable(&diffs);
        if !bad.is_empty() {
            return Err(SwapError::InTheWay(bad));
        }
        let index = self.index_with(to.as_str(), &self.private.index())?;
        self.exchange(&diffs, &index)?;
        Ok(diffs.into_iter().map(|diff| diff.path).collect())
    }

    /// Puts back what [`Repo::replace_files`] replaced, and says which of the files that lay in its place
    /// somebody has changed. Does nothing where nothing is replaced.
    ///
    /// # Errors
    /// When a file cannot be written. It may be repeated.
    pub fn put_back_replaced(&mut self, replaced: &Replaced) -> Result<Vec<Vec<u8>>, GitError> {
        let _open = self.unseal()?;
        let mut changed = Vec::new();
        if look(&self.replaced_record())?.is_none() {
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

    /// Puts back what a process that died had replaced.
    pub(in crate::git) fn undo_replaced(&self) -> Result<(), GitError> {
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
        let now = self.save(path, (&dir, 0), &mut Vec::new())?;
        Ok(match (saved, &now) {
            (Saved::File { number, mode }, Saved::File { mode: other, .. }) => {
                let content = |path: PathBuf| fs::read(&path).map_err(io_error("read", &path));
                let before = content(self.replaced_dir().join(number.to_string()))?;
                mode == other && before == content(dir.join("0"))?
            }
            (saved, now) => saved == now,
        })
    }

    fn empty_tree(&self) -> Result<String, GitError> {
        let call = self
            .call()
            .args(["hash-object", "-w", "-t", "tree", "--stdin"]);
        call.stdin(Vec::new()).line()
    }

    fn replaced_dir(&self) -> PathBuf {
        self.private.root.join("replaced")
    }

    fn replaced_record(&self) -> PathBuf {
        self.private.root.join("replaced.json")
    }
}

/// Numbers of the copies of what was placed, above those of what was saved.
const PLACED: usize = 1 << 20;
