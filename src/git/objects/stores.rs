//! The store for the objects that Sprag makes, and that of the repository.
//!
//! Objects are copied from the first to the second: their content is read again and written to new files. Files of
//! the repository's store whose content does not match their id are removed.

use crate::git::bytes::display_path;
use crate::git::commit::request::CommitError;
use crate::git::entries::Digest;
use crate::git::error::{GitError, Result, io_error};
use crate::git::files::{is_directory, make_dir, metadata, names, remove, write_atomically};
use crate::git::objects::loose::{loose_path, new_object, object_id, read_loose, write_object};
use crate::git::objects::reader::ObjectReader;
use crate::git::repo::Repo;
use crate::git::snapshot::listing::NewObjects;
use crate::plain_file;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// Up to this many files are flushed individually. For more, the whole file system is flushed once.
const FLUSHED_ONE_BY_ONE: usize = 64;

/// The index over all packs. git prefers it to their own indexes.
const LIST_OF_PACKS: &[u8] = b"multi-pack-index";
/// Files that git derives from a pack, besides its index.
const DERIVED: [&str; 2] = ["rev", "bitmap"];

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
    pub(crate) fn store(&self, kind: &str, content: &[u8]) -> Result<String> {
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
        let (found, unsound) = digests(&self.objects(), ids)?;
        if unsound.is_empty() {
            Ok(found)
        } else {
            Err(CommitError::Unsound(unsound))
        }
    }

    /// Those of these ids under which the repository, without Sprag's own store, has other content or
    /// nothing.
    pub(crate) fn unsound_in_repository(&self, ids: &[&str]) -> Result<Vec<String>> {
        Ok(digests(&ObjectReader::by(|| self.bare_call()), ids)?.1)
    }
}

/// The digests of objects, and the ids of those that are missing or something else.
fn digests(
    reader: &ObjectReader<'_>,
    ids: &[&str],
) -> Result<(HashMap<String, Digest>, Vec<String>)> {
    let (mut found, mut unsound) = (HashMap::new(), Vec::new());
    for id in ids {
        match reader.digest(id, u64::MAX)? {
            Some(digest) => drop(found.insert((*id).to_owned(), digest)),
            None => unsound.push((*id).to_owned()),
        }
    }
    Ok((found, unsound))
}

/// Digest of a loose object's content, or `None` if it is not the object with this id.
pub(crate) fn loose_digest(path: &Path, id: &str) -> Option<Digest> {
    let file = plain_file::open(path).ok()?;
    read_loose(BufReader::new(file), id, u64::MAX, &mut |_| {}).ok()?
}

impl Repo {
    /// Copies objects into the repository, replaces whatever is there under their ids, and flushes them to
    /// disk. After a crash no object there refers to a missing one. Returns what was corrected on the way.
    ///
    /// # Errors
    /// [`CommitError::Unsound`] when the repository still has other content under these ids.
    pub(crate) fn adopt(&self, objects: &NewObjects) -> Result<Vec<String>, CommitError> {
        if self.adopt_once(objects)?.is_empty() {
            return Ok(Vec::new());
        }
        let warnings = self.remove_false_objects()?;
        match self.adopt_once(objects)? {
            unsound if unsound.is_empty() => Ok(warnings),
            unsound => Err(CommitError::Unsound(unsound)),
        }
    }

    /// Returns the ids under which the repository afterwards has other content or nothing.
    fn adopt_once(&self, objects: &NewObjects) -> Result<Vec<String>> {
        self.write_files(objects)?;
        self.unsound_in_repository(&objects.ids().collect::<Vec<_>>())
    }

    /// Writes the objects that Sprag has made. The repository has the others already.
    fn write_files(&self, objects: &NewObjects) -> Result<()> {
        let own = self.own_objects();
        let shared = self.shared_objects();
        let one_by_one = objects.ids().count() <= FLUSHED_ONE_BY_ONE;
        let mut directories = BTreeSet::new();
        for stage in objects.stages() {
            let mut written: Vec<(TempPath, PathBuf)> = Vec::new();
            for id in stage {
                let to = loose_path(&shared, id);
                let file = written_anew(&loose_path(&own, id), &to, id, one_by_one)?;
                written.extend(file.map(|file| (file, to)));
            }
            if !one_by_one {
                flush_file_system(&shared)?;
            }
            for (file, to) in written {
                if is_directory(&to) {
                    remove(&to)?;
                }
                file.persist(&to)
                    .map_err(|error| io_error("write", &to)(error.error))?;
                directories.extend(to.parent().map(Path::to_path_buf));
            }
        }
        if one_by_one {
            directories.iter().try_for_each(|dir| {
                let flushed = File::open(dir).and_then(|dir| dir.sync_all());
                flushed.map_err(io_error("write", dir))
            })
        } else {
            flush_file_system(&shared)
        }
    }
}

