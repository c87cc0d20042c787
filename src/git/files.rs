//! Atomic file writes: a reader or a crash finds either the old or the new content.

use crate::git::copy_tree::metadata;
use crate::git::error::{GitError, io_error};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Replaces a file's content atomically. The content is flushed to disk before the rename.
pub(crate) fn write_atomically(path: &Path, content: &[u8]) -> Result<(), GitError> {
    let parent = path.parent().unwrap_or(Path::new("."));
    let written = tempfile::NamedTempFile::new_in(parent).and_then(|mut file| {
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        File::open(parent)?.sync_all()
    });
    written.map_err(io_error("write", path))
}

pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), GitError> {
    fs::write(path, content).map_err(io_error("write", path))
}

/// Writes a record atomically.
pub(crate) fn write_record(path: &Path, record: &impl Serialize) -> Result<(), GitError> {
    let text = serde_json::to_vec(record).map_err(damaged(path))?;
    write_atomically(path, &text)
}

/// Reads a record, or returns `None` if there is none.
pub(crate) fn read_record<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, GitError> {
    if metadata(path)?.is_none() {
        return Ok(None);
    }
    let text = fs::read(path).map_err(io_error("read", path))?;
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(damaged(path))
}

fn damaged(path: &Path) -> impl FnOnce(serde_json::Error) -> GitError {
    let path = path.to_path_buf();
    move |error| GitError::Private {
        path,
        why: error.to_string(),
    }
}

/// Replaces a file of the work tree atomically and keeps its permissions. The temporary file is made in
/// `workshop`, preferably the git directory, where a crash leaves nothing that looks like work.
pub(crate) fn replace_file(path: &Path, content: &[u8], workshop: &Path) -> io::Result<()> {
    replace_file_by(path, workshop, |file| file.write_all(content))
}

/// Like [`replace_file`], with content that a function writes.
pub(crate) fn replace_file_by(
    path: &Path,
    workshop: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let permissions = fs::symlink_metadata(path).map_or_else(
        |_| fs::Permissions::from_mode(0o644),
        |meta| meta.permissions(),
    );
    let mut file = tempfile::NamedTempFile::new_in(workshop)?;
    write(file.as_file_mut())?;
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_parent(path)
}

/// Copies an index with its modification time, from which git knows which entries may have changed since
/// without another size or time.
pub(crate) fn copy_index(from: &Path, to: &Path) -> Result<(), GitError> {
    let copied = || {
        let mut source = File::open(from)?;
        let time = source.metadata()?.modified()?;
        let mut target = File::create(to)?;
        io::copy(&mut source, &mut target)?;
        target.set_modified(time)
    };
    copied().map_err(io_error("copy to", to))
}

/// Flushes the parent directory of `path`, so that new names in it are on disk.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// Copies a file's content if the file exists. A link is followed, as git does.
pub(crate) fn copy_content(from: &Path, to: &Path) -> Result<(), GitError> {
    if !from.is_file() {
        return Ok(());
    }
    let content = fs::read(from).map_err(io_error("read", from))?;
    write(to, &content)
}
