//! Saves files while others are in their place, and restores them.

use crate::git::bytes::as_path;
use crate::git::command::Call;
use crate::git::entries::{PathInspector, split};
use crate::git::error::{GitError, io_error};
use crate::git::files::{is_absence, make_dir, metadata, move_tree, remove};
use crate::git::private::places::AWAY;
use crate::git::private::seal::MOVED_AWAY;
use crate::git::repo::Repo;
use crate::git::snapshot::listing::RawDiff;
use crate::plain_file;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// The saved entry of a path before it was replaced.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Saved {
    Nothing,
    Link {
        target: Vec<u8>,
    },
    /// Whatever is there, moved away as a whole under this number.
    Moved {
        number: usize,
    },
    /// A file whose content is saved under this number.
    File {
        number: usize,
        mode: u32,
    },
}

/// The saved entries of all paths that differ, on disk from before the first change until they are restored.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SavedFiles {
    pub saved: Vec<(Vec<u8>, Saved)>,
    /// Directories that did not exist before, outermost first.
    pub made: Vec<Vec<u8>>,
}

impl Repo {
    /// A copy of the index `of` with the entries of a tree.
    pub(crate) fn index_with(&self, tree: &str, of: &Path) -> Result<TempPath, GitError> {
        let index = self.scratch_index(of)?;
        self.with_index(&index)
            .args(["read-tree", "--reset", "-i", tree])
            .run()?;
        Ok(index)
    }

    /// Removes the files that differ, and writes those in `index`.
    pub(super) fn exchange(&self, diffs: &[RawDiff], index: &Path) -> Result<(), GitError> {
        for diff in diffs {
            self.remove_file(&diff.path)?;
        }
        let there = |diff: &&RawDiff| diff.after.mode != 0;
        let paths = diffs.iter().filter(there).map(|diff| diff.path.as_slice());
        self.check_out(index, paths)
    }

    /// Saves the entries at the paths that differ, with the contents in `dir`.
    pub(super) fn save_all(&self, diffs: &[RawDiff], dir: &Path) -> Result<SavedFiles, GitError> {
        let mut all = SavedFiles::default();
        for (number, diff) in diffs.iter().enumerate() {
            let saved = self.save(&diff.path, dir, number, &mut all.made)?;
            all.saved.push((diff.path.clone(), saved));
        }
        Ok(all)
    }

    /// Moves files and directories out of the work tree.
    pub(super) fn move_away(&self, all: &SavedFiles) -> Result<(), GitError> {
        for (path, saved) in &all.saved {
            if let Saved::Moved { number } = saved {
                let full = self.real.work_tree.join(as_path(path));
                if metadata(&full)?.is_some() {
                    self.move_one_away(path, *number)?;
                    self.remove_empty_parents(path);
                }
            }
        }
        Ok(())
    }

