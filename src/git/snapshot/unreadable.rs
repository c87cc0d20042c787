//! Directories that cannot be listed. A program can use a file in one all the same if it knows the file's name, so
//! that checks may see what git does not.

use crate::git::bytes::as_path;
use crate::git::error::{GitError, io_error};
use crate::git::repo::Repo;
use crate::git::snapshot::change::Candidate;
use crate::git::snapshot::index_list::Layout;
use crate::git::snapshot::listing::Status;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

impl Repo {
    /// The directories that git left out of its list because they cannot be read. They are searched for only if git
    /// warns of something: of many warnings, only the last ones are known here.
    pub(crate) fn unreadable_directories(&self, status: &Status) -> Vec<(PathBuf, io::Error)> {
        let mut found = Vec::new();
        if !status.warnings.is_empty() {
            let passed_over = status
                .ignored
                .iter()
                .chain(&status.nested)
                .map(Vec::as_slice)
                .collect();
            search(
                &self.real.work_tree,
                Path::new(""),
                &passed_over,
                &mut found,
            );
        }
        found
    }
}

/// The paths of unreadable directories that hold nothing which a commit contains.
///
/// # Errors
/// If a commit would contain a part of one of them.
pub(crate) fn without_committed_files(
    unreadable: Vec<(PathBuf, io::Error)>,
    layout: &Layout,
    candidates: &[Candidate],
) -> Result<Vec<Vec<u8>>, GitError> {
    let mut paths = Vec::new();
    for (directory, error) in unreadable {
        let is_below = |one: &Candidate| as_path(&one.path).starts_with(&directory);
        let bytes = directory.as_os_str().as_bytes();
        if layout.directories.contains(bytes) || candidates.iter().any(is_below) {
            return Err(io_error("list", &directory)(error));
        }
        paths.push(bytes.to_vec());
    }
    Ok(paths)
}

/// Adds the directories at and below `directory` that cannot be read, without links, git directories, and what is
/// `passed_over`.
fn search(
    top: &Path,
    directory: &Path,
    passed_over: &BTreeSet<&[u8]>,
    found: &mut Vec<(PathBuf, io::Error)>,
) {
    let entries = match fs::read_dir(top.join(directory)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        Err(error) => return found.push((directory.to_path_buf(), error)),
    };
    for entry in entries.flatten() {
        let path = directory.join(entry.file_name());
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let is_passed_over =
            entry.file_name() == ".git" || passed_over.contains(path.as_os_str().as_bytes());
        if is_directory && !is_passed_over {
            search(top, &path, passed_over, found);
        }
    }
}
