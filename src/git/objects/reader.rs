//! Reads objects, whose content always matches their ids.
//!
//! An agent can write to the repository's object store, and git gives whatever is stored under an id. So trees and
//! commits that decide anything are read here, where the content of each is hashed, and not by the commands of git
//! that compare them.

use crate::git::bytes::hex;
use crate::git::command::Call;
use crate::git::command::batch::Batch;
use crate::git::entries::Digest;
use crate::git::error::GitError;
use crate::git::objects::loose::{Incoming, Piece, loose_path, read_loose_up_to};
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
pub(crate) const DEPTH_LIMIT: usize = 512;

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
    /// How many bytes may still be held, one after the other.
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

    /// Holds no more than so many bytes, one after the other.
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
    ) -> Result<Found, GitError> {
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
        read_loose_up_to(limit, BufReader::new(file), id, sink).ok()?
    }

    fn ask(
        &self,
        id: &str,
        limit: u64,
        sink: &mut dyn FnMut(Piece<'_>),
    ) -> Result<Found, GitError> {
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Found::Missing);
        }
        let mut batch = match self.batch.take() {
            Some(batch) => batch,
            None => (self.call)().batch()?,
        };
        let mut answer = Answer::new(id, limit);
        let mut object = Object::default();
        let mut is_small = true;
        batch.ask(id, &mut |chunk| {
            answer.take(chunk, &mut |piece| {
                is_small &= object.content.len() + piece.bytes().len() <= KeptObjects::SIZE;
                if is_small {
                    object.add(&piece);
                }
                sink(piece);
            })
        })?;
        if answer.is_whole {
            self.batch.replace(Some(batch));
        }
        let found = answer.found();
        if let (Found::Whole(_), Some(kept)) = (&found, self.kept.filter(|_| is_small)) {
            kept.keep(id, object);
        }
        Ok(found)
    }

    /// The digest of an object of at most `limit` bytes. `None` if there is none, or something else is stored under its
    /// id.
    pub(crate) fn digest(&self, id: &str, limit: u64) -> Result<Option<Digest>, GitError> {
        match self.read(id, limit, &mut |_| {})? {
            Found::Whole(digest) => Ok(Some(digest)),
            Found::Missing | Found::Other => Ok(None),
        }
    }

    /// An object, or `None` if there is nothing under its id.
    fn object(&self, id: &str) -> Result<Option<Arc<Object>>, GitError> {
        if let Some(object) = self.kept.and_then(|kept| kept.get(id)) {
            return Ok(Some(object));
        }
        let mut object = Object::default();
        let limit = HELD.min(self.left.get());
        match self.read(id, limit, &mut |piece| object.add(&piece))? {
            Found::Missing => return Ok(None),
            Found::Other => {
                let what = "is too large, or something else is stored under its id";
                return Err(bad(id, what));
            }
            Found::Whole(_) => {}
        }
        let left = self.left.get();
        self.left
            .set(left.saturating_sub(object.content.len() as u64));
        Ok(Some(Arc::new(object)))
    }

    fn of_kind(&self, id: &str, kind: &str) -> Result<Arc<Object>, GitError> {
        match self.object(id)? {
            Some(object) if object.kind == kind => Ok(object),
            Some(_) => Err(bad(id, &format!("is not a {kind}"))),
            None => Err(missing(id)),
        }
    }

    /// The content of a commit.
    pub(crate) fn commit(&self, id: &str) -> Result<Vec<u8>, GitError> {
        Ok(self.of_kind(id, "commit")?.content.clone())
    }

    /// The content of a blob, or `None` if it is missing, as in a partial clone.
    pub(crate) fn blob(&self, id: &str) -> Result<Option<Vec<u8>>, GitError> {
        match self.object(id)? {
            Some(object) if object.kind != "blob" => Err(bad(id, "is not a blob")),
            object => Ok(object.map(|object| object.content.clone())),
        }
    }

    /// The content of the file or link at `path` in a tree or commit, or `None` if there is neither.
    pub(crate) fn blob_at(&self, root: &str, path: &[u8]) -> Result<Option<Vec<u8>>, GitError> {
        let mut id = self.root_of(root)?;
        let mut parts = path.split(|byte| *byte == b'/').peekable();
        while let Some(part) = parts.next() {
            let tree = self.tree(&id)?;
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
    ) -> Result<Vec<RawDiff>, GitError> {
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
    ) -> Result<(), GitError> {
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
    pub(crate) fn compare(
        &self,
        from: Option<&str>,
        to: Option<&str>,
        each: EachPair<'_>,
    ) -> Result<(), GitError> {
        let tree = |id: Option<&str>| id.map_or_else(|| Ok(Tree::default()), |id| self.tree(id));
        let before = tree(from)?;
        let after = tree(to)?;
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

    /// The id of the tree with this id, or of the tree of the commit with this id.
    pub(crate) fn root_of(&self, id: &str) -> Result<String, GitError> {
        let object = self.object(id)?.ok_or_else(|| missing(id))?;
        match object.kind.as_str() {
            "tree" => Ok(id.to_owned()),
            "commit" => tree_in(&object.content).ok_or_else(|| bad(id, "names no tree")),
            _ => Err(bad(id, "is neither a tree nor a commit")),
        }
    }

    fn tree(&self, id: &str) -> Result<Tree, GitError> {
        let object = self.of_kind(id, "tree")?;
        let id_bytes = id.len() / 2;
        let read: usize = Entries::of(&object.content, id_bytes)
            .map(|entry| entry.length)
            .sum();
        if read == object.content.len() {
            Ok(Tree(Some(object), id_bytes))
        } else {
            Err(bad(id, "is not a tree that git accepts"))
        }
    }
}

pub(crate) fn missing(id: &str) -> GitError {
    bad(id, "is missing")
}

pub(crate) fn bad(id: &str, what: &str) -> GitError {
    GitError::Malformed {
        command: "cat-file",
        what: format!("the object {id} {what}"),
    }
}

/// An answer of `cat-file --batch`: `id SP kind SP size LF content LF`, or `id SP missing LF`.
struct Answer<'a> {
    header: Vec<u8>,
    object: Incoming<'a>,
    left: Option<u64>,
    is_missing: bool,
    /// Whether the answer was read to its end.
    is_whole: bool,
}

impl<'a> Answer<'a> {
    fn new(id: &'a str, limit: u64) -> Self {
        Self {
            header: Vec::new(),
            object: Incoming::new(id, limit),
            left: None,
            is_missing: false,
            is_whole: false,
        }
    }

    /// Takes the next bytes. `false` if no more is wanted.
    fn take(&mut self, mut chunk: &[u8], sink: &mut dyn FnMut(Piece<'_>)) -> bool {
        if self.left.is_none() {
            let end = memchr::memchr(b'\n', chunk).map(|end| end + 1);
            let (header, rest) = chunk.split_at(end.unwrap_or(chunk.len()));
            self.header.extend_from_slice(header);
            if end.is_none() {
                return true;
            }
            chunk = rest;
            let mut words = self.header.trim_ascii_end().splitn(2, |byte| *byte == b' ');
            let object = words.nth(1).unwrap_or_default();
            let size = object.rsplit(|byte| *byte == b' ').next();
            let size = size.and_then(|size| std::str::from_utf8(size).ok()?.parse().ok());
            let Some(size) = size else {
                self.is_missing = true;
                self.is_whole = true;
                return false;
            };
            self.left = Some(size);
            if !self.object.take(&[object, b"\0"].concat(), sink) {
                return false;
            }
        }
        let left = self.left.unwrap_or_default();
        let length = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let (content, rest) = chunk.split_at(length);
        self.left = Some(left - content.len() as u64);
        if !content.is_empty() && !self.object.take(content, sink) {
            return false;
        }
        self.is_whole = !rest.is_empty();
        !self.is_whole
    }

    fn found(self) -> Found {
        if self.is_missing {
            return Found::Missing;
        }
        self.object.digest().map_or(Found::Other, Found::Whole)
    }
}

/// What takes the entries at the same place in two trees.
type EachPair<'a> =
    &'a mut dyn FnMut(Option<&TreeEntry<'_>>, Option<&TreeEntry<'_>>) -> Result<(), GitError>;

/// A tree, and the length of an id in binary form. Without an object it is empty.
#[derive(Default)]
struct Tree(Option<Arc<Object>>, usize);

impl Tree {
    fn entries(&self) -> Entries<'_> {
        let content = self.0.as_ref().map(|object| object.content.as_slice());
        Entries::of(content.unwrap_or_default(), self.1)
    }
}

/// An entry of a tree.
pub(crate) struct TreeEntry<'t> {
    pub(crate) mode: u32,
    pub(crate) name: &'t [u8],
    /// In binary form.
    pub(crate) id: &'t [u8],
    /// How many bytes it takes in the tree.
    length: usize,
}

