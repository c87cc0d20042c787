//! Finds the objects whose content matches their ids.

use crate::git::commit::request::CommitError;
use crate::git::entries::Digest;
use crate::git::error::{GitError, io_error};
use crate::git::objects::loose::{object_id, read_loose, write_object};
use crate::git::objects::reader::ObjectReader;
use crate::git::repo::Repo;
use crate::plain_file;
use std::collections::HashMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};

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
