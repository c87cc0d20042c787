//! Reads an index file of the usual form in this process.
//!
//! Listing an index and comparing it with a tree take a git process each, which both read the whole file. Forms that
//! are rare are left to git: version 4, several stages, files that are only intended to be added, and an index with a
//! part in another file or with entries for directories.

use crate::git::bytes::hex;
use crate::git::objects::reader::TreeEntry;
use crate::git::snapshot::index_list::{IndexEntries, IndexEntry, IndexRead};
use crate::git::snapshot::listing::TREE;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

const ASSUMED: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;
/// The length of a name, or this number for every longer name.
const NAME_LENGTH: u16 = 0x0fff;
const SKIPPED: u16 = 0x4000;

/// What is read of an index file.
pub(in crate::git) struct IndexFile {
    pub(in crate::git) read: IndexRead,
    /// The entries of the top directory, in the order of a tree.
    top: Vec<TopEntry>,
    /// The trees of the directories in the top directory, as far as git knows them.
    trees: HashMap<Vec<u8>, KnownTree>,
}

struct TopEntry {
    name: Vec<u8>,
    what: Top,
}

enum Top {
    File {
        mode: u32,
        oid: String,
    },
    /// A directory with this number of files at any depth.
    Directory(usize),
}

/// The tree of a directory, from the cache of trees in the index.
struct KnownTree {
    files: usize,
    oid: String,
}

impl IndexFile {
    /// Reads an index with ids of this number of digits. `None` if it is left to git.
    pub(in crate::git) fn read(path: &Path, id_length: usize) -> Option<Self> {
        let file = File::open(path).ok()?;
        let size = file.metadata().ok()?.len();
        Self::parse(BufReader::with_capacity(64 * 1024, file), size, id_length)
    }

    /// Reads an index of `size` bytes from `input`.
    pub(in crate::git) fn parse(input: impl Read, size: u64, id_length: usize) -> Option<Self> {
        let parser = Parser {
            input,
            left: size.checked_sub(id_length as u64 / 2)?,
            id_bytes: id_length / 2,
        };
        parser.index()
    }

    /// Whether the index holds exactly the tree with these entries, according to the ids that it has recorded. Like
    /// git's own comparison it trusts the cache of trees for what is below the top directory. `false` if the index
    /// does not record all of them.
    pub(in crate::git) fn is_tree(&self, entries: &[TreeEntry]) -> bool {
        let is_same = |(top, entry): (&TopEntry, &TreeEntry)| {
            let recorded = &entry.recorded;
            let is_same = match &top.what {
                Top::File { mode, oid } => *mode == recorded.mode && *oid == recorded.oid,
                Top::Directory(files) => self.trees.get(&top.name).is_some_and(|tree| {
                    recorded.mode == TREE && tree.files == *files && tree.oid == recorded.oid
                }),
            };
            is_same && top.name == entry.name
        };
        self.top.len() == entries.len() && self.top.iter().zip(entries).all(is_same)
    }
}

struct Parser<R> {
    input: R,
    /// Bytes up to the checksum at the end.
    left: u64,
    id_bytes: usize,
}

impl<R: Read> Parser<R> {
    fn index(mut self) -> Option<IndexFile> {
        let version = match &self.bytes()? {
            b"DIRC" => u32::from_be_bytes(self.bytes()?),
            _ => return None,
        };
        if ![2, 3].contains(&version) {
            return None;
        }
        let count = u32::from_be_bytes(self.bytes()?);
        let (mut entries, mut top) = (IndexEntries::default(), Vec::new());
        let mut buffer = Vec::new();
        for _ in 0..count {
            self.entry(&mut buffer, &mut entries, &mut top)?;
        }
        let mut trees = HashMap::new();
        while self.left > 0 {
            let name: [u8; 4] = self.bytes()?;
            let size = u64::from(u32::from_be_bytes(self.bytes()?));
            // git understands an index without the extensions with such names.
            if !name[0].is_ascii_uppercase() {
                return None;
            }
            let content = self.next(size, &mut buffer)?;
            if &name == b"TREE" {
                trees = trees_at_top(content, self.id_bytes)?;
            }
        }
        let read = entries.finish();
        Some(IndexFile { read, top, trees })
    }

