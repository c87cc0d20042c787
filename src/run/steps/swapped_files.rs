//! Files that were put in place of others: their content, and what build tools keep of the others.

use crate::plain_file;
use crate::run::state::work_tree::WorkTree;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::SystemTime;

/// Digests of files, by path.
pub(super) type Contents = BTreeMap<Vec<u8>, [u8; 32]>;

/// The digests of these files of the work tree.
pub(super) fn contents<'p>(
    tree: &WorkTree,
    paths: impl IntoIterator<Item = &'p Vec<u8>>,
) -> Contents {
    let paths: Vec<&Vec<u8>> = paths.into_iter().collect();
    let contents = tree.repo.contents_of(&paths);
    paths.into_iter().cloned().zip(contents).collect()
}

/// Gives the sources that may declare these modules of Rust a new time. Cargo compares the times of the files that the
/// last build has read, so that it would not see that a declaration finds another file now.
pub(super) fn renew_declaring(work_tree: &Path, differing: &[Vec<u8>]) {
    let is_source = |path: &Path| path.extension().is_some_and(|ending| ending == "rs");
    let mut declaring = BTreeSet::new();
    for path in differing {
        let path = Path::new(OsStr::from_bytes(path));
        let Some(mut dir) = path.parent().filter(|_| is_source(path)) else {
            continue;
        };
        if path.file_stem().is_some_and(|stem| stem == "mod") {
            dir = dir.parent().unwrap_or(dir);
        }
        declaring.extend(plain_file::entries(&work_tree.join(dir)));
        declaring.insert(work_tree.join(dir).with_extension("rs"));
    }
    for path in declaring.iter().filter(|path| is_source(path)) {
        // A file that is not there declares nothing.
        let _ = plain_file::open(path).and_then(|file| file.set_modified(SystemTime::now()));
    }
}

/// Removes what Python has compiled of these sources. Python compares only their size and the second of their time, which
/// may be the same for the source of another tree.
pub(super) fn forget_compiled<'p>(tree: &WorkTree, differing: impl Iterator<Item = &'p Vec<u8>>) {
    let top = tree.repo.real().work_tree();
    for path in differing.map(|path| Path::new(OsStr::from_bytes(path))) {
        let (Some(parent), Some(stem)) = (path.parent(), path.file_stem()) else {
            continue;
        };
        let cache = parent.join("__pycache__");
        let is_source = path.extension().is_some_and(|ending| ending == "py");
        if !is_source || tree.repo.has_tracked_files(&cache.to_string_lossy()) {
            continue;
        }
        let is_compiled = |path: &Path| {
            let ends = path.extension().is_some_and(|ending| ending == "pyc");
            let name = path.file_name().map_or(&[][..], OsStr::as_bytes);
            let rest = name.strip_prefix(stem.as_bytes());
            ends && rest.is_some_and(|rest| rest.starts_with(b"."))
        };
        let cache = top.join(&cache);
        if !fs::symlink_metadata(&cache).is_ok_and(|meta| meta.is_dir()) {
            continue;
        }
        let mut compiled = plain_file::entries(&cache);
        compiled.retain(|path| is_compiled(path));
        for compiled in compiled {
            // What cannot be removed is as it was before this run.
            let _ = fs::remove_file(compiled);
        }
    }
}
