//! git's reports of differences, as lists of paths to inspect.

use crate::git::bytes::{as_path, nul_fields};
use crate::git::error::{Result, io_error};
use crate::git::repo::Repo;
use crate::git::snapshot::change::Candidate;
use crate::git::snapshot::index_list::Layout;
use crate::git::snapshot::listing::{GITLINK, Listed, RawDiff, Status, parse, parse_raw};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Maximum number of paths in a command line. Beyond it, git is asked about all paths.
const PATHS_PER_COMMAND: usize = 200;

impl Repo {
    /// The differences between the work tree and `index`, including untracked files. A file that its filter
    /// would convert to what the index has counts as different if its time or size has changed:
    /// [`Repo::truly_modified`] runs the filters.
    pub(crate) fn status(&self, index: &Path) -> Result<Status> {
        // Lists an ignored directory and not what is in it.
        let args = "status --porcelain=v2 -z -uall --no-renames --no-ahead-behind
            --ignored=matching --ignore-submodules=all";
        let output = self.with_index(index).words(args).run()?;
        let mut status = parse(&output.stdout)?;
        status.warnings = warnings(&output.stderr).collect();
        Ok(status)
    }

    /// Those tracked paths whose content differs after conversion for a commit. `git status` lists a file of
    /// another size without checking this.
    pub(crate) fn truly_modified(
        &self,
        index: &Path,
        paths: &[&[u8]],
        warnings: &mut Vec<String>,
    ) -> Result<BTreeSet<Vec<u8>>> {
        let (filtered, plain) = self.split_by_filter(index, paths.to_vec())?;
        let mut modified = BTreeSet::new();
        // A filter has no say about any file but its own.
        for (paths, has_filters) in [(plain, false), (filtered, true)] {
            if paths.is_empty() {
                continue;
            }
            let call = if has_filters {
                self.converting()?
            } else {
                self.call()
            };
            let args = "diff --name-only -z --no-renames --ignore-submodules=all --";
            let mut call = call.env("GIT_INDEX_FILE", index).words(args);
            if paths.len() <= PATHS_PER_COMMAND {
                call = call.args(paths.iter().map(|path| as_path(path)));
            }
            let output = call.run()?;
            warnings.extend(self::warnings(&output.stderr));
            let found: BTreeSet<&[u8]> = nul_fields(&output.stdout).collect();
            let found = paths.into_iter().filter(|path| found.contains(path));
            modified.extend(found.map(<[u8]>::to_vec));
        }
        Ok(modified)
    }

    /// Like [`Repo::status`], without files that differ only before their filter has converted them.
    pub(crate) fn converted_status(&self, index: &Path) -> Result<Status> {
        let mut status = self.status(index)?;
        let is_tracked = |one: &&Listed| one.indexed.is_some() && !one.staged_only;
        let tracked = status.listed.iter().filter(is_tracked);
        let tracked: Vec<&[u8]> = tracked.map(|one| one.path.as_slice()).collect();
        let filtered = self.with_filters(index, &tracked)?;
        let modified = self.truly_modified(index, &filtered, &mut Vec::new())?;
        let unmodified: BTreeSet<Vec<u8>> = filtered.into_iter().map(<[u8]>::to_vec).collect();
        let is_kept = |path: &[u8]| modified.contains(path) || !unmodified.contains(path);
        status.listed.retain(|one| is_kept(&one.path));
        Ok(status)
    }

    /// The differences between two trees or commits.
    pub(crate) fn diff_trees(&self, from: &str, to: &str) -> Result<Vec<RawDiff>> {
        if from == to {
            return Ok(Vec::new());
        }
        self.objects().diff(Some(from), to, false)
    }

    /// Like [`Repo::diff_trees`], including the subtrees that differ.
    pub(crate) fn diff_trees_and_subtrees(&self, from: &str, to: &str) -> Result<Vec<RawDiff>> {
        self.objects().diff(Some(from), to, true)
    }

    /// What the agent staged in the repository's own index: the paths that it adds to or deletes from the base, its
    /// submodules and its conflicts. What else exists only in the index says nothing beyond the work tree.
    pub(crate) fn staged(&self) -> Result<Vec<RawDiff>> {
        let args = "diff-index --cached --raw -z --no-abbrev --no-renames --ignore-submodules=none";
        let call = self.real_git(args).arg(&self.private.state.base_tree);
        let mut staged = parse_raw(&call.stdout()?)?;
        staged.retain(|diff| {
            let tracks = diff.before.mode == 0 || diff.after.mode == GITLINK;
            matches!(diff.status, b'U' | b'D') || (diff.after.mode != 0 && tracks)
        });
        Ok(staged)
    }

    /// The directories that git left out of its list because they cannot be read. A program can use a file in one all
    /// the same if it knows the file's name, so that checks may see what git does not. They are searched for only if git
    /// warns of something: of many warnings, only the last ones are known here.
    pub(crate) fn unreadable_directories(&self, status: &Status) -> Vec<(PathBuf, io::Error)> {
        let mut found = Vec::new();
        if !status.warnings.is_empty() {
            let passed_over = status.ignored.iter().chain(&status.nested);
            let passed_over = passed_over.map(Vec::as_slice).collect();
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
) -> Result<Vec<Vec<u8>>> {
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
        let is_git = entry.file_name() == ".git";
        if is_directory && !is_git && !passed_over.contains(path.as_os_str().as_bytes()) {
            search(top, &path, passed_over, found);
        }
    }
}

/// What git warns of.
fn warnings(stderr: &str) -> impl Iterator<Item = String> {
    let lines = stderr.lines();
    lines.map(|line| line.strip_prefix("warning: ").unwrap_or(line).to_owned())
}
