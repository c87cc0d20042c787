//! The parsers of what an agent can write into a git directory, without a repository around them.

use crate::git::bytes::hex;
use crate::git::commit::facts::RawCommit;
use crate::git::objects::loose::{Piece, read_loose};
use crate::git::objects::reader::{Entries, tree_in};
use std::io;

/// Modes, names and ids of the entries of a tree, up to the first that git does not accept.
pub fn tree(content: &[u8], length: usize) -> Vec<(u32, Vec<u8>, String)> {
    let entries = Entries {
        rest: content,
        id_bytes: length / 2,
    };
    entries
        .map(|entry| (entry.mode, entry.name.to_vec(), hex(entry.id)))
        .collect()
}

/// What is read of a commit.
#[derive(Debug)]
pub struct ReadCommit {
    /// The text in the place of its tree's id.
    pub tree: Option<String>,
    /// Its message, if it is read as a whole.
    pub message: Option<Vec<u8>>,
}

/// Reads a commit.
pub fn commit(content: &[u8]) -> ReadCommit {
    ReadCommit {
        tree: tree_in(content),
        message: RawCommit::parse(content).map(|commit| commit.message),
    }
}

/// The content of a loose object, if the file is the object with this id.
///
/// # Errors
/// When the file cannot be read.
pub fn loose_object(file: &[u8], id: &str) -> io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    let digest = read_loose(file, id, u64::MAX, &mut |piece| {
        if let Piece::Content(bytes) = piece {
            content.extend_from_slice(bytes);
        }
    })?;
    Ok(digest.map(|_| content))
}
