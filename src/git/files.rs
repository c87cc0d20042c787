//! Atomic file writes: a reader or a crash finds either the old or the new content.

use crate::git::error::{GitError, Result, io_error};
use crate::plain_file;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::Path;
use tempfile::NamedTempFile;

/// Replaces a file's content atomically. The content is flushed to disk before the rename.
pub(crate) fn write_atomically(path: &Path, content: &[u8]) -> Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    let written = NamedTempFile::new_in(parent).and_then(|mut file| {
        file.write_all(content)?;
        place(file, path)
    });
    written.map_err(io_error("write", path))
}

/// Puts a written file at its path, and flushes both to disk.
fn place(file: NamedTempFile, path: &Path) -> io::Result<()> {
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_parent(path)
}

pub(crate) fn write(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).map_err(io_error("write", path))
}

/// Writes a record atomically.
pub(crate) fn write_record(path: &Path, record: &impl Serialize) -> Result<()> {
    let text = serde_json::to_vec(record).map_err(damaged(path))?;
    write_atomically(path, &text)
}

/// Reads a record, or returns `None` if there is none.
pub(crate) fn read_record<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    if metadata(path)?.is_none() {
        return Ok(None);
    }
    serde_json::from_slice(&read(path)?)
        .map(Some)
        .map_err(damaged(path))
}

fn damaged(path: &Path) -> impl FnOnce(serde_json::Error) -> GitError {
    move |error| GitError::private(path, error.to_string())
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
    let permissions = fs::symlink_metadata(path).map_or_else(
        |_| fs::Permissions::from_mode(0o644),
        |meta| meta.permissions(),
    );
    let mut file = NamedTempFile::new_in(workshop)?;
    write(file.as_file_mut())?;
    file.as_file().set_permissions(permissions)?;
    place(file, path)
}

/// Copies an index with its modification time, from which git knows which entries may have changed since
/// without another size or time.
pub(crate) fn copy_index(from: &Path, to: &Path) -> Result<()> {
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
pub(crate) fn copy_content(from: &Path, to: &Path) -> Result<()> {
    if from.is_file() {
        write(to, &read(from)?)?;
    }
    Ok(())
}

/// Makes `to` identical to `from`: a file, a link, a whole directory, or nothing.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    remove(to)?;
    let Some(meta) = metadata(from)? else {
        return Ok(());
    };
    if let Some(parent) = to.parent() {
        make_dir(parent)?;
    }
    if meta.is_symlink() {
        let target = fs::read_link(from).map_err(io_error("read", from))?;
        symlink(target, to).map_err(io_error("write", to))
    } else if meta.is_dir() {
        make_dir(to)?;
        for name in names(from)? {
            copy_tree(&from.join(&name), &to.join(&name))?;
        }
        Ok(())
    } else if meta.is_file() {
        fs::copy(from, to)
            .map(drop)
            .map_err(io_error("copy to", to))
    } else {
        Ok(())
    }
}

/// Moves a file, a link or a whole directory to a path where nothing is. `to` is never incomplete, also if the
/// paths are on different file systems: what is left of `from` then is removed under the name `gone`.
pub(crate) fn move_tree(from: &Path, to: &Path, gone: &Path) -> Result<()> {
    let moved = match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let mut part = to.as_os_str().to_owned();
            part.push(".sprag-part");
            copy_tree(from, Path::new(&part))?;
            copy_modes(from, Path::new(&part))?;
            if let Ok(file) = plain_file::open(Path::new(&part)) {
                file.sync_all().map_err(io_error("write", to))?;
            }
            fs::rename(&part, to).map_err(io_error("move to", to))?;
            fs::rename(from, gone).map_err(io_error("move", from))?;
            return remove(gone);
        }
        moved => moved,
    };
    moved.map_err(io_error("move", from))
}

/// How many bytes the files at and below `path` have.
pub(crate) fn length(path: &Path) -> Result<u64> {
    match metadata(path)? {
        Some(meta) if meta.is_dir() => {
            let lengths = names(path)?
                .into_iter()
                .map(|name| length(&path.join(name)));
            lengths.sum()
        }
        meta => Ok(meta.map_or(0, |meta| meta.len())),
    }
}

/// Gives the copies of directories the modes of the originals, the innermost first.
fn copy_modes(from: &Path, to: &Path) -> Result<()> {
    let Some(meta) = metadata(from)?.filter(Metadata::is_dir) else {
        return Ok(());
    };
    for name in names(from)? {
        copy_modes(&from.join(&name), &to.join(&name))?;
    }
    fs::set_permissions(to, meta.permissions()).map_err(io_error("set the mode of", to))
}

