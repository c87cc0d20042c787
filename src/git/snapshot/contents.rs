//! The exact bytes that are about to be committed.

use crate::domain::plan::MAX_FILE_BYTES;
use crate::domain::snapshot::RevId;
use crate::git::bytes::as_path;
use crate::git::entries::{MAX_READ_BYTES, OnDisk, split};
use crate::git::error::GitError;
use crate::git::objects::reader::{ObjectReader, parents_in};
use crate::git::remote::names::checked_id;
use crate::git::remote::refusal::RemoteError;
use crate::git::repo::Repo;
use crate::git::snapshot::change::{Candidate, Change, ChangeKind, PlanExempt};
use crate::git::snapshot::listing::{ChangedPath, RawDiff, Recorded};
use crate::plain_file;
use std::fs;
use std::io::{self, Cursor, Read};
use std::os::unix::ffi::OsStringExt as _;

impl Repo {
    /// The content of a changed file that a commit would include, or the target of a link. `None` for a path
    /// that a commit deletes or leaves out.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn new_content(&self, change: &Change) -> io::Result<Option<Box<dyn Read>>> {
        let is_unread = change.newly_ignored || change.unreadable.is_some();
        if change.kind == ChangeKind::Deleted || is_unread {
            return Ok(None);
        }
        let path = self.real.work_tree.join(as_path(&change.path));
        let kind = fs::symlink_metadata(&path)?.file_type();
        if kind.is_symlink() {
            let target = fs::read_link(&path)?.into_os_string().into_vec();
            return Ok(Some(Box::new(Cursor::new(target))));
        }
        Ok(if kind.is_file() {
            Some(Box::new(plain_file::open(&path)?.take(MAX_READ_BYTES)))
        } else {
            None
        })
    }

    /// The paths that a commit changes compared with each of its parents.
    ///
    /// # Errors
    /// When git cannot read it.
    pub fn changed_by(&self, commit: &RevId) -> Result<Vec<ChangedPath>, GitError> {
        let _open = self.unseal_to_read()?;
        let reader = self.objects();
        changes_by(&reader, &commit.0, &reader.commit(&commit.0)?)
    }

    /// Whether a file of the base contains one of the lines of `text`.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn base_holds(&self, text: &str) -> Result<bool, GitError> {
        self.tree_holds(&self.private.state.base_tree, text)
    }

    /// Whether a file of a commit contains one of the lines of `text`.
    ///
    /// # Errors
    /// When git cannot be run, or the commit's id is invalid.
    pub fn holds(&self, commit: &RevId, text: &str) -> Result<bool, RemoteError> {
        Ok(self.tree_holds(checked_id(commit)?, text)?)
    }

    fn tree_holds(&self, tree: &str, text: &str) -> Result<bool, GitError> {
        let _open = self.unseal_to_read()?;
        let grep = ["grep", "--quiet", "--text", "--fixed-strings", "-f", "-"];
        let call = self.call().args(grep).args([tree]);
        let output = call.stdin(text.as_bytes().to_vec()).status()?;
        Ok(output.status == Some(0))
    }

    /// The commits from the base to `head` in any topology, each with its stored text and the paths that it
    /// changes.
    ///
    /// # Errors
    /// When git cannot read them.
    pub fn commits_after_base(&self, head: &RevId) -> Result<Vec<OwnCommit>, GitError> {
        let Some(base) = self.base() else {
            return Ok(Vec::new());
        };
        let _open = self.unseal_to_read()?;
        let range = [head.0.as_str(), &format!("^{}", base.0), "--"];
        let listed = self.call().args(["rev-list"]).args(range).run()?.stdout;
        let reader = self.objects();
        let commits = String::from_utf8_lossy(&listed);
        commits
            .lines()
            .map(|id| {
                let text = reader.commit(id)?;
                let changed = changes_by(&reader, id, &text)?;
                Ok(OwnCommit { text, changed })
            })
            .collect()
    }
}

