//! The exact bytes that are about to be committed.

use crate::domain::snapshot::RevId;
use crate::git::bytes::{as_path, nul_fields};
use crate::git::error::GitError;
use crate::git::remote::error::RemoteError;
use crate::git::remote::names::checked_id;
use crate::git::repo::Repo;
use crate::git::snapshot::change::{Change, ChangeKind};
use crate::git::snapshot::listing::{ChangedPath, RawDiff, parse_raw, raw_diff};
use crate::plain_file;
use std::collections::HashMap;
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
        if change.kind == ChangeKind::Deleted || change.newly_ignored {
            return Ok(None);
        }
        let path = self.real.work_tree.join(as_path(&change.path));
        let kind = fs::symlink_metadata(&path)?.file_type();
        if kind.is_symlink() {
            let target = fs::read_link(&path)?.into_os_string().into_vec();
            return Ok(Some(Box::new(Cursor::new(target))));
        }
        Ok(if kind.is_file() {
            Some(Box::new(plain_file::open(&path)?))
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
        let args = ["diff-tree", "--stdin", "-r", "-m", "--root", "--raw", "-z"];
        let call = self.call().args(args).stdin(listed.clone());
        let diffs = call.args(["--no-abbrev", "--no-renames"]).run()?.stdout;
        let mut changed = changes_by_commit(&diffs)?;
        let count = memchr::memchr_iter(b'\n', &listed).count();
        let call = self.call().args(["cat-file", "--batch"]).stdin(listed);
        let contents = call.run()?.stdout;
        let commits = batched(&contents).map(|(id, text)| OwnCommit {
            text: text.to_vec(),
            changed: changed.remove(id).unwrap_or_default(),
        });
        let commits: Vec<OwnCommit> = commits.collect();
        if commits.len() == count {
            Ok(commits)
        } else {
            Err(GitError::Malformed {
                command: "cat-file",
                what: format!("{} of {count} commits", commits.len()),
            })
        }
    }
}

/// What each commit changes, from the output of `diff-tree --stdin -z`: the id of a commit, then its raw differences,
/// for each of its parents.
fn changes_by_commit(output: &[u8]) -> Result<HashMap<&[u8], Vec<ChangedPath>>, GitError> {
    let mut found: HashMap<&[u8], Vec<ChangedPath>> = HashMap::new();
    let mut commit = b"".as_slice();
    let mut fields = nul_fields(output);
    while let Some(field) = fields.next() {
        if !field.starts_with(b":") {
            commit = field.split(|byte| *byte == b' ').next().unwrap_or_default();
            continue;
        }
        let path = fields.next().unwrap_or_default();
        let diff = raw_diff(field, path)?;
        found.entry(commit).or_default().push(diff.changed());
    }
    Ok(found)
}

/// Ids and contents of objects, from the output of `cat-file --batch`: `id SP kind SP size LF content LF`.
fn batched(mut output: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', output)?;
        let (header, rest) = (output.get(..end)?, output.get(end + 1..)?);
        let mut words = header.split(|byte| *byte == b' ');
        let (id, size) = (words.next()?, words.nth(1)?);
        let size: usize = std::str::from_utf8(size).ok()?.parse().ok()?;
        let (content, rest) = rest.split_at_checked(size)?;
        output = rest.get(1..)?;
        Some((id, content))
    })
}

/// A commit made by the agent.
#[derive(Debug, Clone)]
pub struct OwnCommit {
    /// Headers and message.
    pub text: Vec<u8>,
    /// The paths that it changes compared with its parents.
    pub changed: Vec<ChangedPath>,
}
