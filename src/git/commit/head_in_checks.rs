//! HEAD while checks run: where it is then, and how it gets back.

use crate::domain::snapshot::{Head, KnownSnapshot};
use crate::git::commit::restore::BACK;
use crate::git::copy_tree::{metadata, remove};
use crate::git::error::GitError;
use crate::git::files::{read_record, write_record};
use crate::git::private::guard::named;
use crate::git::repo::Repo;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// HEAD before checks ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadBeforeChecks {
    /// Full name of the branch, or `None` if HEAD was detached.
    branch: Option<String>,
    /// Its commit, or `None` before the first one.
    commit: Option<String>,
    /// Its commit while the checks ran.
    shown: Option<String>,
}

impl Repo {
    /// Records HEAD, which is as in the present snapshot, before checks run. With `hides_commits`, HEAD, or its
    /// branch, is at the base until [`Repo::head_after_checks`], so that everything since the base is a change that is
    /// not committed. The index and the work tree are unchanged. [`Repo::reopen`] moves it back if the process dies
    /// before.
    ///
    /// # Errors
    /// When git fails or the record cannot be written.
    pub fn head_before_checks(
        &mut self,
        now: &KnownSnapshot,
        hides_commits: bool,
    ) -> Result<HeadBeforeChecks, GitError> {
        let commit = match &now.head {
            Head::Unborn => None,
            Head::At(commit) => Some(commit.0.clone()),
        };
        let base = &self.private.state.base;
        let shown = if hides_commits { base } else { &commit };
        let before = HeadBeforeChecks {
            shown: shown.clone(),
            branch: now.branch.clone(),
            commit,
        };
        if before.commit != before.shown {
            let _open = self.unseal()?;
            write_record(&self.hidden_record(), &before)?;
            self.point_head_to(before.shown.as_deref(), BACK)?;
        }
        Ok(before)
    }

    /// Puts HEAD back to where it was before checks ran, whatever they did to it, and the configuration that git
    /// reads on the way. Returns that, for warnings.
    ///
    /// # Errors
    /// When HEAD cannot be moved.
    pub fn head_after_checks(
        &mut self,
        before: &HeadBeforeChecks,
    ) -> Result<Vec<String>, GitError> {
        let _open = self.unseal_to_read()?;
        // If the repository cannot be read, the next snapshot tells why.
        let Ok(mut warnings) = self.make_readable() else {
            return Ok(Vec::new());
        };
        let Ok(mut found) = self.head_state() else {
            return Ok(warnings);
        };
        if found.branch != before.branch {
            let to = named(found.branch.as_ref(), found.oid.as_ref());
            let from = named(before.branch.as_ref(), before.commit.as_ref());
            warnings.push(format!(
                "a check switched HEAD to {to}; that was undone, and HEAD is {from} again"
            ));
            self.switch_head(before.branch.as_deref(), before.shown.as_deref())?;
            found = self.head_state()?;
        }
        let now = found.oid;
        if now != before.shown {
            let done = match &now {
                Some(commit) => format!("moved HEAD to {commit}"),
                None => "deleted the branch".to_owned(),
            };
            warnings.push(format!(
                "a check {done}; that was undone, and the work tree is as the check left it"
            ));
        }
        let moved = if now == before.commit {
            Ok(())
        } else {
            self.point_head_to(before.commit.as_deref(), BACK)
        };
        match moved {
            Err(_) if now == before.shown && !self.has_hidden(before)? => warnings.push(
                "a check removed the agent's own commits; their changes are in the work tree"
                    .to_owned(),
            ),
            moved => moved?,
        }
        if before.commit != before.shown {
            let _open = self.unseal()?;
            remove(&self.hidden_record())?;
        }
        Ok(warnings)
    }

    /// Shows the commits that a dead process has hidden, unless somebody has moved HEAD since.
    pub(crate) fn show_hidden_commits(&self) -> Result<(), GitError> {
        let Some(before) = read_record::<HeadBeforeChecks>(&self.hidden_record())? else {
            return Ok(());
        };
        if before.shown != self.private.state.base || !self.has_hidden(&before)? {
            return remove(&self.hidden_record());
        }
        // A git that was killed while it moved HEAD.
        if let Some(since) = metadata(&self.hidden_record())?.and_then(|meta| meta.modified().ok())
        {
            let ids = [&before.shown, &before.commit].map(Option::as_deref);
            let ids: Vec<&str> = ids.into_iter().flatten().collect();
            self.release_locks(before.branch.as_deref(), &ids, since)?;
        }
        let head = self.head_state()?;
        // Whoever moved it may move it back.
        if head.branch != before.branch || head.oid != before.shown {
            return Ok(());
        }
        self.point_head_to(before.commit.as_deref(), BACK)?;
        remove(&self.hidden_record())
    }

    /// Whether the repository still has the hidden commit.
    fn has_hidden(&self, before: &HeadBeforeChecks) -> Result<bool, GitError> {
        let commit = before.commit.as_deref();
        commit.map_or(Ok(true), |commit| self.has_object(commit))
    }

    /// Points HEAD to a branch, or detaches it at a commit.
    pub(crate) fn switch_head(
        &self,
        branch: Option<&str>,
        commit: Option<&str>,
    ) -> Result<(), GitError> {
        let call = self.move_ref("HEAD")?;
        match (branch, commit) {
            (Some(branch), _) => call.args(["symbolic-ref", "HEAD", branch]).run()?,
            (None, Some(oid)) => call.args(["update-ref", "--no-deref", "HEAD", oid]).run()?,
            (None, None) => return Ok(()),
        };
        Ok(())
    }

    fn hidden_record(&self) -> PathBuf {
        self.private.root.join("hidden.json")
    }
}
