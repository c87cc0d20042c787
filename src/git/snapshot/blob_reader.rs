//! Reads many blobs, of which an agent may have made any.
//!
//! Their number, and what they inflate to, can be far more than what they need on disk.

use crate::git::error::{GitError, io_error};
use crate::git::objects::allowance::Allowance;
use crate::git::objects::loose::{Piece, loose_path, read_loose};
use crate::git::objects::reader::{LeftToGit, ObjectReader};
use crate::git::repo::Repo;
use crate::plain_file;
use std::cell::Cell;
use std::io::BufReader;

/// How much is read of all blobs together, in bytes.
const BYTES: u64 = 1 << 30;
/// What a git process for one blob costs, in bytes.
const PROCESS: u64 = 512 << 10;

/// What may still be read of the blobs of a repository.
pub struct BlobReader {
    objects: ObjectReader,
    left: Cell<u64>,
}

impl BlobReader {
    /// Takes what something costs. `false` if this is too much.
    fn spend(&self, cost: u64) -> bool {
        let left = self.left.get().checked_sub(cost);
        self.left.set(left.unwrap_or_default());
        left.is_some()
    }
}

impl Repo {
    /// A reader for the blobs of one purpose.
    pub fn blob_reader(&self) -> BlobReader {
        BlobReader {
            objects: self.objects().with_allowance(Allowance::of(4 * BYTES)),
            left: Cell::new(BYTES),
        }
    }

    /// Passes the content of a blob to `sink`.
    ///
    /// # Errors
    /// When it cannot be read, or is more than the reader may still read.
    pub fn read_blob(
        &self,
        reader: &BlobReader,
        oid: &str,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<(), GitError> {
        let _open = self.unseal_to_read()?;
        let own = loose_path(&self.own_objects(), oid);
        // What Sprag has made itself is not limited.
        if let Ok(file) = plain_file::open(&own) {
            let read = read_loose(BufReader::new(file), oid, &mut |piece| {
                if let Piece::Content(bytes) = piece {
                    sink(bytes);
                }
            });
            if read.map_err(io_error("read", &own))?.is_some() {
                return Ok(());
            }
        }
        let too_much = || GitError::Flooded {
            command: "cat-file".to_owned(),
        };
        match reader.objects.blob(oid) {
            Ok(content) if reader.spend(content.len() as u64) => {
                sink(&content);
                return Ok(());
            }
            Ok(_) => return Err(too_much()),
            Err(LeftToGit) => {}
        }
        let mut is_within = reader.spend(PROCESS);
        if !is_within {
            return Err(too_much());
        }
        let call = self.call().args(["cat-file", "blob", oid]);
        let output = call.stream_while(&mut |chunk| {
            is_within = reader.spend(chunk.len() as u64);
            if is_within {
                sink(chunk);
            }
            is_within
        })?;
        output.expect_success("cat-file".to_owned()).map(drop)
    }
}
