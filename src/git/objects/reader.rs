//! Reads objects in this process, which saves the start of git for a few small ones.
//!
//! Everything that is read matches its id, and is what git reads too. Whatever is not where git usually has it, is
//! large, or has a form that git does not write is left to git ([`LeftToGit`]), as is an object whose content does not
//! match its id.

use crate::git::bytes::{as_path, hex};
use crate::git::entries::Digest;
use crate::git::objects::allowance::{Allowance, LIMIT};
use crate::git::objects::loose::{Piece, loose_path, read_loose_size, read_loose_up_to};
use crate::git::objects::name::ObjectName;
use crate::git::objects::packs::{Packed, Packs};
use crate::git::private::head::plain_oid;
use crate::git::snapshot::listing::{GITLINK, RawDiff, Recorded, SYMLINK, TREE};
use crate::plain_file;
use git2::ObjectType;
use std::cell::OnceCell;
use std::cmp::Ordering;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The longest path in bytes of a directory whose entries are compared or written.
pub(super) const PATH_LIMIT: usize = 1024;

/// What cannot be answered without git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) struct LeftToGit;

/// Reads from Sprag's own store and from those that it refers to. It is made for one purpose and dropped, since
/// it does not see packs that are added later.
pub(in crate::git) struct ObjectReader {
    stores: Vec<PathBuf>,
    packs: OnceCell<Option<Packs>>,
    allowance: Allowance,
}

struct Object {
    kind: ObjectType,
    content: Vec<u8>,
}

pub(in crate::git) struct TreeEntry {
    pub(in crate::git) recorded: Recorded,
    pub(in crate::git) name: Vec<u8>,
}

/// What takes the entries at the same place in two trees.
type EachPair<'a> =
    &'a mut dyn FnMut(Option<&TreeEntry>, Option<&TreeEntry>) -> Result<(), LeftToGit>;

impl TreeEntry {
    /// The name by which entries are ordered: that of a subtree ends with a slash.
    fn ordered_name(&self) -> impl Iterator<Item = &u8> {
        let slash = (self.recorded.mode == TREE).then_some(&b'/');
        self.name.iter().chain(slash)
    }
}

impl ObjectReader {
    /// A reader of `own`, Sprag's own store.
    pub(in crate::git) fn new(own: &Path) -> Self {
        let listed = fs::read(own.join("info/alternates")).unwrap_or_default();
        let others = listed.split(|byte| *byte == b'\n');
        // A quoted path does not begin with a slash: what is stored there is not found and left to git.
        let others = others
            .filter(|line| line.starts_with(b"/"))
            .map(|line| as_path(line).to_path_buf());
        Self {
            stores: std::iter::once(own.to_path_buf()).chain(others).collect(),
            packs: OnceCell::new(),
            allowance: Allowance::new(),
        }
    }

    /// The same reader with a larger allowance, for what git must not be asked.
    pub(in crate::git) fn with_allowance(mut self, allowance: Allowance) -> Self {
        self.allowance = allowance;
        self
    }

    /// Whether a store other than Sprag's own has anything under this id, or a pack has.
    pub(in crate::git) fn is_elsewhere(&self, id: &str) -> Result<bool, LeftToGit> {
        let is_in = |store: &PathBuf| loose_path(store, id).symlink_metadata().is_ok();
        Ok(self.stores.iter().skip(1).any(is_in) || self.packed(id)?.is_some())
    }

    /// Size of an object in bytes.
    pub(in crate::git) fn size(&self, id: &str) -> Result<u64, LeftToGit> {
        if !self.allowance.spend(0) {
            return Err(LeftToGit);
        }
        if let Some(packed) = self.packed(id)? {
            return packed.size().map_err(|_| LeftToGit);
        }
        let loose = self.stores.iter().find_map(|store| {
            let file = plain_file::open(&loose_path(store, id)).ok()?;
            read_loose_size(file, id)
        });
        loose.ok_or(LeftToGit)
    }

