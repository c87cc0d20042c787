//! Finds the objects whose content matches their ids.

use crate::git::commit::request::CommitError;
use crate::git::entries::{Digest, Stamp, stamp};
use crate::git::error::GitError;
use crate::git::objects::loose::{loose_path, read_loose};
use crate::git::objects::reader::ObjectReader;
use crate::git::repo::Repo;
use crate::plain_file;
use std::collections::HashMap;
use std::fs::{self, DirEntry};
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};

impl Repo {
    /// The store for the objects that Sprag makes.
    pub(in crate::git) fn own_objects(&self) -> PathBuf {
        self.private.git_dir().join("objects")
    }

    /// A reader of all objects that git sees in the private directory.
    pub(in crate::git) fn objects(&self) -> ObjectReader {
        ObjectReader::new(&self.own_objects())
    }

    /// The object store of the repository.
    pub(in crate::git) fn shared_objects(&self) -> PathBuf {
        self.real.common_dir.join("objects")
    }

    /// Digests of objects, all of which must match their ids. git does not check an object that already
    /// exists, and an agent can plant one.
    pub(in crate::git) fn sound_objects(
        &self,
        ids: &[&str],
    ) -> Result<HashMap<String, Digest>, CommitError> {
        let own = self.own_objects();
        let mut found = HashMap::new();
        // git prefers a packed object to a loose one.
        if !self.packs_may_lie() {
            for id in ids {
                if let Some(digest) = loose_digest(&loose_path(&own, id), id) {
                    found.insert((*id).to_owned(), digest);
                }
            }
        }
        let left: Vec<&str> = ids
            .iter()
            .copied()
            .filter(|id| !found.contains_key(*id))
            .collect();
        found.extend(self.object_digests(&left)?);
        let unsound = ids.iter().filter(|id| !found.contains_key(**id));
        let unsound: Vec<String> = unsound.map(|id| (*id).to_owned()).collect();
        if unsound.is_empty() {
            Ok(found)
        } else {
            Err(CommitError::Unsound(unsound))
        }
    }

    /// Those of these ids under which the repository, without Sprag's own store, has other content or
    /// nothing.
    pub(in crate::git) fn unsound_in_repository(
        &self,
        ids: &[&str],
    ) -> Result<Vec<String>, GitError> {
        let found = self.object_digests_by(self.bare_call(), ids)?;
        let unsound = ids.iter().filter(|id| !found.contains_key(**id));
        Ok(unsound.map(|id| (*id).to_owned()).collect())
    }

    /// Whether a pack may have changed since the run started.
    pub(in crate::git) fn packs_may_lie(&self) -> bool {
        let Some(files) = self.files_of_packs() else {
            return true;
        };
        let is_as_found = |path: &PathBuf| {
            let known = self.young_packs.get(path);
            self.is_older_than_run(path) || known.is_some_and(|known| stamp(path) == Some(*known))
        };
        !files.iter().all(is_as_found)
    }

    /// The files of packs that change times do not show to be older than the run. Called at its start.
    pub(in crate::git) fn packs_younger_than_run(&self) -> HashMap<PathBuf, Stamp> {
        let files = self.files_of_packs().unwrap_or_default().into_iter();
        let young = files.filter(|path| !self.is_older_than_run(path));
        let stamped = young.filter_map(|path| stamp(&path).map(|stamp| (path, stamp)));
        stamped.collect()
    }

    /// The files beside packs in all stores. `None` if one of these cannot be listed, or has anything else there,
    /// such as an index of packs that is a directory: its time says nothing about the files in it.
    fn files_of_packs(&self) -> Option<Vec<PathBuf>> {
        let own = self.own_objects();
        let listed = fs::read_to_string(own.join("info/alternates")).ok()?;
        let mut files = Vec::new();
        for store in listed.lines().map(PathBuf::from).chain([own]) {
            // A quoted path cannot be inspected.
            if !store.is_absolute() {
                return None;
            }
            match fs::read_dir(store.join("pack")) {
                Ok(entries) => {
                    for entry in entries.map(|entry| entry.ok()) {
                        let is_file = |it: &DirEntry| it.file_type().is_ok_and(|it| it.is_file());
                        files.push(entry.filter(is_file)?.path());
                    }
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(_) => return None,
            }
        }
        Some(files)
    }
}

/// Digest of a loose object's content, or `None` if it is not the object with this id.
pub(in crate::git) fn loose_digest(path: &Path, id: &str) -> Option<Digest> {
    let file = plain_file::open(path).ok()?;
    read_loose(BufReader::new(file), id, &mut |_| {}).ok()?
}
