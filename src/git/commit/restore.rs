//! Restores the work tree, the index and HEAD to the base.

use crate::domain::snapshot::RevId;
use crate::git::bytes::{as_path, display_path};
use crate::git::commit::request::CommitError;
use crate::git::entries::{PathInspector, split};
use crate::git::error::{Result, io_error};
use crate::git::files::{is_absence, is_directory};
use crate::git::remote::names::ref_component;
use crate::git::repo::Repo;
use crate::git::snapshot::change::{Change, ChangeKind, Exempt};
use crate::git::snapshot::layout::holds_ignore_rules;
use std::fs;

/// Why HEAD goes back, for its log.
pub(super) const BACK: &str = "sprag: back to the base";

/// The result of a restore.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// Files that are back in their base state.
    pub restored: Vec<Vec<u8>>,
    /// New files that were removed.
    pub removed: Vec<Vec<u8>>,
    /// What was not restored, for warnings.
    pub left: Vec<String>,
}

impl Repo {
    /// Undoes every change since the base: restores tracked files and removes new ones that the base does not ignore.
    /// Check artifacts and nested repositories stay. No link is followed out of the work tree. HEAD and the
    /// repository's index are restored too.
    ///
    /// # Errors
    /// When the index is locked or a file cannot be written. Repeating it is safe.
    pub fn restore_tree(&mut self, exempt: &Exempt) -> Result<Restored, CommitError> {
        let _open = self.unseal()?;
        let mut snapshot = self.snapshot(exempt)?;
        let lock = self.lock_index()?;
        let mut done = Restored::default();
        // A file that the base's rules ignore is not new, whatever became of the rules.
        let is_rules = |change: &&Change| holds_ignore_rules(&change.path);
        let rules: Vec<&Change> = snapshot.all_changes().filter(is_rules).collect();
        if !rules.is_empty() {
            self.take_back(&rules, &mut done)?;
            snapshot = self.snapshot(exempt)?;
        }
        // Neither is one that the agent added to the index or to a commit in spite of them.
        let is_new = |change: &&Change| change.kind == ChangeKind::Added;
        let added = snapshot.all_changes().filter(is_new);
        let ignored = self.ignored_among(added.map(|change| &change.path))?;
        let is_left = |change: &&Change| is_new(change) && ignored.contains(&change.path);
        let others = snapshot.all_changes().filter(|change| !is_left(change));
        self.take_back(&others.collect::<Vec<_>>(), &mut done)?;
        let plan = exempt.plan.as_ref().map(|plan| &plan.path);
        if let Some(plan) = plan.filter(|plan| !done.restored.contains(plan)) {
            let tracked = self.git("ls-files -z --").arg(as_path(plan));
            if !tracked.stdout()?.is_empty() {
                self.write_from_base(std::slice::from_ref(plan))?;
                done.restored.push(plan.clone());
            }
        }
        done.restored.sort();
        done.removed.sort();
        let base = self.private.state.base.clone();
        self.point_head_to(base.as_deref(), BACK)?;
        lock.replace(&self.private.index())?;
        Ok(done)
    }

    /// Undoes these changes in the work tree.
    fn take_back(&self, changes: &[&Change], done: &mut Restored) -> Result<(), CommitError> {
        let mut back: Vec<Vec<u8>> = Vec::new();
        for change in changes.iter().rev() {
            let path = &change.path;
            let shown = display_path(path);
            match change.kind {
                ChangeKind::Submodule => {
                    done.left
                        .push(format!("submodule {shown} was not restored"));
                }
                ChangeKind::Added if is_directory(&self.at(path)) => {
                    done.left
                        .push(format!("nested repository {shown} was not removed"));
                }
                ChangeKind::Added => {
                    self.remove_added(path)?;
                    done.removed.push(path.clone());
                }
                _ => back.push(path.clone()),
            }
        }
        self.write_from_base(&back)?;
        done.restored.extend(back);
        Ok(())
    }

    /// Writes the base's version of these files.
    fn write_from_base(&self, paths: &[Vec<u8>]) -> Result<()> {
        let paths: Vec<&[u8]> = paths.iter().map(Vec::as_slice).collect();
        self.check_out_files(&self.private.index(), &paths, true)
    }

    /// Removes a failed task's commits from the branch. They stay reachable under the returned ref, and the
    /// work tree is unchanged.
    ///
    /// # Errors
    /// When git fails; then nothing has moved.
    pub fn set_aside(&mut self, run: &str, task: &str) -> Result<Option<String>> {
        let _open = self.unseal()?;
        let base = self.private.state.base.as_deref();
        let tip = self.head_state()?.oid;
        let Some(tip) = tip.filter(|tip| Some(tip.as_str()) != base) else {
            return Ok(None);
        };
        let kept = format!("refs/sprag/{}/{}", ref_component(run), ref_component(task));
        self.real_git("update-ref --no-deref")
            .args([&kept, &tip])
            .run()?;
        self.point_head_to(base, BACK)?;
        Ok(Some(kept))
    }

    /// Moves HEAD, or the branch that it is on, to a commit, or removes the branch for `None`. The index and
    /// the work tree are unchanged.
    ///
    /// # Errors
    /// When git fails; then nothing has moved.
    pub fn put_head_back(&mut self, commit: Option<&RevId>) -> Result<()> {
        let _open = self.unseal()?;
        self.point_head_to(commit.map(|commit| commit.0.as_str()), BACK)
    }

    /// Resets the repository's index to the base and discards everything that was staged. The work tree is
    /// unchanged.
    ///
    /// # Errors
    /// When the index is locked or cannot be written.
    pub fn put_index_back(&mut self) -> Result<(), CommitError> {
        let _open = self.unseal()?;
        self.lock_index()?.replace(&self.private.index())?;
        Ok(())
    }

    /// Moves HEAD or its branch to this commit, for a reason that its log gives.
    pub(crate) fn point_head_to(&self, commit: Option<&str>, reason: &str) -> Result<()> {
        let head = self.head_state()?;
        if head.oid.as_deref() == commit {
            return Ok(());
        }
        let name = head.branch.as_deref().unwrap_or("HEAD");
        let old = head.oid.unwrap_or_else(|| self.no_object());
        let call = self
            .real_git("update-ref --no-deref -m")
            .arg(reason)
            .durably();
        let call = match commit {
            Some(commit) => call.args([name, commit, &old]),
            None => call.args(["-d", name, &old]),
        };
        call.run().map(drop)
    }

    /// Removes a new file and the directories that become empty.
    pub(crate) fn remove_added(&self, path: &[u8]) -> Result<()> {
        if !PathInspector::new(&self.real.work_tree).is_real(split(path).0) {
            return Ok(());
        }
        let full = self.at(path);
        match fs::remove_file(&full) {
            Err(error) if !is_absence(&error) => return Err(io_error("remove", &full)(error)),
            _ => {}
        }
        let layout = self.layout()?;
        let mut directory = split(path).0;
        while !layout.directories.contains(directory) && fs::remove_dir(self.at(directory)).is_ok()
        {
            directory = split(directory).0;
        }
        Ok(())
    }
}