/// Whether two paths have the same kind, executable bit and content, recursively for directories.
pub(crate) fn same(one: &Path, other: &Path) -> Result<bool> {
    let (a, b) = match (metadata(one)?, metadata(other)?) {
        (None, None) => return Ok(true),
        (Some(a), Some(b)) => (a, b),
        _ => return Ok(false),
    };
    if a.is_symlink() && b.is_symlink() {
        let link = |path: &Path| fs::read_link(path).map_err(io_error("read", path));
        Ok(link(one)? == link(other)?)
    } else if a.is_dir() && b.is_dir() {
        let listed = names(one)?;
        let mut is_same = listed == names(other)?;
        for name in listed {
            is_same = is_same && same(&one.join(&name), &other.join(&name))?;
        }
        Ok(is_same)
    } else if a.is_file() && b.is_file() {
        let is_executable = |meta: &Metadata| meta.permissions().mode() & 0o111 != 0;
        let is_alike = is_executable(&a) == is_executable(&b) && a.len() == b.len();
        Ok(is_alike && read(one)? == read(other)?)
    } else {
        Ok(false)
    }
}

/// Removes whatever is at `path`, without following a link. Directories need not be writable, as those of
/// Go's module cache are not.
///
/// # Errors
/// When it cannot be removed.
pub fn remove(path: &Path) -> Result<()> {
    let removed = match metadata(path)? {
        None => return Ok(()),
        Some(meta) if meta.is_dir() => match fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                make_writable(path)?;
                fs::remove_dir_all(path)
            }
            removed => removed,
        },
        Some(_) => fs::remove_file(path),
    };
    removed.map_err(io_error("remove", path))
}

/// Makes a directory and those below it writable for their owner.
fn make_writable(dir: &Path) -> Result<()> {
    let permissions = fs::Permissions::from_mode(0o700);
    fs::set_permissions(dir, permissions).map_err(io_error("make writable", dir))?;
    for name in names(dir)? {
        let path = dir.join(name);
        if is_directory(&path) {
            make_writable(&path)?;
        }
    }
    Ok(())
}

/// Creates a directory that only its owner can access, and its parents.
pub(crate) fn make_dir(path: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(io_error("create", path))
}

/// The metadata of `path` itself, or `None` if it does not exist.
pub(crate) fn metadata(path: &Path) -> Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(meta) => Ok(Some(meta)),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(io_error("read", path)(error)),
    }
}

/// Whether a directory, and no link to one, is at `path`.
pub(crate) fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

/// Whether a link is at `path`.
pub(crate) fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_symlink())
}

/// Whether anything is at `path`, be it a link that leads nowhere.
pub(crate) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

pub(crate) fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// The names in a directory, in order.
pub(crate) fn names(dir: &Path) -> Result<Vec<std::ffi::OsString>> {
    let entries = fs::read_dir(dir).map_err(io_error("read", dir))?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    let names: io::Result<Vec<_>> = names.collect();
    let mut names = names.map_err(io_error("read", dir))?;
    names.sort();
    Ok(names)
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(io_error("read", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_the_same_until_anything_in_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("from");
        let to = dir.path().join("deep/to");
        fs::create_dir_all(from.join("sub")).unwrap();
        fs::write(from.join("sub/file"), "x").unwrap();
        symlink("/etc", from.join("link")).unwrap();
        copy_tree(&from, &to).unwrap();
        assert!(same(&from, &to).unwrap());
        assert!(fs::symlink_metadata(to.join("link")).unwrap().is_symlink());

        fs::set_permissions(from.join("sub/file"), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(!same(&from, &to).unwrap());
        copy_tree(&to, &from).unwrap();
        assert!(same(&from, &to).unwrap());

        let closed = fs::Permissions::from_mode(0o500);
        fs::set_permissions(from.join("sub"), closed).unwrap();
        remove(&from).unwrap();
        assert!(!same(&from, &to).unwrap());
        copy_tree(&from, &to).unwrap();
        assert!(same(&from, &to).unwrap(), "a copy of nothing is nothing");
    }

    #[test]
    fn a_directory_moves_to_another_file_system() {
        let dir = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let from = dir.path().join("from");
        let to = other.path().join("to");
        fs::create_dir(&from).unwrap();
        fs::write(from.join("file"), "x").unwrap();
        symlink("/etc", from.join("link")).unwrap();
        fs::set_permissions(&from, fs::Permissions::from_mode(0o750)).unwrap();
        move_tree(&from, &to, &from).unwrap();
        assert!(!from.exists());
        assert_eq!(names(&to).unwrap(), ["file", "link"]);
        assert_eq!(names(other.path()).unwrap(), ["to"]);
        move_tree(&to, &from, &other.path().join("gone")).unwrap();
        let mode = fs::metadata(&from).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o750);
        assert_eq!(read(&from.join("file")).unwrap(), b"x");
        assert!(names(other.path()).unwrap().is_empty());
    }
}
