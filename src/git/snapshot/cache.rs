//! Caches of what was read before. They are keyed by content and never by time.

use crate::git::entries::Digest;
use crate::git::snapshot::listing::RawDiff;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::git) struct Layout {
    /// Submodules and their recorded commits, except those outside of a sparse checkout.
    pub(in crate::git) gitlinks: BTreeMap<Vec<u8>, String>,
    /// The blobs of all `.gitignore` files.
    pub(in crate::git) ignore_files: BTreeMap<Vec<u8>, String>,
    /// All `.gitattributes` files. With any, git may convert content.
    pub(in crate::git) attribute_files: BTreeSet<Vec<u8>>,
    /// All symbolic links.
    pub(in crate::git) links: BTreeSet<Vec<u8>>,
    /// All ignore rules as one list, computed on first use.
    pub(in crate::git) ignore_rules: OnceLock<Vec<u8>>,
    /// Every directory that contains tracked files at any depth. The top directory is the empty path.
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

/// The result of the last comparison of the repository's index with the base.
#[derive(Debug, Default)]
pub(in crate::git) struct StagedCache(Mutex<Option<StagedDiff>>);

/// The differences of one index, identified by the digest of its bytes, from one base tree.
#[derive(Debug)]
struct StagedDiff {
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
        let seen = StagedDiff {
            base_tree: tree.to_owned(),
            index,
            staged: Arc::clone(staged),
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
    }
}

/// The blobs of the last comparison. The content of an id never changes.
#[derive(Debug, Default)]
pub(in crate::git) struct BlobCache(pub(in crate::git) Mutex<HashMap<String, Blob>>);

/// The digest is computed when a file of the same size is first seen.
#[derive(Debug, Clone, Copy)]
pub(in crate::git) struct Blob {
    pub(in crate::git) size: u64,
    pub(in crate::git) digest: Option<Digest>,
}

/// git's verdict on a file: the blob in the base, the file's digest, and whether they count as the same.
pub(in crate::git) type Verdict = (String, Digest, bool);

/// git's verdicts on the files of the last snapshot, under the attributes of the base.
#[derive(Debug, Default)]
pub(in crate::git) struct Verdicts(pub(in crate::git) Mutex<HashMap<Vec<u8>, Verdict>>);

/// Small files of one base tree that were read, by path.
#[derive(Debug, Default)]
pub(in crate::git) struct BaseFiles(Mutex<(String, Files)>);

type Files = HashMap<Vec<u8>, Vec<u8>>;

impl BaseFiles {
    /// Maximum size in bytes of a file that is kept, and maximum number of files.
    const LIMITS: (usize, usize) = (32 * 1024, 64);

    pub(in crate::git) fn get(&self, tree: &str, path: &[u8]) -> Option<Vec<u8>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.1.get(path).filter(|_| known.0 == tree).cloned()
    }

    pub(in crate::git) fn put(&self, tree: &str, path: &[u8], content: &[u8]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != tree {
            *known = (tree.to_owned(), Files::new());
        }
        let (size, number) = Self::LIMITS;
        if known.1.len() < number && content.len() <= size {
            known.1.insert(path.to_vec(), content.to_vec());
        }
    }
}
