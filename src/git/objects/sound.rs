//! Which objects are what their ids say.

use crate::git::commit::request::CommitError;
use crate::git::entries::Digest;
use crate::git::error::GitError;
use crate::git::objects::loose::{loose_path, read_loose};
use crate::git::repo::Repo;
use crate::plain_file;
use std::collections::HashMap;
use std::fs;
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};

impl Repo {
    /// The store that Sprag's own objects are made in.
    pub(in crate::git) fn own_objects(&self) -> PathBuf {
        self.private.git_dir().join("objects")
    }

    /// The store of the repository.
    pub(in crate::git) fn shared_objects(&self) -> PathBuf {
        self.real.common_dir.join("objects")
    }

    /// Digests of objects, all of which must be what their ids say: git does not look when
    /// it finds that an object is there already, and an agent can put one there.
    pub(in crate::git) fn sound_objects(
        &self,
        ids: &[&str],
    ) -> Result<HashMap<String, Digest>, CommitError> {
        let own = self.own_objects();
        let mut found = HashMap::new();
        // git prefers what is in a pack to a file of the object's own.
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

    /// Of these ids those under which the repository, without Sprag's own store, has something else or
    /// nothing.
    pub(in crate::git) fn unsound_in_repository(
        &self,
        ids: &[&str],
    ) -> Result<Vec<String>, GitError> {
        let found = self.object_digests_by(self.apart(), ids)?;
        let unsound = ids.iter().filter(|id| !found.contains_key(**id));
        Ok(unsound.map(|id| (*id).to_owned()).collect())
    }

    /// Whether there is a pack that may say something else than it did when the run began.
    pub(in crate::git) fn packs_may_lie(&self) -> bool {
        let own = self.own_objects();
        let listed = fs::read_to_string(own.join("info/alternates"));
        let Ok(listed) = listed.map(|text| text.lines().map(PathBuf::from).collect()) else {
            return true;
        };
        let mut stores: Vec<PathBuf> = listed;
        stores.push(own);
        // A path in quotes is none that can be looked at.
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

/// Digest of the content of an object in a file of its own; `None` where it is not the object of this id.
pub(in crate::git) fn loose_digest(path: &Path, id: &str) -> Option<Digest> {
    let file = plain_file::open(path).ok()?;
    read_loose(BufReader::new(file), id, &mut |_| {}).ok()?
}
