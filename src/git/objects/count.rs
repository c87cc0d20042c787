//! Counts the files that commits change, without listing them.
//!
//! A few small trees that contain each other many times stand for billions of files. git lists each of them, until
//! memory or time ends. Here, each pair of trees is compared once.

use crate::git::objects::reader::{LeftToGit, ObjectReader};
use crate::git::snapshot::listing::{Recorded, TREE};
use std::collections::HashMap;

/// The deepest directory whose files are counted.
const DEPTH_LIMIT: usize = 512;

/// Two trees at the same place, each if it exists.
type Pair = (Option<String>, Option<String>);

/// How much differs between two trees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::git) struct Extent {
    /// How many files and links.
    pub(in crate::git) files: u64,
    /// The length of the longest path in bytes.
    pub(in crate::git) path: usize,
}

impl Extent {
    /// The larger of each.
    pub(in crate::git) fn max(self, other: Self) -> Self {
        Self {
            files: self.files.max(other.files),
            path: self.path.max(other.path),
        }
    }
}

/// Counts the files that differ between trees. What it has counted once it does not read again.
pub(in crate::git) struct Counter<'a> {
    reader: &'a ObjectReader,
    counted: HashMap<Pair, Extent>,
}

impl<'a> Counter<'a> {
    pub(in crate::git) fn new(reader: &'a ObjectReader) -> Self {
        Self {
            reader,
            counted: HashMap::new(),
        }
    }

    /// How much differs between two trees or commits. Without `from`, all of `to` differs.
    pub(in crate::git) fn differing(
        &mut self,
        from: Option<&str>,
        to: &str,
    ) -> Result<Extent, LeftToGit> {
        let root = |id: &str| self.reader.root_of(id);
        let roots = (from.map(root).transpose()?, Some(root(to)?));
        self.count(roots, 0)
    }

    fn count(&mut self, pair: Pair, depth: usize) -> Result<Extent, LeftToGit> {
        if pair.0 == pair.1 {
            return Ok(Extent::default());
        }
        if let Some(counted) = self.counted.get(&pair) {
            return Ok(*counted);
        }
        if depth > DEPTH_LIMIT {
            return Err(LeftToGit);
        }
        let mut extent = Extent::default();
        let mut below = Vec::new();
        let trees = (pair.0.as_deref(), pair.1.as_deref());
        self.reader.compare(trees, &mut |old, new| {
            let entries = [old, new];
            let [old, new] = entries.map(|entry| entry.map(|entry| &entry.recorded));
            let name = entries
                .iter()
                .flatten()
                .next()
                .map_or(0, |it| it.name.len());
            if [old, new].iter().flatten().any(|entry| entry.mode == TREE) {
                let id = |entry: Option<&Recorded>| entry.map(|entry| entry.oid.clone());
                below.push((name, (id(old), id(new))));
            } else if old != new {
                extent.files = extent.files.saturating_add(1);
                extent.path = extent.path.max(name);
            }
            Ok(())
        })?;
        for (name, pair) in below {
            let inner = self.count(pair, depth + 1)?;
            if inner.files > 0 {
                extent.files = extent.files.saturating_add(inner.files);
                extent.path = extent
                    .path
                    .max(name.saturating_add(1).saturating_add(inner.path));
            }
        }
        self.counted.insert(pair, extent);
        Ok(extent)
    }
}
