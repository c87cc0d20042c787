//! Moves HEAD, the branch and the work tree to another commit if no work is lost.

use crate::domain::snapshot::RevId;
use crate::git::bytes::{as_path, display_paths};
use crate::git::commit::request::CommitError;
use crate::git::commit::restore::Restored;
use crate::git::entries::{PathInspector, split};
use crate::git::error::GitError;
use crate::git::preflight::Operation;
use crate::git::private::places::links;
use crate::git::remote::exchange::Remote;
use crate::git::remote::names::{BranchName, checked_id};
use crate::git::remote::refusal::RemoteError;
use crate::git::repo::Repo;
use crate::git::snapshot::change::Exempt;
use crate::git::snapshot::listing::RawDiff;
use crate::process::Cancel;
use serde::{Deserialize, Serialize};
use std::os::unix::ffi::OsStringExt;

/// Why the work tree was not moved. Except for [`SwitchError::Restore`], nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// The remote or git failed.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// There is uncommitted work.
    #[error("the work tree has uncommitted changes: {}", display_paths(.0))]
    Dirty(Vec<Vec<u8>>),
    /// Ignored files or check artifacts are in the place of the other commit's files.
    #[error("files that are not under version control lie where the other commit has files: {}", display_paths(.0))]
    InTheWay(Vec<Vec<u8>>),
    /// A merge or similar operation is in progress.
    #[error("{0} is in progress; finish or abort it first")]
    InProgress(Operation),
    /// HEAD is neither at the start nor at the end of the move.
    #[error("HEAD is at {found} and not where it was left")]
    HeadMoved {
        /// The commit, or a text that there is none.
        found: String,
    },
    /// The files could not be written. Repeating the move is safe.
    #[error(transparent)]
    Restore(CommitError),
}

impl SwitchError {
    /// Whether the repository is certainly as it was before the move.
    pub fn changed_nothing(&self) -> bool {
        matches!(
            self,
            Self::Dirty(_) | Self::InTheWay(_) | Self::InProgress(_) | Self::HeadMoved { .. }
        )
    }
}

impl From<GitError> for SwitchError {
    fn from(error: GitError) -> Self {
        Self::Remote(RemoteError::Git(error))
    }
}

/// A planned move of a branch. Stored on disk before [`Repo::move_to`], it lets a restart finish or undo the
/// move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveIntent {
    /// The commit at the start.
    pub from: RevId,
    /// The commit at the end.
    pub to: RevId,
    /// Full name of the branch, or `None` if HEAD is detached.
    pub branch: Option<String>,
}

impl Repo {
    /// Switches a clean work tree to a branch at a commit of the remote, before a run: fetches the commit,
    /// creates or moves the local branch, and checks it out with the filters configured before the run and
    /// without hooks. Commits of an existing local branch that are not in the new history stay reachable
    /// below `refs/sprag/switched/`. The commit becomes the base.
    ///
    /// # Errors
    /// [`SwitchError`].
    pub fn switch_to(
        &mut self,
        remote: &Remote,
        branch: &BranchName,
        to: &RevId,
        cancel: &Cancel,
    ) -> Result<Restored, SwitchError> {
        let to = checked_id(to)?.to_owned();
        let _open = self.unseal()?;
        if let Some(operation) = Operation::under_way(&self.real.git_dir) {
            return Err(SwitchError::InProgress(operation));
        }
        self.refuse_dirty(&Exempt::default())?;
        self.fetch_for(remote, &RevId(to.clone()), cancel)?;
        let changes = self.changes_to(&to)?;
        let name = branch.full();
        self.record_links(&name);
        self.put_branch(&name, &to)?;
        let call = self.move_ref("HEAD")?;
        let reason = "sprag: onto the branch of the pull request";
        call.args(["symbolic-ref", "-m", reason, "HEAD", &name])
            .run()?;
        self.private.state.branch = Some(name);
        self.settle(&to, &changes, &Exempt::default())
    }