    /// Digest of an object's content.
    pub(in crate::git) fn digest(&self, id: &str) -> Result<Digest, LeftToGit> {
        match self.packed_object(id)? {
            Some(object) => Ok(*blake3::hash(&object.content).as_bytes()),
            None => self.loose(id, u64::MAX, &mut |_| {}),
        }
    }

    /// The tree of a commit.
    pub(in crate::git) fn tree_of(&self, commit: &str) -> Result<String, LeftToGit> {
        tree_in(&self.commit(commit)?, commit.len()).ok_or(LeftToGit)
    }

    /// The content of a commit.
    pub(in crate::git) fn commit(&self, id: &str) -> Result<Vec<u8>, LeftToGit> {
        match self.object(id)? {
            Object {
                kind: ObjectType::Commit,
                content,
            } => Ok(content),
            _ => Err(LeftToGit),
        }
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
        self.blob(&id).map(Some)
    }

    /// The content of a blob.
    pub(in crate::git) fn blob(&self, id: &str) -> Result<Vec<u8>, LeftToGit> {
        let Object { kind, content } = self.object(id)?;
        match kind {
            ObjectType::Blob => Ok(content),
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
        if below.len() > PATH_LIMIT {
            return Err(LeftToGit);
        }
        self.compare((from, to), &mut |old, new| {
            let Some(diff) = difference(below, old, new) else {
                return Ok(());
            };
            let is_tree = (diff.before.mode | diff.after.mode) == TREE;
            let path = [&diff.path, b"/".as_slice()].concat();
            if with_trees || !is_tree {
                diffs.push(diff);
            }
            if !is_tree {
                return Ok(());
            }
            let id = |entry: Option<&TreeEntry>| entry.map(|entry| entry.recorded.oid.clone());
            let (old, new) = (id(old), id(new));
            self.add_diffs(&path, (old.as_deref(), new.as_deref()), with_trees, diffs)
        })
    }

    /// Passes on the entries of two trees in git's order, those of the same place together. They may be equal.
    pub(super) fn compare(
        &self,
        (from, to): (Option<&str>, Option<&str>),
        each: EachPair<'_>,
    ) -> Result<(), LeftToGit> {
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
            each(old, new)?;
        }
    }

    /// The id of the tree with this id, or of the tree of the commit with this id.
    pub(super) fn root_of(&self, id: &str) -> Result<String, LeftToGit> {
        let length = id.len();
        if ![40, 64].contains(&length) || plain_oid(id.as_bytes(), length).is_none() {
            return Err(LeftToGit);
        }
        let Object { kind, content } = self.object(id)?;
        match kind {
            ObjectType::Tree => Ok(id.to_owned()),
            ObjectType::Commit => tree_in(&content, id.len()).ok_or(LeftToGit),
            _ => Err(LeftToGit),
        }
    }

    /// The entries of a tree.
    pub(in crate::git) fn tree(&self, id: &str) -> Result<Vec<TreeEntry>, LeftToGit> {
        let Object { kind, content } = self.object(id)?;
        if kind != ObjectType::Tree {
            return Err(LeftToGit);
        }
        entries_of(&content, id.len()).ok_or(LeftToGit)
    }

    fn object(&self, id: &str) -> Result<Object, LeftToGit> {
        if let Some(object) = self.packed_object(id)? {
            return Ok(object);
        }
        let (mut kind, mut content) = (None, Vec::new());
        self.loose(id, LIMIT, &mut |piece| match piece {
            Piece::Header(header) => {
                content.clear();
                kind = kind_of(header);
            }
            Piece::Content(bytes) => content.extend_from_slice(bytes),
        })?;
        kind.map(|kind| Object { kind, content }).ok_or(LeftToGit)
    }

