//! Changes entries of an index file in this process.
//!
//! Rare forms of the file are left to git, as in [`crate::git::snapshot::index_file`].

use crate::git::entries::{directories_of, inside};
use crate::git::objects::name::checksum;
use crate::git::objects::reader::binary;
use crate::git::objects::tree_writer::NewTrees;
use crate::git::snapshot::index_file::CachedTree;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;

const HEADER: usize = 12;
/// Times, device, inode, mode, owner, group and size, with four bytes for each number.
const STAT: usize = 40;
const MODIFIED: usize = 8;
const MODE: usize = 24;
/// The length of a name, or this number for every longer name.
const NAME_LENGTH: u16 = 0x0fff;
/// The most directories inside of each other.
const DEPTH_LIMIT: usize = 512;

/// What the index is to record of a file.
#[derive(Debug, Clone)]
pub(in crate::git) struct NewEntry {
    stat: [u8; STAT],
    /// The mode and the id in binary form, or `None` to keep those that are there.
    content: Option<(u32, Vec<u8>)>,
}

impl NewEntry {
    /// An entry with the stat data of a file. Without a file git compares the content.
    pub(in crate::git) fn new(
        content: Option<(u32, Vec<u8>)>,
        meta: Option<&std::fs::Metadata>,
    ) -> Self {
        // git compares the lower four bytes.
        let low = |number: u64| u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default();
        let signed = |number: i64| low(number.cast_unsigned());
        let numbers = meta.map_or([0; 10], |meta| {
            [
                signed(meta.ctime()),
                signed(meta.ctime_nsec()),
                signed(meta.mtime()),
                signed(meta.mtime_nsec()),
                low(meta.dev()),
                low(meta.ino()),
                0,
                meta.uid(),
                meta.gid(),
                low(meta.size()),
            ]
        });
        let mut stat = [0; STAT];
        for (place, number) in stat.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        Self { stat, content }
    }

    /// The entry of a path, whose entry is `old` until now.
    fn written(&self, path: &[u8], old: Option<&[u8]>, id_bytes: usize) -> Option<Vec<u8>> {
        let length = u16::try_from(path.len()).ok();
        let length = length.filter(|length| (1..NAME_LENGTH).contains(length))?;
        let (mode, id) = match &self.content {
            Some((mode, id)) => (mode.to_be_bytes(), id.as_slice()),
            None => {
                let old = old?;
                (
                    *old.get(MODE..)?.first_chunk()?,
                    old.get(STAT..STAT + id_bytes)?,
                )
            }
        };
        let mut entry = [&self.stat, id, &length.to_be_bytes(), path].concat();
        entry.get_mut(MODE..MODE + 4)?.copy_from_slice(&mode);
        entry.resize(padded(entry.len()), 0);
        Some(entry)
    }
}

/// Entries end with one to eight NUL bytes.
fn padded(length: usize) -> usize {
    length + 8 - length % 8
}

/// The changes to an index.
pub(in crate::git) struct IndexEdit<'a> {
    /// The new entry of each path, or `None` to remove it.
    pub(in crate::git) entries: &'a BTreeMap<Vec<u8>, Option<NewEntry>>,
    /// The trees that these changes make, or `None` if they keep all contents.
    pub(in crate::git) trees: Option<&'a NewTrees>,
    /// When the index was last modified, in seconds.
    pub(in crate::git) modified: i64,
    pub(in crate::git) id_length: usize,
}

/// A changed index.
pub(in crate::git) struct EditedIndex {
    pub(in crate::git) content: Vec<u8>,
    /// Whether an entry is kept whose file may have changed without other stat data, which git knows from the time
    /// of the index: the file was modified in the second in which the index was written, or later.
    pub(in crate::git) needs_time: bool,
}

