//! The copies of what is restored in the git directories after a turn.
//!
//! A directory of hooks usually has only the samples that git puts there. They are kept in one file, since the
//! copies are looked at whenever other code may have run.

use crate::git::bytes::as_path;
use crate::git::copy_tree::{copy_tree, make_dir, metadata, names, remove, same};
use crate::git::error::{GitError, io_error};
use crate::git::files::write;
use crate::plain_file;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// How many samples are kept in one file, and how many bytes of each; git has about 15 of at most 5 KB.
const SAMPLES_LIMIT: usize = 64;
const SAMPLE_LIMIT: u64 = 64 * 1024;

/// Makes `copy` a copy of `place`, whatever is there.
pub(super) fn keep(place: &Path, copy: &Path) -> Result<(), GitError> {
    let list = list_beside(copy);
    if is_of_hooks(copy) {
        remove(&list)?;
    }
    let Some(samples) = samples(place)? else {
        return copy_tree(place, copy);
    };
    remove(copy)?;
    if let Some(parent) = list.parent() {
        make_dir(parent)?;
    }
    write(&list, &samples)
}

/// Whether a place is as it was when its copy was made.
pub(super) fn is_as_kept(place: &Path, copy: &Path) -> Result<bool, GitError> {
    match kept_samples(copy)? {
        Some(kept) => Ok(samples(place)? == Some(kept)),
        None => same(place, copy),
    }
}

/// Makes a place as it was when its copy was made.
pub(super) fn put_back(copy: &Path, place: &Path) -> Result<(), GitError> {
    let Some(kept) = kept_samples(copy)? else {
        return copy_tree(copy, place);
    };
    remove(place)?;
    make_dir(place)?;
    let mut left = kept.as_slice();
    while !left.is_empty() {
        let invalid = || io_error("read", &list_beside(copy))(io::ErrorKind::InvalidData.into());
        let (name, mode, content) = next_sample(&mut left).ok_or_else(invalid)?;
        let path = place.join(as_path(name));
        write(&path, content)?;
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(&path, permissions).map_err(io_error("set the mode of", &path))?;
    }
    Ok(())
}

fn list_beside(copy: &Path) -> PathBuf {
    copy.with_extension("samples")
}

fn is_of_hooks(path: &Path) -> bool {
    path.ends_with("hooks")
}

fn kept_samples(copy: &Path) -> Result<Option<Vec<u8>>, GitError> {
    let list = list_beside(copy);
    if !is_of_hooks(copy) || metadata(&list)?.is_none() {
        return Ok(None);
    }
    let kept = fs::read(&list).map_err(io_error("read", &list))?;
    Ok(Some(kept))
}

/// The samples in a directory of hooks, ordered by name; `None` if it has anything else.
fn samples(place: &Path) -> Result<Option<Vec<u8>>, GitError> {
    if !is_of_hooks(place) || !metadata(place)?.is_some_and(|meta| meta.is_dir()) {
        return Ok(None);
    }
    let names = names(place)?;
    let mut all = Vec::new();
    let is_whole = names.len() <= SAMPLES_LIMIT
        && names
            .iter()
            .all(|name| add_sample(&mut all, place, name).is_some());
    Ok(is_whole.then_some(all))
}

/// Adds a sample: its name and a zero byte, whether it can be executed, its size, and its content.
fn add_sample(all: &mut Vec<u8>, place: &Path, name: &OsStr) -> Option<()> {
    let is_sample = name.as_bytes().ends_with(b".sample");
    let file = is_sample.then(|| plain_file::open(&place.join(name)).ok())??;
    let is_executable = file.metadata().ok()?.permissions().mode() & 0o111 != 0;
    let content = plain_file::content_of(file, SAMPLE_LIMIT).ok()?;
    all.extend_from_slice(name.as_bytes());
    all.extend([0, u8::from(is_executable)]);
    all.extend((content.len() as u64).to_le_bytes());
    all.extend(content);
    Some(())
}

/// Name, mode and content of the first of these samples, which is taken off them.
fn next_sample<'a>(samples: &mut &'a [u8]) -> Option<(&'a [u8], u32, &'a [u8])> {
    let end = memchr::memchr(0, samples)?;
    let (name, rest) = samples.split_at_checked(end)?;
    let (is_executable, rest) = rest.get(1..)?.split_first()?;
    let (size, rest) = rest.split_first_chunk()?;
    let size = usize::try_from(u64::from_le_bytes(*size)).ok()?;
    let (content, rest) = rest.split_at_checked(size)?;
    *samples = rest;
    let mode = if *is_executable == 1 { 0o755 } else { 0o644 };
    Some((name, mode, content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn is_executable(path: &Path) -> bool {
        fs::metadata(path).unwrap().permissions().mode() & 0o111 != 0
    }

    #[test]
    fn samples_are_kept_in_one_file_and_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("hooks");
        let copy = dir.path().join("copy/hooks");
        fs::create_dir(&place).unwrap();
        for (name, mode) in [("a.sample", 0o755), ("b.sample", 0o644)] {
            fs::write(place.join(name), name).unwrap();
            fs::set_permissions(place.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        keep(&place, &copy).unwrap();
        assert!(!copy.exists());
        let changes: [fn(&Path); 7] = [
            |place| fs::write(place.join("a.sample"), "b.sample").unwrap(),
            |place| fs::write(place.join("pre-commit"), "").unwrap(),
            |place| fs::remove_file(place.join("a.sample")).unwrap(),
            |place| fs::create_dir(place.join("c.sample")).unwrap(),
            |place| {
                let executable = fs::Permissions::from_mode(0o755);
                fs::set_permissions(place.join("b.sample"), executable).unwrap();
            },
            |place| {
                fs::rename(place.join("a.sample"), place.with_extension("away")).unwrap();
                symlink(place.with_extension("away"), place.join("a.sample")).unwrap();
            },
            |place| {
                fs::rename(place, place.with_extension("moved")).unwrap();
                symlink(place.with_extension("moved"), place).unwrap();
            },
        ];
        for (number, change) in changes.iter().enumerate() {
            assert!(is_as_kept(&place, &copy).unwrap(), "{number}");
            change(&place);
            assert!(!is_as_kept(&place, &copy).unwrap(), "{number}");
            put_back(&copy, &place).unwrap();
        }
        assert!(is_executable(&place.join("a.sample")));
        assert!(!is_executable(&place.join("b.sample")));
    }

    #[test]
    fn a_hook_makes_the_copy_one_of_files_and_another_run_may_keep_samples_again() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("hooks");
        let copy = dir.path().join("copy/hooks");
        fs::create_dir(&place).unwrap();
        fs::write(place.join("a.sample"), "a").unwrap();
        for hook in ["", "#!/bin/sh\n", ""] {
            let _ = fs::remove_file(place.join("pre-commit"));
            if !hook.is_empty() {
                fs::write(place.join("pre-commit"), hook).unwrap();
            }
            keep(&place, &copy).unwrap();
            assert_eq!(copy.exists(), !hook.is_empty());
            assert!(is_as_kept(&place, &copy).unwrap());
            fs::write(place.join("pre-push"), "").unwrap();
            assert!(!is_as_kept(&place, &copy).unwrap());
            put_back(&copy, &place).unwrap();
        }
    }
}
