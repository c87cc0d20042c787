//! The repository's index while checks run that ask git what has changed.

use crate::git::commit::stage::{Target, committed};
use crate::git::copy_tree::{metadata, remove};
use crate::git::error::{GitError, io_error};
use crate::git::files::copy_index;
use crate::git::repo::Repo;
use crate::git::snapshot::change::{Change, RawSnapshot};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Names further object stores to git.
const OTHER_STORES: &str = "GIT_ALTERNATE_OBJECT_DIRECTORIES";

impl Repo {
    /// Stages the work, or the tree in its place, in the repository's own index, so that `git diff` shows only what
    /// checks change, as in a checkout of the commit. Returns the variable by which git finds the staged objects.
    /// [`Repo::index_after_checks`] restores the index, and [`Repo::reopen`] if the process dies before. A repository
    /// without an index stays without one.
    ///
    /// # Errors
    /// When git fails or the index cannot be written.
    pub fn index_before_checks(
        &mut self,
        snapshot: &RawSnapshot,
    ) -> Result<Option<(OsString, OsString)>, GitError> {
        let _open = self.unseal()?;
        let own = self.real.git_dir.join("index");
        if metadata(&own)?.is_none() {
            return Ok(None);
        }
        let index = match &self.in_place {
            Some(tree) => {
                let index = self.index_with(tree, &self.private.index())?;
                let refresh = ["update-index", "-q", "--refresh", "--ignore-submodules"];
                self.with_index(&index).args(refresh).status()?;
                index
            }
            None => {
                let index = self.scratch_index(&self.private.index())?;
                let target = Target {
                    index: &index,
                    objects: self.own_objects(),
                    durable: false,
                };
                let readable = committed(snapshot).filter(|change| change.unreadable.is_none());
                let changes: Vec<&Change> = readable.collect();
                self.stage_changes(&target, &changes)?;
                index
            }
        };
        copy_index(&own, &self.kept_index())?;
        self.put_index(&index)?;
        Ok(Some((OTHER_STORES.into(), self.own_objects().into())))
    }

    /// Restores the index from before checks ran, if it was replaced.
    ///
    /// # Errors
    /// When the index cannot be written.
    pub fn index_after_checks(&self) -> Result<(), GitError> {
        let kept = self.kept_index();
        if metadata(&kept)?.is_none() {
            return Ok(());
        }
        let _open = self.unseal()?;
        self.put_index(&kept)?;
        remove(&kept)
    }

    /// Replaces the repository's index by a copy, in one step.
    fn put_index(&self, from: &Path) -> Result<(), GitError> {
        let copy = self.real.git_dir.join("sprag-index");
        remove(&copy)?;
        copy_index(from, &copy)?;
        let own = self.real.git_dir.join("index");
        fs::rename(&copy, &own).map_err(io_error("write", &own))
    }

    fn kept_index(&self) -> PathBuf {
        self.private.root.join("index-before-checks")
    }
}
