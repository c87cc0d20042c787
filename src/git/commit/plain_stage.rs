//! Stages regular files that git stores as they are, and makes a commit of them, in this process: git starts a process
//! for each step, which takes longer than the work itself. Everything else is left to git.

use crate::git::bytes::as_path;
use crate::git::commit::index_edit::{IndexEdit, NewEntry};
use crate::git::commit::request::{Identity, Staged};
use crate::git::commit::stage::{PlanEntry, Shape, Target};
use crate::git::copy_tree::remove;
use crate::git::entries::PathInspector;
use crate::git::objects::allowance::LIMIT;
use crate::git::objects::reader::binary;
use crate::git::objects::tree_writer::{NewEntries, NewTrees, ObjectWriter};
use crate::git::repo::Repo;
use crate::git::snapshot::change::{Change, ChangeKind};
use crate::git::snapshot::listing::Recorded;
use crate::plain_file;
use git2::Signature;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The most bytes of files that are staged here.
const TOTAL_LIMIT: u64 = 64 << 20;

/// What the changed paths become in the tree and in the index.
#[derive(Default)]
struct Entries {
    tree: NewEntries,
    index: BTreeMap<Vec<u8>, Option<NewEntry>>,
}

impl Entries {
    fn add(&mut self, path: &[u8], recorded: Recorded, meta: Option<&Metadata>) -> Option<()> {
        let content = (recorded.mode, binary(&recorded.oid)?);
        let entry = NewEntry::new(Some(content), meta);
        self.index.insert(path.to_vec(), Some(entry));
        self.tree.insert(path.to_vec(), Some(recorded));
        Some(())
    }

    fn remove(&mut self, path: &[u8]) {
        self.index.insert(path.to_vec(), None);
        self.tree.insert(path.to_vec(), None);
    }
}

impl Repo {
    /// Stages changes that nothing converts, and the plan, and writes the tree. Returns its id, or `None` if git has to
    /// do it. The index of `target` is then as it was.
    pub(super) fn stage_plainly(
        &self,
        target: &Target<'_>,
        changes: &[&Change],
        plan: Option<&PlanEntry>,
    ) -> Option<String> {
        let id_length = self.real.id_length();
        let reader = self.objects();
        let writer = ObjectWriter {
            reader: &reader,
            store: &target.objects,
            id_length,
        };
        let entries = self.plain_entries(&writer, changes, plan)?;
        let base = &self.private.state.base_tree;
        let trees = writer.write_trees(base, &entries.tree).ok()?;
        self.edit_index(target.index, &entries.index, Some(&trees))?;
        trees.ids.get(b"".as_slice()).cloned()
    }

    /// Records the stat data of a file that has this content, which the index has, too. `None` if git has to do it.
    pub(super) fn record_stat(&self, index: &Path, path: &[u8], content: &[u8]) -> Option<()> {
        let file = plain_file::open_below(&self.real.work_tree, as_path(path)).ok()?;
        let meta = file.metadata().ok()?;
        let is_it = plain_file::content_of(file, LIMIT).ok()? == content
            && !self.has_attributes([path].into_iter());
        let entry = NewEntry::new(None, Some(&meta));
        let entries = BTreeMap::from([(path.to_vec(), Some(entry))]);
        is_it.then(|| self.edit_index(index, &entries, None))?
    }

    fn edit_index(
        &self,
        index: &Path,
        entries: &BTreeMap<Vec<u8>, Option<NewEntry>>,
        trees: Option<&NewTrees>,
    ) -> Option<()> {
        let meta = fs::metadata(index).ok()?;
        let edit = IndexEdit {
            entries,
            trees,
            modified: meta.mtime(),
            id_length: self.real.id_length(),
        };
        let edited = edit.apply(&fs::read(index).ok()?)?;
        // The copy of the index, or its last version, was written before the files were read. So git compares the
        // content of each file that may have changed since it was read or, with the old time, since it was last seen.
        let time = if edited.needs_time {
            meta.modified().ok()?
        } else {
            changed(&meta)?
        };
        // The name that git gives the file, which a later process of the run removes.
        let new = index.with_added_extension("lock");
        let written = fs::write(&new, edited.content)
            .and_then(|()| File::open(&new)?.set_modified(time))
            .and_then(|()| fs::rename(&new, index));
        if written.is_err() {
            remove(&new).ok()?;
        }
        written.ok()
    }

    /// Writes a commit that nobody signs, and returns its id. `None` if git has to do it.
    pub(super) fn plain_commit(
        &self,
        staged: &Staged,
        message: &str,
        identity: &Identity,
    ) -> Option<String> {
        let parents: BTreeSet<&String> = staged.parents.iter().collect();
        let is_plain = parents.len() == staged.parents.len() && !message.contains('\0');
        if self.private.state.sign || !is_plain || self.packs_may_lie() {
            return None;
        }
        let who = signature(identity)?;
        let mut content = format!("tree {}\n", staged.tree);
        for parent in &staged.parents {
            content.push_str(&format!("parent {parent}\n"));
        }
        content.push_str(&format!("author {who}\ncommitter {who}\n\n{message}"));
        let writer = ObjectWriter {
            reader: &self.objects(),
            store: &self.own_objects(),
            id_length: self.real.id_length(),
        };
        writer.write("commit", content.as_bytes()).ok()
    }

