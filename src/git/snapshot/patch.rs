//! Writes the differences from the base as a patch.

use crate::domain::snapshot::RevId;
use crate::git::bytes::display_path;
use crate::git::commit::stage::{Target, committed};
use crate::git::error::GitError;
use crate::git::remote::names::checked_id;
use crate::git::remote::refusal::RemoteError;
use crate::git::repo::Repo;
use crate::git::snapshot::change::{Change, RawSnapshot};

impl Repo {
    /// Writes the snapshot's changes, including untracked files, in chunks to `sink` as a patch for `git
    /// apply --binary`. Leaves no objects or index entries behind. Unreadable files are left out.
    ///
    /// # Errors
    /// When git fails.
    fn write_patch(
        &self,
        snapshot: &RawSnapshot,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<(), GitError> {
        let _open = self.unseal()?;
        let scratch = self.scratch_objects()?;
        let index = self.scratch_index(&self.private.index())?;
        let target = Target {
            index: &index,
            objects: scratch.path().to_path_buf(),
            durable: false,
        };
        let changes: Vec<&Change> = committed(snapshot)
            .filter(|change| change.unreadable.is_none())
            .collect();
        self.stage_changes(&target, &changes)?;
        let args = "diff-index --cached -p --binary --full-index --no-renames";
        self.call()
            .env("GIT_INDEX_FILE", &index)
            .env("GIT_OBJECT_DIRECTORY", scratch.path())
            .words(args)
            .words("--no-ext-diff --no-textconv --no-color")
            .args([&self.private.state.base_tree])
            .stream(sink)?
            .expect_success("diff-index".to_owned())
            .map(drop)
    }

    /// Writes the changes of each commit after `base` up to `head`, oldest first, in chunks to `sink`: a line
    /// `commit ID`, an empty line, the indented subject, an empty line, the diff from its first parent.
    /// Without a base, this covers every commit up to `head`.
    ///
    /// # Errors
    /// When git fails.
    pub fn write_commits(
        &self,
        base: Option<&RevId>,
        head: &RevId,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<(), GitError> {
        let _open = self.unseal_to_read()?;
        let range = base.map_or_else(|| head.0.clone(), |base| format!("{}..{}", base.0, head.0));
        self.call()
            .args(["log", "--reverse", "--topo-order", "--no-show-signature"])
            .args(["--format=format:commit %H%n%n    %s%n", "--patch"])
            .args(["--diff-merges=first-parent", "--no-notes"])
            .args(["--no-ext-diff", "--no-textconv", "--no-color", &range, "--"])
            .stream(sink)?
            .expect_success("log".to_owned())
            .map(drop)
    }

    /// The changes between two commits as a patch for people: with renames detected, and without the content
    /// of binary files.
    ///
    /// # Errors
    /// When one of them does not exist.
    pub fn patch_between(&self, from: &RevId, to: &RevId) -> Result<Vec<u8>, RemoteError> {
        let from = checked_id(from)?;
        let to = checked_id(to)?;
        let _open = self.unseal_to_read()?;
        let call = self
            .call()
            .args(["-c", "core.quotePath=false", "diff-tree", "-r", "-p"])
            .args(["--find-renames", "--no-ext-diff", "--no-textconv"])
            .args(["--no-color", from, to]);
        Ok(call.run()?.stdout)
    }

    /// The files that differ between two commits.
    ///
    /// # Errors
    /// When one of them does not exist.
    pub fn paths_between(&self, from: &RevId, to: &RevId) -> Result<Vec<String>, RemoteError> {
        let from = checked_id(from)?;
        let to = checked_id(to)?;
        let _open = self.unseal_to_read()?;
        let changes = self.diff_trees(from, to)?;
        Ok(changes
            .iter()
            .map(|change| display_path(&change.path))
            .collect())
    }

    /// Like [`Repo::write_patch`], in memory.
    ///
    /// # Errors
    /// When git fails.
    pub fn patch(&self, snapshot: &RawSnapshot) -> Result<Vec<u8>, GitError> {
        let mut patch = Vec::new();
        self.write_patch(snapshot, &mut |chunk| patch.extend_from_slice(chunk))?;
        Ok(patch)
    }
}
