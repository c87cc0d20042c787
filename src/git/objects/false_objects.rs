//! Removes files of the object store whose content does not match their object id.

use crate::git::bytes::display_path;
use crate::git::commit::request::CommitError;
use crate::git::copy_tree::{make_dir, metadata, remove};
use crate::git::error::{GitError, io_error};
use crate::git::objects::sound::loose_digest;
use crate::git::repo::Repo;
use crate::plain_file;
use std::fs;
use std::io::Read as _;
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
