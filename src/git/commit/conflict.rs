//! Commits a conflicting merge with conflict markers in the files, for an agent that resolves it.

use crate::domain::snapshot::RevId;
use crate::git::bytes::{display_paths, fields_and_path};
use crate::git::commit::rebase::{MERGE_TREE, RebaseError, merge_tree};
use crate::git::commit::request::Identity;
use crate::git::commit::stage::{MARKER_LENGTH, record};
use crate::git::error::{GitError, Result};
use crate::git::remote::names::{checked_id, is_id};
use crate::git::repo::Repo;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The largest file in bytes that is given to an agent to resolve its conflict.
const MAX_FILE_BYTES: usize = 4 << 20;

/// A merge with conflicts. Its commit is not meant to stay on any branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedMerge {
    /// The commit, with both sides as its parents and with conflict markers in its files.
    pub commit: RevId,
    /// The files that conflict.
    pub files: Vec<ConflictedFile>,
}

/// A file that conflicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictedFile {
    /// The path of the file.
    pub path: Vec<u8>,
    /// The kind of conflict.
    pub kind: ConflictKind,
    /// The lines that are conflict markers and appear in neither side's file.
    pub markers: Vec<Vec<u8>>,
}

/// What two sides did to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictKind {
    /// Both changed it.
    BothChanged,
    /// Both added it.
    BothAdded,
    /// The branch deleted it, and the other side changed it.
    DeletedHere,
    /// The branch changed it, and the other side deleted it.
    DeletedThere,
}

/// Why a conflicting merge cannot be shown with markers.
#[derive(Debug, thiserror::Error)]
pub enum MarkError {
    /// Files whose conflict is not in lines of text: binary files, links, submodules, renames.
    #[error("no conflict markers can show the conflict in {}", display_paths(.0))]
    NotText(Vec<Vec<u8>>),
    /// The merge could not be made at all.
    #[error(transparent)]
    Impossible(#[from] RebaseError),
}

impl From<GitError> for MarkError {
    fn from(error: GitError) -> Self {
        Self::Impossible(error.into())
    }
}

/// A conflicting file, and its content with markers if the tree of the merge does not have them.
type MarkedFile = (ConflictedFile, Option<Vec<u8>>);

/// Mode and id of a file in the common ancestor, on the branch and on the other side.
type Stages = [Option<(u32, String)>; 3];

impl Repo {
    /// Merges `theirs` into `ours`, which conflict, into a commit whose files have conflict markers in the
    /// style that also shows the common ancestor. The same two sides always give the same commit. No ref
    /// points to it.
    ///
    /// # Errors
    /// [`MarkError`].
    pub fn merge_with_markers(
        &self,
        ours: &RevId,
        theirs: &RevId,
        who: &Identity,
    ) -> Result<MarkedMerge, MarkError> {
        let _open = self.unseal()?;
        let ours = checked_id(ours)?;
        let theirs = checked_id(theirs)?;
        let (mut tree, conflicts) = self.conflicting_tree(ours, theirs)?;
        let (mut files, mut changes, mut not_text) = (Vec::new(), Vec::new(), Vec::new());
        for (path, stages) in conflicts {
            match self.marked_file(&tree, &path, &stages, ours, theirs)? {
                Some((file, entry)) => {
                    changes.extend(entry.unwrap_or_default());
                    files.push(file);
                }
                None => not_text.push(path),
            }
        }
        if !not_text.is_empty() || files.is_empty() {
            return Err(MarkError::NotText(not_text));
        }
        if !changes.is_empty() {
            tree = self.tree_with(&tree, changes)?;
        }
        // The same sides give the same commit.
        let when = format!("@{}", self.raw_commit(theirs)?.committer.when);
        let message = "A merge with its conflicts, for them to be resolved\n";
        let commit = self.merge_commit(&tree, ours, theirs, message, who, |call| {
            let call = call.env("GIT_AUTHOR_DATE", &when);
            call.env("GIT_COMMITTER_DATE", &when)
        })?;
        Ok(MarkedMerge { commit, files })
    }

    /// The tree that git writes for the merge, and the conflicting files.
    fn conflicting_tree(
        &self,
        ours: &str,
        theirs: &str,
    ) -> Result<(String, BTreeMap<Vec<u8>, Stages>), RebaseError> {
        let call = self.making().words("-c merge.conflictStyle=zdiff3");
        let (tree, fields) = merge_tree(call.words(MERGE_TREE).args([ours, theirs]))?;
        let malformed = |what: &[u8]| {
            GitError::malformed("merge-tree", String::from_utf8_lossy(what).into_owned())
        };
        if fields.is_empty() {
            return Err(malformed(b"no conflict").into());
        }
        let mut conflicts: BTreeMap<Vec<u8>, Stages> = BTreeMap::new();
        for field in &fields {
            let (path, stage, entry) = read_stage(field).ok_or_else(|| malformed(field))?;
            let stages = conflicts.entry(path).or_default();
            if let Some(slot) = stages.get_mut(stage) {
                *slot = Some(entry);
            }
        }
        Ok((tree, conflicts))
    }

