//! Places in which git would read for ever, and a git directory that git no longer takes for one.
//!
//! A pipe in the place of a file holds whoever opens it, a device gives bytes without end. Neither
//! ever belongs where git reads, so they are removed, and what git cannot do without is put back.

use crate::git::Repo;
use crate::git::bytes::{as_path, display_path};
use crate::git::copy_tree::{look, make_dir, remove};
use crate::git::entries::{open_regular, resolve_gitfile, split};
use crate::git::error::{GitError, io_error};
use crate::git::private::directory::{write, write_atomically};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// What git opens in every directory of a work tree.
const READ_EVERYWHERE: [&str; 4] = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap"];
/// A line of HEAD or of a ref is shorter.
const HEAD_LIMIT: u64 = 4096;
/// The smallest index: a header and a digest.
const INDEX_LEAST: u64 = 32;

impl Repo {
    /// Removes what git would read for ever from the places that it always reads, and puts HEAD,
    /// the refs' directory and the index back where git could not start without. Names what it did.
    pub(super) fn clear_entrances(&self) -> Result<Vec<String>, GitError> {
        let mut found = BTreeSet::new();
        for path in self.entrances() {
            if is_trap(&path) {
                found.insert(path);
            }
        }
        self.clear(&found)
    }

    /// As [`Repo::clear_entrances`], everywhere in the git directories.
    pub(super) fn clear_git_dirs(&self) -> Result<Vec<String>, GitError> {
        let mut found = BTreeSet::new();
        for dir in [&self.real.git_dir, &self.real.common_dir] {
            below(dir, |_| true, &mut found);
        }
        self.clear(&found)
    }

    /// Removes traps that held a git command.
    pub(super) fn clear_found(&self, found: &[PathBuf]) -> Result<Vec<String>, GitError> {
        self.clear(&found.iter().cloned().collect())
    }

    fn clear(&self, found: &BTreeSet<PathBuf>) -> Result<Vec<String>, GitError> {
        let mut told = Vec::new();
        for path in found {
            remove(path)?;
            let shown = path.strip_prefix(&self.real.work_tree).unwrap_or(path);
            let shown = display_path(shown.as_os_str().as_bytes());
            told.push(format!(
                "{shown} was a pipe or a device that git would read for ever; it was removed"
            ));
        }
        self.put_back(&mut told)?;
        Ok(told)
    }

    /// Removes what would hold git when it asks how these paths are converted.
    pub(super) fn clear_beside(&self, paths: &[&[u8]]) -> Result<Vec<String>, GitError> {
        let mut directories = BTreeSet::new();
        for path in paths {
            let mut directory = split(path).0;
            while directories.insert(directory) && !directory.is_empty() {
                directory = split(directory).0;
            }
        }
        let top = &self.real.work_tree;
        let rules = directories
            .into_iter()
            .map(|directory| top.join(as_path(directory)).join(".gitattributes"));
        self.clear(&rules.filter(|path| is_trap(path)).collect())
    }

    fn entrances(&self) -> Vec<PathBuf> {
        let (own, shared) = (&self.real.git_dir, &self.real.common_dir);
        let branch = self.private.state.branch.as_deref();
        let mut paths = Vec::new();
        for name in [
            "HEAD",
            "index",
            "FETCH_HEAD",
            "commondir",
            "config.worktree",
        ] {
            paths.push(own.join(name));
        }
        for name in [
            "config",
            "packed-refs",
            "shallow",
            "objects/info/alternates",
        ] {
            paths.push(shared.join(name));
        }
        for dir in [own, shared] {
            paths.push(dir.join("logs/HEAD"));
            paths.extend(branch.map(|name| dir.join(name)));
            paths.extend(branch.map(|name| dir.join("logs").join(name)));
        }
        paths
    }

    /// git takes a directory without a HEAD, refs and objects for no repository.
    fn put_back(&self, told: &mut Vec<String>) -> Result<(), GitError> {
        let (own, shared) = (&self.real.git_dir, &self.real.common_dir);
        let objects = shared.join("objects");
        if !objects.is_dir() {
            return Err(GitError::Replaced { path: objects });
        }
        let refs = shared.join("refs");
        if !refs.is_dir() {
            remove(&refs)?;
            make_dir(&refs)?;
            told.push("changes to .git/refs were undone".to_owned());
        }
        let head = own.join("HEAD");
        if !is_head(&head)
            && let Some(line) = self.head_line()
        {
            remove(&head)?;
            write_atomically(&head, line.as_bytes())?;
            told.push("changes to .git/HEAD were undone".to_owned());
        }
        let index = own.join("index");
        if look(&index)?.is_some() && !is_index(&index) {
            let content = fs::read(self.private.index()).map_err(io_error("read", &index))?;
            remove(&index)?;
            write(&index, &content)?;
            told.push("the index of the repository was no index; it was put back".to_owned());
        }
        Ok(())
    }

    /// What HEAD holds while nobody has switched it.
    fn head_line(&self) -> Option<String> {
        let state = &self.private.state;
        if self.real.common_dir.join("reftable").is_dir() {
            return Some("ref: refs/heads/.invalid\n".to_owned());
        }
        let branch = state.branch.as_ref().map(|name| format!("ref: {name}\n"));
        branch.or_else(|| state.base.as_ref().map(|oid| format!("{oid}\n")))
    }
}

