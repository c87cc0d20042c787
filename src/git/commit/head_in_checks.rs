//! HEAD while checks run: where it is then, and how it gets back.

use crate::domain::snapshot::{Head, KnownSnapshot};
use crate::git::commit::restore::BACK;
use crate::git::commit::stage::Target;
use crate::git::error::{Result, io_error};
use crate::git::files::{copy_index, is_there, metadata, read_record, remove, write_record};
use crate::git::private::guard::{TurnMark, named};
use crate::git::repo::Repo;
use crate::git::snapshot::change::RawSnapshot;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// HEAD before checks ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadBeforeChecks {
    /// Full name of the branch, or `None` if HEAD was detached.
    branch: Option<String>,
    /// Its commit, or `None` before the first one.
    commit: Option<String>,
    /// Its commit while the checks ran.
    shown: Option<String>,
    /// The refs, as far as this process started the checks.
    #[serde(skip)]
    mark: Option<TurnMark>,
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
    ) -> Result<HeadBeforeChecks> {
        let commit = match &now.head {
            Head::Unborn => None,
            Head::At(commit) => Some(commit.0.clone()),
        };
        let base = &self.private.state.base;
        let shown = if hides_commits { base } else { &commit };
        let before = HeadBeforeChecks {
            mark: Some(self.mark_turn()?),
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

    /// Puts HEAD and other refs back to where they were before checks ran, whatever they did to them, and the
    /// configuration that git reads on the way. Returns that, for warnings.
    ///
    /// # Errors
    /// When HEAD or another ref cannot be moved.
    pub fn head_after_checks(&mut self, before: &HeadBeforeChecks) -> Result<Vec<String>> {
        let _open = self.unseal_to_read()?;
        // If the repository cannot be read, the next snapshot tells why.
        let Ok(mut warnings) = self.make_readable() else {
            return Ok(Vec::new());
        };
        let Ok((mut refs, mut found)) = self.readable_refs(&mut warnings) else {
            return Ok(warnings);
        };
        refs.retain(|name, _| !name.starts_with(AS_COMMITTED));
        if found.branch != before.branch {
            let to = named(found.branch.as_ref(), found.oid.as_ref());
            let from = named(before.branch.as_ref(), before.commit.as_ref());
            warnings.push(format!(
                "a check switched HEAD to {to}; that was undone, and HEAD is {from} again"
            ));
            self.switch_head(before.branch.as_deref(), before.shown.as_deref())?;
            found = self.head_state()?;
        }
        if let Some(mark) = &before.mark {
            warnings.extend(self.undo_refs(mark, &refs, "a check")?);
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
        if moved.is_err() && now == before.shown && !self.has_hidden(before)? {
            let what =
                "a check removed the agent's own commits; their changes are in the work tree";
            warnings.push(what.to_owned());
        } else {
            moved?;
        }
        if before.commit != before.shown {
            let _open = self.unseal()?;
            remove(&self.hidden_record())?;
        }
        Ok(warnings)
    }

    /// Shows the commits that a dead process has hidden, unless somebody has moved HEAD since.
    pub(crate) fn show_hidden_commits(&self) -> Result<()> {
        let record = self.hidden_record();
        let Some(before) = read_record::<HeadBeforeChecks>(&record)? else {
            return Ok(());
        };
        if before.shown != self.private.state.base || !self.has_hidden(&before)? {
            return remove(&record);
        }
        // A git that was killed while it moved HEAD.
        if let Some(since) = metadata(&record)?.and_then(|meta| meta.modified().ok()) {
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
        remove(&record)
    }

    /// Whether the repository still has the hidden commit.
    fn has_hidden(&self, before: &HeadBeforeChecks) -> Result<bool> {
        let commit = before.commit.as_deref();
        commit.map_or(Ok(true), |commit| self.has_object(commit))
    }

    /// Points HEAD to a branch, or detaches it at a commit.
    pub(crate) fn switch_head(&self, branch: Option<&str>, commit: Option<&str>) -> Result<()> {
        let call = self.move_ref("HEAD")?;
        let call = match (branch, commit) {
            (Some(branch), _) => call.words("symbolic-ref HEAD").arg(branch),
            (None, Some(oid)) => call.words("update-ref --no-deref HEAD").arg(oid),
            (None, None) => return Ok(()),
        };
        call.run().map(drop)
    }

    fn hidden_record(&self) -> PathBuf {
        self.private.root.join("hidden.json")
    }
}

/// Names further object stores to git.
const OTHER_STORES: &str = "GIT_ALTERNATE_OBJECT_DIRECTORIES";

/// Names the refs whose last part is an object that git takes another one for.
const REPLACED: &str = "GIT_REPLACE_REF_BASE";

/// The ref with the staged tree, below the tree of the last commit.
const AS_COMMITTED: &str = "refs/sprag/as-committed/";

/// How checks see the work through git.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedWork {
    /// The variable by which git finds the staged objects.
    pub store: (OsString, OsString),
    /// The variable with which git takes the staged tree for that of the last commit, if there is one.
    pub as_committed: Option<(OsString, OsString)>,
}

impl Repo {
    /// Stages the work, or the tree in its place, in the repository's own index, so that `git diff` shows only what
    /// checks change, as in a checkout of the commit. Neither HEAD nor a branch moves for `as_committed`.
    /// [`Repo::index_after_checks`] restores the index, and [`Repo::reopen`] if the process dies before. A repository
    /// without an index stays without one.
    ///
    /// # Errors
    /// When git fails or the index cannot be written.
    pub fn index_before_checks(
        &mut self,
        snapshot: &RawSnapshot,
        as_committed: bool,
    ) -> Result<Option<StagedWork>> {
        let _open = self.unseal()?;
        let own = self.real.git_dir.join("index");
        if !is_there(&own) {
            return Ok(None);
        }
        let index = match &self.in_place {
            Some(tree) => {
                let index = self.index_with(tree, &self.private.index())?;
                self.refresh(&index)?;
                index
            }
            None => {
                let index = self.scratch_index(&self.private.index())?;
                let target = Target {
                    index: &index,
                    objects: self.own_objects(),
                    durable: false,
                };
                self.stage_changes(&target, &snapshot.readable())?;
                index
            }
        };
        copy_index(&own, &self.kept_index())?;
        let as_committed = if as_committed {
            self.replace_last_tree(&self.write_tree(&index)?)?
        } else {
            None
        };
        self.put_index(&index)?;
        let store = (OTHER_STORES.into(), self.own_objects().into());
        Ok(Some(StagedWork {
            store,
            as_committed,
        }))
    }

    /// Lets git take a tree for that of the last commit, if [`REPLACED`] is set so.
    fn replace_last_tree(&self, by: &str) -> Result<Option<(OsString, OsString)>> {
        let Ok(last) = self
            .real_git("rev-parse --verify --quiet HEAD^{tree}")
            .line()
        else {
            return Ok(None);
        };
        let name = format!("{AS_COMMITTED}{last}");
        if last != by {
            write_record(&self.replacing_record(), &name)?;
            let call = self.real_git("update-ref").args([&name, by]);
            call.env(OTHER_STORES, self.own_objects()).run()?;
        }
        Ok(Some((REPLACED.into(), AS_COMMITTED.into())))
    }

    /// Restores the index from before checks ran, if it was replaced.
    ///
    /// # Errors
    /// When the index cannot be written.
    pub fn index_after_checks(&self) -> Result<()> {
        let kept = self.kept_index();
        if !is_there(&kept) {
            return Ok(());
        }
        let _open = self.unseal()?;
        if let Some(name) = read_record::<String>(&self.replacing_record())? {
            self.real_git("update-ref -d").arg(&name).run()?;
            remove(&self.replacing_record())?;
        }
        self.put_index(&kept)?;
        remove(&kept)
    }

    /// Replaces the repository's index by a copy, in one step.
    fn put_index(&self, from: &Path) -> Result<()> {
        let copy = self.real.git_dir.join("sprag-index");
        remove(&copy)?;
        copy_index(from, &copy)?;
        let own = self.real.git_dir.join("index");
        fs::rename(&copy, &own).map_err(io_error("write", &own))
    }

    fn replacing_record(&self) -> PathBuf {
        self.private.root.join("as-committed.json")
    }

    fn kept_index(&self) -> PathBuf {
        self.private.root.join("index-before-checks")
    }
}