/// Copies a loose object from a store that others can write, if it is there and its content matches its id.
pub(crate) fn import_object(from: &Path, to: &Path, id: &str, flush: bool) -> Result<()> {
    let place = loose_path(to, id);
    if let Some(file) = written_anew(&loose_path(from, id), &place, id, flush)? {
        let placed = file.persist(&place);
        placed.map_err(|error| io_error("write", &place)(error.error))?;
    }
    Ok(())
}

/// Writes the object in the file `from` to a temporary file beside `to`. `None` if it is not the object with
/// this id.
fn written_anew(from: &Path, to: &Path, id: &str, flush: bool) -> Result<Option<TempPath>> {
    let source = match plain_file::open(from) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        source => BufReader::new(source.map_err(io_error("read", from))?),
    };
    let mut deflate = new_object(to).map_err(io_error("write", to))?;
    let mut written: io::Result<()> = Ok(());
    let digest = read_loose(source, id, u64::MAX, &mut |piece| {
        if written.is_ok() {
            written = deflate.write_all(piece.bytes());
        }
    });
    if digest.map_err(io_error("read", from))?.is_none() {
        return Ok(None);
    }
    let finished = written.and_then(|()| {
        let file = deflate.finish()?;
        if flush {
            file.as_file().sync_all()?;
        }
        Ok(Some(file.into_temp_path()))
    });
    finished.map_err(io_error("write", to))
}

fn flush_file_system(dir: &Path) -> Result<()> {
    #[cfg(target_os = "linux")]
    let flushed = File::open(dir).and_then(|dir| Ok(rustix::fs::syncfs(dir)?));
    // Other systems flush every file system at once and do not report failures.
    #[cfg(not(target_os = "linux"))]
    let flushed = File::open(dir).map(|_| rustix::fs::sync());
    flushed.map_err(io_error("write", dir))
}

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
    pub(crate) fn remove_false_objects(&self) -> Result<Vec<String>> {
        self.refuse_links("HEAD")?;
        let mut warnings = Vec::new();
        for store in [self.own_objects(), self.shared_objects()] {
            self.remove_false_files(&store, &mut warnings)?;
            self.mend_packs(&store.join("pack"), &mut warnings)?;
        }
        Ok(warnings)
    }

    fn remove_false_files(&self, store: &Path, warnings: &mut Vec<String>) -> Result<()> {
        for fan_out in (0..=255).map(|number| format!("{number:02x}")) {
            for path in listed(&store.join(&fan_out))? {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
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
    fn mend_packs(&self, packs: &Path, warnings: &mut Vec<String>) -> Result<()> {
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
            .filter(|path| path.extension() == Some("pack".as_ref()))
        {
            let index = pack.with_extension("idx");
            let is_old = self.is_older_than_run(pack) && self.is_older_than_run(&index);
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
                    write_atomically(&index, &true_index)?;
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
    fn index_of(&self, pack: &Path) -> Result<Option<Vec<u8>>> {
        let scratch = self.private.scratch_dir()?;
        let objects = scratch.path().join("objects");
        make_dir(&objects)?;
        let index = scratch.path().join("pack.idx");
        let call = self.bare_call().env("GIT_OBJECT_DIRECTORY", &objects);
        let is_made = call
            .words("index-pack -o")
            .arg(&index)
            .arg(pack)
            .succeeds()?;
        is_made.then(|| read(&index)).transpose()
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    plain_file::read(path, u64::MAX).map_err(io_error("read", path))
}

/// The entries of a directory, or none if it does not exist.
fn listed(dir: &Path) -> Result<Vec<PathBuf>> {
    if !is_directory(dir) {
        return Ok(Vec::new());
    }
    Ok(names(dir)?.iter().map(|name| dir.join(name)).collect())
}

fn shown(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    display_path(&[b"objects/pack/", name.as_bytes()].concat())
}
