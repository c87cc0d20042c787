//! A repository and the private git directory of one run, with the caches of what was read.

use crate::domain::snapshot::RevId;
use crate::git::bytes::{as_path, real_path, with_real_parent};
use crate::git::command::Call;
use crate::git::commit::request::{Identity, StagedTree};
use crate::git::error::{GitError, Result};
use crate::git::files::{copy_index, is_link};
use crate::git::objects::reader::KeptObjects;
use crate::git::private::adopted::{self, make_object_store};
use crate::git::private::calls::{HOME, private_call, real_call};
use crate::git::private::directory::PrivateDir;
use crate::git::private::seal::{Access, Seal, Unsealed};
use crate::git::real::{Real, identity};
use crate::git::snapshot::index_list::LayoutCache;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::{TempDir, TempPath};

/// A repository together with the private git directory of one run. Methods that can change the result of a
/// snapshot take `&mut self`; all others only read or add objects.
#[derive(Debug)]
pub struct Repo {
    pub(crate) real: Real,
    pub(crate) private: PrivateDir,
    pub(crate) layout: LayoutCache,
    pub(crate) kept: KeptObjects,
    /// The tree in the staging index, from [`Repo::stage`] until it is landed.
    pub(crate) staged_tree: Option<StagedTree>,
    /// The id of the tree in the place of the work, while there is one.
    pub(crate) in_place: Option<String>,
    pub(crate) seal: Seal,
    /// A change time before the start of the run, in seconds, or `None` if an earlier process started the run.
    pub(crate) began: Option<i64>,
    /// How long to wait while another process holds the lock of the repository's index.
    pub(crate) lock_wait: Duration,
}

/// How far a file system's clock may be behind the system clock.
const CLOCK_SLACK: Duration = Duration::from_secs(2);
const LOCK_WAIT: Duration = Duration::from_secs(5);

impl Repo {
    /// Creates the private directory at `location`, which must not exist and must be outside of the
    /// repository and of everything that the agent can write. The base is the checked-out commit.
    ///
    /// # Errors
    /// If the location is unsuitable or the repository cannot be read.
    pub fn create(real: Real, location: &Path) -> Result<Self> {
        let before = SystemTime::now() - CLOCK_SLACK;
        let before = before.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (private, layout) = PrivateDir::create(&real, location)?;
        let base_tree = private.state.base_tree.clone();
        let mut repo = Self::over(real, private);
        repo.began = i64::try_from(before.as_secs()).ok();
        repo.layout = Mutex::new(Some((base_tree, Arc::new(layout))));
        Ok(repo)
    }

    /// The environment entry that identifies every git process of the run whose private directory is at
    /// `location`. No other process has it.
    pub fn mark_of_children(location: &Path) -> OsString {
        let mut entry = OsString::from("HOME=");
        entry.push(location.join(HOME));
        entry
    }

