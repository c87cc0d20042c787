//! How much the commits of an agent change.
//!
//! A few small objects can stand for more files than git can list. No git process reads the trees of a commit that
//! an agent made before this was found to end.

use crate::git::bytes::hex;
use crate::git::error::GitError;
use crate::git::objects::reader::{DEPTH_LIMIT, ObjectReader, TreeEntry, bad};
use crate::git::private::guard::Violation;
use crate::git::repo::Repo;
use crate::git::snapshot::listing::TREE;
use std::collections::HashMap;

/// How many files a commit may change.
const FILES: u64 = 1_000_000;

/// How much is read to count them, in bytes.
const READ: u64 = 1 << 30;

/// How long a path may be in bytes: no file system of Linux has a longer one.
const PATH: usize = 4096;

impl Repo {
    /// The first commit after `from` up to `to` whose changes are too many to be read, if there is one.
    pub(crate) fn unreadable_commit(
        &self,
        from: Option<&str>,
        to: &str,
    ) -> Result<Option<Violation>, GitError> {
        let mut call = self.call().args(["rev-list", "--parents", to]);
        if let Some(from) = from {
            call = call.args([format!("^{from}")]);
        }
        let listed = call.args(["--"]).run()?.stdout;
        let listed = String::from_utf8_lossy(&listed);
        let reader = self.objects().within(READ);
        let mut counter = Counter::new(&reader);
        for line in listed.lines() {
            let mut ids = line.split(' ');
            let commit = ids.next().unwrap_or_default();
            let why = match largest(&mut counter, commit, ids) {
                Ok(extent) if extent.files > FILES => format!("changes more than {FILES} files"),
                Ok(extent) if extent.path > PATH => {
                    format!("has a path of {} bytes", extent.path)
                }
                Ok(_) => continue,
                Err(error @ GitError::Cancelled { .. }) => return Err(error),
                Err(error) => format!("has changes that cannot be read: {error}"),
            };
            return Ok(Some(Violation::UnreadableCommit {
                commit: commit.to_owned(),
                why,
            }));
        }
        Ok(None)
    }
}

/// How much a commit changes compared with one of its parents, at most.
fn largest<'a>(
    counter: &mut Counter<'_, '_>,
    commit: &str,
    parents: impl Iterator<Item = &'a str>,
) -> Result<Extent, GitError> {
    let mut parents = parents.peekable();
    if parents.peek().is_none() {
        return counter.differing(None, commit);
    }
    let mut most = Extent::default();
    for parent in parents {
        most = most.max(counter.differing(Some(parent), commit)?);
    }
    Ok(most)
}

/// Two trees at the same place, each if it exists.
type Pair = (Option<String>, Option<String>);

/// How much differs between two trees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// How many files and links.
    pub(crate) files: u64,
    /// The length of the longest path in bytes.
    pub(crate) path: usize,
}

impl Extent {
    /// The larger of each.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            files: self.files.max(other.files),
            path: self.path.max(other.path),
        }
    }
}

/// Counts the files that differ between trees. What it has counted once it does not read again.
pub(crate) struct Counter<'a, 'r> {
    reader: &'a ObjectReader<'r>,
    counted: HashMap<Pair, Extent>,
}

impl<'a, 'r> Counter<'a, 'r> {
    pub(crate) fn new(reader: &'a ObjectReader<'r>) -> Self {
        Self {
            reader,
            counted: HashMap::new(),
        }
    }

    /// How much differs between two trees or commits. Without `from`, all of `to` differs.
    pub(crate) fn differing(&mut self, from: Option<&str>, to: &str) -> Result<Extent, GitError> {
        let from = from.map(|from| self.reader.root_of(from)).transpose()?;
        let to = self.reader.root_of(to)?;
        self.count((from, Some(to)), 0)
    }

    fn count(&mut self, pair: Pair, depth: usize) -> Result<Extent, GitError> {
        if pair.0 == pair.1 {
            return Ok(Extent::default());
        }
        if let Some(counted) = self.counted.get(&pair) {
            return Ok(*counted);
        }
        if let Some(id) = pair
            .0
            .as_ref()
            .or(pair.1.as_ref())
            .filter(|_| depth > DEPTH_LIMIT)
        {
            return Err(bad(id, "is too deep in other trees"));
        }
        let mut extent = Extent::default();
        let mut below = Vec::new();
        let from = pair.0.as_deref();
        let to = pair.1.as_deref();
        self.reader.compare(from, to, &mut |old, new| {
            let entries = [old, new];
            let name = entries
                .iter()
                .flatten()
                .next()
                .map_or(0, |entry| entry.name.len());
            if entries.iter().flatten().any(|entry| entry.mode == TREE) {
                let [old, new] = entries.map(|entry| entry.map(|entry| hex(entry.id)));
                below.push((name, (old, new)));
            } else if old.map(TreeEntry::recorded) != new.map(TreeEntry::recorded) {
                extent.files = extent.files.saturating_add(1);
                extent.path = extent.path.max(name);
            }
            Ok(())
        })?;
        for (name, pair) in below {
            let inner = self.count(pair, depth + 1)?;
            if inner.files > 0 {
                extent.files = extent.files.saturating_add(inner.files);
                let path = name.saturating_add(1).saturating_add(inner.path);
                extent.path = extent.path.max(path);
            }
        }
        self.counted.insert(pair, extent);
        Ok(extent)
    }
}
