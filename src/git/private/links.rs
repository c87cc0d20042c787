//! Finds links in the places that git writes to.

use crate::git::real::Real;
use std::collections::BTreeSet;
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The paths that git writes to when it moves the ref `name` or stores an object.
fn written_for<'a>(dir: &'a Path, name: &'a str) -> impl Iterator<Item = PathBuf> + use<'a> {
    let tops = ["packed-refs", "objects", "logs", "logs/HEAD"]
        .into_iter()
        .map(|top| dir.join(top));
    let below = ["", "logs"].into_iter().flat_map(move |top| {
        let parts: Vec<&str> = name.split('/').collect();
        // A ref itself is replaced, never written through. Its log is appended to.
        let depths = if top.is_empty() {
            1..parts.len()
        } else {
            1..parts.len() + 1
        };
        depths
            .map(move |depth| dir.join(top).join(parts[..depth].join("/")))
            .collect::<Vec<_>>()
    });
    tops.chain(below)
}

/// Whether a write to a path may go elsewhere: the path is a link, or a log with a second hard link. git
/// appends to logs, but replaces all other files.
fn leads_elsewhere(path: &Path) -> bool {
    let in_logs = || path.components().any(|part| part.as_os_str() == "logs");
    path.symlink_metadata()
        .is_ok_and(|meta| meta.is_symlink() || (meta.is_file() && meta.nlink() > 1 && in_logs()))
}

/// The links among the written paths. Some repositories have them from the start.
pub(crate) fn links(real: &Real, name: &str) -> Vec<PathBuf> {
    let is_link = |path: &PathBuf| leads_elsewhere(path);
    let mut links: Vec<PathBuf> = [&real.common_dir, &real.git_dir]
        .into_iter()
        .flat_map(|dir| written_for(dir, name).filter(is_link).collect::<Vec<_>>())
        .collect();
    links.extend(linked_fans(&real.common_dir.join("objects")));
    links
}

/// The directories of loose objects that are links. A store that cannot be listed can still be written to.
fn linked_fans(objects: &Path) -> Vec<PathBuf> {
    let listed: io::Result<Vec<DirEntry>> = fs::read_dir(objects).and_then(Iterator::collect);
    let Ok(listed) = listed else {
        let fans = (0..256).map(|fan| objects.join(format!("{fan:02x}")));
        return fans.filter(|path| leads_elsewhere(path)).collect();
    };
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_fan = |entry: &DirEntry| {
        let name = entry.file_name();
        name.len() == 2 && name.as_bytes().iter().all(is_digit)
    };
    let is_link = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
    let links: BTreeSet<PathBuf> = listed
        .iter()
        .filter(|entry| is_fan(entry) && is_link(entry))
        .map(DirEntry::path)
        .collect();
    links.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_in_place_of_directories_of_loose_objects_are_found() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["ab", "pack"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        for name in ["0f", "info", "AB", "abc"] {
            symlink("/tmp", dir.path().join(name)).unwrap();
        }
        assert_eq!(linked_fans(dir.path()), [dir.path().join("0f")]);
        assert!(linked_fans(&dir.path().join("missing")).is_empty());
    }
}
