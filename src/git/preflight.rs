//! Reasons why Sprag cannot work in a directory.

use crate::git::error::GitError;
use std::path::Path;

/// The oldest git version that supports everything that Sprag uses.
pub(crate) const OLDEST_GIT: (u32, u32) = (2, 31);

/// The reason why Sprag cannot work in a directory. Each message names the remedy.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    /// The machine lacks a program, or the user may not work there.
    #[error("{0}")]
    Machine(String),
    /// The directory, or the state of the repository in it.
    #[error("{0}")]
    Repository(String),
    /// git could not be run.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// A git operation that spans several commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    name: &'static str,
    /// The command that aborts it.
    pub(crate) abort: &'static str,
}

impl Operation {
    /// The operation in progress, determined from the files that git keeps for it.
    pub(crate) fn under_way(git_dir: &Path) -> Option<Self> {
        let operations = [
            ("rebase-merge", "a rebase", "git rebase --abort"),
            ("rebase-apply/applying", "a git am", "git am --abort"),
            ("rebase-apply", "a rebase", "git rebase --abort"),
            ("MERGE_HEAD", "a merge", "git merge --abort"),
            (
                "CHERRY_PICK_HEAD",
                "a cherry-pick",
                "git cherry-pick --abort",
            ),
            ("REVERT_HEAD", "a revert", "git revert --abort"),
            ("BISECT_LOG", "a bisect", "git bisect reset"),
        ];
        let mut operations = operations.into_iter();
        let (_, name, abort) =
            operations.find(|(marker, ..)| git_dir.join(marker).symlink_metadata().is_ok())?;
        Some(Self { name, abort })
    }

    /// Whether commits during the operation are as usual.
    pub(crate) fn is_search(self) -> bool {
        self.abort == "git bisect reset"
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
