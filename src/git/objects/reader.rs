//! Reads objects in this process, which saves the start of git.
//!
//! Everything that is read matches its id. Whatever is not where git usually has it, or is large, is left to
//! git ([`LeftToGit`]), as is an object whose content does not match its id.

use crate::git::bytes::as_path;
use crate::git::entries::Digest;
use crate::git::objects::loose::{Piece, loose_path, read_loose, read_loose_size};
use crate::git::objects::name::ObjectName;
use crate::git::snapshot::listing::{GITLINK, RawDiff, Recorded, TREE};
use crate::plain_file;
use git2::{ObjectType, Odb, Oid};
use std::cell::OnceCell;
use std::cmp::Ordering;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The largest object in bytes that is held in memory.
const LIMIT: u64 = 16 << 20;

/// What cannot be answered without git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) struct LeftToGit;

/// Reads from Sprag's own store and from those that it refers to. It is made for one purpose and dropped, since
/// it does not see packs that are added later.
pub(in crate::git) struct ObjectReader {
    stores: Vec<PathBuf>,
    packs: OnceCell<Option<Odb<'static>>>,
}

struct Object {
    kind: ObjectType,
    content: Vec<u8>,
}

struct TreeEntry {
    recorded: Recorded,
    name: Vec<u8>,
}

impl ObjectReader {
    /// A reader of `own`, Sprag's own store.
    pub(in crate::git) fn new(own: &Path) -> Self {
        let listed = fs::read(own.join("info/alternates")).unwrap_or_default();
        let others = listed.split(|byte| *byte == b'\n');
        // A quoted path does not begin with a slash: what is stored there is not found and left to git.
        let others = others.filter(|line| line.starts_with(b"/"));
        let others = others.map(|line| as_path(line).to_path_buf());
        Self {
            stores: std::iter::once(own.to_path_buf()).chain(others).collect(),
            packs: OnceCell::new(),
        }
    }

    /// Size of an object in bytes.
    pub(in crate::git) fn size(&self, id: &str) -> Result<u64, LeftToGit> {
        for store in &self.stores {
            let file = plain_file::open(&loose_path(store, id));
            if let Some(size) = file.ok().and_then(|file| read_loose_size(file, id)) {
                return Ok(size);
            }
        }
        let (packs, oid) = self.find_packed(id)?;
        let (size, _) = packs.read_header(oid).map_err(|_| LeftToGit)?;
        Ok(size as u64)
    }

    /// Digest of an object's content.
    pub(in crate::git) fn digest(&self, id: &str) -> Result<Digest, LeftToGit> {
        match self.loose(id, &mut |_| {}) {
            Some(digest) => Ok(digest),
            None => Ok(*blake3::hash(&self.packed_object(id)?.content).as_bytes()),
        }
    }

    /// The tree of a commit.
    pub(in crate::git) fn tree_of(&self, commit: &str) -> Result<String, LeftToGit> {
        let Object { kind, content } = self.object(commit)?;
        let tree = content.strip_prefix(b"tree ");
        let tree = tree.filter(|_| kind == ObjectType::Commit);
        let tree = tree.and_then(|rest| rest.get(..commit.len()));
        let tree = tree.and_then(|tree| String::from_utf8(tree.to_vec()).ok());
        tree.ok_or(LeftToGit)
    }

    /// The content of the file or link at `path` in a tree or commit, or `None` if there is neither.
    pub(in crate::git) fn blob_at(
        &self,
        root: &str,
        path: &[u8],
    ) -> Result<Option<Vec<u8>>, LeftToGit> {
        let mut id = self.root_of(root)?;
        let mut parts = path.split(|byte| *byte == b'/').peekable();
        while let Some(part) = parts.next() {
            let entries = self.tree(&id)?;
            let Some(entry) = entries.into_iter().find(|entry| entry.name == part) else {
                return Ok(None);
            };
            let is_tree = entry.recorded.mode == TREE;
            if is_tree != parts.peek().is_some() || entry.recorded.mode == GITLINK {
                return Ok(None);
            }
            id = entry.recorded.oid;
        }
        let Object { kind, content } = self.object(&id)?;
        match kind {
            ObjectType::Blob => Ok(Some(content)),
            _ => Err(LeftToGit),
        }
    }

