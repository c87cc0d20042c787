//! Opens files in places where other processes may write.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The content of a regular file, without following a link and without blocking on a pipe.
///
/// # Errors
/// When it cannot be read, is not a regular file, or has more than `at_most` bytes.
pub(crate) fn read(path: &Path, at_most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let read = open(path)?
        .take(at_most.saturating_add(1))
        .read_to_end(&mut content)?;
    match u64::try_from(read).is_ok_and(|read| read <= at_most) {
        true => Ok(content),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it has more than {at_most} bytes"),
        )),
    }
}

/// Opens a regular file for reading. Does not follow a link and does not block on a pipe.
///
/// # Errors
/// When it cannot be opened, or is not a regular file.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        )),
    }
}
