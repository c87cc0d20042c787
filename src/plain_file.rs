//! Opens files in places where other processes may write.

use rustix::fs::{Mode, OFlags};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

/// How many bytes are read at once at most.
const ROOM: u64 = 64 * 1024;

/// What a directory has, sorted; nothing if it cannot be read.
pub(crate) fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The content of a regular file, without following a link and without blocking on a pipe.
///
/// # Errors
/// When it cannot be read, is not a regular file, or has more than `at_most` bytes.
pub(crate) fn read(path: &Path, at_most: u64) -> io::Result<Vec<u8>> {
    content_of(open(path)?, at_most)
}

/// The rest of an open file's content.
///
/// # Errors
/// When it cannot be read, or has more than `at_most` bytes.
pub(crate) fn content_of(file: File, at_most: u64) -> io::Result<Vec<u8>> {
    // A vector without room is filled in steps that begin with a few bytes.
    let size = file.metadata()?.len().min(ROOM);
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    let read = file
        .take(at_most.saturating_add(1))
        .read_to_end(&mut content)?;
    if u64::try_from(read).is_ok_and(|read| read <= at_most) {
        Ok(content)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it has more than {at_most} bytes"),
        ))
    }
}

/// Opens a regular file below a directory for reading. No directory on the way may be a link, and neither may the
/// file: a link could lead to what only this process can read. Does not block on a pipe.
///
/// # Errors
/// When it cannot be opened, or is not a regular file.
pub(crate) fn open_below(top: &Path, below: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let none = Mode::empty();
    let mut at = rustix::fs::open(top, flags | OFlags::DIRECTORY, none)?;
    let mut parts = below.components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let kind = match parts.peek() {
            Some(_) => OFlags::DIRECTORY,
            None => OFlags::empty(),
        };
        at = rustix::fs::openat(&at, name, flags | kind, none)?;
    }
    regular(File::from(at))
}

/// Opens a regular file for reading. Does not follow a link and does not block on a pipe.
///
/// # Errors
/// When it cannot be opened, or is not a regular file.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    regular(file)
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_below_a_directory_is_not_reached_through_a_link() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join("d")).unwrap();
        fs::write(top.path().join("d/f"), "x").unwrap();
        symlink("d", top.path().join("l")).unwrap();
        symlink("f", top.path().join("d/l")).unwrap();
        symlink("/proc/self", top.path().join("d/p")).unwrap();
        nix::unistd::mkfifo(&top.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let opens = |below: &str| open_below(top.path(), Path::new(below)).is_ok();
        assert!(opens("d/f"));
        for below in [
            "l/f",
            "d/l",
            "d/p/environ",
            "../x",
            "/etc/passwd",
            "d",
            "pipe",
            "no",
        ] {
            assert!(!opens(below), "{below}");
        }
    }
}
