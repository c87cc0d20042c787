//! The exact bytes that are about to be committed.

use crate::domain::snapshot::RevId;
use crate::git::bytes::as_path;
use crate::git::entries::MAX_READ_BYTES;
use crate::git::error::GitError;
use crate::git::objects::reader::{ObjectReader, parents_in};
use crate::git::remote::error::RemoteError;
use crate::git::remote::names::checked_id;
use crate::git::repo::Repo;
use crate::git::snapshot::change::{Change, ChangeKind};
use crate::git::snapshot::listing::{ChangedPath, RawDiff};
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
