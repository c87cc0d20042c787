//! Reads objects, whose content always matches their ids.
//!
//! An agent can write to the repository's object store, and git gives whatever is stored under an id. So trees and
//! commits that decide anything are read here, where the content of each is hashed, and not by the commands of git
//! that compare them.

use crate::git::bytes::hex;
use crate::git::command::Call;
use crate::git::command::batch::Batch;
use crate::git::entries::Digest;
use crate::git::error::{GitError, Result};
use crate::git::objects::loose::{Incoming, Piece, loose_path, read_loose};
use crate::git::snapshot::listing::{GITLINK, RawDiff, Recorded, SYMLINK, TREE};
use crate::plain_file;
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The largest object in bytes that is held in memory.
const HELD: u64 = 256 << 20;

/// The deepest directory whose entries are compared.
const DEPTH_LIMIT: usize = 512;

/// How much differs between two trees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// How many files, links and directories.
    pub(crate) files: u64,
    /// The length of the longest path in bytes.
    pub(crate) path: usize,
}

/// Two trees at the same place, each if it exists.
type Pair = [Option<String>; 2];

/// How much differs between pairs of trees that were counted: a few small ones can stand for very many files.
pub(crate) type Counted = HashMap<Pair, Extent>;

/// An object in memory.
#[derive(Debug, Default)]
struct Object {
    kind: String,
    content: Vec<u8>,
}

impl Object {
    /// Adds a part. A header begins the object anew.
    fn add(&mut self, piece: &Piece<'_>) {
        match piece {
            Piece::Header(header) => {
                let kind = header.split(|byte| *byte == b' ').next();
                self.kind = String::from_utf8_lossy(kind.unwrap_or_default()).into_owned();
                self.content.clear();
            }
            Piece::Content(bytes) => self.content.extend_from_slice(bytes),
        }
    }
}

/// The answer to a question for an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The digest of the object's content.
    Whole(Digest),
    Missing,
    /// Something else is stored under this id, or it is larger than the reader takes.
    Other,
}

/// Small objects that were read. The content of an id never changes.
#[derive(Debug, Default)]
pub(crate) struct KeptObjects(Mutex<HashMap<String, Arc<Object>>>);

impl KeptObjects {
    /// The largest object in bytes that is kept.
    const SIZE: usize = 32 << 10;
    const COUNT: usize = 1024;

    fn get(&self, id: &str) -> Option<Arc<Object>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(id).cloned()
    }

    fn keep(&self, id: &str, object: Object) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= Self::COUNT {
            kept.clear();
        }
        kept.insert(id.to_owned(), Arc::new(object));
    }
}

/// Reads objects for one purpose: one git process answers all questions, and ends with the reader.
pub(crate) struct ObjectReader<'r> {
    /// Sprag's own store, which is read without git.
    own: Option<PathBuf>,
    kept: Option<&'r KeptObjects>,
    call: Box<dyn Fn() -> Call<'r> + 'r>,
    batch: RefCell<Option<Batch>>,
    /// How many bytes of others' objects may still be read.
    left: Cell<u64>,
}

impl<'r> ObjectReader<'r> {
    /// A reader of what a command sees, which is a command without arguments.
    pub(crate) fn by(call: impl Fn() -> Call<'r> + 'r) -> Self {
        Self {
            own: None,
            kept: None,
            call: Box::new(call),
            batch: RefCell::new(None),
            left: Cell::new(u64::MAX),
        }
    }

    /// Looks for an object first among those that were kept, and then in Sprag's own store.
    pub(crate) fn after(mut self, kept: &'r KeptObjects, own: PathBuf) -> Self {
        self.kept = Some(kept);
        self.own = Some(own);
        self
    }

    /// Reads no more than so many bytes of what Sprag has not made itself.
    pub(crate) fn within(self, bytes: u64) -> Self {
        self.left.set(bytes);
        self
    }

