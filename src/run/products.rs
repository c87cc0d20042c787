//! What builds leave in the work tree. Checks build what they test: what somebody else wrote since the last
//! checks is made older than every source, so that they make it again.

use crate::domain::checks::uncommitted::{is_installed, is_product};
use crate::git::{RawSnapshot, Repo, display_path};
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The files that builds made, as the checks or the start of the run left them.
#[derive(Debug, Default)]
pub struct Products {
    /// A digest of each file's path, number and time of its last change, which no program can set. `None` if
    /// nothing is known: then everything counts as changed.
    left: Option<HashSet<u64>>,
}

impl Products {
    /// Records the present state.
    pub fn record(&mut self, top: &Path, raw: &RawSnapshot, made: &BTreeSet<Vec<u8>>) {
        let files = products(top, raw, made);
        self.left = Some(files.iter().map(stamp).collect());
    }

    /// Records the present state, unless a state is recorded already.
    pub fn record_first(&mut self, top: &Path, raw: &RawSnapshot, made: &BTreeSet<Vec<u8>>) {
        if self.left.is_none() {
            self.record(top, raw, made);
        }
    }

    /// Makes every file that changed since the last record older than each source.
    pub fn outdate(&self, repo: &Repo, raw: &RawSnapshot, made: &BTreeSet<Vec<u8>>) {
        let top = repo.real().work_tree();
        let left = self.left.as_ref();
        let all = products(top, raw, made);
        let is_changed =
            |file: &&(PathBuf, Metadata)| left.is_none_or(|it| !it.contains(&stamp(file)));
        let changed: Vec<_> = all.iter().filter(is_changed).collect();
        if changed.is_empty() {
            return;
        }
        let units: HashSet<&[u8]> = changed.iter().flat_map(|(path, _)| units(path)).collect();
        let is_of_unit = |file: &&(PathBuf, Metadata)| {
            units_of_fingerprint(&file.0).any(|unit| units.contains(unit))
        };
        let time = before_each_source(repo);
        for (path, meta) in changed.into_iter().chain(all.iter().filter(is_of_unit)) {
            outdate(top, path, meta, time);
        }
    }
}

/// Whoever wrote a file may set its time. If that fails nevertheless, it is removed, as is a link to a file that
/// no build of this work tree made.
fn outdate(top: &Path, path: &Path, meta: &Metadata, time: SystemTime) {
    if meta.is_symlink() {
        if fs::canonicalize(path).is_ok_and(|target| !target.starts_with(top)) {
            let _ = fs::remove_file(path);
        }
        return;
    }
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    let time = rustix::fs::Timespec {
        tv_sec: since.map_or(0, |since| since.as_secs().try_into().unwrap_or(0)),
        tv_nsec: 0,
    };
    let times = rustix::fs::Timestamps {
        last_access: time,
        last_modification: time,
    };
    let here = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    if rustix::fs::utimensat(rustix::fs::CWD, path, &times, here).is_err() {
        let _ = fs::remove_file(path);
    }
}

/// A second before the oldest file that the work started with.
fn before_each_source(repo: &Repo) -> SystemTime {
    let top = repo.real().work_tree();
    let sources = repo.base_paths().unwrap_or_default().into_iter();
    let times = sources.filter_map(|path| {
        let meta = top.join(OsStr::from_bytes(&path)).symlink_metadata();
        meta.ok()?.modified().ok()
    });
    let oldest = times.min().unwrap_or(SystemTime::UNIX_EPOCH);
    oldest.checked_sub(Duration::from_secs(1)).unwrap_or(oldest)
}

fn stamp((path, meta): &(PathBuf, Metadata)) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    (meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec()).hash(&mut hasher);
    hasher.finish()
}

/// The files and links that git ignores and builds make, and what checks made.
fn products(top: &Path, raw: &RawSnapshot, made: &BTreeSet<Vec<u8>>) -> Vec<(PathBuf, Metadata)> {
    let mut found = Vec::new();
    for path in &raw.ignored {
        let full = top.join(OsStr::from_bytes(path));
        let shown = display_path(path);
        let Ok(meta) = full.symlink_metadata() else {
            continue;
        };
        let is_program = meta.is_file() && meta.permissions().mode() & 0o111 != 0;
        let is_made = || made.contains(path) || is_program || is_product(&shown, meta.is_dir());
        if !is_installed(&shown) && is_made() {
            add(full, meta, &mut found);
        }
    }
    found
}

fn add(path: PathBuf, meta: Metadata, found: &mut Vec<(PathBuf, Metadata)>) {
    if !meta.is_dir() {
        found.push((path, meta));
        return;
    }
    for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_installed = name == "node_modules" || name == "site-packages";
        if let Ok(meta) = entry.metadata()
            && !is_installed
        {
            add(entry.path(), meta, found);
        }
    }
}

/// What stands in the names that cargo gives to all files of one unit of a build: 16 digits after a hyphen. Cargo
/// does not look at the times of all of them.
fn units(path: &Path) -> impl Iterator<Item = &[u8]> {
    let names = path.iter().map(OsStr::as_bytes);
    names.filter_map(|name| {
        let stem = name.split(|byte| *byte == b'.').next()?;
        let (before, unit) = stem.split_at_checked(stem.len().checked_sub(16)?)?;
        (before.ends_with(b"-") && unit.iter().all(u8::is_ascii_hexdigit)).then_some(unit)
    })
}

fn units_of_fingerprint(path: &Path) -> impl Iterator<Item = &[u8]> {
    let is_fingerprint = path.iter().any(|name| name == ".fingerprint");
    units(path).filter(move |_| is_fingerprint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_units_of_cargo_are_told_by_their_names() {
        let of = |path: &str| {
            units(Path::new(path))
                .map(<[u8]>::to_vec)
                .collect::<Vec<_>>()
        };
        let unit = b"0123456789abcdef".to_vec();
        for path in [
            "target/debug/deps/a-0123456789abcdef",
            "target/debug/deps/liba-0123456789abcdef.rlib",
            "target/debug/.fingerprint/a-0123456789abcdef/dep-lib-a",
        ] {
            assert_eq!(of(path), std::slice::from_ref(&unit), "{path}");
        }
        for path in [
            "build/t",
            "a-0123",
            "0123456789abcdef",
            "a-0123456789abcdeg",
        ] {
            assert_eq!(of(path), [[0u8; 0]; 0], "{path}");
        }
    }
}