impl IndexEdit<'_> {
    /// The index with the changes. `None` if it is left to git.
    pub(in crate::git) fn apply(&self, index: &[u8]) -> Option<EditedIndex> {
        let end = index.len().checked_sub(self.id_length / 2)?;
        let (content, _checksum) = index.split_at_checked(end)?;
        let (header, mut rest) = content.split_at_checked(HEADER)?;
        let version = header.strip_prefix(b"DIRC")?.first_chunk()?;
        if ![2, 3].contains(&u32::from_be_bytes(*version)) {
            return None;
        }
        let count = u32::from_be_bytes(*header.last_chunk()?);
        let mut edited = header.to_vec();
        let mut changes = self.entries.iter().peekable();
        let (mut kept, mut added) = (0_u32, BTreeMap::new());
        let (mut last, id_bytes) = (b"".as_slice(), self.id_length / 2);
        let mut needs_time = false;
        for _ in 0..count {
            let (entry, path) = self.next_entry(&mut rest)?;
            while let Some((new, change)) = changes.next_if(|(new, _)| new.as_slice() < path) {
                if let Some(change) = change {
                    edited.extend(change.written(new, None, id_bytes)?);
                    added.insert(new.as_slice(), 1);
                    kept += 1;
                }
            }
            match changes.next_if(|(new, _)| new.as_slice() == path) {
                Some((_, None)) => {
                    added.insert(path, -1);
                    continue;
                }
                Some((_, Some(new))) => edited.extend(new.written(path, Some(entry), id_bytes)?),
                None => {
                    let modified = u32::from_be_bytes(*entry.get(MODIFIED..)?.first_chunk()?);
                    needs_time |= i64::from(modified) >= self.modified;
                    edited.extend_from_slice(entry);
                }
            }
            kept += 1;
            if path <= last {
                return None;
            }
            last = path;
        }
        for (new, change) in changes {
            if let Some(change) = change {
                edited.extend(change.written(new, None, id_bytes)?);
                added.insert(new, 1);
                kept += 1;
            }
        }
        edited
            .get_mut(8..HEADER)?
            .copy_from_slice(&kept.to_be_bytes());
        if let Some(trees) = self.cached_trees(rest, &added)? {
            edited.extend_from_slice(b"TREE");
            edited.extend_from_slice(&u32::try_from(trees.len()).ok()?.to_be_bytes());
            edited.extend_from_slice(&trees);
        }
        let checksum = checksum(&edited, self.id_length);
        edited.extend_from_slice(&checksum);
        let content = edited;
        Some(EditedIndex {
            content,
            needs_time,
        })
    }

    /// The next entry and its path. `None` if it is of an unusual form.
    fn next_entry<'i>(&self, rest: &mut &'i [u8]) -> Option<(&'i [u8], &'i [u8])> {
        let flags_at = STAT + self.id_length / 2;
        let flags = u16::from_be_bytes(*rest.get(flags_at..)?.first_chunk()?);
        // Assumed to be unchanged, skipped or only intended, of a conflict, or with a long name.
        if flags == NAME_LENGTH || flags & !NAME_LENGTH != 0 {
            return None;
        }
        let path_at = flags_at + 2;
        let end = path_at + usize::from(flags);
        let (entry, later) = rest.split_at_checked(padded(end))?;
        let path = entry.get(path_at..end)?;
        *rest = later;
        (!path.is_empty() && !path.contains(&0)).then_some((entry, path))
    }

    /// The cache of trees among these extensions, brought up to date. Other extensions are left out, without which
    /// git understands an index if their names begin with a capital letter.
    fn cached_trees(
        &self,
        mut extensions: &[u8],
        added: &BTreeMap<&[u8], i64>,
    ) -> Option<Option<Vec<u8>>> {
        let mut trees = None;
        while !extensions.is_empty() {
            let (name, rest) = extensions.split_at_checked(4)?;
            let (size, rest) = rest.split_at_checked(4)?;
            let size = usize::try_from(u32::from_be_bytes(*size.first_chunk()?)).ok()?;
            let (mut content, rest) = rest.split_at_checked(size)?;
            if !name[0].is_ascii_uppercase() {
                return None;
            }
            if name == b"TREE" {
                let changed = self.entries.keys().filter(|_| self.trees.is_some());
                let directories = changed.flat_map(|path| directories_of(path));
                let cache = TreeCache {
                    trees: self.trees,
                    added,
                    changed: directories.collect(),
                    id_bytes: self.id_length / 2,
                };
                let mut edited = Vec::with_capacity(content.len());
                cache.node(&mut content, b"", 0, &mut edited)?;
                if !content.is_empty() {
                    return None;
                }
                trees = Some(edited);
            }
            extensions = rest;
        }
        Some(trees)
    }
}

struct TreeCache<'a> {
    trees: Option<&'a NewTrees>,
    /// How many entries there are more at each path.
    added: &'a BTreeMap<&'a [u8], i64>,
    changed: BTreeSet<&'a [u8]>,
    id_bytes: usize,
}

impl TreeCache<'_> {
    /// Copies a directory and those in it.
    fn node(
        &self,
        input: &mut &[u8],
        below: &[u8],
        depth: usize,
        edited: &mut Vec<u8>,
    ) -> Option<()> {
        let CachedTree {
            name,
            files,
            directories,
            id,
        } = CachedTree::next(input, self.id_bytes)?;
        let path = inside(below, name);
        edited.extend_from_slice(name);
        if self.changed.contains(path.as_slice()) {
            self.changed_node(&path, files, directories, edited)?
        } else {
            edited.extend_from_slice(format!("\0{files} {directories}\n").as_bytes());
            edited.extend_from_slice(id);
        }
        if depth > DEPTH_LIMIT {
            return None;
        }
        (0..directories).try_for_each(|_| self.node(input, &path, depth + 1, edited))
    }

    fn changed_node(
        &self,
        path: &[u8],
        files: i64,
        directories: u64,
        edited: &mut Vec<u8>,
    ) -> Option<()> {
        let trees = self.trees?;
        let tree = trees
            .ids
            .get(path)
            .filter(|_| files >= 0 && !trees.directories_differ);
        let Some(tree) = tree else {
            edited.extend_from_slice(format!("\0-1 {directories}\n").as_bytes());
            return Some(());
        };
        let is_below = |at: &[u8]| path.is_empty() || at.get(path.len()) == Some(&b'/');
        let from = self.added.range(path..);
        let beginning = from.take_while(|(at, _)| at.starts_with(path));
        let more: i64 = beginning
            .filter(|(at, _)| is_below(at))
            .map(|(_, more)| more)
            .sum();
        edited.extend_from_slice(format!("\0{} {directories}\n", files + more).as_bytes());
        edited.extend_from_slice(&binary(tree)?);
        Some(())
    }
}
