//! Recreates commits on top of another one without touching the work tree.

use crate::domain::snapshot::RevId;
use crate::git::bytes::{display_paths, nul_fields};
use crate::git::command::Call;
use crate::git::commit::facts::RawCommit;
use crate::git::commit::request::{CommitError, Identity};
use crate::git::commit::stage::record;
use crate::git::error::{GitError, Result};
use crate::git::remote::names::{checked_id, is_id};
use crate::git::repo::Repo;
use crate::git::snapshot::listing::NewObjects;

/// A commit and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The original commit.
    pub old: RevId,
    /// The new commit, or `None` if its change is already there.
    pub new: Option<RevId>,
}

/// Commits on top of another one. No ref points to them until [`Repo::move_to`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebased {
    /// One entry for each commit that was recreated or dropped, in order.
    pub commits: Vec<Rewritten>,
    /// The last new commit, or the target commit if there is none.
    pub head: RevId,
}

/// Why commits could not be put on top of another one. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RebaseError {
    /// Both sides changed the same lines.
    #[error(
        "{commit} conflicts with what is there now in {}",
        display_paths(paths)
    )]
    Conflict {
        /// The conflicting commit.
        commit: RevId,
        /// The conflicting paths.
        paths: Vec<Vec<u8>>,
    },
    /// The commit is a merge or has no parent.
    #[error("{0} is a merge or a first commit and is not put on top of another one")]
    NotLinear(RevId),
    /// git does not support `git merge-tree --merge-base`.
    #[error(
        "the commits cannot be put on top of the new head: git is too old; install git 2.40 or later"
    )]
    OldGit,
    /// The new commit could not be made.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl From<GitError> for RebaseError {
    fn from(error: GitError) -> Self {
        Self::Commit(error.into())
    }
}

/// git's exit code for an unknown option.
const USAGE: i32 = 129;

/// The command for [`merge_tree`].
pub(super) const MERGE_TREE: &str = "merge-tree --write-tree -z --no-messages";

/// Runs `git merge-tree`. Returns the tree of the merge and git's entries for the files in conflict.
pub(super) fn merge_tree(call: Call<'_>) -> Result<(String, Vec<Vec<u8>>), RebaseError> {
    let output = call.status()?;
    match output.status {
        Some(0 | 1) => {}
        Some(USAGE) => return Err(RebaseError::OldGit),
        _ => return Err(output.failed("merge-tree".to_owned()).into()),
    }
    let mut fields = nul_fields(&output.stdout);
    let tree = String::from_utf8_lossy(fields.next().unwrap_or_default())
        .trim()
        .to_owned();
    if is_id(&tree) {
        Ok((tree, fields.map(<[u8]>::to_vec).collect()))
    } else {
        Err(GitError::malformed("merge-tree", tree).into())
    }
}