    /// A branch that exists here or on the remote and keeps git from making a new branch: `sprag` for `sprag/issue-1`.
    pub fn branch_in_the_way(
        &self,
        remote: &Remote,
        branch: &BranchName,
        cancel: &Cancel,
    ) -> Option<String> {
        let name = branch.short();
        let mut parents = name
            .match_indices('/')
            .filter_map(|(end, _)| name.get(..end));
        let exists = |parent: &&str| {
            let full = format!("refs/heads/{parent}");
            let args = ["rev-parse", "-q", "--verify", &full];
            let here = self.real_call().args(args).answer();
            matches!(here, Ok(Some(_)))
                || matches!(self.ls_remote(remote, &full, cancel), Ok(Some(_)))
        };
        parents.find(exists).map(str::to_owned)
    }

    /// Plans a [`Repo::move_to`] from the base to `to`, which must already be in the repository. The work
    /// tree then has nothing that undoing the move could lose.
    ///
    /// # Errors
    /// When HEAD is not at the base, the work tree has changes, or files are in the way.
    pub fn plan_move(&self, to: &RevId, exempt: &Exempt) -> Result<MoveIntent, SwitchError> {
        let _open = self.unseal()?;
        let to = RevId(checked_id(to)?.to_owned());
        let head = self.head_state()?;
        let from = match (head.oid, self.base()) {
            (Some(from), Some(base)) if from == base.0 => base,
            (found, _) => return Err(moved(found)),
        };
        self.refuse_dirty(exempt)?;
        self.changes_to(&to.0)?;
        Ok(MoveIntent {
            from,
            to,
            branch: head.branch,
        })
    }

    /// Moves the branch, the work tree and the base as planned, so that the result can be verified again.
    /// Ignored files and check artifacts stay. Repeating an interrupted move finishes it, and
    /// [`Repo::move_back`] undoes a finished one.
    ///
    /// # Errors
    /// [`SwitchError`].
    pub fn move_to(
        &mut self,
        intent: &MoveIntent,
        exempt: &Exempt,
    ) -> Result<Restored, SwitchError> {
        let from = checked_id(&intent.from)?;
        let to = checked_id(&intent.to)?;
        let _open = self.unseal()?;
        self.restore_metadata()?;
        let head = self.head_state()?;
        if head.branch != intent.branch || ![Some(from), Some(to)].contains(&head.oid.as_deref()) {
            return Err(moved(head.oid));
        }
        let is_begun = self.private.state.base.as_deref() != head.oid.as_deref();
        let changes = self.diff_trees(from, to)?;
        if head.oid.as_deref() == Some(from) && !is_begun {
            self.refuse_dirty(exempt)?;
            self.refuse_in_the_way(&changes)?;
        }
        self.refuse_links(head.branch.as_deref().unwrap_or("HEAD"))?;
        self.point_head_to(Some(to), "sprag: rebased")?;
        self.settle(to, &changes, exempt)
    }

    /// Undoes a finished move. Later changes must have been restored before.
    ///
    /// # Errors
    /// As for [`Repo::move_to`].
    pub fn move_back(
        &mut self,
        intent: &MoveIntent,
        exempt: &Exempt,
    ) -> Result<Restored, SwitchError> {
        let back = MoveIntent {
            from: intent.to.clone(),
            to: intent.from.clone(),
            branch: intent.branch.clone(),
        };
        self.move_to(&back, exempt)
    }

    /// Undoes a move, wherever it, the work after it or an earlier undoing was interrupted. Changes in the
    /// work tree are discarded.
    ///
    /// # Errors
    /// As [`Repo::move_to`].
    pub fn undo_move(
        &mut self,
        intent: &MoveIntent,
        exempt: &Exempt,
    ) -> Result<Restored, SwitchError> {
        let arrived = self.base().as_ref() == Some(&intent.to);
        let head = self.head_state()?.oid;
        if arrived && head.as_ref() != Some(&intent.from.0) {
            self.restore_tree(exempt).map_err(SwitchError::Restore)?;
        }
        self.move_back(intent, exempt)
    }

    /// Whether the repository has an incomplete history.
    pub fn is_shallow(&self) -> bool {
        let borders = self.real.common_dir.join("shallow");
        borders.metadata().is_ok_and(|meta| meta.len() > 0)
    }

    fn refuse_dirty(&self, exempt: &Exempt) -> Result<(), SwitchError> {
        let snapshot = self.snapshot(exempt)?;
        let changed = snapshot.changes.iter().chain(&snapshot.uncounted);
        let paths: Vec<Vec<u8>> = changed.map(|change| change.path.clone()).collect();
        if paths.is_empty() {
            Ok(())
        } else {
            Err(SwitchError::Dirty(paths))
        }
    }