    /// Passes on the parts of an object of at most `limit` bytes. Whatever is passed on before another answer than
    /// [`Found::Whole`] is not the object.
    pub(crate) fn read(
        &self,
        id: &str,
        limit: u64,
        sink: &mut dyn FnMut(Piece<'_>),
    ) -> Result<Found> {
        if let Some(object) = self.kept.and_then(|kept| kept.get(id)) {
            sink(Piece::Header(object.kind.as_bytes()));
            sink(Piece::Content(&object.content));
            return Ok(Found::Whole(*blake3::hash(&object.content).as_bytes()));
        }
        match self.read_own(id, limit, sink) {
            Some(digest) => Ok(Found::Whole(digest)),
            None => self.ask(id, limit, sink),
        }
    }

    /// Like [`Self::read`], for an object in Sprag's own store.
    pub(crate) fn read_own(
        &self,
        id: &str,
        limit: u64,
        sink: &mut dyn FnMut(Piece<'_>),
    ) -> Option<Digest> {
        let file = plain_file::open(&loose_path(self.own.as_ref()?, id)).ok()?;
        read_loose(BufReader::new(file), id, limit, sink).ok()?
    }

    fn ask(&self, id: &str, limit: u64, sink: &mut dyn FnMut(Piece<'_>)) -> Result<Found> {
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Found::Missing);
        }
        let limit = limit.min(self.left.get());
        let mut batch = match self.batch.take() {
            Some(batch) => batch,
            None => (self.call)().batch()?,
        };
        let mut answer = Incoming::new(id, limit, b'\n');
        let mut object = Object::default();
        let (mut is_small, mut is_whole) = (true, false);
        batch.ask(id, &mut |chunk| {
            let rest = answer.take(chunk, &mut |piece| {
                is_small &= object.content.len() + piece.bytes().len() <= KeptObjects::SIZE;
                if is_small {
                    object.add(&piece);
                }
                sink(piece);
            });
            // A line break ends an answer.
            is_whole = rest.map_or_else(|| answer.is_missing(), |rest| !rest.is_empty());
            rest.is_some() && !is_whole
        })?;
        if is_whole {
            self.batch.replace(Some(batch));
        }
        if answer.is_missing() {
            return Ok(Found::Missing);
        }
        let size = answer.size();
        let Some(digest) = answer.digest() else {
            return Ok(Found::Other);
        };
        self.left.set(self.left.get().saturating_sub(size));
        if let Some(kept) = self.kept.filter(|_| is_small) {
            kept.keep(id, object);
        }
        Ok(Found::Whole(digest))
    }

    /// The digest of an object of at most `limit` bytes. `None` if there is none, or something else is stored under its
    /// id.
    pub(crate) fn digest(&self, id: &str, limit: u64) -> Result<Option<Digest>> {
        match self.read(id, limit, &mut |_| {})? {
            Found::Whole(digest) => Ok(Some(digest)),
            Found::Missing | Found::Other => Ok(None),
        }
    }

    /// An object, or `None` if there is nothing under its id.
    fn object(&self, id: &str) -> Result<Option<Arc<Object>>> {
        if let Some(object) = self.kept.and_then(|kept| kept.get(id)) {
            return Ok(Some(object));
        }
        let mut object = Object::default();
        match self.read(id, HELD, &mut |piece| object.add(&piece))? {
            Found::Missing => Ok(None),
            Found::Other => {
                let what = "is too large, or something else is stored under its id";
                Err(bad(id, what))
            }
            Found::Whole(_) => Ok(Some(Arc::new(object))),
        }
    }

    fn of_kind(&self, id: &str, kind: &str) -> Result<Arc<Object>> {
        match self.object(id)? {
            Some(object) if object.kind == kind => Ok(object),
            Some(_) => Err(bad(id, &format!("is not a {kind}"))),
            None => Err(missing(id)),
        }
    }

    /// The content of a commit.
    pub(crate) fn commit(&self, id: &str) -> Result<Vec<u8>> {
        Ok(self.of_kind(id, "commit")?.content.clone())
    }

    /// The content of a blob, or `None` if it is missing, as in a partial clone.
    pub(crate) fn blob(&self, id: &str) -> Result<Option<Vec<u8>>> {
        match self.object(id)? {
            Some(object) if object.kind != "blob" => Err(bad(id, "is not a blob")),
            object => Ok(object.map(|object| object.content.clone())),
        }
    }

    /// The content of the file or link at `path` in a tree or commit, or `None` if there is neither.
    pub(crate) fn blob_at(&self, root: &str, path: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut id = self.root_of(root)?;
        let mut parts = path.split(|byte| *byte == b'/').peekable();
        while let Some(part) = parts.next() {
            let tree = self.tree(Some(&id))?;
            let mut entries = tree.entries();
            let Some(entry) = entries.find(|entry| entry.name == part) else {
                return Ok(None);
            };
            if (entry.mode == TREE) != parts.peek().is_some() || entry.mode == GITLINK {
                return Ok(None);
            }
            id = hex(entry.id);
        }
        self.blob(&id)
    }

    /// The differences between two trees or commits, in git's order; with the subtrees that differ if `with_trees`.
    /// Without `from`, all of `to` differs.
    pub(crate) fn diff(
        &self,
        from: Option<&str>,
        to: &str,
        with_trees: bool,
    ) -> Result<Vec<RawDiff>> {
        let from = from.map(|from| self.root_of(from)).transpose()?;
        let to = self.root_of(to)?;
        let mut diffs = Vec::new();
        self.add_diffs(b"", from.as_deref(), Some(&to), with_trees, &mut diffs)?;
        Ok(diffs)
    }

    fn add_diffs(
        &self,
        below: &[u8],
        from: Option<&str>,
        to: Option<&str>,
        with_trees: bool,
        diffs: &mut Vec<RawDiff>,
    ) -> Result<()> {
        if from == to {
            return Ok(());
        }
        let depth = below.iter().filter(|byte| **byte == b'/').count();
        if let Some(id) = to.or(from).filter(|_| depth > DEPTH_LIMIT) {
            return Err(bad(id, "is too deep in other trees"));
        }
        self.compare(from, to, &mut |old, new| {
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
            let old = old.map(|entry| hex(entry.id));
            let new = new.map(|entry| hex(entry.id));
            self.add_diffs(&path, old.as_deref(), new.as_deref(), with_trees, diffs)
        })
    }

    /// Passes on the entries of two trees in git's order, those of the same place together. They may be equal.
    fn compare(&self, from: Option<&str>, to: Option<&str>, each: EachPair<'_>) -> Result<()> {
        let before = self.tree(from)?;
        let after = self.tree(to)?;
        let mut before = before.entries().peekable();
        let mut after = after.entries().peekable();
        loop {
            let order = match (before.peek(), after.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => old.ordered_name().cmp(new.ordered_name()),
            };
            let old = before.next_if(|_| order != Ordering::Greater);
            let new = after.next_if(|_| order != Ordering::Less);
            each(old.as_ref(), new.as_ref())?;
        }
    }

    /// How much differs between two trees or commits. Without `from`, all of `to` differs.
    pub(crate) fn extent(
        &self,
        from: Option<&str>,
        to: &str,
        counted: &mut Counted,
    ) -> Result<Extent> {
        let from = from.map(|from| self.root_of(from)).transpose()?;
        self.count([from, Some(self.root_of(to)?)], 0, counted)
    }

    fn count(&self, pair: Pair, depth: usize, counted: &mut Counted) -> Result<Extent> {
        if pair[0] == pair[1] {
            return Ok(Extent::default());
        }
        if let Some(extent) = counted.get(&pair) {
            return Ok(*extent);
        }
        let [from, to] = pair.each_ref().map(Option::as_deref);
        if let Some(id) = to.or(from).filter(|_| depth > DEPTH_LIMIT) {
            return Err(bad(id, "is too deep in other trees"));
        }
        let mut extent = Extent::default();
        self.compare(from, to, &mut |old, new| {
            let Some(name) = old.or(new).map(|entry| entry.name.len()) else {
                return Ok(());
            };
            let entries = [old, new];
            let (files, path) = if entries.iter().flatten().any(|entry| entry.mode == TREE) {
                let pair = entries.map(|entry| entry.map(|entry| hex(entry.id)));
                let differs = u64::from(pair[0] != pair[1]);
                let inner = self.count(pair, depth + 1, counted)?;
                let path = name.saturating_add(1).saturating_add(inner.path);
                (inner.files.saturating_add(differs), path)
            } else {
                let is_same = old.map(TreeEntry::recorded) == new.map(TreeEntry::recorded);
                (u64::from(!is_same), name)
            };
            if files > 0 {
                extent.files = extent.files.saturating_add(files);
                extent.path = extent.path.max(path);
            }
            Ok(())
        })?;
        counted.insert(pair, extent);
        Ok(extent)
    }

    /// The id of the tree with this id, or of the tree of the commit with this id.
    pub(crate) fn root_of(&self, id: &str) -> Result<String> {
        let object = self.object(id)?.ok_or_else(|| missing(id))?;
        match object.kind.as_str() {
            "tree" => Ok(id.to_owned()),
            "commit" => tree_in(&object.content).ok_or_else(|| bad(id, "names no tree")),
            _ => Err(bad(id, "is neither a tree nor a commit")),
        }
    }

    /// The tree with this id, or an empty one.
    fn tree(&self, id: Option<&str>) -> Result<Tree> {
        let Some(id) = id else {
            return Ok(Tree::default());
        };
        let tree = Tree {
            object: self.of_kind(id, "tree")?,
            id_bytes: id.len() / 2,
        };
        let mut entries = tree.entries();
        while entries.next().is_some() {}
        match entries.rest {
            b"" => Ok(tree),
            _ => Err(bad(id, "is not a tree that git accepts")),
        }
    }
}

pub(crate) fn missing(id: &str) -> GitError {
    bad(id, "is missing")
}

fn bad(id: &str, what: &str) -> GitError {
    GitError::malformed("cat-file", format!("the object {id} {what}"))
}

/// What takes the entries at the same place in two trees.
type EachPair<'a> = &'a mut dyn FnMut(Option<&TreeEntry<'_>>, Option<&TreeEntry<'_>>) -> Result<()>;

/// A tree, and the length of an id in binary form.
#[derive(Default)]
struct Tree {
    object: Arc<Object>,
    id_bytes: usize,
}

impl Tree {
    fn entries(&self) -> Entries<'_> {
        Entries {
            rest: &self.object.content,
            id_bytes: self.id_bytes,
        }
    }
}

