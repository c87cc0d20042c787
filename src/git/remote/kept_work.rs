//! Unfinished work in a ref of the remote that is not a branch: one commit on top of the last verified one
//! with the state of the work tree and files that describe it. Fetching it on another machine gives the
//! commits, the work and its description.

use crate::domain::snapshot::RevId;
use crate::git::commit::request::{CommitError, Identity};
use crate::git::commit::stage::record;
use crate::git::commit::swap::{SwapError, TreeId};
use crate::git::error::GitError;
use crate::git::remote::exchange::{Remote, remote_error};
use crate::git::remote::names::{checked_id, ref_component};
use crate::git::remote::push::PUSH;
use crate::git::remote::refusal::RemoteError;
use crate::git::repo::Repo;
use crate::git::snapshot::change::RawSnapshot;
use crate::process::Cancel;
use std::path::Path;
use std::time::Duration;

/// Prefix of the names of these refs.
pub const KEPT_WORK_REFS: &str = "refs/sprag/work/";

/// Time limit for storing the work, so that the next task does not wait longer.
const KEEP_LIMIT: Duration = Duration::from_secs(60);

/// The directories in the commit's tree: the work, and the files that describe it.
const WORK: &str = "work";
const STATE: &str = "state";

/// The name of a ref that keeps unfinished work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptWorkRef(String);

impl KeptWorkRef {
    /// The ref for work with this key.
    pub fn of(key: &str) -> Self {
        Self(format!("{KEPT_WORK_REFS}{}", ref_component(key)))
    }

    /// The full name.
    pub fn full(&self) -> &str {
        &self.0
    }
}

/// Fetched unfinished work, all of which is in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptWork {
    commit: RevId,
    /// The last verified commit.
    pub base: RevId,
    /// The work tree, or `None` if it was not stored.
    pub tree: Option<TreeId>,
}

impl Repo {
    /// Creates a commit of the work and these files on top of the base. Without a snapshot, only the
    /// committed state is kept.
    ///
    /// # Errors
    /// When there is no base, git fails, or it does not accept a file.
    pub fn keep_work(
        &self,
        snapshot: Option<&RawSnapshot>,
        files: &[(String, Vec<u8>)],
        identity: &Identity,
        message: &str,
    ) -> Result<RevId, CommitError> {
        let tree = snapshot
            .map(|snapshot| self.write_snapshot_tree(snapshot))
            .transpose()?;
        let _open = self.unseal()?;
        let Some(base) = self.base() else {
            return Err(GitError::private(&self.private.root, "there is no base commit").into());
        };
        let mut records = Vec::new();
        for (name, content) in files {
            let blob = self.store("blob", content)?;
            records.extend(record(0o100_644, &blob, name.as_bytes()));
        }
        let state = self.tree_with(&self.store("tree", b"")?, records)?;
        let mut parts = format!("040000 tree {state}\t{STATE}\0");
        if let Some(tree) = &tree {
            parts += &format!("040000 tree {}\t{WORK}\0", tree.as_str());
        }
        let root = self.git("mktree -z --missing").stdin(parts).line()?;
        let call = self.call().in_name_of(&identity.name, &identity.email);
        let call = call.args(["commit-tree", &root, "-p", &base.0, "-m", message]);
        Ok(RevId(call.line()?))
    }

    /// Sets the ref of the remote to a commit, whatever its current value is, or deletes it.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn push_kept_work(
        &self,
        remote: &Remote,
        name: &KeptWorkRef,
        commit: Option<&RevId>,
        cancel: &Cancel,
    ) -> Result<(), RemoteError> {
        let new = commit.map(checked_id).transpose()?.unwrap_or_default();
        let refspec = match new {
            "" => format!(":{}", name.0),
            new => format!("+{new}:{}", name.0),
        };
        let _open = self.unseal()?;
        let call = self.remote_call(remote, cancel).timeout(KEEP_LIMIT);
        // The commit is in the private directory, all else in the repository.
        let call = call.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.own_objects());
        let call = call.words(PUSH).args(["--quiet", remote.url(), &refspec]);
        remote_error(remote, call.status()).map(drop)
    }

    /// Fetches the work that a ref of the remote keeps, or returns `None` if there is none. In a shallow
    /// history, `commits` is the number of commits between the base and the start of the run.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub fn fetch_kept_work(
        &self,
        remote: &Remote,
        name: &KeptWorkRef,
        commits: u32,
        cancel: &Cancel,
    ) -> Result<Option<KeptWork>, RemoteError> {
        let Some(commit) = self.ls_remote(remote, &name.0, cancel)? else {
            return Ok(None);
        };
        let depth = Some(commits.saturating_add(2));
        self.fetch(remote, &commit.0, depth, cancel)?;
        let _open = self.unseal()?;
        let parent = format!("{}^1", commit.0);
        let base = RevId(self.git("rev-parse --verify").arg(parent).line()?);
        let work = format!("{}:{WORK}", commit.0);
        let tree = self
            .git("rev-parse --verify --quiet")
            .arg(work)
            .answer()?
            .map(TreeId::known);
        Ok(Some(KeptWork { commit, base, tree }))
    }

    /// A file that was stored with the work.
    ///
    /// # Errors
    /// When git fails.
    pub fn file_of_kept_work(
        &self,
        work: &KeptWork,
        name: &str,
    ) -> Result<Option<Vec<u8>>, RemoteError> {
        let path = Path::new(STATE).join(name);
        self.file_of(&work.commit, path.as_os_str().as_encoded_bytes())
    }

    /// Changes the files of the work tree, which must be those of the base, to this tree. HEAD, index and
    /// base do not move.
    ///
    /// # Errors
    /// [`SwapError`].
    pub fn check_out_tree(&mut self, tree: &TreeId) -> Result<(), SwapError> {
        let _open = self.unseal()?;
        let diffs = self.swappable(self.base_tree().as_str(), tree.as_str(), |_| true)?;
        for diff in &diffs {
            self.remove_obstacle(&diff.path)?;
            if diff.after.mode == 0 {
                self.remove_file(&diff.path)?;
            }
        }
        let index = self.index_with(tree.as_str(), &self.private.index())?;
        let there = diffs.iter().filter(|diff| diff.after.mode != 0);
        Ok(self.check_out(&index, there.map(|diff| diff.path.as_slice()))?)
    }
}
