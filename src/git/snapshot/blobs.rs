//! Compares work-tree content with recorded blobs in bounded memory.

use crate::domain::snapshot::RevId;
use crate::git::bytes::{as_path, nul_fields};
use crate::git::commit::swap::TreeId;
use crate::git::entries::{Digest, OnDisk, PathInspector, inspect_all, split};
use crate::git::error::GitError;
use crate::git::objects::loose::Piece;
use crate::git::objects::reader::{Found, ObjectReader};
use crate::git::private::seal::Unsealed;
use crate::git::remote::names::checked_id;
use crate::git::remote::refusal::RemoteError;
use crate::git::repo::Repo;
use crate::git::snapshot::change::Candidate;
use crate::git::snapshot::listing::{GITLINK, Recorded};
use crate::plain_file;
use std::cell::{Cell, OnceCell};
use std::fs;

impl Repo {
    /// For each candidate, whether the bytes on disk equal those of its base blob. git lists an unchanged
    /// file if it would normalise its content, but this is not a change.
    pub(crate) fn same_as_base(
        &self,
        candidates: &[Candidate],
        seen: &[OnDisk],
    ) -> Result<Vec<bool>, GitError> {
        let objects = self.objects();
        let pairs = candidates.iter().zip(seen);
        pairs
            .map(|(candidate, on_disk)| {
                let Some((base, digest, limit)) = comparable(candidate, on_disk) else {
                    return Ok(false);
                };
                Ok(objects.digest(&base.oid, limit)? == Some(digest))
            })
            .collect()
    }

    /// A file's content in the base, or `None` if the base has no such file.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn base_file(&self, path: &[u8]) -> Result<Option<Vec<u8>>, GitError> {
        let _open = self.unseal_to_read()?;
        self.blob_at(&self.private.state.base_tree, path)
    }

    /// Whether the base commit still exists in the repository. Without it, nothing can be read from the base.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn has_base(&self) -> Result<bool, GitError> {
        let _open = self.unseal_to_read()?;
        self.has_object(&self.private.state.base_tree)
    }

    /// Whether the repository has an object, by its id or as git spells it: `ID^{commit}`.
    pub(crate) fn has_object(&self, object: &str) -> Result<bool, GitError> {
        let output = self.call().args(["cat-file", "-e", object]).status()?;
        Ok(output.status == Some(0))
    }

    /// Every path of the base.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn base_paths(&self) -> Result<Vec<Vec<u8>>, GitError> {
        let _open = self.unseal_to_read()?;
        let args = ["ls-tree", "-r", "-z", "--name-only"];
        let listed = self
            .call()
            .args(args)
            .args([&self.private.state.base_tree])
            .run()?
            .stdout;
        Ok(nul_fields(&listed).map(<[u8]>::to_vec).collect())
    }

    /// The symbolic links of the base, sorted.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn base_links(&self) -> Result<Vec<Vec<u8>>, GitError> {
        let _open = self.unseal_to_read()?;
        Ok(self.layout()?.links.iter().cloned().collect())
    }

    /// The content of a file in the work tree. `None` if it is larger than `at_most` bytes, not a file, or
    /// unreadable.
    pub fn work_file(&self, path: &[u8], at_most: u64) -> Option<Vec<u8>> {
        plain_file::read(&self.real.work_tree.join(as_path(path)), at_most).ok()
    }

    /// Digests of the entries at these paths. They distinguish different contents, and a missing entry.
    pub fn contents_of(&self, paths: &[&Vec<u8>]) -> Vec<[u8; 32]> {
        let paths: Vec<&[u8]> = paths.iter().map(|path| path.as_slice()).collect();
        let seen = inspect_all(&self.real.work_tree, &paths);
        let digest = |seen: OnDisk| match seen {
            OnDisk::File { digest, .. } | OnDisk::Link { digest } | OnDisk::TooLarge { digest } => {
                digest
            }
            _ => [0; 32],
        };
        seen.into_iter().map(digest).collect()
    }

    /// Removes files and links, but nothing behind a directory that is a link.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn remove_files(&mut self, paths: &[Vec<u8>]) -> Result<(), GitError> {
        let mut looker = PathInspector::new(&self.real.work_tree);
        for path in paths {
            if looker.is_real(split(path).0) {
                self.remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Removes the files that Python compiled from sources in the base, because Python would run them in
    /// place of the sources.
    ///
    /// # Errors
    /// When the base cannot be read, or a file cannot be removed.
    pub fn remove_compiled_python(&mut self) -> Result<(), GitError> {
        let layout = {
            let _open = self.unseal_to_read()?;
            self.layout()?
        };
        let mut compiled = Vec::new();
        for directory in layout.directories.iter() {
            let cache = if directory.is_empty() {
                b"__pycache__".to_vec()
            } else {
                [directory, b"/__pycache__".as_slice()].concat()
            };
            let is_tracked = layout.directories.contains(&cache);
            let entries = fs::read_dir(self.real.work_tree.join(as_path(&cache)));
            for entry in entries
                .into_iter()
                .flatten()
                .flatten()
                .filter(|_| !is_tracked)
            {
                let name = entry.file_name();
                if name.as_encoded_bytes().ends_with(b".pyc") {
                    compiled.push([&cache, b"/".as_slice(), name.as_encoded_bytes()].concat());
                }
            }
        }
        self.remove_files(&compiled)
    }

    /// The content of a path in a commit that is in the repository.
    ///
    /// # Errors
    /// When git cannot be run, or the commit's id is invalid.
    pub fn file_of(&self, commit: &RevId, path: &[u8]) -> Result<Option<Vec<u8>>, RemoteError> {
        let _open = self.unseal_to_read()?;
        Ok(self.blob_at(checked_id(commit)?, path)?)
    }

    /// The content of a path in a tree or commit, or `None` if there is no such file.
    pub(crate) fn blob_at(&self, tree: &str, path: &[u8]) -> Result<Option<Vec<u8>>, GitError> {
        self.objects().blob_at(tree, path)
    }
}

/// The largest blob that is read although it has not the size of the file.
const READ_AT_LEAST: u64 = 1 << 20;

/// What is compared of a candidate that can be the same as its base: the entry, the digest of the file, and the size
/// of the largest blob that can be it.
fn comparable<'a>(
    candidate: &'a Candidate,
    on_disk: &OnDisk,
) -> Option<(&'a Recorded, Digest, u64)> {
    let base = candidate
        .base
        .as_ref()
        .filter(|base| base.mode != GITLINK)?;
    match on_disk {
        OnDisk::File { digest, length, .. } => Some((base, *digest, READ_AT_LEAST.max(*length))),
        OnDisk::Link { digest } => Some((base, *digest, READ_AT_LEAST)),
        _ => None,
    }
}

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