/// An entry of a tree.
pub(crate) struct TreeEntry<'t> {
    pub(crate) mode: u32,
    pub(crate) name: &'t [u8],
    /// In binary form.
    pub(crate) id: &'t [u8],
}

impl TreeEntry<'_> {
    /// The name by which entries are ordered: that of a subtree ends with a slash.
    fn ordered_name(&self) -> impl Iterator<Item = &u8> {
        let slash = (self.mode == TREE).then_some(&b'/');
        self.name.iter().chain(slash)
    }

    fn recorded(&self) -> Recorded {
        Recorded {
            mode: self.mode,
            oid: hex(self.id),
        }
    }
}

/// The entries of a tree: `mode SP name NUL id`, with the id in binary form. They end before the first that git does
/// not accept.
pub(crate) struct Entries<'t> {
    pub(crate) rest: &'t [u8],
    pub(crate) id_bytes: usize,
}

impl<'t> Iterator for Entries<'t> {
    type Item = TreeEntry<'t>;

    fn next(&mut self) -> Option<TreeEntry<'t>> {
        let space = memchr::memchr(b' ', self.rest)?;
        let mode = mode_of(self.rest.get(..space)?)?;
        let end = memchr::memchr(0, self.rest)?;
        let name = self.rest.get(space + 1..end)?;
        let (id, rest) = self.rest.get(end + 1..)?.split_at_checked(self.id_bytes)?;
        if name.is_empty() || name.contains(&b'/') {
            return None;
        }
        self.rest = rest;
        Some(TreeEntry { mode, name, id })
    }
}

