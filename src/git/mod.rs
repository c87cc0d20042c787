//! git, through a git directory of our own.
//!
//! An agent can write the repository's `.git`: its configuration and hooks would run foreign code
//! in our process, and its index can hide changes. Everything that looks at the work tree therefore
//! goes through a private directory made before the first turn. The repository itself is touched
//! only to read and move refs, with everything switched off that could run a program.

mod bytes;
mod command;
mod commit;
mod copy_tree;
mod discover;
mod entries;
mod error;
mod private;
mod remote;
mod snapshot;
mod special_files;
mod survey;
#[cfg(test)]
mod tests;

pub use bytes::{display_path, display_paths};
pub use commit::hooks::{Hook, HookInvocation};
pub use commit::land::LandingIntent;
pub use commit::raw_commit::Signature;
pub use commit::read_back::Seen;
pub use commit::rebase::{RebaseError, Rebased, Rewritten};
pub use commit::restore::Restored;
pub use commit::stage::{CommitError, CommitRequest, Identity, PlanContent, Stage, Staged};
pub use discover::{Environment, Operation, PreflightError, Real, discover};
pub use error::GitError;
pub use private::credentials::{
    PersistedCredential, PersistedKind, persisted_credentials, without_userinfo,
};
pub use private::guard::{AgentCommit, TurnMark, TurnReport, Violation};
pub use remote::api_changes::{ApiChanges, ApiChangesError};
pub use remote::bundle::{BundleError, BundleFacts, ChangedPath, CommitFacts};
pub use remote::exchange::{BranchName, Credential, Remote, RemoteError, rescue_branch};
pub use remote::push::{PushOutcome, PushSpec};
pub use remote::refusal::{RETRY_PAUSES, Refusal, RefusalKind, Trouble, classify};
pub use remote::switch::{MoveIntent, SwitchError};
pub use snapshot::take::{Change, ChangeKind, Exempt, PlanExempt, RawSnapshot};
pub use survey::{
    Checkout, Dirt, GitVersion, Nested, checkout, dirt, git_version, identity_of, nested,
};

use crate::domain::snapshot::RevId;
use command::Call;
use error::io_error;
use private::directory::PrivateDir;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// A repository together with the private git directory of one run. What changes something that
/// a snapshot would show takes it mutably; everything else only adds objects or reads.
#[derive(Debug)]
pub struct Repo {
    real: Real,
    private: PrivateDir,
    layout: snapshot::layout::LayoutCache,
    staged: snapshot::staged::StagedCache,
    blobs: snapshot::blobs::BlobCache,
    verdicts: snapshot::convert::Verdicts,
    /// The tree that the index of staging holds, from [`Repo::stage`] until it has landed.
    staged_tree: Option<String>,
    seal: private::seal::Seal,
    /// How long another process may hold the repository's index before we give up.
    lock_wait: Duration,
}

const LOCK_WAIT: Duration = Duration::from_secs(5);

impl Repo {
    /// Makes the private directory at `location`, which must not exist and must lie outside of the
    /// repository and of what the agent can write. The base is the commit that is checked out.
    ///
    /// # Errors
    /// When the location is unsuitable or the repository cannot be read.
    pub fn create(real: Real, location: &Path) -> Result<Self, GitError> {
        let private = PrivateDir::create(&real, location)?;
        Ok(Self::over(real, private))
    }

    /// What is in the environment of every git that works for the run whose private directory is at
    /// `location`, and of no other process.
    pub fn mark_of_children(location: &Path) -> OsString {
        let mut entry = OsString::from("HOME=");
        entry.push(location.join(private::directory::HOME));
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
        repo.seal = private::seal::Seal::new(&repo.private.root);
        Ok(repo)
    }

    fn over(real: Real, private: PrivateDir) -> Self {
        let seal = private::seal::Seal::new(&private.root);
        Self {
            real,
            private,
            seal,
            layout: snapshot::layout::LayoutCache::default(),
            staged: snapshot::staged::StagedCache::default(),
            blobs: snapshot::blobs::BlobCache::default(),
            verdicts: snapshot::convert::Verdicts::default(),
            staged_tree: None,
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

    /// A command in the private directory.
    fn call(&self) -> Call<'_> {
        private_call(&self.real, &self.private.root)
    }

    /// A copy of an index that can be changed at will.
    fn scratch_index(&self, of: &Path) -> Result<tempfile::TempPath, GitError> {
        let dir = self.private.root.join("tmp");
        let scratch = tempfile::NamedTempFile::new_in(&dir).map_err(io_error("create", &dir))?;
        std::fs::copy(of, scratch.path()).map_err(io_error("copy to", scratch.path()))?;
        Ok(scratch.into_temp_path())
    }

    fn real_call(&self) -> RealCall<'_> {
        real_call(&self.real, &self.private.root)
    }

    /// Fails when the repository's git directory is not the one of the start any more.
    fn ensure_in_place(&self) -> Result<(), GitError> {
        if discover::identity(&self.real.git_dir) == Some(self.real.identity) {
            return Ok(());
        }
        Err(GitError::Replaced {
            path: self.real.git_dir.clone(),
        })
    }
}

fn private_call<'a>(real: &'a Real, root: &Path) -> Call<'a> {
    let dir = private::directory::git_dir(root);
    real.git
        .call(&real.work_tree)
        .env("HOME", root.join(private::directory::HOME))
        .env("TMPDIR", root.join("tmp"))
        .env("GIT_INDEX_FILE", dir.join("index"))
        .env("GIT_DIR", dir)
        .env("GIT_WORK_TREE", &real.work_tree)
        .watching(real.roots())
}

/// Commands in the repository itself: only those that read or move refs, or read the index.
struct RealCall<'a> {
    real: &'a Real,
    root: &'a Path,
}

fn real_call<'a>(real: &'a Real, root: &'a Path) -> RealCall<'a> {
    RealCall { real, root }
}

impl<'a> RealCall<'a> {
    fn git(&self) -> Call<'a> {
        let settings = [
            (
                "core.hooksPath",
                self.root.join("no-hooks").into_os_string(),
            ),
            ("core.fsmonitor", "false".into()),
            ("core.commitGraph", "false".into()),
            ("core.useReplaceRefs", "false".into()),
            ("core.quotePath", "false".into()),
        ];
        let mut call = self
            .real
            .git
            .call(&self.real.work_tree)
            .env("HOME", self.root.join(private::directory::HOME))
            .env("GIT_DIR", &self.real.git_dir)
            .env("GIT_WORK_TREE", &self.real.work_tree)
            .env("GIT_OPTIONAL_LOCKS", "0")
            .watching(self.real.roots())
            .env("GIT_CONFIG_COUNT", settings.len().to_string());
        for (number, (key, value)) in settings.into_iter().enumerate() {
            call = call.env(format!("GIT_CONFIG_KEY_{number}"), key);
            call = call.env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        call
    }
}
