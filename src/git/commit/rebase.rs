//! Commits made anew on top of another one, without touching the work tree.

use crate::domain::snapshot::RevId;
use crate::git::bytes::{display_paths, nul_fields};
use crate::git::command::Call;
use crate::git::commit::raw_commit::RawCommit;
use crate::git::commit::request::CommitError;
use crate::git::commit::stage::record;
use crate::git::error::{GitError, io_error};
use crate::git::objects::new_objects::NewObjects;
use crate::git::remote::error::RemoteError;
use crate::git::remote::names::{checked_id, is_id};
use crate::git::repo::Repo;

/// A commit and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The commit.
    pub old: RevId,
    /// The one made of it; `None` when its change is there already.
    pub new: Option<RevId>,
}

/// Commits on top of another one. Nothing points to them yet: see [`Repo::move_to`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebased {
    /// One for each commit that was made anew or dropped, in order.
    pub commits: Vec<Rewritten>,
    /// The last of the new ones, or the commit they were to be put on.
    pub head: RevId,
}

/// Why commits could not be put on top of another one. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RebaseError {
    /// Both sides changed the same.
    #[error(
        "{commit} conflicts with what is there now in {}",
        display_paths(paths)
    )]
    Conflict {
        /// The commit that does not fit.
        commit: RevId,
        /// Where.
        paths: Vec<Vec<u8>>,
    },
    /// A merge, or a commit without a parent.
    #[error("{0} is a merge or a first commit and is not put on top of another one")]
    NotLinear(RevId),
    /// `git merge-tree --merge-base` is not there.
    #[error(
        "the commits cannot be put on top of the new head: git is too old; install git 2.40 or later"
    )]
    OldGit,
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The repository has something else in the place of a new commit or a part of it.
    #[error(transparent)]
    Unsound(#[from] CommitError),
    /// Not the id of a commit.
    #[error(transparent)]
    BadId(#[from] RemoteError),
}

/// What `git merge-tree` ends with when it does not know an option.
const USAGE: i32 = 129;

impl Repo {
    /// Puts commits, oldest first, on top of `onto`. Author, committer, their dates, message and
    /// encoding stay; signatures are made anew where commits are signed. The file `kept` stays as `onto`
    /// has it, whatever the commits make of it.
    ///
    /// # Errors
    /// [`RebaseError`].
    pub fn rebase(
        &self,
        onto: &RevId,
        commits: &[RevId],
        kept: Option<&[u8]>,
    ) -> Result<Rebased, RebaseError> {
        let _open = self.unseal()?;
        self.refresh_shallow()?;
        let mut head = checked_id(onto)?.to_owned();
        let mut done = Vec::new();
        for old in commits {
            let commit = self.raw_commit(checked_id(old)?)?;
            let [parent] = commit.parents.as_slice() else {
                return Err(RebaseError::NotLinear(old.clone()));
            };
            let tree = self.merged_tree(Some(parent), &head, old, kept)?;
            let before = self.raw_commit(&head)?.tree;
            let new = match tree == before {
                true => None,
                false => Some(self.commit_anew(&commit, (&before, &tree), &head)?),
            };
            if let Some(new) = &new {
                head.clone_from(new);
            }
            let (old, new) = (old.clone(), new.map(RevId));
            done.push(Rewritten { old, new });
        }
        Ok(Rebased {
            commits: done,
            head: RevId(head),
        })
    }

    /// Gives a line of commits on top of `base`, oldest first, these messages. Everything else of them
    /// stays; a commit that nothing changes keeps its id.
    ///
    /// # Errors
    /// [`RebaseError`].
    pub fn reword(
        &self,
        base: &RevId,
        commits: &[(RevId, Vec<u8>)],
    ) -> Result<Rebased, RebaseError> {
        let _open = self.unseal()?;
        let mut head = checked_id(base)?.to_owned();
        let mut done = Vec::new();
        for (old, message) in commits {
            let mut commit = self.raw_commit(checked_id(old)?)?;
            if commit.parents == [head.as_str()] && commit.message == *message {
                head.clone_from(&old.0);
                continue;
            }
            commit.message.clone_from(message);
            head = self.commit_anew(&commit, (&commit.tree, &commit.tree), &head)?;
            let (old, new) = (old.clone(), Some(RevId(head.clone())));
            done.push(Rewritten { old, new });
        }
        Ok(Rebased {
            commits: done,
            head: RevId(head),
        })
    }

    /// The tree of `onto` with what `commit` changes since `parent`, or since both parted where none is given.
    pub(super) fn merged_tree(
        &self,
        parent: Option<&str>,
        onto: &str,
        commit: &RevId,
        kept: Option<&[u8]>,
    ) -> Result<String, RebaseError> {
        let base = parent.map(|parent| format!("--merge-base={parent}"));
        let args = [
            "merge-tree",
            "--write-tree",
            "-z",
            "--name-only",
            "--no-messages",
        ];
        let call = self.making().args(args).args(base).args([onto, &commit.0]);
        let output = call.status()?;
        let mut fields = nul_fields(&output.stdout);
        let tree = String::from_utf8_lossy(fields.next().unwrap_or_default());
        let tree = tree.trim().to_owned();
        match output.status {
            Some(0) | Some(1) if !is_id(&tree) => Err(RebaseError::Git(GitError::Malformed {
                command: "merge-tree",
                what: tree,
            })),
            Some(0 | 1) => {
                let conflicts = fields.filter(|path| Some(*path) != kept);
                let paths: Vec<Vec<u8>> = conflicts.map(<[u8]>::to_vec).collect();
                let commit = commit.clone();
                match (paths.is_empty(), kept) {
                    (false, _) => Err(RebaseError::Conflict { commit, paths }),
                    (true, Some(path)) => Ok(self.with_file_of(&tree, onto, path)?),
                    (true, None) => Ok(tree),
                }
            }
            Some(USAGE) => Err(RebaseError::OldGit),
            status => Err(RebaseError::Git(GitError::Failed {
                command: "merge-tree".to_owned(),
                status,
                stderr: output.stderr,
            })),
        }
    }

    /// A tree with one path as another tree has it.
    fn with_file_of(&self, tree: &str, from: &str, path: &[u8]) -> Result<String, GitError> {
        let diffs = self.diff_trees_by(self.making(), tree, from)?;
        let Some(diff) = diffs.into_iter().find(|diff| diff.path == path) else {
            return Ok(tree.to_owned());
        };
        self.tree_with(tree, record(diff.after.mode, diff.after.oid, path))
    }

    /// A tree with these entries in place of its own, as `git update-index --index-info` reads them.
    pub(super) fn tree_with(&self, tree: &str, entries: Vec<u8>) -> Result<String, GitError> {
        let tmp = self.private.root.join("tmp");
        let place = tempfile::TempDir::new_in(&tmp).map_err(io_error("create", &tmp))?;
        let index = place.path().join("index");
        let with_index = || self.making().env("GIT_INDEX_FILE", &index);
        with_index().args(["read-tree", tree]).run()?;
        let add = ["update-index", "--add", "--replace", "-z", "--index-info"];
        with_index().args(add).stdin(entries).run()?;
        with_index().args(["write-tree", "--missing-ok"]).line()
    }

    /// A command that makes objects, which are Sprag's own until they are adopted.
    pub(super) fn making(&self) -> Call<'_> {
        self.apart().env("GIT_OBJECT_DIRECTORY", self.own_objects())
    }

    /// Makes a commit of `tree` on top of `parent`, whose tree is `before`, and puts it into the repository.
    fn commit_anew(
        &self,
        commit: &RawCommit,
        (before, tree): (&str, &str),
        parent: &str,
    ) -> Result<String, CommitError> {
        let mut call = self.making();
        for (role, who) in [("AUTHOR", &commit.author), ("COMMITTER", &commit.committer)] {
            call = call.env(format!("GIT_{role}_NAME"), &who.name);
            call = call.env(format!("GIT_{role}_EMAIL"), &who.email);
            call = call.env(format!("GIT_{role}_DATE"), format!("@{}", who.when));
        }
        if let Some(encoding) = &commit.encoding {
            call = call.args(["-c", &format!("i18n.commitEncoding={encoding}")]);
        }
        call = call.args(["commit-tree", tree, "-p", parent, "-F", "-"]);
        let id = self.signed(call).stdin(commit.message.clone()).line()?;
        let diffs = self.diff_trees_and_subtrees(before, tree)?;
        self.adopt(&NewObjects::of_tree(tree, &diffs).and_commit(&id))?;
        Ok(id)
    }
}