    /// A conflicting file, with its content if git wrote no markers into it. `None` if no markers can show
    /// the conflict.
    fn marked_file(
        &self,
        tree: &str,
        path: &[u8],
        stages: &Stages,
        ours: &str,
        theirs: &str,
    ) -> Result<Option<MarkedFile>> {
        let [base, here, there] = stages;
        let kind = match (base, here, there) {
            (Some(_), Some(_), Some(_)) => ConflictKind::BothChanged,
            (None, Some(_), Some(_)) => ConflictKind::BothAdded,
            (Some(_), None, Some(_)) => ConflictKind::DeletedHere,
            (Some(_), Some(_), None) => ConflictKind::DeletedThere,
            _ => return Ok(None),
        };
        let mut sides = Vec::new();
        for side in stages {
            let text = match side {
                Some((mode, oid)) if is_regular(*mode) => self.objects().blob(oid)?,
                Some(_) => None,
                None => Some(Vec::new()),
            };
            let Some(text) = text.filter(|text| is_text(text)) else {
                return Ok(None);
            };
            sides.push(text);
        }
        let [_, of_ours, of_theirs] = sides.as_slice() else {
            return Ok(None);
        };
        let (content, entry) = match (here, there) {
            (Some(_), Some(_)) => {
                let content = self.blob_at(tree, path)?;
                (content.filter(|content| is_text(content)), None)
            }
            (None, None) => return Ok(None),
            (Some((mode, _)), None) | (None, Some((mode, _))) => {
                let content = between_markers(ours, of_ours, theirs, of_theirs);
                let oid = self.store("blob", &content)?;
                (Some(content), Some(record(*mode, &oid, path)))
            }
        };
        let lines_of_sides: HashSet<&[u8]> = sides.iter().flat_map(|text| lines(text)).collect();
        let content = content.unwrap_or_default();
        let is_new = |line: &&[u8]| is_marker(line) && !lines_of_sides.contains(line);
        let markers: BTreeSet<Vec<u8>> =
            lines(&content).filter(is_new).map(<[u8]>::to_vec).collect();
        // Without a marker nobody could tell whether the conflict is resolved.
        if markers.is_empty() {
            return Ok(None);
        }
        let file = ConflictedFile {
            path: path.to_vec(),
            kind,
            markers: markers.into_iter().collect(),
        };
        Ok(Some((file, entry)))
    }
}

/// Parses `mode SP oid SP stage TAB path`. Stages are counted from 0 here.
fn read_stage(field: &[u8]) -> Option<(Vec<u8>, usize, (u32, String))> {
    let (mut words, path) = fields_and_path(field)?;
    let mode = u32::from_str_radix(words.next()?, 8).ok()?;
    let oid = words.next().filter(|oid| is_id(oid))?.to_owned();
    let stage: usize = words.next()?.parse().ok()?;
    Some((path.to_vec(), stage.checked_sub(1)?, (mode, oid)))
}

fn is_regular(mode: u32) -> bool {
    [0o100_644, 0o100_755].contains(&mode)
}

fn is_text(content: &[u8]) -> bool {
    content.len() <= MAX_FILE_BYTES && !content.contains(&0)
}

/// The lines of a text without their line endings.
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.split(|byte| *byte == b'\n');
    lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// Whether a line has the form of a conflict marker: one repeated character, followed by nothing or a label.
fn is_marker(line: &[u8]) -> bool {
    let Some(first) = line.first().filter(|byte| b"<|=>".contains(byte)) else {
        return false;
    };
    let length = line.iter().take_while(|byte| *byte == first).count();
    length >= MARKER_LENGTH && matches!(line.get(length), None | Some(b' '))
}

/// Both whole files between markers. One of them is usually empty.
fn between_markers(ours: &str, of_ours: &[u8], theirs: &str, of_theirs: &[u8]) -> Vec<u8> {
    let mut text = format!("<<<<<<< {ours}\n").into_bytes();
    let mut side = |content: &[u8], end: String| {
        text.extend_from_slice(content);
        if content.last().is_some_and(|last| *last != b'\n') {
            text.push(b'\n');
        }
        text.extend_from_slice(end.as_bytes());
    };
    side(of_ours, "=======\n".to_owned());
    side(of_theirs, format!(">>>>>>> {theirs}\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_one_character_often_enough_with_nothing_or_a_label_after_it() {
        for line in ["<<<<<<< ours", "=======", "||||||| 12", ">>>>>>>>>> x"] {
            assert!(is_marker(line.as_bytes()), "{line}");
        }
        for line in ["", "======", "=======x", " =======", "#######", "<<<<<<=="] {
            assert!(!is_marker(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn a_deleted_side_is_empty_between_its_markers() {
        let text = between_markers("a", b"", "b", b"kept");
        assert_eq!(text, b"<<<<<<< a\n=======\nkept\n>>>>>>> b\n");
    }
}
