//! Reads commits back with libgit2, which runs no programs and shares no code with the git that made the
//! commit. It confirms independently what is reported about a commit.

use crate::domain::snapshot::RevId;
use crate::git::bytes::{as_path, display_path};
use crate::git::repo::Repo;
use git2::{DiffOptions, Oid, Repository, RepositoryOpenFlags, StatusOptions};
use std::ffi::OsStr;

/// A commit as libgit2 reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedCommit {
    /// Its parents.
    pub parents: Vec<RevId>,
    /// Paths that differ from the first parent (from nothing, for a first commit), sorted.
    pub files: Vec<String>,
}

impl Repo {
    /// Reads a commit back. `None` if there is no such commit or libgit2 cannot open the repository (sha256,
    /// reftable, or owned by another user).
    pub fn read_back(&self, commit: &RevId) -> Option<ParsedCommit> {
        let repository = self.open_without_git()?;
        let commit = repository
            .find_commit(Oid::from_str(&commit.0).ok()?)
            .ok()?;
        let parents = commit
            .parent_ids()
            .map(|id| RevId(id.to_string()))
            .collect();
        let before = commit.parent(0).ok().and_then(|parent| parent.tree().ok());
        let files = changed(&repository, before.as_ref(), &commit.tree().ok()?)?;
        Some(ParsedCommit { parents, files })
    }

    /// Submodules with changed or new files inside, as far as libgit2 can tell. git would run programs that
    /// their own configuration names.
    pub fn dirty_submodules(&self) -> Vec<Vec<u8>> {
        let Ok(layout) = self.layout() else {
            return Vec::new();
        };
        let is_dirty = |path: &&Vec<u8>| self.is_dirty_inside(path).unwrap_or(false);
        layout.gitlinks.keys().filter(is_dirty).cloned().collect()
    }

    fn is_dirty_inside(&self, path: &[u8]) -> Option<bool> {
        let none: [&OsStr; 0] = [];
        let place = self.real.work_tree.join(as_path(path));
        place.join(".git").symlink_metadata().ok()?;
        let inside = Repository::open_ext(place, RepositoryOpenFlags::NO_SEARCH, none).ok()?;
        let mut options = StatusOptions::new();
        options.include_untracked(true).exclude_submodules(true);
        Some(!inside.statuses(Some(&mut options)).ok()?.is_empty())
    }

    fn open_without_git(&self) -> Option<Repository> {
        let flags = RepositoryOpenFlags::NO_SEARCH | RepositoryOpenFlags::NO_DOTGIT;
        let none: [&OsStr; 0] = [];
        Repository::open_ext(&self.real.git_dir, flags, none).ok()
    }
}

fn changed(
    repository: &Repository,
    before: Option<&git2::Tree<'_>>,
    after: &git2::Tree<'_>,
) -> Option<Vec<String>> {
    let mut options = DiffOptions::new();
    options.ignore_submodules(false);
    let diff = repository
        .diff_tree_to_tree(before, Some(after), Some(&mut options))
        .ok()?;
    let path = |delta: git2::DiffDelta<'_>| {
        let file = delta
            .new_file()
            .path_bytes()
            .or_else(|| delta.old_file().path_bytes());
        file.map(display_path)
    };
    let mut files: Vec<String> = diff.deltas().filter_map(path).collect();
    files.sort();
    files.dedup();
    Some(files)
}
