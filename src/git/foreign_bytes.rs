//! The parsers of what an agent can write into a git directory, without a repository around them.

use crate::git::commit::index_edit::{IndexEdit, NewEntry};
use crate::git::commit::raw_commit::RawCommit;
use crate::git::objects::allowance::Allowance;
use crate::git::objects::loose::{Piece, read_loose, read_loose_size};
use crate::git::objects::packs::Packs;
use crate::git::objects::reader::{entries_of, tree_in};
use crate::git::objects::tree_writer::NewTrees;
use crate::git::private::head::packed_oid;
use crate::git::private::plain_refs::{Refs, packed, ref_value};
use crate::git::snapshot::index_file::IndexFile;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The size and the content of the object with a binary id, read from the packs of a store. `None` where there is
/// none, or it is not readable.
pub fn packed_object(store: &Path, id: &[u8]) -> (Option<u64>, Option<Vec<u8>>) {
    let packs = Packs::open(&[store.to_path_buf()]).ok();
    let Some(found) = packs.as_ref().and_then(|packs| packs.find(id).ok()?) else {
        return (None, None);
    };
    let content = found.read(&Allowance::new()).ok();
    (found.size().ok(), content.map(|(_, content)| content))
}

/// The refs of a `packed-refs` file, if it has the plainest form, and how one of its branches is found.
pub fn packed_refs(content: &[u8], branch: &str, length: usize) -> (Option<Refs>, Option<String>) {
    (packed(content, length), packed_oid(content, branch, length))
}

/// The value of a loose ref, from the content of its file.
pub fn loose_ref(content: &[u8], length: usize) -> Option<String> {
    ref_value(content, length)
}

/// The number of directories with files of an index, if the index has the usual form.
pub fn index(content: &[u8], length: usize) -> Option<usize> {
    let index = IndexFile::parse(content, content.len() as u64, length)?;
    Some(index.read.layout.directories.len())
}

/// An index of the usual form with a new file at `path`, or `None` if git has to add it.
pub fn index_with(content: &[u8], path: &[u8], length: usize) -> Option<Vec<u8>> {
    let id = vec![1; length / 2];
    let entry = NewEntry::new(Some((0o100_644, id)), None);
    let edit = IndexEdit {
        entries: &BTreeMap::from([(path.to_vec(), Some(entry))]),
        trees: Some(&NewTrees::default()),
        modified: 0,
        id_length: length,
    };
    Some(edit.apply(content)?.content)
}

/// Modes, names and ids of the entries of a tree.
pub fn tree(content: &[u8], length: usize) -> Option<Vec<(u32, Vec<u8>, String)>> {
    let entries = entries_of(content, length)?.into_iter();
    let entry = entries.map(|entry| (entry.recorded.mode, entry.name, entry.recorded.oid));
    Some(entry.collect())
}

/// What is read of a commit.
#[derive(Debug)]
pub struct ReadCommit {
    /// Its tree, if git accepts its first lines.
    pub tree: Option<String>,
    /// Its message, if it is read as a whole.
    pub message: Option<Vec<u8>>,
}

/// Reads a commit.
pub fn commit(content: &[u8], length: usize) -> ReadCommit {
    ReadCommit {
        tree: tree_in(content, length),
        message: RawCommit::parse(content).map(|commit| commit.message),
    }
}

/// The content of a loose object, if the file is the object with this id, and its size according to the header.
///
/// # Errors
/// When the file cannot be read.
pub fn loose_object(file: &[u8], id: &str) -> io::Result<(Option<Vec<u8>>, Option<u64>)> {
    let mut content = Vec::new();
    let digest = read_loose(file, id, &mut |piece| {
        if let Piece::Content(bytes) = piece {
            content.extend_from_slice(bytes);
        }
    })?;
    Ok((digest.map(|_| content), read_loose_size(file, id)))
}
