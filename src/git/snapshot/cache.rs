//! Caches of what was read before. They are keyed by content and never by time.

use crate::git::entries::Digest;
use crate::git::snapshot::index_list::Layout;
use crate::git::snapshot::listing::RawDiff;
use std::sync::{Arc, Mutex, PoisonError};

/// The layout of one base, read once.
#[derive(Debug, Default)]
pub(crate) struct LayoutCache(pub(crate) Mutex<Option<(String, Arc<Layout>)>>);

impl LayoutCache {
    pub(crate) fn of(base_tree: String, layout: Layout) -> Self {
        Self(Mutex::new(Some((base_tree, Arc::new(layout)))))
    }
}

/// The result of the last comparison of the repository's index with the base.
#[derive(Debug, Default)]
pub(crate) struct StagedCache(Mutex<Option<StagedDiff>>);

/// The differences of one index, identified by the digest of its bytes, from one base tree.
#[derive(Debug)]
struct StagedDiff {
    base_tree: String,
    index: Digest,
    staged: Arc<Vec<RawDiff>>,
}

impl StagedCache {
    pub(crate) fn get(&self, tree: &str, index: &Digest) -> Option<Arc<Vec<RawDiff>>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = known.as_ref()?;
        (seen.base_tree == tree && seen.index == *index).then(|| Arc::clone(&seen.staged))
    }

    pub(crate) fn put(&self, tree: &str, index: Digest, staged: &Arc<Vec<RawDiff>>) {
        let seen = StagedDiff {
            base_tree: tree.to_owned(),
            index,
            staged: Arc::clone(staged),
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
    }
}