impl Repo {
    /// Puts commits, oldest first, on top of `onto`. Author, committer, their dates, message and encoding are
    /// preserved. Signatures are recreated if the configuration asks for signed commits. The file `kept`
    /// stays as in `onto`, whatever the commits do to it.
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
        self.restore_shallow()?;
        let mut head = checked_id(onto)?.to_owned();
        let mut done = Vec::new();
        for old in commits {
            let commit = self.raw_commit(checked_id(old)?)?;
            let [parent] = commit.parents.as_slice() else {
                return Err(RebaseError::NotLinear(old.clone()));
            };
            let tree = self.merged_tree(Some(parent), &head, old, kept)?;
            let before = self.raw_commit(&head)?.tree;
            let mut new = None;
            if tree != before {
                head = self.commit_anew(&commit, &before, &tree, &head)?;
                new = Some(RevId(head.clone()));
            }
            let old = old.clone();
            done.push(Rewritten { old, new });
        }
        Ok(Rebased {
            commits: done,
            head: RevId(head),
        })
    }

    /// Replaces the messages of a linear sequence of commits on top of `base`, oldest first. Everything else
    /// is preserved, and a commit that does not change keeps its id.
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
            head = self.commit_anew(&commit, &commit.tree, &commit.tree, &head)?;
            let old = old.clone();
            let new = Some(RevId(head.clone()));
            done.push(Rewritten { old, new });
        }
        Ok(Rebased {
            commits: done,
            head: RevId(head),
        })
    }

    /// The tree of `onto` with the changes from `parent` to `commit`. Without a `parent`, the changes are
    /// those since the merge base.
    pub(super) fn merged_tree(
        &self,
        parent: Option<&str>,
        onto: &str,
        commit: &RevId,
        kept: Option<&[u8]>,
    ) -> Result<String, RebaseError> {
        let base = parent.map(|parent| format!("--merge-base={parent}"));
        let call = self
            .making()
            .words(MERGE_TREE)
            .arg("--name-only")
            .args(base);
        let (tree, mut paths) = merge_tree(call.args([onto, &commit.0]))?;
        paths.retain(|path| Some(path.as_slice()) != kept);
        if !paths.is_empty() {
            let commit = commit.clone();
            return Err(RebaseError::Conflict { commit, paths });
        }
        let Some(kept) = kept else {
            return Ok(tree);
        };
        Ok(self.with_file_of(&tree, onto, kept)?)
    }

    /// Replaces one path of a tree with its entry in another tree.
    fn with_file_of(&self, tree: &str, from: &str, path: &[u8]) -> Result<String> {
        let diffs = self.diff_trees(tree, from)?;
        let Some(diff) = diffs.into_iter().find(|diff| diff.path == path) else {
            return Ok(tree.to_owned());
        };
        self.tree_with(tree, record(diff.after.mode, &diff.after.oid, path))
    }

    /// Replaces entries of a tree. The format is that of `git update-index --index-info`.
    pub(crate) fn tree_with(&self, tree: &str, entries: Vec<u8>) -> Result<String> {
        let place = self.private.scratch_dir()?;
        let index = place.path().join("index");
        let with_index = |words| self.making().env("GIT_INDEX_FILE", &index).words(words);
        with_index("read-tree").arg(tree).run()?;
        let add = with_index("update-index --add --replace -z --index-info");
        add.stdin(entries).run()?;
        with_index("write-tree --missing-ok").line()
    }

    /// A command whose new objects stay in Sprag's own store until they are adopted.
    pub(super) fn making(&self) -> Call<'_> {
        self.bare_call()
            .env("GIT_OBJECT_DIRECTORY", self.own_objects())
    }

    /// Creates a commit of `tree` on top of `parent`, whose tree is `before`, and copies it into the
    /// repository.
    fn commit_anew(
        &self,
        commit: &RawCommit,
        before: &str,
        tree: &str,
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
        self.adopt_commit(&id, before, tree)?;
        Ok(id)
    }

    /// Copies a commit and what its tree adds to the tree `before` into the repository.
    fn adopt_commit(&self, id: &str, before: &str, tree: &str) -> Result<(), CommitError> {
        let diffs = self.diff_trees_and_subtrees(before, tree)?;
        self.adopt(&NewObjects::of_tree(tree, &diffs).and_commit(id))
            .map(drop)
    }
}

impl Repo {
    /// Creates the commit that merges `theirs` into `ours`. No ref points to it until [`Repo::move_to`].
    ///
    /// # Errors
    /// [`RebaseError`]; a conflict names the files that both sides changed.
    pub fn merge(
        &self,
        ours: &RevId,
        theirs: &RevId,
        message: &str,
        who: &Identity,
    ) -> Result<RevId, RebaseError> {
        let _open = self.unseal()?;
        self.restore_shallow()?;
        let ours = checked_id(ours)?;
        let tree = self.merged_tree(None, ours, theirs, None)?;
        let theirs = checked_id(theirs)?;
        self.merge_commit(&tree, ours, theirs, message, who, |call| self.signed(call))
    }

    /// Creates a merge commit from a known tree and copies it into the repository. `with` can modify the git
    /// call that creates it.
    pub(super) fn merge_commit<'r>(
        &'r self,
        tree: &str,
        ours: &str,
        theirs: &str,
        message: &str,
        who: &Identity,
        with: impl FnOnce(Call<'r>) -> Call<'r>,
    ) -> Result<RevId, RebaseError> {
        let call = self.making().in_name_of(&who.name, &who.email);
        let call = call.args(["commit-tree", tree, "-p", ours, "-p", theirs, "-F", "-"]);
        let id = with(call).stdin(message).line()?;
        self.adopt_commit(&id, &self.raw_commit(ours)?.tree, tree)?;
        Ok(RevId(id))
    }
}
