//! Counts the files that commits change, without listing them.
//!
//! A few small trees that contain each other many times stand for billions of files. git lists each of them, until
//! memory or time ends. Here, each pair of trees is compared once.

use crate::git::bytes::hex;
use crate::git::error::GitError;
use crate::git::objects::reader::{DEPTH_LIMIT, ObjectReader, TreeEntry, bad};
use crate::git::snapshot::listing::TREE;
use std::collections::HashMap;

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