    /// Reads an entry: stat data, mode, owner, size, id, flags and name, padded with NULs to a multiple of 8 bytes.
    fn entry(
        &mut self,
        buffer: &mut Vec<u8>,
        entries: &mut IndexEntries,
        top: &mut Vec<TopEntry>,
    ) -> Option<()> {
        let before = self.left;
        let _times_and_place: [u8; 24] = self.bytes()?;
        let mode = u32::from_be_bytes(self.bytes()?);
        let _owner_and_size: [u8; 12] = self.bytes()?;
        let mut id = [0; 32];
        let id = id.get_mut(..self.id_bytes)?;
        self.exactly(id)?;
        let flags = u16::from_be_bytes(self.bytes()?);
        let more = match flags & EXTENDED {
            0 => 0,
            _ => u16::from_be_bytes(self.bytes()?),
        };
        let length = flags & NAME_LENGTH;
        if flags & STAGE != 0 || more & !SKIPPED != 0 || length == 0 || length == NAME_LENGTH {
            return None;
        }
        let used = before - self.left + u64::from(length);
        let padded = u64::from(length) + 8 - used % 8;
        let (path, padding) = self
            .next(padded, buffer)?
            .split_at_checked(usize::from(length))?;
        if path.contains(&0) || padding.iter().any(|byte| *byte != 0) {
            return None;
        }
        let entry = IndexEntry {
            path,
            mode,
            is_assumed: flags & ASSUMED != 0,
            is_skipped: more & SKIPPED != 0,
        };
        entries.add(&entry, || hex(id));
        add_to_top(top, path, (mode, id));
        Some(())
    }

    fn next<'b>(&mut self, size: u64, buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        // No more than there is in the file.
        self.left.checked_sub(size)?;
        buffer.resize(usize::try_from(size).ok()?, 0);
        self.exactly(buffer)?;
        Some(buffer)
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.exactly(&mut bytes)?;
        Some(bytes)
    }

    fn exactly(&mut self, bytes: &mut [u8]) -> Option<()> {
        self.left = self.left.checked_sub(bytes.len() as u64)?;
        self.input.read_exact(bytes).ok()
    }
}

/// Adds an entry of the index to those of the top directory.
fn add_to_top(top: &mut Vec<TopEntry>, path: &[u8], (mode, id): (u32, &[u8])) {
    let Some(slash) = memchr::memchr(b'/', path) else {
        let what = Top::File { mode, oid: hex(id) };
        let name = path.to_vec();
        return top.push(TopEntry { name, what });
    };
    let name = &path[..slash];
    if let Some(last) = top.last_mut().filter(|last| last.name == name)
        && let Top::Directory(files) = &mut last.what
    {
        *files += 1;
        return;
    }
    let (name, what) = (name.to_vec(), Top::Directory(1));
    top.push(TopEntry { name, what });
}

/// A directory in the cache of trees of an index.
pub(in crate::git) struct CachedTree<'a> {
    pub(in crate::git) name: &'a [u8],
    /// The number of its files, or -1 if its tree is not known.
    pub(in crate::git) files: i64,
    /// The number of directories in it, which follow.
    pub(in crate::git) directories: u64,
    /// The binary id of its tree, empty if it is not known.
    pub(in crate::git) id: &'a [u8],
}

impl<'a> CachedTree<'a> {
    /// Takes the next directory from the content: its name, NUL, its two numbers, and its tree.
    pub(in crate::git) fn next(content: &mut &'a [u8], id_bytes: usize) -> Option<Self> {
        let end = memchr::memchr(0, content)?;
        let (name, rest) = (&content[..end], &content[end + 1..]);
        let end = memchr::memchr(b'\n', rest)?;
        let mut numbers = std::str::from_utf8(&rest[..end]).ok()?.split(' ');
        let files: i64 = numbers.next()?.parse().ok()?;
        let directories: u64 = numbers.next()?.parse().ok()?;
        let id_bytes = if files < 0 { 0 } else { id_bytes };
        let (id, rest) = rest[end + 1..].split_at_checked(id_bytes)?;
        *content = rest;
        Some(Self {
            name,
            files,
            directories,
            id,
        })
    }
}

/// The directories in the top directory, from the cache of trees, as far as their trees are known.
fn trees_at_top(mut content: &[u8], id_bytes: usize) -> Option<HashMap<Vec<u8>, KnownTree>> {
    let mut trees = HashMap::new();
    // The number of directories that are still to come in each directory above the next one.
    let mut open: Vec<u64> = Vec::new();
    loop {
        let tree = CachedTree::next(&mut content, id_bytes)?;
        if let (Ok(files), 1) = (usize::try_from(tree.files), open.len()) {
            let oid = hex(tree.id);
            trees.insert(tree.name.to_vec(), KnownTree { files, oid });
        }
        open.push(tree.directories);
        while open.last() == Some(&0) {
            open.pop();
        }
        match open.last_mut() {
            Some(directories) => *directories -= 1,
            None => return content.is_empty().then_some(trees),
        }
    }
}
