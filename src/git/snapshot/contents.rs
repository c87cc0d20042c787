//! What is about to be committed, byte for byte.

use crate::domain::snapshot::RevId;
use crate::git::bytes::as_path;
use crate::git::entries::open_regular;
use crate::git::error::GitError;
use crate::git::repo::Repo;
use crate::git::snapshot::change::{Change, ChangeKind};
use crate::git::snapshot::listing::{ChangedPath, RawDiff, parse_raw};
use std::fs;
use std::io::{self, Cursor, Read};
use std::os::unix::ffi::OsStringExt as _;

impl Repo {
    /// The content of a changed file that a commit would take in, or the target of a link. `None`
    /// for what a commit takes out or leaves out.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn new_content(&self, change: &Change) -> io::Result<Option<Box<dyn Read>>> {
        if change.kind == ChangeKind::Deleted || change.newly_ignored {
            return Ok(None);
        }
        let path = self.real.work_tree.join(as_path(&change.path));
        let kind = fs::symlink_metadata(&path)?.file_type();
        if kind.is_symlink() {
            let target = fs::read_link(&path)?.into_os_string().into_vec();
            return Ok(Some(Box::new(Cursor::new(target))));
        }
        Ok(match kind.is_file() {
            true => Some(Box::new(open_regular(&path)?)),
            false => None,
        })
    }

    /// What a commit changes of each of its parents.
    ///
    /// # Errors
    /// When git cannot read it.
    pub fn changed_by(&self, commit: &RevId) -> Result<Vec<ChangedPath>, GitError> {
        let _open = self.unseal()?;
        let args = [
            "diff-tree",
            "-r",
            "-m",
            "--root",
            "--no-commit-id",
            "--raw",
            "-z",
        ];
        let call = self
            .call()
            .args(args)
            .args(["--no-abbrev", "--no-renames", &commit.0]);
        let diffs = parse_raw(&call.run()?.stdout)?;
        Ok(diffs.into_iter().map(RawDiff::changed).collect())
    }

    /// Whether a file of the base holds one of this text's lines.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn base_holds(&self, text: &str) -> Result<bool, GitError> {
        let _open = self.unseal()?;
        let grep = ["grep", "--quiet", "--text", "--fixed-strings", "-f", "-"];
        let call = self.call().args(grep).args([&self.private.state.base_tree]);
        let output = call.stdin(text.as_bytes().to_vec()).status()?;
        Ok(output.status == Some(0))
    }

    /// The messages and the added lines of the commits from the base to `head`, one after the other.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn added_since_base(&self, head: &str) -> Result<Vec<u8>, GitError> {
        let Some(base) = self.base() else {
            return Ok(Vec::new());
        };
        let _open = self.unseal()?;
        let range = format!("{}..{head}", base.0);
        let log = |more: &[&str]| -> Result<Vec<u8>, GitError> {
            let call = self
                .call()
                .args(["log", "--no-color", "--no-show-signature"]);
            Ok(call.args(more).args([&range]).run()?.stdout)
        };
        let mut added = log(&["--format=%an%n%ae%n%B"])?;
        let patch = [
            "--format=",
            "--patch",
            "--text",
            "--unified=0",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--diff-merges=first-parent",
        ];
        for line in log(&patch)?.split_inclusive(|byte| *byte == b'\n') {
            added.extend(line.strip_prefix(b"+").unwrap_or_default());
        }
        Ok(added)
    }
}
