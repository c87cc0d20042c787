//! Compares work-tree content with recorded blobs in bounded memory.

use crate::domain::snapshot::RevId;
use crate::git::bytes::nul_paths;
use crate::git::commit::swap::TreeId;
use crate::git::entries::{OnDisk, inspect_all};
use crate::git::error::{GitError, Result};
use crate::git::objects::loose::Piece;
use crate::git::objects::reader::{Found, ObjectReader};
use crate::git::private::seal::Unsealed;
use crate::git::remote::names::checked_id;
use crate::git::remote::refusal::RemoteError;
use crate::git::repo::Repo;
use crate::git::snapshot::change::Candidate;
use crate::git::snapshot::listing::GITLINK;
use crate::plain_file;
use std::cell::OnceCell;
use std::fs;

impl Repo {
    /// For each candidate, whether the bytes on disk equal those of its base blob. git lists an unchanged
    /// file if it would normalise its content, but this is not a change.
    pub(crate) fn same_as_base(
        &self,
        candidates: &[Candidate],
        seen: &[OnDisk],
    ) -> Result<Vec<bool>> {
        let objects = self.objects();
        let is_same = |(candidate, on_disk): (&Candidate, &OnDisk)| {
            let base = candidate.base.as_ref();
            let (digest, length) = match on_disk {
                OnDisk::File { digest, length, .. } => (digest, *length),
                OnDisk::Link { digest } => (digest, 0),
                _ => return Ok(false),
            };
            let Some(base) = base.filter(|base| base.mode != GITLINK) else {
                return Ok(false);
            };
            let found = objects.digest(&base.oid, READ_AT_LEAST.max(length))?;
            Ok(found.as_ref() == Some(digest))
        };
        candidates.iter().zip(seen).map(is_same).collect()
    }

    /// A file's content in the base, or `None` if the base has no such file.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn base_file(&self, path: &[u8]) -> Result<Option<Vec<u8>>> {
        let _open = self.unseal_to_read()?;
        self.blob_at(&self.private.state.base_tree, path)
    }

    /// Whether the base commit still exists in the repository. Without it, nothing can be read from the base.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn has_base(&self) -> Result<bool> {
        let _open = self.unseal_to_read()?;
        self.has_object(&self.private.state.base_tree)
    }

    /// Whether the repository has an object, by its id or as git spells it: `ID^{commit}`.
    pub(crate) fn has_object(&self, object: &str) -> Result<bool> {
        self.git("cat-file -e").arg(object).succeeds()
    }

    /// Every path of the base.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn base_paths(&self) -> Result<Vec<Vec<u8>>> {
        let _open = self.unseal_to_read()?;
        let call = self
            .git("ls-tree -r -z --name-only")
            .arg(&self.private.state.base_tree);
        Ok(nul_paths(&call.stdout()?))
    }

    /// The symbolic links of the base, sorted.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn base_links(&self) -> Result<Vec<Vec<u8>>> {
        let _open = self.unseal_to_read()?;
        Ok(self.layout()?.links.iter().cloned().collect())
    }

    /// The content of a file in the work tree. `None` if it is larger than `at_most` bytes, not a file, or
    /// unreadable.
    pub fn work_file(&self, path: &[u8], at_most: u64) -> Option<Vec<u8>> {
        plain_file::read(&self.at(path), at_most).ok()
    }

    /// Digests of the entries at these paths. They distinguish different contents, and a missing entry.
    pub fn contents_of(&self, paths: &[&Vec<u8>]) -> Vec<[u8; 32]> {
        let seen = inspect_all(&self.real.work_tree, paths).into_iter();
        seen.map(|seen| seen.digest().unwrap_or_default()).collect()
    }

    /// Removes files and links, but nothing behind a directory that is a link.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn remove_files(&mut self, paths: &[Vec<u8>]) -> Result<()> {
        paths.iter().try_for_each(|path| self.remove_file(path))
    }

    /// Removes the files that Python compiled from sources in the base, because Python would run them in
    /// place of the sources.
    ///
    /// # Errors
    /// When the base cannot be read, or a file cannot be removed.
    pub fn remove_compiled_python(&mut self) -> Result<()> {
        let open = self.unseal_to_read()?;
        let layout = self.layout()?;
        drop(open);
        let mut compiled = Vec::new();
        for directory in &layout.directories {
            let cache = match directory.as_slice() {
                b"" => b"__pycache__".to_vec(),
                directory => [directory, b"/__pycache__"].concat(),
            };
            if layout.directories.contains(&cache) {
                continue;
            }
            for entry in fs::read_dir(self.at(&cache))
                .into_iter()
                .flatten()
                .flatten()
            {
                let name = entry.file_name().into_encoded_bytes();
                if name.ends_with(b".pyc") {
                    compiled.push([&cache, b"/".as_slice(), &name].concat());
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
    pub(crate) fn blob_at(&self, tree: &str, path: &[u8]) -> Result<Option<Vec<u8>>> {
        self.objects().blob_at(tree, path)
    }
}

/// The largest blob that is read although it has not the size of the file.
const READ_AT_LEAST: u64 = 1 << 20;

/// How much is read of all blobs together, in bytes.
const BYTES: u64 = 1 << 30;

/// Reads the blobs of a repository for one purpose, up to a limit.
pub struct BlobReader<'r> {
    objects: ObjectReader<'r>,
    repo: &'r Repo,
    /// Kept from the first blob on.
    open: OnceCell<Unsealed>,
}

impl Repo {
    /// A reader for the blobs of one purpose.
    pub fn blob_reader(&self) -> BlobReader<'_> {
        BlobReader {
            // What Sprag has made itself is not limited.
            objects: self.objects().within(BYTES),
            repo: self,
            open: OnceCell::new(),
        }
    }
}

impl<'r> BlobReader<'r> {
    /// Passes the content of a blob to `sink`.
    ///
    /// # Errors
    /// When it cannot be read, or is more than the reader may still read.
    pub fn read(&self, oid: &str, sink: &mut dyn FnMut(&[u8])) -> Result<()> {
        let found = self.objects()?.read(oid, u64::MAX, &mut |piece| {
            if let Piece::Content(bytes) = piece {
                sink(bytes);
            }
        })?;
        if matches!(found, Found::Whole(_)) {
            return Ok(());
        }
        let what = format!("the blob {oid} is missing, too large, or not the one with this id");
        Err(GitError::malformed("cat-file", what))
    }

    /// The content of a file or link in a tree, or `None` if there is neither.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn file_in(&self, tree: &TreeId, path: &[u8]) -> Result<Option<Vec<u8>>> {
        self.objects()?.blob_at(tree.as_str(), path)
    }

    fn objects(&self) -> Result<&ObjectReader<'r>> {
        if self.open.get().is_none() {
            let _ = self.open.set(self.repo.unseal_to_read()?);
        }
        Ok(&self.objects)
    }
}
