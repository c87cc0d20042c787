//! The private index: a copy of the repository's index at the start of the run.

use crate::git::bytes::nul_joined;
use crate::git::command::Call;
use crate::git::entries::{Digest, hash};
use crate::git::error::{GitError, io_error};
use crate::git::files::{copy_content, copy_index_by};
use crate::git::objects::reader::ObjectReader;
use crate::git::private::calls::{git_dir, private_call};
use crate::git::private::head::HeadState;
use crate::git::real::Real;
use crate::git::snapshot::cache::Layout;
use crate::git::snapshot::index_file::IndexFile;
use crate::git::snapshot::index_list::{IndexRead, layout_of, read_index};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Properties of the index at the start of the run.
pub(in crate::git) struct StartIndex {
    pub(in crate::git) layout: Layout,
    /// The digest of the repository's index if it holds exactly the base.
    pub(in crate::git) is_base: Option<Digest>,
}

/// Copies the stat data of the repository's index, but nothing that hides a change: the private configuration
/// disables split indexes, untracked caches and file system monitors, so git drops them when it reads and
/// writes the index.
pub(super) fn copy_index(
    real: &Real,
    root: &Path,
    head: &HeadState,
    (base_tree, sparse): (&str, bool),
) -> Result<StartIndex, GitError> {
    let index = git_dir(root).join("index");
    let call = || private_call(real, root);
    let Some(base) = &head.oid else {
        call().args(["read-tree", "--empty"]).run()?;
        let layout = layout_of(call())?;
        let is_base = None;
        return Ok(StartIndex { layout, is_base });
    };
    let shared = shared_indexes(&real.git_dir)?;
    let found = real.git_dir.join("index");
    let copied = found.is_file().then(|| copy_index_by(&found, &index, hash));
    let digest = copied.transpose()?;
    for name in &shared {
        copy_content(&real.git_dir.join(name), &git_dir(root).join(name))?;
    }
    let mut plain = IndexFile::read(&index, base.len());
    let is_base = match digest.filter(|_| shared.is_empty() && !sparse) {
        Some(digest) => {
            let is_known = plain
                .as_ref()
                .is_some_and(|it| is_tree(root, it, base_tree));
            (is_known || holds_only(call(), base_tree)?).then_some(digest)
        }
        None => None,
    };
    if is_base.is_none() {
        call().args(["read-tree", "--reset", "-i", base]).run()?;
        plain = IndexFile::read(&index, base.len());
    }
    let mut read = plain.map_or_else(|| read_index(call()), |it| Ok(it.read))?;
    if clear_flags(real, root, sparse, &read)? {
        read = read_index(call())?;
    }
    let layout = read.layout;
    Ok(StartIndex { layout, is_base })
}

/// Whether an index is known to hold exactly this tree. Otherwise git must be asked.
fn is_tree(root: &Path, index: &IndexFile, tree: &str) -> bool {
    let entries = ObjectReader::new(&git_dir(root).join("objects")).tree(tree);
    entries.is_ok_and(|entries| index.is_tree(&entries))
}

/// Whether an index holds exactly this tree. Intent-to-add entries count as a difference.
fn holds_only(call: Call<'_>, tree: &str) -> Result<bool, GitError> {
    let args = [
        "diff-index",
        "--cached",
        "--quiet",
        "--ita-visible-in-index",
    ];
    let output = call.args(args).args(["--ignore-submodules=none", tree]);
    Ok(output.status()?.status == Some(0))
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