impl TreeEntry<'_> {
    /// The name by which entries are ordered: that of a subtree ends with a slash.
    fn ordered_name(&self) -> impl Iterator<Item = &u8> {
        let slash = (self.mode == TREE).then_some(&b'/');
        self.name.iter().chain(slash)
    }

    pub(crate) fn recorded(&self) -> Recorded {
        Recorded {
            mode: self.mode,
            oid: hex(self.id),
        }
    }
}

/// The entries of a tree: `mode SP name NUL id`, with the id in binary form. They end before the first that git does
/// not accept.
pub(crate) struct Entries<'t> {
    rest: &'t [u8],
    id_bytes: usize,
}

impl<'t> Entries<'t> {
    pub(crate) fn of(content: &'t [u8], id_bytes: usize) -> Self {
        Self {
            rest: content,
            id_bytes,
        }
    }
}

impl<'t> Iterator for Entries<'t> {
    type Item = TreeEntry<'t>;

    fn next(&mut self) -> Option<TreeEntry<'t>> {
        let space = memchr::memchr(b' ', self.rest)?;
        let mode = mode_of(self.rest.get(..space)?)?;
        let end = memchr::memchr(0, self.rest)?;
        let name = self.rest.get(space + 1..end)?;
        let (id, rest) = self.rest.get(end + 1..)?.split_at_checked(self.id_bytes)?;
        let length = self.rest.len() - rest.len();
        let entry = TreeEntry {
            mode,
            name,
            id,
            length,
        };
        if name.is_empty() || name.contains(&b'/') {
            return None;
        }
        self.rest = rest;
        Some(entry)
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
