//! What was read before, kept by content and never by time.

use crate::git::entries::Digest;
use crate::git::snapshot::listing::RawDiff;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::git) struct Layout {
    /// Submodules and the commits recorded for them, but those outside of a sparse checkout.
    pub(in crate::git) gitlinks: BTreeMap<Vec<u8>, String>,
    /// The blobs of all `.gitignore` files.
    pub(in crate::git) ignore_files: BTreeMap<Vec<u8>, String>,
    /// All `.gitattributes` files: content may be converted.
    pub(in crate::git) attribute_files: BTreeSet<Vec<u8>>,
    /// All ignore rules as one list, once somebody asked for them.
    pub(in crate::git) ignore_rules: OnceLock<Vec<u8>>,
    /// Every directory with tracked files below it; the top is the empty path.
    pub(in crate::git) directories: BTreeSet<Vec<u8>>,
}

/// The layout of one base, read once.
#[derive(Debug, Default)]
pub(in crate::git) struct LayoutCache(pub(in crate::git) Mutex<Option<(String, Arc<Layout>)>>);

impl LayoutCache {
    pub(in crate::git) fn of(base_tree: String, layout: Layout) -> Self {
        Self(Mutex::new(Some((base_tree, Arc::new(layout)))))
    }
}

/// What was found at the last look.
#[derive(Debug, Default)]
pub(in crate::git) struct StagedCache(Mutex<Option<Seen>>);

/// What one index, by the digest of its bytes, has beyond one base tree.
#[derive(Debug)]
struct Seen {
    base_tree: String,
    index: Digest,
    staged: Arc<Vec<RawDiff>>,
}

impl StagedCache {
    pub(in crate::git) fn get(&self, tree: &str, index: &Digest) -> Option<Arc<Vec<RawDiff>>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = known.as_ref()?;
        (seen.base_tree == tree && seen.index == *index).then(|| Arc::clone(&seen.staged))
    }

    pub(in crate::git) fn put(&self, tree: &str, index: Digest, staged: &Arc<Vec<RawDiff>>) {
        let seen = Seen {
            base_tree: tree.to_owned(),
            index,
            staged: Arc::clone(staged),
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
    }
}

/// The blobs that the last look compared with: what an id names does not change.
#[derive(Debug, Default)]
pub(in crate::git) struct BlobCache(pub(in crate::git) Mutex<HashMap<String, Blob>>);

/// The digest is known once some file had the same size.
#[derive(Debug, Clone, Copy)]
pub(in crate::git) struct Blob {
    pub(in crate::git) size: u64,
    pub(in crate::git) digest: Option<Digest>,
}

/// What git said of a file: the blob of its base, its content, and whether they are the same.
pub(in crate::git) type Verdict = (String, Digest, bool);

/// git's verdicts on the files of the last look, under the attributes of the base.
#[derive(Debug, Default)]
pub(in crate::git) struct Verdicts(pub(in crate::git) Mutex<HashMap<Vec<u8>, Verdict>>);
