//! Removes files of the object store whose content does not match their object id.

use crate::git::bytes::display_path;
use crate::git::commit::request::CommitError;
use crate::git::entries::Digest;
use crate::git::error::{GitError, io_error};
use crate::git::files::{make_dir, metadata, remove};
use crate::git::objects::loose::{object_id, read_loose, write_object};
use crate::git::objects::reader::ObjectReader;
use crate::git::repo::Repo;
use crate::plain_file;
use std::collections::HashMap;
use std::fs;
use std::io::{BufReader, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The index over all packs. git prefers it to their own indexes.
const LIST_OF_PACKS: &[u8] = b"multi-pack-index";
/// Files that git derives from a pack, besides its index.
const DERIVED: [&str; 2] = ["rev", "bitmap"];

impl Repo {
    /// Runs an operation that reads new objects. If it fails, removes the objects whose content does not
    /// match their ids, adds them to `warnings`, and if there were any runs the operation once more.
    pub(crate) fn past_false_objects<T>(
        &self,
        warnings: &mut Vec<String>,
        attempt: impl Fn() -> Result<T, CommitError>,
    ) -> Result<T, CommitError> {
        let error = match attempt() {
            Err(
                error @ (CommitError::Unsound(_)
                | CommitError::Git(GitError::Failed { .. } | GitError::Malformed { .. })),
            ) => error,
            other => return other,
        };
        let removed = self.remove_false_objects()?;
        if removed.is_empty() {
            return Err(error);
        }
        warnings.extend(removed);
        attempt()
    }

    /// Inspects everything in both object stores that may have changed since the run started, and removes files
    /// whose content does not match their object id. Returns a description of each.
    ///
    /// # Errors
    /// When a store cannot be read or changed.
    pub(crate) fn remove_false_objects(&self) -> Result<Vec<String>, GitError> {
        self.refuse_links("HEAD")?;
        let mut warnings = Vec::new();
        for store in [self.own_objects(), self.shared_objects()] {
            self.remove_false_files(&store, &mut warnings)?;
            self.mend_packs(&store.join("pack"), &mut warnings)?;
        }
        Ok(warnings)
    }

    fn remove_false_files(&self, store: &Path, warnings: &mut Vec<String>) -> Result<(), GitError> {
        for fan_out in (0..=255).map(|number| format!("{number:02x}")) {
            for path in listed(&store.join(&fan_out))? {
                let name = path
                    .file_name()
                    .and_then(|name| name.to_str())
                    .unwrap_or_default();
                let id = format!("{fan_out}{name}");
                let is_id = id.len() == self.private.state.base_tree.len()
                    && id.bytes().all(|byte| byte.is_ascii_hexdigit());
                if is_id && !self.is_older_than_run(&path) && loose_digest(&path, &id).is_none() {
                    remove(&path)?;
                    warnings.push(format!(
                        "the object store held something else under the id {id}; it was removed"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Replaces indexes of packs that do not match the content of the pack.
    fn mend_packs(&self, packs: &Path, warnings: &mut Vec<String>) -> Result<(), GitError> {
        let files = listed(packs)?;
        for path in &files {
            let name = path.file_name().unwrap_or_default().as_bytes();
            if name.starts_with(LIST_OF_PACKS) && !self.is_older_than_run(path) {
                remove(path)?;
                warnings.push(format!("{} was removed; git creates it again", shown(path)));
            }
        }
        for pack in files
            .iter()
            .filter(|path| path.extension().is_some_and(|ending| ending == "pack"))
        {
            let index = pack.with_extension("idx");
            let is_old = [pack, &index]
                .iter()
                .all(|path| self.is_older_than_run(path));
            if is_old || metadata(&index)?.is_none() {
                continue;
            }
            match self.index_of(pack)? {
                None => warnings.push(format!("git cannot read the pack {}", shown(pack))),
                Some(true_index) if read(&index).ok().as_ref() == Some(&true_index) => {}
                Some(true_index) => {
                    for ending in DERIVED {
                        remove(&pack.with_extension(ending))?;
                    }
                    crate::git::files::write_atomically(&index, &true_index)?;
                    warnings.push(format!(
                        "the index {} of the object store did not match its pack; it was created again",
                        shown(&index)
                    ));
                }
            }
        }
        Ok(())
    }

    /// The index that git computes for a pack in an otherwise empty store, or `None` if git cannot.
    fn index_of(&self, pack: &Path) -> Result<Option<Vec<u8>>, GitError> {
        let tmp = self.private.root.join("tmp");
        let scratch = tempfile::TempDir::new_in(&tmp).map_err(io_error("create", &tmp))?;
        let objects = scratch.path().join("objects");
        make_dir(&objects)?;
        let index = scratch.path().join("pack.idx");
        let call = self.bare_call().env("GIT_OBJECT_DIRECTORY", &objects);
        let made = call
            .args(["index-pack", "-o"])
            .args([&index, &pack.to_path_buf()])
            .status()?;
        match made.status {
            Some(0) => read(&index).map(Some),
            _ => Ok(None),
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, GitError> {
    let mut content = Vec::new();
    let read = plain_file::open(path).and_then(|mut file| file.read_to_end(&mut content));
    read.map(|_| content).map_err(io_error("read", path))
}

/// The entries of a directory, or none if it does not exist.
fn listed(dir: &Path) -> Result<Vec<PathBuf>, GitError> {
    if !metadata(dir)?.is_some_and(|meta| meta.is_dir()) {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(dir).map_err(io_error("read", dir))?;
    Ok(entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect())
}

fn shown(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    display_path(&[b"objects/pack/", name.as_bytes()].concat())
}

impl Repo {
    /// The store for the objects that Sprag makes.
    pub(crate) fn own_objects(&self) -> PathBuf {
        self.private.git_dir().join("objects")
    }

    /// A reader of all objects that git sees in the private directory.
    pub(crate) fn objects(&self) -> ObjectReader<'_> {
        ObjectReader::by(|| self.call()).after(&self.kept, self.own_objects())
    }

    /// Writes an object to Sprag's own store, and returns its id.
    pub(crate) fn store(&self, kind: &str, content: &[u8]) -> Result<String, GitError> {
        let own = self.own_objects();
        let id = object_id(kind, content, self.real.id_length());
        write_object(&own, &id, kind, content).map_err(io_error("write to", &own))?;
        Ok(id)
    }

    /// The object store of the repository.
    pub(crate) fn shared_objects(&self) -> PathBuf {
        self.real.common_dir.join("objects")
    }

    /// Digests of objects, all of which must match their ids. git does not check an object that already
    /// exists, and an agent can plant one.
    pub(crate) fn sound_objects(
        &self,
        ids: &[&str],
    ) -> Result<HashMap<String, Digest>, CommitError> {
        let reader = self.objects();
        let mut found = HashMap::new();
        let mut unsound = Vec::new();
        for id in ids {
            match reader.digest(id, u64::MAX)? {
                Some(digest) => drop(found.insert((*id).to_owned(), digest)),
                None => unsound.push((*id).to_owned()),
            }
        }
        if unsound.is_empty() {
            Ok(found)
        } else {
            Err(CommitError::Unsound(unsound))
        }
    }

    /// Those of these ids under which the repository, without Sprag's own store, has other content or
    /// nothing.
    pub(crate) fn unsound_in_repository(&self, ids: &[&str]) -> Result<Vec<String>, GitError> {
        let reader = ObjectReader::by(|| self.bare_call());
        let mut unsound = Vec::new();
        for id in ids {
            if reader.digest(id, u64::MAX)?.is_none() {
                unsound.push((*id).to_owned());
            }
        }
        Ok(unsound)
    }
}

/// Digest of a loose object's content, or `None` if it is not the object with this id.
pub(crate) fn loose_digest(path: &Path, id: &str) -> Option<Digest> {
    let file = plain_file::open(path).ok()?;
    read_loose(BufReader::new(file), id, &mut |_| {}).ok()?
}
