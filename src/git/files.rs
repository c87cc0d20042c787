//! Files written so that a reader finds the old or the new content, and a crash leaves either.

use crate::git::error::{GitError, io_error};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Replaces a file's content in one step, on the disk before the name changes.
pub(super) fn write_atomically(path: &Path, content: &[u8]) -> Result<(), GitError> {
    let parent = path.parent().unwrap_or(Path::new("."));
    let written = tempfile::NamedTempFile::new_in(parent).and_then(|mut file| {
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        File::open(parent)?.sync_all()
    });
    written.map_err(io_error("write", path))
}

pub(super) fn write(path: &Path, content: &[u8]) -> Result<(), GitError> {
    fs::write(path, content).map_err(io_error("write", path))
}

/// Replaces a file of the work tree in one step, keeping its permissions. The new content is made
/// in `workshop`: best the git directory, where a crash leaves nothing that looks like work.
pub(super) fn replace_file(path: &Path, content: &[u8], workshop: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let permissions = fs::symlink_metadata(path).map_or_else(
        |_| fs::Permissions::from_mode(0o644),
        |meta| meta.permissions(),
    );
    let mut file = tempfile::NamedTempFile::new_in(workshop)?;
    file.write_all(content)?;
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_parent(path)
}

/// Puts the names in a path's directory on the disk.
pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}
