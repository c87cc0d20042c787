//! The exact bytes that are about to be committed, and what they change.

use crate::domain::plan::MAX_FILE_BYTES;
use crate::domain::snapshot::RevId;
use crate::git::bytes::{as_path, display_path};
use crate::git::commit::stage::Target;
use crate::git::entries::{MAX_READ_BYTES, OnDisk, split};
use crate::git::error::Result;
use crate::git::objects::reader::{ObjectReader, parents_in};
use crate::git::remote::names::checked_id;
use crate::git::remote::refusal::RemoteError;
use crate::git::repo::Repo;
use crate::git::snapshot::change::{Candidate, Change, ChangeKind, PlanExempt, RawSnapshot};
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
        let path = self.at(&change.path);
        let kind = fs::symlink_metadata(&path)?.file_type();
        if kind.is_symlink() {
            let target = fs::read_link(&path)?.into_os_string().into_vec();
            return Ok(Some(Box::new(Cursor::new(target))));
        }
        if !kind.is_file() {
            return Ok(None);
        }
        let file = plain_file::open(&path)?.take(MAX_READ_BYTES);
        Ok(Some(Box::new(file)))
    }

    /// The paths that a commit changes compared with each of its parents.
    ///
    /// # Errors
    /// When git cannot read it.
    pub fn changed_by(&self, commit: &RevId) -> Result<Vec<ChangedPath>> {
        let _open = self.unseal_to_read()?;
        let reader = self.objects();
        changes_by(&reader, &commit.0, &reader.commit(&commit.0)?)
    }

    /// Whether a file of the base contains one of the lines of `text`.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn base_holds(&self, text: &str) -> Result<bool> {
        self.tree_holds(&self.private.state.base_tree, text)
    }

    /// Whether a file of a commit contains one of the lines of `text`.
    ///
    /// # Errors
    /// When git cannot be run, or the commit's id is invalid.
    pub fn holds(&self, commit: &RevId, text: &str) -> Result<bool, RemoteError> {
        Ok(self.tree_holds(checked_id(commit)?, text)?)
    }

    fn tree_holds(&self, tree: &str, text: &str) -> Result<bool> {
        let _open = self.unseal_to_read()?;
        let call = self
            .git("grep --quiet --text --fixed-strings -f -")
            .arg(tree);
        call.stdin(text).succeeds()
    }

    /// The commits from the base to `head` in any topology, each with its stored text and the paths that it
    /// changes.
    ///
    /// # Errors
    /// When git cannot read them.
    pub fn commits_after_base(&self, head: &RevId) -> Result<Vec<OwnCommit>> {
        let Some(base) = self.base() else {
            return Ok(Vec::new());
        };
        let _open = self.unseal_to_read()?;
        let call = self
            .git("rev-list")
            .args([&head.0, &format!("^{}", base.0), "--"]);
        let listed = call.stdout()?;
        let reader = self.objects();
        let commit = |id: &str| {
            let text = reader.commit(id)?;
            let changed = changes_by(&reader, id, &text)?;
            Ok(OwnCommit { text, changed })
        };
        String::from_utf8_lossy(&listed)
            .lines()
            .map(commit)
            .collect()
    }
}

/// The paths that the commit with this id and text changes compared with each of its parents.
fn changes_by(reader: &ObjectReader<'_>, id: &str, text: &[u8]) -> Result<Vec<ChangedPath>> {
    let parents = parents_in(text);
    let mut from: Vec<Option<&str>> = parents.iter().map(|id| Some(id.as_str())).collect();
    if from.is_empty() {
        from.push(None);
    }
    let mut changed = Vec::new();
    for from in from {
        let diffs = reader.diff(from, id, false)?;
        changed.extend(diffs.into_iter().map(RawDiff::changed));
    }
    Ok(changed)
}

/// A commit made by the agent.
#[derive(Debug, Clone)]
pub struct OwnCommit {
    /// Headers and message.
    pub text: Vec<u8>,
    /// The paths that it changes compared with its parents.
    pub changed: Vec<ChangedPath>,
}

impl Repo {
    /// Marks files as unchanged that differ only before conversion, by line endings or filters.
    pub(crate) fn convert(
        &self,
        candidates: &[Candidate],
        seen: &[OnDisk],
        unchanged: &mut [bool],
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        if !self.may_convert(candidates.iter().map(|one| &one.path))? {
            return Ok(());
        }
        // Only regular files that had the same mode before can be the same after conversion.
        let pairs = candidates.iter().zip(seen).zip(unchanged);
        let open = pairs.filter_map(|((one, on_disk), same)| {
            let base = one.base.as_ref().filter(|_| !*same)?;
            match on_disk {
                OnDisk::File { executable, .. } => {
                    let is_open = self.file_mode(*executable, Some(base)) == base.mode;
                    is_open.then_some((one.path.as_slice(), &base.oid, same))
                }
                _ => None,
            }
        });
        let mut open: Vec<(&[u8], &String, &mut bool)> = open.collect();
        if open.is_empty() {
            return Ok(());
        }
        let paths: Vec<&[u8]> = open.iter().map(|(path, ..)| *path).collect();
        let modified = self.truly_modified(&self.private.index(), &paths, warnings)?;
        let objects = self.objects();
        for (_, base, same) in open
            .iter_mut()
            .filter(|(path, ..)| !modified.contains(*path))
        {
            **same = objects.digest(base, u64::MAX)?.is_some();
        }
        Ok(())
    }