    /// The differences between two trees or commits, in git's order; with the subtrees that differ if `with_trees`.
    pub(in crate::git) fn diff(
        &self,
        from: &str,
        to: &str,
        with_trees: bool,
    ) -> Result<Vec<RawDiff>, LeftToGit> {
        let (from, to) = (self.root_of(from)?, self.root_of(to)?);
        let mut diffs = Vec::new();
        self.add_diffs(b"", (Some(&from), Some(&to)), with_trees, &mut diffs)?;
        Ok(diffs)
    }

    fn add_diffs(
        &self,
        below: &[u8],
        (from, to): (Option<&str>, Option<&str>),
        with_trees: bool,
        diffs: &mut Vec<RawDiff>,
    ) -> Result<(), LeftToGit> {
        if from == to {
            return Ok(());
        }
        let entries = |id: Option<&str>| id.map_or_else(|| Ok(Vec::new()), |id| self.tree(id));
        let (before, after) = (entries(from)?, entries(to)?);
        let (mut before, mut after) = (before.iter().peekable(), after.iter().peekable());
        loop {
            let order = match (before.peek(), after.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => in_tree_order(old, new),
            };
            let old = before.next_if(|_| order != Ordering::Greater);
            let new = after.next_if(|_| order != Ordering::Less);
            let Some(diff) = difference(below, old, new) else {
                continue;
            };
            let is_tree = (diff.before.mode | diff.after.mode) == TREE;
            let path = [&diff.path, b"/".as_slice()].concat();
            if with_trees || !is_tree {
                diffs.push(diff);
            }
            if is_tree {
                let id = |entry: Option<&TreeEntry>| entry.map(|entry| entry.recorded.oid.clone());
                let (old, new) = (id(old), id(new));
                self.add_diffs(&path, (old.as_deref(), new.as_deref()), with_trees, diffs)?;
            }
        }
    }

    /// The id of the tree with this id, or of the tree of the commit with this id.
    fn root_of(&self, id: &str) -> Result<String, LeftToGit> {
        let is_id = [40, 64].contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_id {
            return Err(LeftToGit);
        }
        match self.object(id)?.kind {
            ObjectType::Tree => Ok(id.to_owned()),
            ObjectType::Commit => self.tree_of(id),
            _ => Err(LeftToGit),
        }
    }

    fn tree(&self, id: &str) -> Result<Vec<TreeEntry>, LeftToGit> {
        let Object { kind, content } = self.object(id)?;
        if kind != ObjectType::Tree {
            return Err(LeftToGit);
        }
        entries_of(&content, id.len()).ok_or(LeftToGit)
    }

    fn object(&self, id: &str) -> Result<Object, LeftToGit> {
        if self.size(id)? > LIMIT {
            return Err(LeftToGit);
        }
        let (mut kind, mut content) = (None, Vec::new());
        let found = self.loose(id, &mut |piece| match piece {
            Piece::Header(header) => {
                content.clear();
                kind = kind_of(header);
            }
            Piece::Content(bytes) => content.extend_from_slice(bytes),
        });
        match (found, kind) {
            (Some(_), Some(kind)) => Ok(Object { kind, content }),
            _ => self.packed_object(id),
        }
    }

