//! Files that a report is appended to, such as those of the runner.

use anyhow::Context as _;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a file that is only ever appended to. A symbolic link in its place is an error, so that nobody who
/// can write there can redirect the output. A pipe without a reader is an error too.
///
/// # Errors
/// When it cannot be opened.
pub fn append_only(path: &Path) -> anyhow::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(no_follow() | no_wait())
        .open(path)
        .with_context(|| format!("{} cannot be opened", path.display()))
}

/// The flag of `open` that makes a symbolic link an error.
pub fn no_follow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0)
}

/// The flag of `open` that prevents blocking.
pub fn no_wait() -> i32 {
    i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0)
}