    /// Whether git may store content that differs from that of the file, where these paths change.
    pub(crate) fn may_convert<'p>(
        &self,
        mut changed: impl Iterator<Item = &'p Vec<u8>>,
    ) -> Result<bool> {
        Ok(self.private.state.converts
            || changed.any(|path| split(path).1 == b".gitattributes")
            || !self.layout()?.attribute_files.is_empty())
    }

    /// `None` if the file is no plan, also because it is too large for one.
    pub(crate) fn stripped_plan(&self, plan: &PlanExempt) -> Option<Vec<u8>> {
        let content = self.work_file(&plan.path, MAX_FILE_BYTES as u64)?;
        (plan.strip)(&content)
    }

    pub(crate) fn stripped_base(&self, plan: &PlanExempt, oid: &str) -> Result<Option<Vec<u8>>> {
        let path = [b"--path=", plan.path.as_slice()].concat();
        let call = self
            .converting()?
            .words("cat-file --filters")
            .arg(as_path(&path));
        Ok((plan.strip)(&call.arg(oid).stdout()?))
    }

    pub(crate) fn is_same_plan(
        &self,
        plan: Option<&PlanExempt>,
        indexed: Option<&Recorded>,
    ) -> Result<bool> {
        let Some((plan, indexed)) = plan.zip(indexed) else {
            return Ok(false);
        };
        let current = self.stripped_plan(plan);
        Ok(current.is_some() && current == self.stripped_base(plan, &indexed.oid)?)
    }
}

impl Repo {
    /// The snapshot's changes, including untracked files, as a patch for `git apply --binary`. Leaves no objects or
    /// index entries behind. Unreadable files are left out.
    ///
    /// # Errors
    /// When git fails.
    pub fn patch(&self, snapshot: &RawSnapshot) -> Result<Vec<u8>> {
        let _open = self.unseal()?;
        let scratch = self.scratch_objects()?;
        let index = self.scratch_index(&self.private.index())?;
        let target = Target {
            index: &index,
            objects: scratch.path().to_path_buf(),
            durable: false,
        };
        self.stage_changes(&target, &snapshot.readable())?;
        let args = "diff-index --cached -p --binary --full-index --no-renames
            --no-ext-diff --no-textconv --no-color";
        let mut patch = Vec::new();
        let call = self
            .staging(&target)
            .words(args)
            .arg(&self.private.state.base_tree);
        call.stream(&mut |chunk| patch.extend_from_slice(chunk))?;
        Ok(patch)
    }

    /// Writes the changes of each commit after `base` up to `head`, oldest first, in chunks to `sink`: a line
    /// `commit ID`, an empty line, the indented subject, an empty line, the diff from its first parent.
    /// Without a base, this covers every commit up to `head`.
    ///
    /// # Errors
    /// When git fails.
    pub fn write_commits(
        &self,
        base: Option<&RevId>,
        head: &RevId,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<()> {
        let _open = self.unseal_to_read()?;
        let range = base.map_or_else(|| head.0.clone(), |base| format!("{}..{}", base.0, head.0));
        let args = "log --reverse --topo-order --no-show-signature --patch
            --diff-merges=first-parent --no-notes --no-ext-diff --no-textconv --no-color";
        let call = self.git(args).arg("--format=format:commit %H%n%n    %s%n");
        call.args([&range, "--"]).stream(sink)
    }

    /// The changes between two commits as a patch for people: with renames detected, and without the content
    /// of binary files.
    ///
    /// # Errors
    /// When one of them does not exist.
    pub fn patch_between(&self, from: &RevId, to: &RevId) -> Result<Vec<u8>> {
        let _open = self.unseal_to_read()?;
        let args = "-c core.quotePath=false diff-tree -r -p --find-renames
            --no-ext-diff --no-textconv --no-color";
        self.git(args)
            .args([checked_id(from)?, checked_id(to)?])
            .stdout()
    }

    /// The files that differ between two commits.
    ///
    /// # Errors
    /// When one of them does not exist.
    pub fn paths_between(&self, from: &RevId, to: &RevId) -> Result<Vec<String>> {
        let _open = self.unseal_to_read()?;
        let changes = self.diff_trees(checked_id(from)?, checked_id(to)?)?;
        Ok(changes
            .iter()
            .map(|change| display_path(&change.path))
            .collect())
    }
}
