//! A repository and the private git directory of one run, with what was read of them before.

use crate::domain::snapshot::RevId;
use crate::git::command::Call;
use crate::git::commit::request::{Identity, StagedTree};
use crate::git::error::{GitError, io_error};
use crate::git::private::calls::{HOME, RealCall, private_call, real_call};
use crate::git::private::directory::PrivateDir;
use crate::git::private::seal::{Seal, Unsealed};
use crate::git::real::{Real, identity};
use crate::git::snapshot::cache::{BlobCache, LayoutCache, StagedCache, Verdicts};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A repository together with the private git directory of one run. What changes something that
/// a snapshot would show takes it mutably; everything else only adds objects or reads.
#[derive(Debug)]
pub struct Repo {
    pub(super) real: Real,
    pub(super) private: PrivateDir,
    pub(super) layout: LayoutCache,
    pub(super) staged: StagedCache,
    pub(super) blobs: BlobCache,
    pub(super) verdicts: Verdicts,
    /// The tree that the index of staging holds, from [`Repo::stage`] until it has landed.
    pub(super) staged_tree: Option<StagedTree>,
    pub(super) seal: Seal,
    /// A change time, in seconds and nanoseconds, from before the run; `None` where an earlier process
    /// began it.
    pub(super) began: Option<(i64, i64)>,
    /// How long another process may hold the repository's index before we give up.
    pub(super) lock_wait: Duration,
}

/// How far a file system's clock may be behind.
const CLOCK_SLACK: Duration = Duration::from_secs(2);
const LOCK_WAIT: Duration = Duration::from_secs(5);

impl Repo {
    /// Makes the private directory at `location`, which must not exist and must lie outside of the
    /// repository and of what the agent can write. The base is the commit that is checked out.
    ///
    /// # Errors
    /// When the location is unsuitable or the repository cannot be read.
    pub fn create(real: Real, location: &Path) -> Result<Self, GitError> {
        let before = SystemTime::now() - CLOCK_SLACK;
        let before = before.duration_since(UNIX_EPOCH).unwrap_or_default();
        let began = i64::try_from(before.as_secs()).ok();
        let (private, index) = PrivateDir::create(&real, location)?;
        let base_tree = private.state.base_tree.clone();
        let mut repo = Self::over(real, private);
        repo.began = began.map(|seconds| (seconds, 0));
        if let Some(digest) = index.is_base {
            repo.staged.put(&base_tree, digest, &Arc::default());
        }
        repo.layout = LayoutCache::of(base_tree, index.layout);
        Ok(repo)
    }

    /// What is in the environment of every git that works for the run whose private directory is at
    /// `location`, and of no other process.
    pub fn mark_of_children(location: &Path) -> OsString {
        let mut entry = OsString::from("HOME=");
        entry.push(location.join(HOME));
        entry
    }

    /// Opens the private directory that an earlier process of this run made, and lets go of the
    /// locks that it held. No other process may be using the directory.
    ///
    /// # Errors
    /// When it is missing, unreadable, or belongs to another repository.
    pub fn reopen(real: Real, location: &Path) -> Result<Self, GitError> {
        let private = PrivateDir::reopen(&real, location)?;
        let mut repo = Self::over(real, private);
        repo.recover()?;
        repo.undo_swap()?;
        repo.undo_replaced()?;
        repo.seal = Seal::new(&repo.private.root);
        Ok(repo)
    }

    fn over(real: Real, private: PrivateDir) -> Self {
        let seal = Seal::new(&private.root);
        Self {
            real,
            private,
            seal,
            layout: LayoutCache::default(),
            staged: StagedCache::default(),
            blobs: BlobCache::default(),
            verdicts: Verdicts::default(),
            staged_tree: None,
            began: None,
            lock_wait: LOCK_WAIT,
        }
    }

    /// The repository itself.
    pub fn real(&self) -> &Real {
        &self.real
    }

    /// The commit against which changes are told: the start of the task, or Sprag's last commit.
    pub fn base(&self) -> Option<RevId> {
        self.private.state.base.clone().map(RevId)
    }

    /// The identity that git's configuration gave at the start of the run.
    pub fn configured_identity(&self) -> Option<Identity> {
        let (name, email) = self.private.state.identity.clone()?;
        Some(Identity { name, email })
    }

    /// Asks for the private directory, which is sealed again when the answer is dropped.
    pub(super) fn unseal(&self) -> Result<Unsealed, GitError> {
        self.seal.unseal()
    }

    /// A command in the private directory.
    pub(super) fn call(&self) -> Call<'_> {
        private_call(&self.real, &self.private.root)
    }

    /// A copy of an index that can be changed at will.
    pub(super) fn scratch_index(&self, of: &Path) -> Result<tempfile::TempPath, GitError> {
        let dir = self.private.root.join("tmp");
        let scratch = tempfile::NamedTempFile::new_in(&dir).map_err(io_error("create", &dir))?;
        std::fs::copy(of, scratch.path()).map_err(io_error("copy to", scratch.path()))?;
        Ok(scratch.into_temp_path())
    }

    pub(super) fn real_call(&self) -> RealCall<'_> {
        real_call(&self.real, &self.private.root)
    }

    /// Whether a file, by its change time, which nobody can set, is as it was when the run began. An answer
    /// that cannot be had is taken for no.
    pub(super) fn is_older_than_run(&self, path: &Path) -> bool {
        let changed = path.symlink_metadata().ok();
        let changed = changed.map(|meta| (meta.ctime(), meta.ctime_nsec()));
        changed
            .zip(self.began)
            .is_some_and(|(at, began)| at < began)
    }

    /// Fails when the repository's git directory is not the one of the start any more.
    pub(super) fn ensure_in_place(&self) -> Result<(), GitError> {
        if identity(&self.real.git_dir) == Some(self.real.identity) {
            return Ok(());
        }
        Err(GitError::Replaced {
            path: self.real.git_dir.clone(),
        })
    }
}
