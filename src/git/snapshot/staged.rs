//! What the agent staged in the repository's own index. It is read again only if the index's bytes have
//! changed.

use crate::git::entries::{Digest, hash};
use crate::git::error::{GitError, io_error};
use crate::git::repo::Repo;
use crate::git::snapshot::listing::{GITLINK, RawDiff};
use crate::plain_file;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Maximum size in bytes of an index that is cached. git reads a larger one each time; only an agent would
/// create one.
const INDEX_LIMIT: u64 = 1024 * 1024 * 1024;

impl Repo {
    /// The paths that the repository's own index adds to or deletes from the base, its submodules and its
    /// conflicts.
    pub(crate) fn staged(&self) -> Result<Arc<Vec<RawDiff>>, GitError> {
        let index = self.real.git_dir.join("index");
        let tree = &self.private.state.base_tree;
        if let Some(digest) = self.whole_index(&index) {
            if let Some(staged) = self.staged.get(tree, &digest) {
                return Ok(staged);
            }
            if let Ok((digest, staged)) = self.diff_copied_index(&index) {
                let staged = Arc::new(relevant(staged));
                self.staged.put(tree, digest, &staged);
                return Ok(staged);
            }
        }
        Ok(Arc::new(relevant(self.diff_index(self.real_call())?)))
    }

    /// Digest of the index. `None` if this does not cover everything: the index is a link, too large or
    /// missing, or may have a part in another file.
    fn whole_index(&self, index: &Path) -> Option<Digest> {
        let names = fs::read_dir(&self.real.git_dir).ok()?;
        for entry in names {
            if entry
                .ok()?
                .file_name()
                .as_bytes()
                .starts_with(b"sharedindex")
            {
                return None;
            }
        }
        copy_hashed(index, &mut io::sink()).ok()
    }

    /// Compares a copy of the index, so that the digest is of exactly the bytes that git reads.
    fn diff_copied_index(&self, index: &Path) -> Result<(Digest, Vec<RawDiff>), GitError> {
        let dir = self.private.root.join("tmp");
        let copy = tempfile::NamedTempFile::new_in(&dir).map_err(io_error("create", &dir))?;
        let digest = copy_hashed(index, &mut copy.as_file()).map_err(io_error("copy", index))?;
        Ok((digest, self.diff_index(self.with_index(copy.path()))?))
    }
}

fn copy_hashed(from: &Path, to: &mut impl Write) -> io::Result<Digest> {
    let file = plain_file::open(from)?;
    if file.metadata()?.len() > INDEX_LIMIT {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    hash(&mut file.take(INDEX_LIMIT), to)
}

/// Drops changes that exist only in the index and say nothing beyond the work tree.
fn relevant(mut staged: Vec<RawDiff>) -> Vec<RawDiff> {
    staged.retain(|diff| {
        let tracks = diff.before.mode == 0 || diff.after.mode == GITLINK;
        matches!(diff.status, b'U' | b'D') || (diff.after.mode != 0 && tracks)
    });
    staged
}
