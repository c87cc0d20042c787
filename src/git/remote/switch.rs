//! Moves HEAD, the branch and the work tree to another commit if no work is lost.

use crate::domain::snapshot::RevId;
use crate::git::bytes::display_paths;
use crate::git::commit::request::CommitError;
use crate::git::commit::restore::Restored;
use crate::git::entries::{PathInspector, directories_of, split};
use crate::git::error::{GitError, Result};
use crate::git::files::{is_directory, is_there};
use crate::git::preflight::Operation;
use crate::git::private::places::links;
use crate::git::remote::exchange::Remote;
use crate::git::remote::names::{BranchName, checked_id};
use crate::git::remote::refusal::RemoteError;
use crate::git::repo::Repo;
use crate::git::snapshot::change::Exempt;
use crate::git::snapshot::listing::{GITLINK, RawDiff};
use crate::process::Cancel;
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// Why the work tree was not moved. Except for [`SwitchError::Restore`], nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// The remote or git failed.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The repository is not in a state to be moved, and is as it was before.
    #[error("{0}")]
    Refused(String),
    /// The files could not be written. Repeating the move is safe.
    #[error(transparent)]
    Restore(CommitError),
}

impl SwitchError {
    /// Whether the repository is certainly as it was before the move.
    pub fn changed_nothing(&self) -> bool {
        matches!(self, Self::Refused(_))
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
            let what = format!("{operation} is in progress; finish or abort it first");
            return Err(SwitchError::Refused(what));
        }
        self.refuse_dirty(&Exempt::default())?;
        self.fetch_for(remote, &RevId(to.clone()), cancel)?;
        let changes = self.changes_to(&to)?;
        let name = branch.full();
        // The links that exist before the branch is first written belong to the owner.
        let found = links(&self.real, &name).into_iter();
        let known = &mut self.private.state.links;
        known.extend(found.map(|path| path.into_os_string().into_vec()));
        self.put_branch(&name, &to)?;
        let reason = "sprag: onto the branch of the pull request";
        let call = self.move_ref("HEAD")?.words("symbolic-ref -m");
        call.args([reason, "HEAD", &name]).run()?;
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
            let here = self.real_git("rev-parse -q --verify").arg(&full).answer();
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
        let paths: Vec<Vec<u8>> = snapshot.all_changes().map(|one| one.path.clone()).collect();
        if paths.is_empty() {
            return Ok(());
        }
        let paths = display_paths(&paths);
        Err(SwitchError::Refused(format!(
            "the work tree has uncommitted changes: {paths}"
        )))
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
        let is_freed = |path: &[u8]| gone().any(|change| change.path == path);
        // A file replaces it because all its tracked files go. If other files remain in it, git refuses.
        let is_freed_directory = |path: &[u8]| {
            let below = [path, b"/"].concat();
            gone().any(|change| change.path.starts_with(&below))
        };
        let is_empty = |path: &Path| fs::read_dir(path).is_ok_and(|mut all| all.next().is_none());
        let is_in_the_way = |change: &&RawDiff| {
            let full = self.at(&change.path);
            let is_occupied = is_there(&full) && !(is_directory(&full) && is_empty(&full));
            let mut parents = directories_of(&change.path).skip(1);
            let parent = parents.find(|above| {
                let above = self.at(above);
                is_there(&above) && !is_directory(&above)
            });
            parent.is_some_and(|parent| !is_freed(parent))
                || (is_occupied
                    && looker.is_real(split(&change.path).0)
                    && !is_freed_directory(&change.path))
        };
        let paths = added
            .filter(is_in_the_way)
            .map(|change| change.path.clone());
        let paths: Vec<Vec<u8>> = paths.collect();
        if paths.is_empty() {
            return Ok(());
        }
        let paths = display_paths(&paths);
        Err(SwitchError::Refused(format!(
            "files that are not under version control lie where the other commit has files: {paths}"
        )))
    }

    fn put_branch(&self, name: &str, to: &str) -> Result<()> {
        let before = self.real_git("rev-parse -q --verify").arg(name).answer()?;
        if let Some(before) = &before
            && !self.is_ancestor(before, to).unwrap_or(false)
        {
            let kept = format!("refs/sprag/switched/{before}");
            let call = self.move_ref(&kept)?.words("update-ref --no-deref");
            call.args([&kept, before]).run()?;
        }
        let old = before.unwrap_or_else(|| self.no_object());
        let reason = "sprag: the head of the pull request";
        let call = self
            .move_ref(name)?
            .words("update-ref --no-deref -m")
            .durably();
        call.args([reason, name, to, &old]).run().map(drop)
    }

    /// Updates the base, the indexes and the files to `to`. HEAD is already there.
    fn settle(
        &mut self,
        to: &str,
        changes: &[RawDiff],
        exempt: &Exempt,
    ) -> Result<Restored, SwitchError> {
        for change in changes {
            if change.after.mode == 0 && change.before.mode != GITLINK {
                self.remove_added(&change.path)?;
            }
        }
        self.advance_base(&RevId(to.to_owned()))?;
        self.restore_tree(exempt).map_err(SwitchError::Restore)
    }
}

fn moved(found: Option<String>) -> SwitchError {
    let found = found.as_deref().unwrap_or("no commit");
    SwitchError::Refused(format!("HEAD is at {found} and not where it was left"))
}
