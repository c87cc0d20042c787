//! Reasons why Sprag cannot work in a directory.

use crate::git::error::GitError;
use std::path::{Path, PathBuf};

/// The oldest git version that supports everything that Sprag uses.
pub(crate) const OLDEST_GIT: (u32, u32) = (2, 31);

/// The reason why Sprag cannot work in a directory. Each message names the remedy.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    /// There is no git program.
    #[error("git was not found on PATH; install git {}.{} or later", OLDEST_GIT.0, OLDEST_GIT.1)]
    NoGit,
    /// The git program is too old.
    #[error("git {found} is too old; install git {}.{} or later", OLDEST_GIT.0, OLDEST_GIT.1)]
    OldGit {
        /// Its version.
        found: String,
    },
    /// There is no repository here.
    #[error("{} is not inside a git repository; check one out (actions/checkout) or run git init", path.display())]
    NotARepository {
        /// The directory where the search began.
        path: PathBuf,
    },
    /// A repository without a work tree.
    #[error("{} is a bare repository; run in a checkout with a work tree", path.display())]
    Bare {
        /// The repository.
        path: PathBuf,
    },
    /// The current directory is inside `.git`.
    #[error("{} is inside a git directory; run in the work tree", path.display())]
    InsideGitDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// A jj repository, but jj is not installed.
    #[error("{} is a jj repository, and jj was not found on PATH; install jj", path.display())]
    NoJj {
        /// The working copy.
        path: PathBuf,
    },
    /// An additional working copy of a jj repository that is elsewhere.
    #[error(
        "{} is a further working copy of a jj repository (jj workspace add); run Sprag in the first one", path.display()
    )]
    FurtherWorkspace {
        /// The working copy.
        path: PathBuf,
    },
    /// A jj repository that does not keep its commits in git.
    #[error(
        "{} is a jj repository whose git directory cannot be found (.jj/repo/store/git_target); `jj git colocation enable` gives it a .git", path.display()
    )]
    NoStore {
        /// The working copy.
        path: PathBuf,
    },
    /// jj's working copy merges several commits.
    #[error("the working-copy change of {} has several parents; run `jj new`, so that their merge is a commit to start from", path.display())]
    SeveralParents {
        /// The working copy.
        path: PathBuf,
    },
    /// jj cannot determine the parents of the working-copy change.
    #[error("jj cannot open the repository {}: {why}", path.display())]
    Jj {
        /// The working copy.
        path: PathBuf,
        /// jj's reason.
        why: String,
    },
    /// A merge, rebase or similar operation is in progress.
    #[error("{operation} is in progress; finish it or run `{}`", operation.abort)]
    InProgress {
        /// The operation.
        operation: Operation,
    },
    /// The repository belongs to another user.
    #[error(
        "{} belongs to user {owner}, not to user {user}; run as its owner or run `git config --global --add safe.directory {}`",
        path.display(), path.display()
    )]
    ForeignOwner {
        /// The directory that belongs to another user.
        path: PathBuf,
        /// Its owner's uid.
        owner: u32,
        /// The current uid.
        user: u32,
    },
    /// git cannot open the repository.
    #[error("git cannot open the repository {}: {why}", path.display())]
    Unreadable {
        /// The repository.
        path: PathBuf,
        /// git's reason.
        why: String,
    },
    /// git could not be run.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// A git operation that spans several commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    name: &'static str,
    /// The command that aborts it.
    abort: &'static str,
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