    /// Reads a loose object. `None` if no store has it.
    fn loose(&self, id: &str, sink: &mut dyn FnMut(Piece<'_>)) -> Option<Digest> {
        self.stores.iter().find_map(|store| {
            let file = plain_file::open(&loose_path(store, id)).ok()?;
            read_loose(BufReader::new(file), id, sink).ok()?
        })
    }

    fn packed_object(&self, id: &str) -> Result<Object, LeftToGit> {
        let (packs, oid) = self.find_packed(id)?;
        let (size, _) = packs.read_header(oid).map_err(|_| LeftToGit)?;
        if size as u64 > LIMIT {
            return Err(LeftToGit);
        }
        let read = packs.read(oid).map_err(|_| LeftToGit)?;
        let (kind, content) = (read.kind(), read.data().to_vec());
        let mut name = ObjectName::of(kind.str(), id.len(), content.len() as u64);
        name.update(&content);
        match name.hex() == id {
            true => Ok(Object { kind, content }),
            false => Err(LeftToGit),
        }
    }

    fn find_packed(&self, id: &str) -> Result<(&Odb<'static>, Oid), LeftToGit> {
        let packs = self.packs.get_or_init(|| open_packs(&self.stores)).as_ref();
        let oid = (id.len() == 40).then(|| Oid::from_str(id).ok()).flatten();
        packs.zip(oid).ok_or(LeftToGit)
    }
}

/// Opens the packs of all stores. `None` if a directory of packs holds anything but files, on which libgit2 could
/// wait for ever.
fn open_packs(stores: &[PathBuf]) -> Option<Odb<'static>> {
    let packs = Odb::new().ok()?;
    for store in stores {
        for entry in fs::read_dir(store.join("pack")).into_iter().flatten() {
            if !entry.ok()?.file_type().ok()?.is_file() {
                return None;
            }
        }
        packs.add_disk_alternate(store.to_str()?).ok()?;
    }
    Some(packs)
}

fn kind_of(header: &[u8]) -> Option<ObjectType> {
    let kind = header.split(|byte| *byte == b' ').next()?;
    ObjectType::from_str(std::str::from_utf8(kind).ok()?)
}

/// Parses entries of the form `mode SP name NUL id`, with the id in binary form.
fn entries_of(mut content: &[u8], id_length: usize) -> Option<Vec<TreeEntry>> {
    let mut entries = Vec::new();
    while !content.is_empty() {
        let space = memchr::memchr(b' ', content)?;
        let mode = u32::from_str_radix(std::str::from_utf8(&content[..space]).ok()?, 8).ok()?;
        let end = memchr::memchr(0, content)?;
        let name = content.get(space + 1..end)?.to_vec();
        let (id, rest) = content.get(end + 1..)?.split_at_checked(id_length / 2)?;
        let oid = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let recorded = Recorded { mode, oid };
        entries.push(TreeEntry { recorded, name });
        content = rest;
    }
    Some(entries)
}

/// The order of entries in a tree, in which the name of a subtree ends with a slash.
fn in_tree_order(one: &TreeEntry, other: &TreeEntry) -> Ordering {
    let key = |entry: &TreeEntry| {
        let slash = (entry.recorded.mode == TREE).then_some(b'/');
        entry.name.iter().copied().chain(slash).collect::<Vec<u8>>()
    };
    key(one).cmp(&key(other))
}

/// The difference between the entries before and after at one place, if there is any.
fn difference(
    below: &[u8],
    before: Option<&TreeEntry>,
    after: Option<&TreeEntry>,
) -> Option<RawDiff> {
    let there = before.or(after)?;
    let none = || Recorded {
        mode: 0,
        oid: "0".repeat(there.recorded.oid.len()),
    };
    let recorded = |entry: Option<&TreeEntry>| entry.map_or_else(none, |it| it.recorded.clone());
    let (old, new) = (recorded(before), recorded(after));
    let status = match (before, after) {
        (None, _) => b'A',
        (_, None) => b'D',
        _ if old == new => return None,
        _ if old.mode >> 12 != new.mode >> 12 => b'T',
        _ => b'M',
    };
    Some(RawDiff {
        status,
        before: old,
        after: new,
        path: [below, &there.name].concat(),
    })
}
