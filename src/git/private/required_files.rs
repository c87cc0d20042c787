//! Keeps the files readable that git always reads: removes special files in their place, and restores those
//! that git needs to start.

use crate::git::bytes::{as_path, display_path};
use crate::git::copy_tree::{make_dir, metadata, remove};
use crate::git::entries::split;
use crate::git::error::{GitError, io_error};
use crate::git::files::{write, write_atomically};
use crate::git::repo::Repo;
use crate::git::special_files::{below, is_special_file};
use crate::plain_file;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum length in bytes of HEAD or a ref.
const HEAD_LIMIT: u64 = 4096;

/// The smallest index in bytes: a header and a digest.
const INDEX_LEAST: u64 = 32;

/// The largest index in bytes that git gets to read: about 20 million files.
const INDEX_MOST: u64 = 2 << 30;

impl Repo {
    /// Removes special files from the places that git always reads, and restores HEAD, the directory of refs
    /// and the index if git could not start without them. Returns what it did.
    pub(in crate::git) fn clear_required_files(&self) -> Result<Vec<String>, GitError> {
        let mut found = BTreeSet::new();
        for path in self.required_files() {
            if is_special_file(&path) {
                found.insert(path);
            }
        }
        self.clear(&found)
    }

    /// Like [`Repo::clear_required_files`], but everywhere in the git directories. Directories of loose objects
    /// that have not changed since the run started are skipped, because no program can set a change time. If an
    /// object there blocks a git command, the command's own check reports it.
    pub(in crate::git) fn clear_git_dirs(&self) -> Result<Vec<String>, GitError> {
        let objects = self.real.common_dir.join("objects");
        let is_fan_out = |path: &Path| {
            let name = path.file_name().unwrap_or_default().as_bytes();
            let is_hex = name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit);
            is_hex && path.parent() == Some(objects.as_path())
        };
        let mut found = BTreeSet::new();
        let mut dirs = vec![&self.real.git_dir];
        if !self.real.common_dir.starts_with(&self.real.git_dir) {
            dirs.push(&self.real.common_dir);
        }
        for dir in dirs {
            let enter = |path: &Path| !(is_fan_out(path) && self.is_older_than_run(path));
            below(dir, enter, |_| true, &mut found);
        }
        self.clear(&found)
    }

    /// Removes special files that blocked a git command.
    pub(in crate::git) fn clear_found(&self, found: &[PathBuf]) -> Result<Vec<String>, GitError> {
        self.clear(&found.iter().cloned().collect())
    }

    fn clear(&self, found: &BTreeSet<PathBuf>) -> Result<Vec<String>, GitError> {
        let mut warnings = Vec::new();
        for path in found {
            remove(path)?;
            let shown = path.strip_prefix(&self.real.work_tree).unwrap_or(path);
            let shown = display_path(shown.as_os_str().as_bytes());
            warnings.push(format!(
                "{shown} was a pipe or device on which git would block forever; it was removed"
            ));
        }
        self.put_back(&mut warnings)?;
        Ok(warnings)
    }

    /// Removes special files that would block git when it reads the attributes for these paths.
    pub(in crate::git) fn clear_attribute_files(
        &self,
        paths: &[&[u8]],
    ) -> Result<Vec<String>, GitError> {
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
        self.clear(&rules.filter(|path| is_special_file(path)).collect())
    }

    fn required_files(&self) -> Vec<PathBuf> {
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

    /// Restores HEAD and refs: git does not recognise a repository without them and a directory of objects.
    fn put_back(&self, warnings: &mut Vec<String>) -> Result<(), GitError> {
        let (own, shared) = (&self.real.git_dir, &self.real.common_dir);
        let objects = shared.join("objects");
        if !objects.is_dir() {
            return Err(GitError::Replaced { path: objects });
        }
        let refs = shared.join("refs");
        if !refs.is_dir() {
            remove(&refs)?;
            make_dir(&refs)?;
            warnings.push("changes to .git/refs were undone".to_owned());
        }
        let head = own.join("HEAD");
        if !is_head(&head)
            && let Some(line) = self.head_line()
        {
            remove(&head)?;
            write_atomically(&head, line.as_bytes())?;
            warnings.push("changes to .git/HEAD were undone".to_owned());
        }
        let index = own.join("index");
        if metadata(&index)?.is_some() && !is_index(&index) {
            let content = fs::read(self.private.index()).map_err(io_error("read", &index))?;
            remove(&index)?;
            write(&index, &content)?;
            warnings.push("the repository's index was invalid and was restored".to_owned());
        }
        Ok(())
    }

    /// The content of HEAD unless somebody has switched it.
    fn head_line(&self) -> Option<String> {
        let state = &self.private.state;
        if self.real.common_dir.join("reftable").is_dir() {
            return Some("ref: refs/heads/.invalid\n".to_owned());
        }
        let branch = state.branch.as_ref().map(|name| format!("ref: {name}\n"));
        branch.or_else(|| state.base.as_ref().map(|oid| format!("{oid}\n")))
    }
}

/// Whether git would accept a file as HEAD.
fn is_head(path: &Path) -> bool {
    if let Ok(target) = path.read_link() {
        return target.starts_with("refs");
    }
    let mut content = Vec::new();
    let read =
        plain_file::open(path).and_then(|file| file.take(HEAD_LIMIT).read_to_end(&mut content));
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
    header == *b"DIRC" && read.is_ok_and(|meta| (INDEX_LEAST..=INDEX_MOST).contains(&meta.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

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
