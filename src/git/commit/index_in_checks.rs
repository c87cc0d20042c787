//! The repository's index while checks run that ask git what has changed.

use crate::git::commit::stage::{Target, committed};
use crate::git::copy_tree::{metadata, remove};
use crate::git::error::{GitError, io_error};
use crate::git::files::{copy_index, read_record, write_record};
use crate::git::repo::Repo;
use crate::git::snapshot::change::{Change, RawSnapshot};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Names further object stores to git.
const OTHER_STORES: &str = "GIT_ALTERNATE_OBJECT_DIRECTORIES";

/// Names the refs whose last part is an object that git takes another one for.
const REPLACED: &str = "GIT_REPLACE_REF_BASE";

/// The ref with the staged tree, below the tree of the last commit.
const AS_COMMITTED: &str = "refs/sprag/as-committed/";

/// How checks see the work through git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedWork {
    /// The variable by which git finds the staged objects.
    pub store: (OsString, OsString),
    /// The variable with which git takes the staged tree for that of the last commit, if there is one.
    pub as_committed: Option<(OsString, OsString)>,
}

impl Repo {
    /// Stages the work, or the tree in its place, in the repository's own index, so that `git diff` shows only what
    /// checks change, as in a checkout of the commit. Neither HEAD nor a branch moves for `as_committed`.
    /// [`Repo::index_after_checks`] restores the index, and [`Repo::reopen`] if the process dies before. A repository
    /// without an index stays without one.
    ///
    /// # Errors
    /// When git fails or the index cannot be written.
    pub fn index_before_checks(
        &mut self,
        snapshot: &RawSnapshot,
        as_committed: bool,
    ) -> Result<Option<StagedWork>, GitError> {
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
        let as_committed = if as_committed {
            let write = ["write-tree", "--missing-ok"];
            self.replace_last_tree(&self.with_index(&index).args(write).line()?)?
        } else {
            None
        };
        self.put_index(&index)?;
        let store = (OTHER_STORES.into(), self.own_objects().into());
        Ok(Some(StagedWork {
            store,
            as_committed,
        }))
    }

    /// Lets git take a tree for that of the last commit, if [`REPLACED`] is set so.
    fn replace_last_tree(&self, by: &str) -> Result<Option<(OsString, OsString)>, GitError> {
        let parse = ["rev-parse", "--verify", "--quiet", "HEAD^{tree}"];
        let Ok(last) = self.real_call().args(parse).line() else {
            return Ok(None);
        };
        let name = format!("{AS_COMMITTED}{last}");
        if last != by {
            write_record(&self.replacing_record(), &name)?;
            let call = self.real_call().env(OTHER_STORES, self.own_objects());
            call.args(["update-ref", &name, by]).run()?;
        }
        Ok(Some((REPLACED.into(), AS_COMMITTED.into())))
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
        if let Some(name) = read_record::<String>(&self.replacing_record())? {
            self.real_call().args(["update-ref", "-d", &name]).run()?;
            remove(&self.replacing_record())?;
        }
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

    fn replacing_record(&self) -> PathBuf {
        self.private.root.join("as-committed.json")
    }

    fn kept_index(&self) -> PathBuf {
        self.private.root.join("index-before-checks")
    }
}
