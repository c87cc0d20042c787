//! Finds links in the places that git writes to.

use crate::git::private::places::AWAY;
use crate::git::real::Real;
use crate::git::special_files::leading_elsewhere;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The paths that git writes to when it moves the ref `name` or stores an object.
fn written_for(dir: &Path, name: &str) -> Vec<PathBuf> {
    let tops = ["packed-refs", "objects", "logs", "logs/HEAD"].map(|top| dir.join(top));
    let parts = || {
        Path::new(name)
            .ancestors()
            .filter(|part| *part != Path::new(""))
    };
    // A ref itself is replaced, never written through. Its log is appended to.
    let refs = parts().skip(1).map(|part| dir.join(part));
    let logs = parts().map(|part| dir.join("logs").join(part));
    tops.into_iter().chain(refs).chain(logs).collect()
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
    let dirs = [&real.common_dir, &real.git_dir].into_iter();
    let written = dirs.flat_map(|dir| written_for(dir, name));
    let links = written.filter(|path| leads_elsewhere(path));
    links
        .chain(linked_fans(&real.common_dir.join("objects")))
        .collect()
}

/// Where git writes besides the places of one ref: the entries below these directories that lead elsewhere.
pub(crate) fn links_below(real: &Real) -> BTreeSet<Vec<u8>> {
    let below = ["logs", "refs", "objects/info", "objects/pack", AWAY];
    let mut dirs = vec![&real.common_dir, &real.git_dir];
    dirs.dedup();
    let tops = dirs.iter().flat_map(|dir| below.map(|name| dir.join(name)));
    let is_directory = |top: &PathBuf| top.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    // A pack may have a second name, and is never written.
    let is_written = |path: &PathBuf| {
        !path.components().any(|part| part.as_os_str() == "pack") || path.is_symlink()
    };
    let found = tops
        .filter(is_directory)
        .flat_map(|top| leading_elsewhere(&top, |_| true));
    found
        .filter(is_written)
        .map(|path| path.into_os_string().into_vec())
        .collect()
}

/// The directories of loose objects that are links. A store that cannot be listed can still be written to.
fn linked_fans(objects: &Path) -> impl Iterator<Item = PathBuf> {
    let fans = (0..256).map(|fan| objects.join(format!("{fan:02x}")));
    fans.filter(|path| leads_elsewhere(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
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
        let found: Vec<PathBuf> = linked_fans(dir.path()).collect();
        assert_eq!(found, [dir.path().join("0f")]);
        assert_eq!(linked_fans(&dir.path().join("missing")).next(), None);
    }
}
