//! Reads many blobs, of which an agent may have made any.
//!
//! Their number, and what they inflate to, can be far more than what they need on disk.

use crate::git::commit::swap::TreeId;
use crate::git::error::GitError;
use crate::git::objects::loose::Piece;
use crate::git::objects::reader::{Found, ObjectReader};
use crate::git::private::seal::Unsealed;
use crate::git::repo::Repo;
use std::cell::{Cell, OnceCell};

/// How much is read of all blobs together, in bytes.
const BYTES: u64 = 1 << 30;

/// Reads the blobs of a repository for one purpose, up to a limit.
pub struct BlobReader<'r> {
    objects: ObjectReader<'r>,
    left: Cell<u64>,
    repo: &'r Repo,
    /// Kept from the first blob on.
    open: OnceCell<Unsealed>,
}

impl Repo {
    /// A reader for the blobs of one purpose.
    pub fn blob_reader(&self) -> BlobReader<'_> {
        BlobReader {
            objects: self.objects(),
            left: Cell::new(BYTES),
            repo: self,
            open: OnceCell::new(),
        }
    }
}

impl BlobReader<'_> {
    /// Passes the content of a blob to `sink`.
    ///
    /// # Errors
    /// When it cannot be read, or is more than the reader may still read.
    pub fn read(&self, oid: &str, sink: &mut dyn FnMut(&[u8])) -> Result<(), GitError> {
        self.open()?;
        let mut size = 0;
        let mut content = |piece: Piece<'_>| {
            if let Piece::Content(bytes) = piece {
                size += bytes.len() as u64;
                sink(bytes);
            }
        };
        // What Sprag has made itself is not limited.
        let own = self.objects.read_own(oid, u64::MAX, &mut content);
        if own.is_some() {
            return Ok(());
        }
        let found = self.objects.read(oid, self.left.get(), &mut content)?;
        self.left.set(self.left.get().saturating_sub(size));
        match found {
            Found::Whole(_) => Ok(()),
            Found::Missing | Found::Other => Err(GitError::Malformed {
                command: "cat-file",
                what: format!("the blob {oid} is missing, too large, or not the one with this id"),
            }),
        }
    }

    /// The content of a file or link in a tree, or `None` if there is neither. It does not count for the limit.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn file_in(&self, tree: &TreeId, path: &[u8]) -> Result<Option<Vec<u8>>, GitError> {
        self.open()?;
        self.objects.blob_at(tree.as_str(), path)
    }

    fn open(&self) -> Result<(), GitError> {
        if self.open.get().is_none() {
            let _ = self.open.set(self.repo.unseal_to_read()?);
        }
        Ok(())
    }
}
