//! The plan file during a turn. A turn that changes only the plan changes nothing: the plan is restored.

use crate::domain::snapshot::Snapshot;
use crate::run::state::directory::write_atomically;
use crate::run::state::emitter::Emitter;
use crate::run::state::plan_state::PLAN_LIMIT;
use crate::run::state::work_tree::{SnapshotPair, WorkTree};
use std::fs::{self, Permissions};
use std::path::{Path, PathBuf};

/// The plan file in the work tree before a turn.
#[derive(Debug)]
pub struct PlanBefore {
    path: PathBuf,
    in_tree: Vec<u8>,
    content: Vec<u8>,
    permissions: Option<Permissions>,
}

impl PlanBefore {
    /// Reads the plan file; `None` if the plan does not lie in the work tree. For a turn that is resumed
    /// after a crash, reads it from the last commit.
    pub fn read(tree: &WorkTree, is_taken_up: bool) -> Option<Self> {
        let path = tree.plan.file.as_ref()?.path.clone();
        let in_tree = tree.plan.in_tree()?.to_vec();
        let base = is_taken_up.then(|| tree.repo.base_file(&in_tree).ok().flatten());
        let now = || tree.repo.work_file(&in_tree, PLAN_LIMIT);
        let permissions = path.symlink_metadata().ok();
        Some(Self {
            content: base.flatten().or_else(now)?,
            permissions: permissions.map(|meta| meta.permissions()),
            path,
            in_tree,
        })
    }

    /// Restores the plan file after a turn that started at `before` and ended as `seen`. Returns the new
    /// state. If the turn changed other files, too, its version of the plan stays.
    pub fn repair(
        &self,
        tree: &mut WorkTree,
        emit: &mut Emitter<'_>,
        before: &Snapshot,
        seen: SnapshotPair,
    ) -> SnapshotPair {
        let now = tree.repo.work_file(&self.in_tree, PLAN_LIMIT);
        if now.as_ref() == Some(&self.content) || !self.is_in_reach(tree) {
            return seen;
        }
        tree.repo.change();
        let is_refused = tree.repo.refuse_links_to(&self.path).is_err();
        if is_refused || self.write(&self.content).is_err() {
            return seen;
        }
        let right = tree.snapshot(emit);
        let nothing_else = right.1.tree().is_some() && right.1.tree() == before.tree();
        let Some(words) = now.filter(|_| !nothing_else) else {
            return right;
        };
        tree.repo.change();
        match self.write(&words) {
            Ok(()) => tree.snapshot(emit),
            Err(_) => right,
        }
    }

    fn write(&self, content: &[u8]) -> anyhow::Result<()> {
        write_atomically(&self.path, content)?;
        if let Some(permissions) = &self.permissions {
            fs::set_permissions(&self.path, permissions.clone())?;
        }
        Ok(())
    }

    /// Whether all parent directories are real directories of the work tree, so that no link leads
    /// outside.
    fn is_in_reach(&self, tree: &WorkTree) -> bool {
        let top = tree.repo.real().work_tree();
        let is_dir = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let above = self.path.ancestors().skip(1);
        let mut above = above.take_while(|path| *path != top);
        self.path.starts_with(top) && above.all(is_dir) && !is_dir(&self.path)
    }
}
