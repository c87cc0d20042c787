//! Finds the objects whose content matches their ids.

use crate::git::commit::request::CommitError;
use crate::git::entries::Digest;
use crate::git::error::GitError;
use crate::git::objects::loose::{loose_path, read_loose};
use crate::git::objects::reader::ObjectReader;
use crate::git::repo::Repo;
use crate::plain_file;
use std::collections::HashMap;
use std::fs;
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
        match unsound.is_empty() {
            true => Ok(found),
            false => Err(CommitError::Unsound(unsound)),
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
        let own = self.own_objects();
        let listed = fs::read_to_string(own.join("info/alternates"));
        let Ok(listed) = listed.map(|text| text.lines().map(PathBuf::from).collect()) else {
            return true;
        };
        let mut stores: Vec<PathBuf> = listed;
        stores.push(own);
        // A quoted path cannot be inspected.
        let is_new =
            |store: &PathBuf| !store.is_absolute() || self.has_new_file(&store.join("pack"));
        stores.iter().any(is_new)
    }

    fn has_new_file(&self, dir: &Path) -> bool {
        match fs::read_dir(dir) {
            Ok(mut entries) => {
                entries.any(|entry| entry.is_ok_and(|entry| !self.is_older_than_run(&entry.path())))
            }
            Err(error) => error.kind() != ErrorKind::NotFound,
        }
    }
}

/// Digest of a loose object's content, or `None` if it is not the object with this id.
pub(in crate::git) fn loose_digest(path: &Path, id: &str) -> Option<Digest> {
    let file = plain_file::open(path).ok()?;
    read_loose(BufReader::new(file), id, &mut |_| {}).ok()?
}
