//! Finds links in the places that git writes to.

use crate::git::real::Real;
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
pub(in crate::git) fn links(real: &Real, name: &str) -> Vec<PathBuf> {
    let is_link = |path: &PathBuf| leads_elsewhere(path);
    let mut links: Vec<PathBuf> = [&real.common_dir, &real.git_dir]
        .into_iter()
        .flat_map(|dir| written_for(dir, name).filter(is_link).collect::<Vec<_>>())
        .collect();
    let objects = real.common_dir.join("objects");
    links.extend(
        (0..256)
            .map(|fan| objects.join(format!("{fan:02x}")))
            .filter(is_link),
    );
    links
}
