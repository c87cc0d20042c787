//! The repository's own HEAD and refs.

use crate::domain::snapshot::RevId;
use crate::git::bytes::as_path;
use crate::git::command::Call;
use crate::git::entries::resolve_gitfile;
use crate::git::error::{GitError, Result};
use crate::git::files::is_there;
use crate::git::private::calls::{HeadState, read_head};
use crate::git::private::places::links;
use crate::git::remote::names::{BranchName, checked_id};
use crate::git::repo::Repo;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Limited because a nested repository's configuration may point git to a pipe anywhere.
const NESTED_TIMEOUT: Duration = Duration::from_secs(10);

/// The beginning of a symbolic ref's value in [`Refs`].
pub(crate) const SYMBOLIC: &str = "ref:";

/// The value of every ref by full name: its object id, or `ref:` and the name of its target.
pub(crate) type Refs = BTreeMap<String, String>;

impl Repo {
    /// The checked-out commit of a nested repository.
    pub(crate) fn nested_head(&self, path: &[u8]) -> Option<String> {
        let git_dir = Some(self.at(path).join(".git")).filter(|git_dir| is_there(git_dir))?;
        let call = self.real_git("rev-parse -q --verify HEAD");
        let call = call.env("GIT_DIR", resolve_gitfile(&git_dir)?);
        call.timeout(NESTED_TIMEOUT).answer().ok()?
    }

    /// A command that may move the ref `name`. Refused if its file or log is behind a link.
    pub(crate) fn move_ref(&self, name: &str) -> Result<Call<'_>> {
        self.refuse_links(name)?;
        Ok(self.real_call())
    }

    /// Fails if a path that git writes to became a link.
    pub(crate) fn refuse_links(&self, name: &str) -> Result<()> {
        self.ensure_in_place()?;
        let known = &self.private.state.links;
        let is_new = |path: &PathBuf| !known.iter().any(|known| as_path(known) == path);
        match links(&self.real, name).into_iter().find(is_new) {
            Some(path) => Err(GitError::Linked(path)),
            None => Ok(()),
        }
    }

    /// HEAD of the repository itself.
    pub(crate) fn head_state(&self) -> Result<HeadState> {
        self.ensure_in_place()?;
        read_head(|| self.real_call())
    }

    /// The refs of the repository, and its HEAD. A symbolic ref without a target is left out.
    pub(crate) fn refs_and_head(&self) -> Result<(Refs, HeadState)> {
        let format = "--format=%(HEAD)%00%(objectname)%00%(symref)%00%(refname)";
        let call = self.real_call().args(["for-each-ref", format]);
        let listed = call.stdout()?;
        let mut refs = Refs::new();
        let mut head = None;
        for line in String::from_utf8_lossy(&listed).lines() {
            let fields: Vec<&str> = line.split('\0').collect();
            let [mark, oid, target, name] = fields[..] else {
                continue;
            };
            let value = match target {
                "" => oid.to_owned(),
                target => format!("{SYMBOLIC}{target}"),
            };
            refs.insert(name.to_owned(), value);
            if mark == "*" {
                let (branch, oid) = (Some(name.to_owned()), Some(oid.to_owned()));
                head = Some(HeadState { branch, oid });
            }
        }
        // It is detached, or its branch does not exist.
        let head = head.map_or_else(|| self.head_state(), Ok)?;
        Ok((refs, head))
    }

    /// Whether `ancestor` is in the history of `descendant`. Objects are read through the private directory,
    /// whose configuration only Sprag writes.
    pub(crate) fn is_ancestor(&self, ancestor: &str, descendant: &str) -> Result<bool> {
        self.restore_shallow()?;
        let call = self
            .git("merge-base --is-ancestor")
            .args([ancestor, descendant]);
        let output = call.status()?;
        match output.status {
            Some(1) => Ok(false),
            _ => output.expect_success("merge-base".to_owned()).map(|_| true),
        }
    }

    /// The commit of a branch of the repository, otherwise of the branch with this name that was fetched from
    /// `origin`. `None` if neither exists.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn tip_of(&self, branch: &BranchName) -> Result<Option<RevId>> {
        let _open = self.unseal_to_read()?;
        for below in ["refs/heads", "refs/remotes/origin"] {
            let wanted = format!("{below}/{}^{{commit}}", branch.short());
            let call = self.real_git("rev-parse -q --verify").arg(&wanted);
            if let Some(tip) = call.answer()? {
                return Ok(Some(RevId(tip)));
            }
        }
        Ok(None)
    }

    /// The default branch as far as the repository knows it: that of `origin`, or a branch with a usual name.
    pub fn default_branch(&self) -> Option<String> {
        let _open = self.unseal_to_read().ok()?;
        let call = self.real_git("symbolic-ref -q --short refs/remotes/origin/HEAD");
        if let Some(name) = call.answer().ok()?
            && let Some(name) = name.strip_prefix("origin/")
        {
            return Some(name.to_owned());
        }
        let exists = |name: &&str| {
            let branch = BranchName::parse(name).ok();
            branch.is_some_and(|branch| matches!(self.tip_of(&branch), Ok(Some(_))))
        };
        let mut usual = ["main", "master"].into_iter();
        usual.find(exists).map(str::to_owned)
    }

    /// Resolves a name in the repository to a commit: a branch, a branch fetched from `origin`, or any other
    /// revision that git accepts.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn commit_named(&self, name: &str) -> Result<Option<RevId>> {
        if let Ok(branch) = BranchName::parse(name)
            && let Some(tip) = self.tip_of(&branch)?
        {
            return Ok(Some(tip));
        }
        let _open = self.unseal_to_read()?;
        let wanted = format!("{name}^{{commit}}");
        let call = self
            .real_git("rev-parse -q --verify --end-of-options")
            .arg(&wanted);
        Ok(call.answer()?.map(RevId))
    }

    /// The merge base of two commits, or `None` if there is none.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn fork_point(&self, one: &RevId, other: &RevId) -> Result<Option<RevId>> {
        let _open = self.unseal_to_read()?;
        self.restore_shallow()?;
        let call = self
            .git("merge-base")
            .args([checked_id(one)?, checked_id(other)?]);
        Ok(call.answer()?.map(RevId))
    }

    /// Whether a commit is in the history of another one. `false` also if that cannot be determined.
    pub fn contains_commit(&self, descendant: &RevId, ancestor: &RevId) -> bool {
        let found = self
            .unseal_to_read()
            .and_then(|_open| self.is_ancestor(checked_id(ancestor)?, checked_id(descendant)?));
        found.unwrap_or(false)
    }

    /// The commits in `head` that are not in `base`, oldest first.
    ///
    /// # Errors
    /// When git fails.
    pub fn commits_between(&self, base: &RevId, head: &RevId) -> Result<Vec<RevId>> {
        self.commits_up_to(Some(base), head)
    }

    /// Like [`Repo::commits_between`]. Without a base, all commits in `head`.
    ///
    /// # Errors
    /// When git fails.
    pub fn commits_up_to(&self, base: Option<&RevId>, head: &RevId) -> Result<Vec<RevId>> {
        let head = checked_id(head)?;
        let range = match base {
            Some(base) => format!("{}..{head}", checked_id(base)?),
            None => head.to_owned(),
        };
        let _open = self.unseal_to_read()?;
        self.restore_shallow()?;
        let call = self.git("rev-list --reverse --topo-order").arg(&range);
        let listed = String::from_utf8_lossy(&call.stdout()?).into_owned();
        Ok(listed.lines().map(|line| RevId(line.to_owned())).collect())
    }
}
