//! The private index: a copy of the repository's index at the start of the run.

use crate::git::bytes::nul_joined;
use crate::git::error::{GitError, io_error};
use crate::git::files::{self, copy_content};
use crate::git::private::calls::{git_dir, private_call};
use crate::git::real::Real;
use crate::git::snapshot::index_list::{IndexRead, Layout, read_index};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Copies the stat data of the repository's index, but nothing that hides a change: the private configuration
/// disables split indexes, untracked caches and file system monitors, so git drops them when it reads and
/// writes the index. Returns the layout of the base.
pub(super) fn copy_index(
    real: &Real,
    root: &Path,
    base: Option<&str>,
    sparse: bool,
) -> Result<Layout, GitError> {
    let index = git_dir(root).join("index");
    let call = || private_call(real, root);
    let Some(base) = base else {
        call().args(["read-tree", "--empty"]).run()?;
        return Ok(read_index(call())?.layout);
    };
    let found = real.git_dir.join("index");
    if found.is_file() {
        files::copy_index(&found, &index)?;
    }
    for name in shared_indexes(&real.git_dir)? {
        copy_content(&real.git_dir.join(&name), &git_dir(root).join(&name))?;
    }
    call().args(["read-tree", "--reset", "-i", base]).run()?;
    let mut read = read_index(call())?;
    if clear_flags(real, root, sparse, &read)? {
        read = read_index(call())?;
    }
    Ok(read.layout)
}

fn shared_indexes(git_dir: &Path) -> Result<Vec<std::ffi::OsString>, GitError> {
    let entries = fs::read_dir(git_dir).map_err(io_error("read", git_dir))?;
    let names = entries.filter_map(|entry| entry.ok().map(|entry| entry.file_name()));
    Ok(names
        .filter(|name| name.as_bytes().starts_with(b"sharedindex."))
        .collect())
}

/// Clears assume-unchanged bits, which hide changes, and skip-worktree bits unless a sparse checkout needs
/// them. Returns whether there were any.
fn clear_flags(real: &Real, root: &Path, sparse: bool, read: &IndexRead) -> Result<bool, GitError> {
    let skipped: &[Vec<u8>] = if sparse { &[] } else { &read.skipped };
    for (flag, paths) in [
        ("--no-assume-unchanged", read.assumed.as_slice()),
        ("--no-skip-worktree", skipped),
    ] {
        if !paths.is_empty() {
            let paths = nul_joined(paths.iter().map(Vec::as_slice));
            let call = private_call(real, root).args(["update-index", flag, "-z", "--stdin"]);
            call.stdin(paths).run()?;
        }
    }
    Ok(!read.assumed.is_empty() || !skipped.is_empty())
}