/// The paths that the commit with this id and text changes compared with each of its parents.
fn changes_by(
    reader: &ObjectReader<'_>,
    id: &str,
    text: &[u8],
) -> Result<Vec<ChangedPath>, GitError> {
    let parents = parents_in(text);
    let mut diffs = Vec::new();
    for parent in &parents {
        diffs.extend(reader.diff(Some(parent), id, false)?);
    }
    if parents.is_empty() {
        diffs = reader.diff(None, id, false)?;
    }
    Ok(diffs.into_iter().map(RawDiff::changed).collect())
}

/// A commit made by the agent.
#[derive(Debug, Clone)]
pub struct OwnCommit {
    /// Headers and message.
    pub text: Vec<u8>,
    /// The paths that it changes compared with its parents.
    pub changed: Vec<ChangedPath>,
}

const RULES: &[u8] = b".gitattributes";

/// A file whose bytes differ from those of its base, and whether they count as the same.
struct Open<'a> {
    path: &'a [u8],
    base: &'a str,
    same: &'a mut bool,
}

impl Repo {
    /// Marks files as unchanged that differ only before conversion, by line endings or filters.
    pub(crate) fn convert(
        &self,
        candidates: &[Candidate],
        seen: &[OnDisk],
        unchanged: &mut [bool],
        warnings: &mut Vec<String>,
    ) -> Result<(), GitError> {
        let layout = self.layout()?;
        let edits_rules = candidates.iter().any(|one| split(&one.path).1 == RULES);
        if !(self.private.state.converts || edits_rules || !layout.attribute_files.is_empty()) {
            return Ok(());
        }
        let pairs = candidates.iter().zip(seen).zip(unchanged);
        let mut open: Vec<Open<'_>> = pairs
            .filter_map(|((one, on_disk), same)| self.open(one, on_disk, same))
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let paths: Vec<&[u8]> = open.iter().map(|one| one.path).collect();
        let modified = self.truly_modified(&self.private.index(), &paths, warnings)?;
        let objects = self.objects();
        for one in open.iter_mut().filter(|one| !modified.contains(one.path)) {
            *one.same = objects.digest(one.base, u64::MAX)?.is_some();
        }
        Ok(())
    }

    /// The candidates that can be the same after conversion: only regular files that had the same mode
    /// before.
    fn open<'a>(
        &self,
        one: &'a Candidate,
        on_disk: &OnDisk,
        same: &'a mut bool,
    ) -> Option<Open<'a>> {
        let base = one.base.as_ref()?;
        let OnDisk::File { executable, .. } = on_disk else {
            return None;
        };
        let is_open = !*same && self.file_mode(*executable, Some(base)) == base.mode;
        is_open.then(|| Open {
            path: &one.path,
            base: &base.oid,
            same,
        })
    }
}

impl Repo {
    /// `None` if the file is no plan, also because it is too large for one.
    pub(crate) fn stripped_plan(&self, plan: &PlanExempt) -> Option<Vec<u8>> {
        let content = self.work_file(&plan.path, MAX_FILE_BYTES as u64)?;
        (plan.strip)(&content)
    }

    pub(crate) fn stripped_base(
        &self,
        plan: &PlanExempt,
        oid: &str,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let path = [b"--path=", plan.path.as_slice()].concat();
        let call = self
            .converting()?
            .args(["cat-file", "--filters"])
            .args([as_path(&path)]);
        Ok((plan.strip)(&call.args([oid]).run()?.stdout))
    }

    pub(crate) fn is_same_plan(
        &self,
        plan: Option<&PlanExempt>,
        indexed: Option<&Recorded>,
    ) -> Result<bool, GitError> {
        let Some((plan, indexed)) = plan.zip(indexed) else {
            return Ok(false);
        };
        let current = self.stripped_plan(plan);
        Ok(current.is_some() && current == self.stripped_base(plan, &indexed.oid)?)
    }
}
