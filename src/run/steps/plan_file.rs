//! The plan file is Sprag's: what a turn changed in it alone is no change, and is put right.

use crate::domain::snapshot::Snapshot;
use crate::run::directory::write_atomically;
use crate::run::emitter::Emitter;
use crate::run::work_tree::{Seen, WorkTree};
use std::fs::{self, Permissions};
use std::path::{Path, PathBuf};

/// No larger plan was read at the start.
const PLAN_LIMIT: u64 = 1 << 20;

/// The plan file of the work tree as it is before a turn.
#[derive(Debug)]
pub struct PlanBefore {
    path: PathBuf,
    in_tree: Vec<u8>,
    content: Vec<u8>,
    permissions: Option<Permissions>,
}

impl PlanBefore {
    /// Keeps it; `None` where there is none in the work tree. A turn that is taken up after a crash has
    /// it as the last commit has.
    pub fn read(tree: &WorkTree, is_taken_up: bool) -> Option<Self> {
        let file = tree.plan.file.as_ref()?;
        let in_tree = file.in_tree.clone()?;
        let base = is_taken_up.then(|| tree.repo.base_file(&in_tree).ok().flatten());
        let content = match base.flatten() {
            Some(content) => content,
            None => tree.repo.work_file(&in_tree, PLAN_LIMIT)?,
        };
        let permissions = file.path.symlink_metadata().ok();
        Some(Self {
            path: file.path.clone(),
            in_tree,
            content,
            permissions: permissions.map(|meta| meta.permissions()),
        })
    }

    /// Puts the plan file right after a turn that began at `before` and ended as `seen`, and says how
    /// it ended then. Where the turn changed more than the plan, its words for the plan stay.
    pub fn put_right(
        &self,
        tree: &mut WorkTree,
        emit: &mut Emitter<'_>,
        before: &Snapshot,
        seen: Seen,
    ) -> Seen {
        let now = tree.repo.work_file(&self.in_tree, PLAN_LIMIT);
        if now.as_ref() == Some(&self.content) || !self.is_in_reach(tree) {
            return seen;
        }
        tree.repo.change();
        if self.write(&self.content).is_err() {
            return seen;
        }
        let right = tree.snapshot(emit);
        let nothing_else = right.1.tree().is_some() && right.1.tree() == before.tree();
        match now.filter(|_| !nothing_else) {
            None => right,
            Some(words) => {
                tree.repo.change();
                match self.write(&words) {
                    Ok(()) => tree.snapshot(emit),
                    Err(_) => right,
                }
            }
        }
    }

    fn write(&self, content: &[u8]) -> anyhow::Result<()> {
        write_atomically(&self.path, content)?;
        if let Some(permissions) = &self.permissions {
            fs::set_permissions(&self.path, permissions.clone())?;
        }
        Ok(())
    }

    /// Whether every directory above is one of the work tree, and no link that leads out of it.
    fn is_in_reach(&self, tree: &WorkTree) -> bool {
        let top = tree.repo.real().work_tree();
        let is_dir = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let mut above = self
            .path
            .ancestors()
            .skip(1)
            .take_while(|path| *path != top);
        self.path.starts_with(top) && above.all(is_dir) && !is_dir(&self.path)
    }
}