/// The mode as which git reads these digits: old trees have others than git writes.
fn mode_of(digits: &[u8]) -> Option<u32> {
    let is_octal = digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_octal)?;
    let mode = u32::from_str_radix(digits, 8).ok()?;
    Some(match mode & 0o170_000 {
        0o100_000 if mode & 0o100 != 0 => 0o100_755,
        0o100_000 => 0o100_644,
        SYMLINK => SYMLINK,
        TREE => TREE,
        _ => GITLINK,
    })
}

/// The tree that a commit names.
pub(crate) fn tree_in(commit: &[u8]) -> Option<String> {
    let line = commit.split(|byte| *byte == b'\n').next()?;
    let tree = std::str::from_utf8(line.strip_prefix(b"tree ")?).ok()?;
    Some(tree.to_owned())
}

/// The parents that a commit names.
pub(crate) fn parents_in(commit: &[u8]) -> Vec<String> {
    let lines = commit.split(|byte| *byte == b'\n').skip(1);
    lines
        .map_while(|line| line.strip_prefix(b"parent "))
        .map(|parent| String::from_utf8_lossy(parent).into_owned())
        .collect()
}

/// The difference between the entries before and after at one place, if there is any.
fn difference(
    below: &[u8],
    before: Option<&TreeEntry<'_>>,
    after: Option<&TreeEntry<'_>>,
) -> Option<RawDiff> {
    let there = before.or(after)?;
    let none = || Recorded {
        mode: 0,
        oid: "0".repeat(2 * there.id.len()),
    };
    let recorded = |entry: Option<&TreeEntry<'_>>| entry.map_or_else(none, TreeEntry::recorded);
    let old = recorded(before);
    let new = recorded(after);
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
        path: [below, there.name].concat(),
    })
}