    /// The differences between the base and a commit, provided that nothing is in the place of its new files.
    fn changes_to(&self, to: &str) -> Result<Vec<RawDiff>, SwitchError> {
        let changes = self.diff_trees(&self.private.state.base_tree, to)?;
        self.refuse_in_the_way(&changes)?;
        Ok(changes)
    }

    fn refuse_in_the_way(&self, changes: &[RawDiff]) -> Result<(), SwitchError> {
        let mut looker = PathInspector::new(&self.real.work_tree);
        let added = changes.iter().filter(|change| change.before.mode == 0);
        let gone = || changes.iter().filter(|change| change.after.mode == 0);
        let freed = |path: &[u8]| gone().any(|change| change.path == path);
        // A file replaces it because all its tracked files go. If other files remain in it, git refuses.
        let is_freed_directory = |path: &[u8]| {
            let below = [path, b"/"].concat();
            gone().any(|change| change.path.starts_with(&below))
        };
        let mut paths = Vec::new();
        for change in added {
            let full = self.real.work_tree.join(as_path(&change.path));
            let there = full.symlink_metadata().ok();
            let is_empty = |path: &std::path::Path| {
                std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
            };
            let occupied = there.is_some_and(|meta| !meta.is_dir() || !is_empty(&full))
                && looker.is_real(split(&change.path).0)
                && !is_freed_directory(&change.path);
            if occupied || self.parent_in_the_way(&change.path, &freed) {
                paths.push(change.path.clone());
            }
        }
        if paths.is_empty() {
            Ok(())
        } else {
            Err(SwitchError::InTheWay(paths))
        }
    }

    /// Whether a parent of the path is not a directory and is not removed by the move.
    fn parent_in_the_way(&self, path: &[u8], freed: &dyn Fn(&[u8]) -> bool) -> bool {
        let mut parent = split(path).0;
        while !parent.is_empty() {
            let meta = self.real.work_tree.join(as_path(parent)).symlink_metadata();
            if meta.is_ok_and(|meta| !meta.is_dir()) {
                return !freed(parent);
            }
            parent = split(parent).0;
        }
        false
    }

    /// Records the links that exist before the branch is first written: they belong to the owner.
    fn record_links(&mut self, name: &str) {
        let found = links(&self.real, name).into_iter();
        let found: Vec<Vec<u8>> = found.map(|path| path.into_os_string().into_vec()).collect();
        let known = &mut self.private.state.links;
        known.extend(found);
        known.sort();
        known.dedup();
    }

    fn put_branch(&self, name: &str, to: &str) -> Result<(), GitError> {
        let args = ["rev-parse", "-q", "--verify", name];
        let before = self.real_call().args(args).answer()?;
        if let Some(before) = &before
            && !self.is_ancestor(before, to).unwrap_or(false)
        {
            let kept = format!("refs/sprag/switched/{before}");
            let call = self.move_ref(&kept)?;
            call.args(["update-ref", "--no-deref", &kept, before])
                .run()?;
        }
        let old = before.unwrap_or_else(|| self.no_object());
        let reason = "sprag: the head of the pull request";
        let args = ["update-ref", "--no-deref", "-m", reason, name, to, &old];
        let call = self.move_ref(name)?.args(args).durably();
        call.run().map(drop)
    }

    /// Updates the base, the indexes and the files to `to`. HEAD is already there.
    fn settle(
        &mut self,
        to: &str,
        changes: &[RawDiff],
        exempt: &Exempt,
    ) -> Result<Restored, SwitchError> {
        for change in changes {
            if change.after.mode == 0
                && change.before.mode != crate::git::snapshot::listing::GITLINK
            {
                self.remove_added(&change.path)?;
            }
        }
        self.advance_base(&RevId(to.to_owned()))?;
        self.restore_tree(exempt).map_err(SwitchError::Restore)
    }
}

fn moved(found: Option<String>) -> SwitchError {
    SwitchError::HeadMoved {
        found: found.unwrap_or_else(|| "no commit".to_owned()),
    }
}