    /// Opens the private directory that an earlier process of this run created, and removes the locks that it
    /// held. No other process may be using the directory.
    ///
    /// # Errors
    /// If it is missing, unreadable, or belongs to another repository.
    pub fn reopen(real: Real, location: &Path) -> Result<Self> {
        let private = PrivateDir::reopen(&real, location)?;
        let mut repo = Self::over(real, private);
        repo.recover()?;
        repo.undo_swap()?;
        repo.show_hidden_commits()?;
        repo.index_after_checks()?;
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
            kept: KeptObjects::default(),
            staged_tree: None,
            in_place: None,
            began: None,
            lock_wait: LOCK_WAIT,
        }
    }

    /// A program or file of the repository that signing a commit would use, if commits are signed. An agent
    /// can change it, and signing is not confined.
    pub fn signer_in_repository(&self) -> Option<PathBuf> {
        let state = &self.private.state;
        let signer = state.signer.clone().filter(|_| state.sign)?;
        Some(PathBuf::from(OsString::from_vec(signer)))
    }

    /// The repository itself.
    pub fn real(&self) -> &Real {
        &self.real
    }

    /// Filters that the attributes of the checkout name and that are not set up on this machine.
    pub fn lost_filters(&self) -> &[String] {
        &self.private.state.lost_filters
    }

    /// The tracked paths of the work tree that git's configuration names as configuration or hooks.
    pub fn named_by_configuration(&self) -> &[Vec<u8>] {
        &self.private.state.named
    }

    /// Whether the repository was one of jj too when the run began.
    pub fn started_with_jj(&self) -> bool {
        adopted::started_with_jj(&self.private.git_dir())
    }

    /// Leaves a file that somebody other than the agent writes out of the work, if it is in the work tree and is
    /// not tracked.
    ///
    /// # Errors
    /// If the private directory cannot be written.
    pub fn leave_out(&mut self, file: &Path) -> Result<()> {
        let whole = with_real_parent(file);
        let Ok(within) = whole.strip_prefix(real_path(&self.real.work_tree)) else {
            return Ok(());
        };
        let _open = self.unseal()?;
        adopted::ignore(&self.private.git_dir(), within.as_os_str().as_bytes())
    }

    /// The commit that changes are compared with: the start of the task, or Sprag's last commit.
    pub fn base(&self) -> Option<RevId> {
        self.private.state.base.clone().map(RevId)
    }

    /// The identity in git's configuration at the start of the run.
    pub fn configured_identity(&self) -> Option<Identity> {
        let (name, email) = self.private.state.identity.clone()?;
        Some(Identity { name, email })
    }

    /// Unseals the private directory until the returned guard is dropped.
    pub(crate) fn unseal(&self) -> Result<Unsealed> {
        self.ensure_in_place()?;
        self.seal.unseal(Access::Writes)
    }

    /// Like [`Repo::unseal`], for those who do not change the private directory except for its objects.
    pub(crate) fn unseal_to_read(&self) -> Result<Unsealed> {
        self.ensure_in_place()?;
        self.seal.unseal(Access::Reads)
    }

    /// Like [`Repo::unseal_to_read`], for those who let git write what it has seen of the work tree into the index.
    pub(crate) fn unseal_to_look(&self) -> Result<Unsealed> {
        self.ensure_in_place()?;
        self.seal.unseal(Access::WritesIndex)
    }

    /// A command in the private directory.
    pub(crate) fn call(&self) -> Call<'_> {
        private_call(&self.real, &self.private.root)
    }

    /// Like [`Repo::call`], with arguments that are separated by spaces.
    pub(crate) fn git(&self, words: &str) -> Call<'_> {
        self.call().words(words)
    }

    /// Like [`Repo::real_call`], with arguments that are separated by spaces.
    pub(crate) fn real_git(&self, words: &str) -> Call<'_> {
        self.real_call().words(words)
    }

    /// A path of the work tree.
    pub(crate) fn at(&self, path: &[u8]) -> PathBuf {
        self.real.work_tree.join(as_path(path))
    }

    /// A copy of an index for changes that must not affect the original.
    pub(crate) fn scratch_index(&self, of: &Path) -> Result<TempPath> {
        let scratch = self.private.scratch_file()?;
        copy_index(of, scratch.path())?;
        Ok(scratch.into_temp_path())
    }

    /// A temporary object store that reads also from the run's own one.
    pub(crate) fn scratch_objects(&self) -> Result<TempDir> {
        let dir = self.private.scratch_dir()?;
        make_object_store(dir.path(), &self.own_objects())?;
        Ok(dir)
    }

    pub(crate) fn real_call(&self) -> Call<'_> {
        real_call(&self.real, &self.private.root)
    }

    /// Whether a file is unchanged since the run started, by its change time, which no program can set. False
    /// if the time is unknown.
    pub(crate) fn is_older_than_run(&self, path: &Path) -> bool {
        let changed = path
            .symlink_metadata()
            .map_or(i64::MAX, |meta| meta.ctime());
        self.began.is_some_and(|began| changed < began)
    }

    /// Fails if the work tree is no longer the one from the start of the run.
    pub(crate) fn ensure_tree_in_place(&self) -> Result<()> {
        ensure_same(&self.real.work_tree, self.real.identity[1])
    }

    /// Fails if the git directory or the work tree is no longer the one from the start of the run.
    pub(crate) fn ensure_in_place(&self) -> Result<()> {
        ensure_same(&self.real.git_dir, self.real.identity[0])?;
        self.ensure_tree_in_place()
    }

    /// Fails if a write to this path could lead out of the work tree: through a link on the way, or because the work tree
    /// is another one.
    ///
    /// # Errors
    /// [`GitError::Replaced`] with what is in the way.
    pub fn refuse_links_to(&self, path: &Path) -> Result<()> {
        self.ensure_in_place()?;
        let top = &self.real.work_tree;
        let above = path.ancestors().skip(1);
        let mut above = above.take_while(|dir| *dir != top && dir.starts_with(top));
        match above.find(|dir| is_link(dir)) {
            None => Ok(()),
            Some(link) => Err(GitError::Replaced(link.to_path_buf())),
        }
    }
}

fn ensure_same(dir: &Path, start: Option<(u64, u64)>) -> Result<()> {
    if identity(dir) == start {
        return Ok(());
    }
    Err(GitError::Replaced(dir.to_path_buf()))
}
