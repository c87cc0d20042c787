//! The sockets with a path on which other programs of the machine listen.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// The kernel's list of the sockets of a network namespace.
const LIST: &str = "/proc/self/net/unix";

/// The fields of a line before the path.
const FIELDS: usize = 7;

/// The sockets with a path in the network namespace of this process that its user may connect to, without
/// links.
pub fn reachable_sockets() -> Vec<PathBuf> {
    use rustix::fs::{Access, access};
    let list = fs::read(LIST).unwrap_or_default();
    let paths = list.split(|byte| *byte == b'\n').filter_map(path);
    let mut found: Vec<PathBuf> = paths
        .filter_map(|path| path.canonicalize().ok())
        .filter(|path| access(path, Access::WRITE_OK).is_ok())
        .filter(|path| {
            let metadata = path.symlink_metadata();
            metadata.is_ok_and(|metadata| metadata.file_type().is_socket())
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

/// The absolute path in a line of the list.
fn path(line: &[u8]) -> Option<&Path> {
    let mut rest = line;
    for _ in 0..FIELDS {
        let start = rest.iter().position(|byte| *byte != b' ')?;
        let field = rest.get(start..)?;
        let end = field.iter().position(|byte| *byte == b' ')?;
        rest = field.get(end..)?;
    }
    let path = Path::new(OsStr::from_bytes(rest.get(1..)?));
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_socket_is_found_by_its_path() {
        let line = b"0000000000000000: 00000002 00000000 00010000 0001 01 12345 /run/a b";
        assert_eq!(path(line), Some(Path::new("/run/a b")));
        let line = b"0000000000000000: 00000002 00000000 00010000 0001 01   345 /run/c";
        assert_eq!(path(line), Some(Path::new("/run/c")));
        for name in ["@abstract", "relative", ""] {
            let line = format!("0: 00000002 00000000 00010000 0001 01 12345 {name}");
            assert_eq!(path(line.as_bytes()), None);
        }
        let top = tempfile::tempdir().unwrap();
        let at = top.path().canonicalize().unwrap().join("odd name");
        let listener = UnixListener::bind(&at).unwrap();
        assert!(reachable_sockets().contains(&at));
        drop(listener);
        assert!(!reachable_sockets().contains(&at));
    }
}