/// Traps among what git reads below `roots`: all of a git directory, and of a work tree the files
/// that rule it and the git directories of nested repositories.
pub(super) fn traps_in(roots: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    for root in roots {
        let is_git_dir = |path: &Path| path.components().any(|part| part.as_os_str() == ".git");
        let inside = root.join("HEAD").symlink_metadata().is_ok();
        let is_read = |path: &Path| {
            let name = path.file_name().unwrap_or_default();
            let below_root = path.strip_prefix(root).unwrap_or(path);
            let rules = READ_EVERYWHERE.iter().any(|read| name == OsStr::new(read));
            inside || rules || is_git_dir(below_root)
        };
        below(root, is_read, &mut found);
    }
    found.into_iter().collect()
}

/// Collects the traps below `dir` that `is_read` takes for read. Links are not followed, but the
/// file in the place of a nested git directory is.
fn below(dir: &Path, is_read: impl Fn(&Path) -> bool, found: &mut BTreeSet<PathBuf>) {
    let mut open = vec![dir.to_path_buf()];
    while let Some(dir) = open.pop() {
        let Ok(entries) = fs::read_dir(&dir) else {
            continue;
        };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() {
                open.push(entry.path());
                continue;
            }
            let is_dot_git = entry.file_name() == ".git";
            if kind.is_file() && !is_dot_git {
                continue;
            }
            let path = entry.path();
            if is_trap(&path) && is_read(&path) {
                found.insert(path);
            } else if is_dot_git && let Some(elsewhere) = resolve_gitfile(&path) {
                let entrances = ["HEAD", "config", "commondir", "packed-refs"];
                let traps = entrances.iter().map(|name| elsewhere.join(name));
                found.extend(traps.filter(|path| is_trap(path)));
            }
        }
    }
}

/// Whether opening `path` to read it may wait, or give bytes without end.
fn is_trap(path: &Path) -> bool {
    let endless =
        |kind: fs::FileType| kind.is_fifo() || kind.is_char_device() || kind.is_block_device();
    let Ok(meta) = path.symlink_metadata() else {
        return false;
    };
    if meta.is_symlink() {
        return path.metadata().is_ok_and(|meta| endless(meta.file_type()));
    }
    endless(meta.file_type())
}

/// Whether git would take a file for a HEAD.
fn is_head(path: &Path) -> bool {
    if let Ok(target) = path.read_link() {
        return target.starts_with("refs");
    }
    let mut content = Vec::new();
    let read = open_regular(path).and_then(|file| file.take(HEAD_LIMIT).read_to_end(&mut content));
    let line = content.trim_ascii();
    let named = line
        .strip_prefix(b"ref:")
        .is_some_and(|name| name.trim_ascii_start().starts_with(b"refs/"));
    let is_oid = matches!(line.len(), 40 | 64) && line.iter().all(u8::is_ascii_hexdigit);
    read.is_ok() && (named || is_oid)
}

fn is_index(path: &Path) -> bool {
    let mut header = [0; 4];
    let read = fs::File::open(path).and_then(|mut file| {
        file.read_exact(&mut header)?;
        file.metadata()
    });
    header == *b"DIRC" && read.is_ok_and(|meta| meta.len() >= INDEX_LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn pipe(path: &Path) {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
    }

    #[test]
    fn traps_are_found_where_git_reads_and_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        let elsewhere = dir.path().join("elsewhere");
        for made in ["src", "nested/.git/refs", "linked"] {
            fs::create_dir_all(top.join(made)).unwrap();
        }
        fs::create_dir_all(&elsewhere).unwrap();
        for path in ["src/pipe", "src/.gitignore", "nested/.git/HEAD"] {
            pipe(&top.join(path));
        }
        pipe(&elsewhere.join("config"));
        symlink("/dev/zero", top.join(".gitattributes")).unwrap();
        symlink("/dev/zero", top.join("zeros")).unwrap();
        symlink("nowhere", top.join(".mailmap")).unwrap();
        fs::write(
            top.join("linked/.git"),
            format!("gitdir: {}\n", elsewhere.display()),
        )
        .unwrap();
        let expected = [
            elsewhere.join("config"),
            top.join(".gitattributes"),
            top.join("nested/.git/HEAD"),
            top.join("src/.gitignore"),
        ];
        assert_eq!(traps_in(&[top]), expected);
    }

    #[test]
    fn a_head_names_a_ref_or_an_object() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("HEAD");
        let oid = "0123456789abcdef0123456789abcdef01234567";
        for (content, expected) in [
            ("ref: refs/heads/main\n", true),
            ("ref:\trefs/heads/main", true),
            (oid, true),
            ("ref: ../../etc/passwd\n", false),
            ("", false),
            ("0123", false),
        ] {
            fs::write(&path, content).unwrap();
            assert_eq!(is_head(&path), expected, "{content}");
        }
        fs::remove_file(&path).unwrap();
        assert!(!is_head(&path));
        symlink("refs/heads/main", &path).unwrap();
        assert!(is_head(&path));
    }
}
