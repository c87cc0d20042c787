//! Saves files while others are in their place, and restores them.

use crate::git::command::Call;
use crate::git::entries::{PathInspector, directories_of, split};
use crate::git::error::{Result, io_error};
use crate::git::files::{is_absence, is_there, make_dir, metadata, move_tree, remove, write};
use crate::git::private::places::AWAY;
use crate::git::private::seal::MOVED_AWAY;
use crate::git::repo::Repo;
use crate::git::snapshot::listing::RawDiff;
use crate::plain_file;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, utimensat};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// What was at a path before it was replaced.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Saved {
    Nothing,
    /// A file or link, moved away under this number. It gets a new time when it comes back.
    File(usize),
    /// Whatever is there, moved away as a whole under this number. It stays as it is.
    Moved(usize),
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
    pub(crate) fn index_with(&self, tree: &str, of: &Path) -> Result<TempPath> {
        let index = self.scratch_index(of)?;
        self.with_index(&index)
            .words("read-tree --reset -i")
            .arg(tree)
            .run()?;
        Ok(index)
    }

    /// Removes the files that differ, and writes those in `index`.
    pub(super) fn exchange(&self, diffs: &[RawDiff], index: &Path) -> Result<()> {
        for diff in diffs {
            self.remove_file(&diff.path)?;
        }
        let there = |diff: &&RawDiff| diff.after.mode != 0;
        let paths = diffs.iter().filter(there).map(|diff| diff.path.as_slice());
        self.check_out(index, paths)
    }

    /// What is at the paths that differ, before it is moved away.
    pub(super) fn saved_files(&self, diffs: &[RawDiff]) -> Result<SavedFiles> {
        let mut all = SavedFiles::default();
        for (number, diff) in diffs.iter().enumerate() {
            let path = &diff.path;
            let mut saved = Saved::Nothing;
            if !self.is_behind_link(path) {
                if metadata(&self.at(path))?.is_some_and(|meta| !meta.is_dir()) {
                    saved = Saved::File(number);
                } else {
                    let above = directories_of(path).skip(1);
                    let missing = above.filter(|directory| !is_there(&self.at(directory)));
                    all.made.extend(missing.map(<[u8]>::to_vec));
                }
            }
            all.saved.push((path.clone(), saved));
        }
        Ok(all)
    }

    /// Moves files into `dir`, and all else out of the work tree.
    pub(super) fn move_away(&self, all: &SavedFiles, dir: &Path) -> Result<()> {
        make_dir(dir)?;
        for (path, saved) in &all.saved {
            let full = &self.at(path);
            if !is_there(full) {
                continue;
            }
            match saved {
                Saved::Nothing => continue,
                Saved::File(number) => move_tree(full, &dir.join(number.to_string()), full)?,
                Saved::Moved(number) => self.move_one_away(path, *number)?,
            }
            self.remove_empty_parents(path);
        }
        Ok(())
    }

    /// Moves into the private directory, where no check finds it that searches the work tree. If that is on another
    /// file system, it moves into the git directory: a copy would have other times and no hard links. There it may
    /// outlive everything else of the run, so its path is beside it.
    fn move_one_away(&self, path: &[u8], number: usize) -> Result<()> {
        let full = &self.at(path);
        let [hidden, near] = self.away_dirs();
        let name = number.to_string();
        make_dir(&hidden)?;
        match fs::rename(full, hidden.join(&name)) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                make_dir(&near)?;
                write(&near.join(format!("{name}.from")), path)?;
                move_tree(full, &near.join(name), full)
            }
            moved => moved.map_err(io_error("move", full)),
        }
    }

    /// The directories in which runs that died left what they had moved out of the work tree.
    pub fn left_away(&self) -> Vec<PathBuf> {
        let [_, own] = self.away_dirs();
        let mut left = plain_file::entries(&self.real.git_dir.join(AWAY));
        left.retain(|path| *path != own);
        left
    }

    /// The directories for whatever is moved away. A run that was killed may have left its own in another one of
    /// the git directory.
    fn away_dirs(&self) -> [PathBuf; 2] {
        let root = &self.private.root;
        let run = root
            .parent()
            .and_then(Path::file_name)
            .unwrap_or(root.as_os_str());
        let near = self.real.git_dir.join(AWAY).join(run);
        [root.join(MOVED_AWAY), near]
    }

    pub(super) fn remove_away_dirs(&self) -> Result<()> {
        for dir in self.away_dirs() {
            remove(&dir)?;
        }
        // It stays if it holds what another run moved away.
        let _ = fs::remove_dir(self.real.git_dir.join(AWAY));
        Ok(())
    }

    /// Where an entry was moved to, if it is still there.
    fn moved_to(&self, saved: &Saved, dir: &Path) -> Option<PathBuf> {
        let (dirs, number) = match saved {
            Saved::Nothing => return None,
            Saved::File(number) => (vec![dir.to_path_buf()], number),
            Saved::Moved(number) => (self.away_dirs().to_vec(), number),
        };
        let mut places = dirs.into_iter().map(|dir| dir.join(number.to_string()));
        places.find(|place| is_there(place))
    }

    /// Restores the entries that were saved, of which the files are in `dir`.
    pub(super) fn put_back_all(&self, all: &SavedFiles, dir: &Path) -> Result<()> {
        let mut missing = Vec::new();
        for (path, saved) in &all.saved {
            let from = self.moved_to(saved, dir);
            if from.is_some() || *saved == Saved::Nothing {
                self.remove_obstacle(path)?;
                missing.extend(from.map(|from| (path, saved, from)));
            }
        }
        for (path, saved, from) in missing {
            let full = self.at(path);
            // A check may have made a directory in the place of the file.
            remove(&full)?;
            if let Some(parent) = full.parent() {
                fs::create_dir_all(parent).map_err(io_error("create", parent))?;
            }
            if matches!(saved, Saved::File(_)) {
                renew_time(&from).map_err(io_error("set the time of", &from))?;
            }
            move_tree(&from, &full, &from.with_extension("gone"))?;
        }
        Ok(())
    }

    /// Removes the directories that did not exist before if they are empty.
    pub(super) fn remove_made(&self, all: &SavedFiles) {
        for directory in all.made.iter().rev() {
            let _ = fs::remove_dir(self.at(directory));
        }
    }

    pub(crate) fn with_index(&self, index: &Path) -> Call<'_> {
        self.call().env("GIT_INDEX_FILE", index)
    }

    /// Removes the file at a path and the directories that become empty.
    pub(crate) fn remove_file(&self, path: &[u8]) -> Result<()> {
        if self.is_behind_link(path) {
            return Ok(());
        }
        self.remove_unless_directory(path)?;
        self.remove_empty_parents(path);
        Ok(())
    }

    /// Whether a link is in the place of a directory above a path. What is behind it is not in the work tree, and
    /// only this process may be able to read or change it.
    fn is_behind_link(&self, path: &[u8]) -> bool {
        let directory = split(path).0;
        let exists = self.at(directory).is_dir();
        exists && !PathInspector::new(&self.real.work_tree).is_real(directory)
    }

    fn remove_empty_parents(&self, path: &[u8]) {
        let mut directory = split(path).0;
        while !directory.is_empty() {
            let removed = fs::remove_dir(self.at(directory));
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
    ) -> Result<()> {
        let is_rules = |path: &&[u8]| split(path).1 == b".gitattributes";
        let (rules, others): (Vec<&[u8]>, Vec<&[u8]>) = paths.partition(is_rules);
        for paths in [rules, others] {
            self.check_out_files(index, &paths, false)?;
        }
        Ok(())
    }

    /// Removes the file or link at a path, or one in the place of a parent directory.
    pub(crate) fn remove_obstacle(&self, path: &[u8]) -> Result<()> {
        for above in directories_of(path).skip(1) {
            self.remove_unless_directory(above)?;
        }
        self.remove_unless_directory(path)
    }

    fn remove_unless_directory(&self, path: &[u8]) -> Result<()> {
        let full = self.at(path);
        match metadata(&full)? {
            Some(meta) if !meta.is_dir() => remove(&full),
            _ => Ok(()),
        }
    }
}

/// Gives a file or link the present time.
fn renew_time(path: &Path) -> io::Result<()> {
    let time = |nanoseconds| Timespec {
        tv_sec: 0,
        tv_nsec: nanoseconds,
    };
    let times = Timestamps {
        last_access: time(UTIME_OMIT),
        last_modification: time(UTIME_NOW),
    };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}