    /// Whether the work tree may have attributes for these paths, also in files that no commit has.
    fn has_attributes<'a>(&self, paths: impl Iterator<Item = &'a [u8]>) -> bool {
        let mut files = self.attribute_files_above(paths);
        files.any(|path| path.symlink_metadata().is_ok())
    }

    fn plain_entries(
        &self,
        writer: &ObjectWriter<'_>,
        changes: &[&Change],
        plan: Option<&PlanEntry>,
    ) -> Option<Entries> {
        let paths = changes.iter().map(|change| change.path.as_slice());
        if !self.private.state.file_mode || self.packs_may_lie() || self.has_attributes(paths) {
            return None;
        }
        let mut entries = Entries::default();
        let mut looker = PathInspector::new(&self.real.work_tree);
        let mut left = TOTAL_LIMIT;
        for change in changes {
            let path = change.path.as_slice();
            // Where links are files, git keeps the type that it knows.
            if !is_plain_path(path) || change.kind == ChangeKind::TypeChanged {
                return None;
            }
            match self.shape(&mut looker, change) {
                Shape::Gone => entries.remove(path),
                Shape::File => {
                    let (recorded, meta) = self.plain_file(writer, path, &mut left)?;
                    entries.add(path, recorded, Some(&meta))?;
                }
                Shape::Submodule(_) => return None,
            }
        }
        if let Some(PlanEntry { mode, oid, path }) = plan {
            let (mode, oid) = (*mode, oid.clone());
            entries.add(path, Recorded { mode, oid }, None)?;
            if !is_plain_path(path) {
                return None;
            }
        }
        Some(entries)
    }

    /// Stores a regular file as it is.
    fn plain_file(
        &self,
        writer: &ObjectWriter<'_>,
        path: &[u8],
        left: &mut u64,
    ) -> Option<(Recorded, Metadata)> {
        let file = plain_file::open_below(&self.real.work_tree, as_path(path)).ok()?;
        let meta = file.metadata().ok()?;
        *left = left.checked_sub(meta.len())?;
        let content = plain_file::content_of(file, LIMIT).ok()?;
        let oid = writer.write("blob", &content).ok()?;
        let mode = match meta.mode() & 0o100 {
            0 => 0o100_644,
            _ => 0o100_755,
        };
        let is_whole = meta.len() == content.len() as u64;
        is_whole.then_some((Recorded { mode, oid }, meta))
    }
}

/// When the file was last written or renamed, which no program can set.
fn changed(meta: &Metadata) -> Option<SystemTime> {
    let seconds = Duration::from_secs(u64::try_from(meta.ctime()).ok()?);
    let rest = Duration::from_nanos(u64::try_from(meta.ctime_nsec()).ok()?);
    Some(UNIX_EPOCH + seconds + rest)
}

/// Who makes a commit, and when, as commits have it. `None` if git would write the name or the address otherwise.
fn signature(identity: &Identity) -> Option<String> {
    let Identity { name, email } = identity;
    if name.contains('\n') || email.contains('\n') {
        return None;
    }
    // git removes punctuation from the ends.
    let is_kept = |edge: char| edge.is_alphanumeric() || "[]()".contains(edge);
    let is_whole = |text: &str| text.starts_with(is_kept) && text.ends_with(is_kept);
    if !is_whole(name) || !is_whole(email) {
        return None;
    }
    let now = Signature::now(name, email).ok()?;
    let minutes = now.when().offset_minutes();
    let (hours, rest) = (minutes.abs() / 60, minutes.abs() % 60);
    let sign = if minutes < 0 { '-' } else { '+' };
    let seconds = now.when().seconds();
    Some(format!(
        "{name} <{email}> {seconds} {sign}{hours:02}{rest:02}"
    ))
}

/// Whether git accepts a path on every system: no part of it may be, or be read elsewhere as, `.git` or a parent
/// directory. git decides about unusual characters.
fn is_plain_path(path: &[u8]) -> bool {
    let is_usual = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    let is_special = |byte: &u8| matches!(byte, b'\\' | b':' | b'~');
    let is_plain_name = |name: &[u8]| {
        let bare = name.trim_ascii_end();
        !bare.is_empty()
            && !bare.ends_with(b".")
            && bare.len() == name.len()
            && !bare.eq_ignore_ascii_case(b".git")
    };
    path.iter().all(|byte| is_usual(byte) && !is_special(byte))
        && path.split(|byte| *byte == b'/').all(is_plain_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_that_git_writes_otherwise_are_left_to_git() {
        let signature = |name: &str, email: &str| {
            let (name, email) = (name.to_owned(), email.to_owned());
            signature(&Identity { name, email })
        };
        let written = signature("Ann O'Neil, Jr", "a@b.c").unwrap();
        assert!(written.starts_with("Ann O'Neil, Jr <a@b.c> "), "{written}");
        for name in ["", " Ann", "Ann.", "A<b", "A\nb", "A\0b", "'Ann'"] {
            assert_eq!(signature(name, "a@b.c"), None, "{name:?}");
            assert_eq!(signature("Ann", name), None, "{name:?}");
        }
    }

    #[test]
    fn names_that_git_refuses_somewhere_are_left_to_git() {
        for plain in [
            "a",
            ".gitignore",
            ".github/a b.yml",
            "src/.x",
            "git",
            "a.git",
        ] {
            assert!(is_plain_path(plain.as_bytes()), "{plain}");
        }
        for other in [
            "",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "a/../b",
            ".git",
            ".GIT/x",
            "a/.Git",
            ".git./x",
            ".git /x",
            "git~1",
            "a\\b",
            "c:x",
            ".g\u{200c}it",
            "a\nb",
            "x ",
            "x.",
        ] {
            assert!(!is_plain_path(other.as_bytes()), "{other}");
        }
    }
}
