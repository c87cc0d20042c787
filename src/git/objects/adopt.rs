//! Copies objects from Sprag's own store into the repository. Their content is read again and written to new
//! files.

use crate::git::commit::request::CommitError;
use crate::git::error::{GitError, io_error};
use crate::git::files::{metadata, remove};
use crate::git::objects::loose::{UNFINISHED, loose_path, read_loose};
use crate::git::objects::new_objects::NewObjects;
use crate::git::repo::Repo;
use crate::plain_file;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{self, BufReader, ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// Up to this many files are flushed individually. For more, the whole file system is flushed once.
const FLUSHED_ONE_BY_ONE: usize = 64;

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
    fn adopt_once(&self, objects: &NewObjects) -> Result<Vec<String>, GitError> {
        self.write_files(objects)?;
        self.unsound_in_repository(&objects.ids().collect::<Vec<_>>())
    }

    /// Writes the objects that Sprag has made. The repository has the others already.
    fn write_files(&self, objects: &NewObjects) -> Result<(), GitError> {
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
                if metadata(&to)?.is_some_and(|meta| meta.is_dir()) {
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
pub(crate) fn import_object(from: &Path, to: &Path, id: &str, flush: bool) -> Result<(), GitError> {
    let place = loose_path(to, id);
    if let Some(file) = written_anew(&loose_path(from, id), &place, id, flush)? {
        file.persist(&place)
            .map_err(|error| io_error("write", &place)(error.error))?;
    }
    Ok(())
}

/// Writes the object in the file `from` to a temporary file beside `to`. `None` if it is not the object with
/// this id.
fn written_anew(
    from: &Path,
    to: &Path,
    id: &str,
    flush: bool,
) -> Result<Option<TempPath>, GitError> {
    let source = match plain_file::open(from) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("read", from)(error)),
    };
    let dir = to.parent().unwrap_or(to);
    match fs::create_dir(dir) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(io_error("create", dir)(error));
        }
        _ => {}
    }
    let file = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .permissions(Permissions::from_mode(0o444))
        .tempfile_in(dir)
        .map_err(io_error("create a file in", dir))?;
    let mut deflate = ZlibEncoder::new(file, Compression::fast());
    let mut written: io::Result<()> = Ok(());
    let digest = read_loose(BufReader::new(source), id, &mut |piece| {
        if written.is_ok() {
            written = deflate.write_all(piece.bytes());
        }
    });
    let is_it = digest.map_err(io_error("read", from))?.is_some();
    if !is_it {
        return Ok(None);
    }
    let file = written
        .and_then(|()| deflate.finish())
        .and_then(|file| {
            if flush {
                file.as_file().sync_all()?;
            }
            Ok(file)
        })
        .map_err(io_error("write", to))?;
    Ok(Some(file.into_temp_path()))
}

fn flush_file_system(dir: &Path) -> Result<(), GitError> {
    #[cfg(target_os = "linux")]
    let flushed = File::open(dir).and_then(|dir| Ok(rustix::fs::syncfs(dir)?));
    // Other systems flush every file system at once and do not report failures.
    #[cfg(not(target_os = "linux"))]
    let flushed = File::open(dir).map(|_| rustix::fs::sync());
    flushed.map_err(io_error("write", dir))
}