    /// Moves into the private directory, where no check finds it that searches the work tree. If that is on another
    /// file system, it moves into the git directory: a copy would have other times and no hard links. There it may
    /// outlive everything else of the run, so its path is beside it.
    fn move_one_away(&self, path: &[u8], number: usize) -> Result<(), GitError> {
        let full = &self.real.work_tree.join(as_path(path));
        let [hidden, near] = self.away_dirs();
        let name = number.to_string();
        make_dir(&hidden)?;
        match fs::rename(full, hidden.join(&name)) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                make_dir(&near)?;
                let from = near.join(format!("{name}.from"));
                fs::write(&from, path).map_err(io_error("write", &from))?;
                move_tree(full, &near.join(name), full)
            }
            moved => moved.map_err(io_error("move", full)),
        }
    }

    /// The directories in which runs that died left what they had moved out of the work tree.
    pub fn left_away(&self) -> Vec<PathBuf> {
        let [_, own] = self.away_dirs();
        let entries = fs::read_dir(self.real.git_dir.join(AWAY))
            .into_iter()
            .flatten()
            .flatten();
        let mut left: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        left.retain(|path| *path != own);
        left.sort();
        left
    }

    /// The directories for whatever is moved away. A run that was killed may have left its own in another one of
    /// the git directory.
    fn away_dirs(&self) -> [PathBuf; 2] {
        let root = &self.private.root;
        let run = root.parent().and_then(Path::file_name);
        let near = self
            .real
            .git_dir
            .join(AWAY)
            .join(run.unwrap_or(root.as_os_str()));
        [root.join(MOVED_AWAY), near]
    }

    pub(super) fn remove_away_dirs(&self) -> Result<(), GitError> {
        for dir in self.away_dirs() {
            remove(&dir)?;
        }
        // It stays if it holds what another run moved away.
        let _ = fs::remove_dir(self.real.git_dir.join(AWAY));
        Ok(())
    }

    /// Where what has this number was moved to, if it is still there.
    fn moved_to(&self, number: usize) -> Result<Option<PathBuf>, GitError> {
        for dir in self.away_dirs() {
            let path = dir.join(number.to_string());
            if metadata(&path)?.is_some() {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Restores the entries that [`Repo::save_all`] saved in `dir`.
    pub(super) fn put_back_all(&self, all: &SavedFiles, dir: &Path) -> Result<(), GitError> {
        let mut missing = Vec::new();
        for (path, saved) in &all.saved {
            let in_place = match saved {
                Saved::Moved { number } => self.moved_to(*number)?.is_none(),
                _ => false,
            };
            if !in_place {
                self.remove_obstacle(path)?;
                missing.push((path, saved));
            }
        }
        for (path, saved) in missing {
            self.put_back_file(path, saved, dir)?;
        }
        Ok(())
    }

    /// Removes the directories that did not exist before if they are empty.
    pub(super) fn remove_made(&self, all: &SavedFiles) {
        for directory in all.made.iter().rev() {
            let _ = fs::remove_dir(self.real.work_tree.join(as_path(directory)));
        }
    }

    pub(crate) fn with_index(&self, index: &Path) -> Call<'_> {
        self.call().env("GIT_INDEX_FILE", index)
    }

    /// Saves the entry at a path to disk, with the content in the file of this number in `dir`. Missing
    /// parent directories are added to `made`, outermost first.
    pub(super) fn save(
        &self,
        path: &[u8],
        dir: &Path,
        number: usize,
        made: &mut Vec<Vec<u8>>,
    ) -> Result<Saved, GitError> {
        if self.is_behind_link(path) {
            return Ok(Saved::Nothing);
        }
        let full = self.real.work_tree.join(as_path(path));
        let Some(meta) = metadata(&full)?.filter(|meta| !meta.is_dir()) else {
            let mut missing = Vec::new();
            let mut directory = split(path).0;
            while !directory.is_empty()
                && metadata(&self.real.work_tree.join(as_path(directory)))?.is_none()
            {
                missing.push(directory.to_vec());
                directory = split(directory).0;
            }
            missing.reverse();
            made.extend(missing);
            return Ok(Saved::Nothing);
        };
        if meta.is_symlink() {
            let target = fs::read_link(&full)
                .map_err(io_error("read", &full))?
                .into_os_string()
                .into_vec();
            return Ok(Saved::Link { target });
        }
        let copy = dir.join(number.to_string());
        let copied = plain_file::open(&full).and_then(|mut from| {
            let mut to = File::create_new(&copy)?;
            io::copy(&mut from, &mut to)?;
            to.sync_all()
        });
        copied.map_err(io_error("copy", &full))?;
        let mode = meta.permissions().mode() & 0o7777;
        Ok(Saved::File { number, mode })
    }

    /// Removes the file at a path and the directories that become empty.
    pub(crate) fn remove_file(&self, path: &[u8]) -> Result<(), GitError> {
        if self.is_behind_link(path) {
            return Ok(());
        }
        let full = self.real.work_tree.join(as_path(path));
        match metadata(&full)? {
            Some(meta) if !meta.is_dir() => {
                fs::remove_file(&full).map_err(io_error("remove", &full))?;
            }
            _ => {}
        }
        self.remove_empty_parents(path);
        Ok(())
    }

    /// Whether a link is in the place of a directory above a path. What is behind it is not in the work tree, and
    /// only this process may be able to read or change it.
    fn is_behind_link(&self, path: &[u8]) -> bool {
        let directory = split(path).0;
        let exists = self.real.work_tree.join(as_path(directory)).is_dir();
        exists && !PathInspector::new(&self.real.work_tree).is_real(directory)
    }

    fn remove_empty_parents(&self, path: &[u8]) {
        let mut directory = split(path).0;
        while !directory.is_empty() {
            let removed = fs::remove_dir(self.real.work_tree.join(as_path(directory)));
            if removed.is_err_and(|error| !is_absence(&error)) {
                break;
            }
            directory = split(directory).0;
        }
    }

    /// Writes files from an index. Attributes files come first, because they control the conversion of the
    /// others.
    pub(crate) fn check_out<'a>(
        &self,
        index: &Path,
        paths: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), GitError> {
        let is_rules = |path: &&[u8]| split(path).1 == b".gitattributes";
        let (rules, others): (Vec<&[u8]>, Vec<&[u8]>) = paths.partition(is_rules);
        for paths in [rules, others] {
            self.check_out_files(index, &paths, false)?;
        }
        Ok(())
    }

    /// Removes the file or link at a path, or one in the place of a parent directory.
    pub(crate) fn remove_obstacle(&self, path: &[u8]) -> Result<(), GitError> {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for end in ends.map(|(at, _)| at) {
            let above = self.real.work_tree.join(as_path(&path[..end]));
            match metadata(&above)? {
                Some(meta) if !meta.is_dir() => remove(&above)?,
                Some(_) => {}
                None => return Ok(()),
            }
        }
        let full = self.real.work_tree.join(as_path(path));
        match metadata(&full)? {
            Some(meta) if !meta.is_dir() => remove(&full),
            _ => Ok(()),
        }
    }

    /// Restores a saved entry from `dir` to its path.
    fn put_back_file(&self, path: &[u8], saved: &Saved, dir: &Path) -> Result<(), GitError> {
        let full = self.real.work_tree.join(as_path(path));
        if *saved == Saved::Nothing {
            return Ok(());
        }
        // A check may have made a directory in the place of the file.
        remove(&full)?;
        if let Some(parent) = full.parent() {
            fs::create_dir_all(parent).map_err(io_error("create", parent))?;
        }
        let written = match saved {
            Saved::Nothing => Ok(()),
            Saved::Moved { number } => {
                return match self.moved_to(*number)? {
                    Some(from) => move_tree(&from, &full, &from.with_extension("gone")),
                    None => Ok(()),
                };
            }
            Saved::Link { target } => symlink(as_path(target), &full),
            Saved::File { number, mode } => {
                File::open(dir.join(number.to_string())).and_then(|mut from| {
                    let mut to = File::create_new(&full)?;
                    io::copy(&mut from, &mut to)?;
                    to.set_permissions(Permissions::from_mode(*mode))
                })
            }
        };
        written.map_err(io_error("write", &full))
    }
}