    /// Reads a loose object of at most `limit` bytes.
    fn loose(
        &self,
        id: &str,
        limit: u64,
        sink: &mut dyn FnMut(Piece<'_>),
    ) -> Result<Digest, LeftToGit> {
        for store in &self.stores {
            let Ok(file) = plain_file::open(&loose_path(store, id)) else {
                continue;
            };
            let mut size = 0;
            let limit = limit.min(self.allowance.left());
            let read = read_loose_up_to(limit, BufReader::new(file), id, &mut |piece| {
                size += piece.bytes().len() as u64;
                sink(piece);
            });
            match (self.allowance.spend(size), read) {
                (true, Ok(Some(digest))) => return Ok(digest),
                (true, _) => {}
                (false, _) => return Err(LeftToGit),
            }
        }
        Err(LeftToGit)
    }

    /// The packed object with this id, or `None` if no pack has it. git prefers it to a loose one.
    fn packed_object(&self, id: &str) -> Result<Option<Object>, LeftToGit> {
        let Some(packed) = self.packed(id)? else {
            return Ok(None);
        };
        let read = packed.read(&self.allowance);
        let (kind, content) = read.map_err(|_| LeftToGit)?;
        let mut name = ObjectName::of(kind.str(), id.len(), content.len() as u64);
        name.update(&content);
        if name.hex() == id {
            Ok(Some(Object { kind, content }))
        } else {
            Err(LeftToGit)
        }
    }

    fn packed(&self, id: &str) -> Result<Option<Packed<'_>>, LeftToGit> {
        let packs = self.packs.get_or_init(|| Packs::open(&self.stores).ok());
        let id = binary(id).ok_or(LeftToGit)?;
        let found = packs.as_ref().ok_or(LeftToGit)?.find(&id);
        found.map_err(|_| LeftToGit)
    }
}

/// The bytes whose digits these are.
pub(in crate::git) fn binary(hex: &str) -> Option<Vec<u8>> {
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(high)? << 4 | digit(low)?).ok(),
        _ => None,
    };
    hex.as_bytes().chunks(2).map(byte).collect()
}

fn kind_of(header: &[u8]) -> Option<ObjectType> {
    let kind = header.split(|byte| *byte == b' ').next()?;
    ObjectType::from_str(std::str::from_utf8(kind).ok()?)
}

/// The tree that a commit names, if git accepts its first lines: that of the tree, and those of the parents.
pub(in crate::git) fn tree_in(commit: &[u8], id_length: usize) -> Option<String> {
    let mut lines = commit.split(|byte| *byte == b'\n');
    let tree = plain_oid(lines.next()?.strip_prefix(b"tree ")?, id_length);
    while let Some(parent) = lines.next()?.strip_prefix(b"parent ") {
        plain_oid(parent, id_length)?;
    }
    tree
}

/// Parses entries of the form `mode SP name NUL id`, with the id in binary form. `None` unless they are written and
/// ordered as git does: it reads other modes as if they were one of these.
pub(in crate::git) fn entries_of(mut content: &[u8], id_length: usize) -> Option<Vec<TreeEntry>> {
    let mut entries: Vec<TreeEntry> = Vec::new();
    while !content.is_empty() {
        let space = memchr::memchr(b' ', content)?;
        let mode = mode_of(content.get(..space)?)?;
        let end = memchr::memchr(0, content)?;
        let name = content.get(space + 1..end)?.to_vec();
        let (id, rest) = content.get(end + 1..)?.split_at_checked(id_length / 2)?;
        let oid = hex(id);
        let recorded = Recorded { mode, oid };
        let entry = TreeEntry { recorded, name };
        let is_in_order = |last: &TreeEntry| in_tree_order(last, &entry) == Ordering::Less;
        let is_name = !entry.name.is_empty() && !entry.name.contains(&b'/');
        if !is_name || !entries.last().is_none_or(is_in_order) {
            return None;
        }
        entries.push(entry);
        content = rest;
    }
    Some(entries)
}

fn mode_of(digits: &[u8]) -> Option<u32> {
    match digits {
        b"100644" => Some(0o100_644),
        b"100755" => Some(0o100_755),
        b"120000" => Some(SYMLINK),
        b"160000" => Some(GITLINK),
        b"40000" => Some(TREE),
        _ => None,
    }
}

pub(super) fn in_tree_order(one: &TreeEntry, other: &TreeEntry) -> Ordering {
    one.ordered_name().cmp(other.ordered_name())
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
