//! Special files in places where git reads.
//!
//! Opening a pipe can block for ever, and a device can yield bytes without end. Neither belongs where git
//! reads.

use crate::git::entries::resolve_gitfile;
use crate::git::files::{is_link, is_there};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Files that git opens in every directory of a work tree.
const READ_EVERYWHERE: [&str; 4] = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap"];

/// The special files among those that git reads below `roots`: everything in a git directory; in a work tree
/// only the files that configure git and the git directories of nested repositories.
pub(crate) fn special_files_in(roots: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    for root in roots {
        let is_git_dir = |path: &Path| path.components().any(|part| part.as_os_str() == ".git");
        let inside = is_there(&root.join("HEAD"));
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

/// Collects the special files below `dir` for which `is_read` is true. Does not follow links, except for the
/// file that stands for a nested git directory.
pub(crate) fn below(dir: &Path, is_read: impl Fn(&Path) -> bool, found: &mut BTreeSet<PathBuf>) {
    let mut open = vec![dir.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
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
            if is_special_file(&path) && is_read(&path) {
                found.insert(path);
            } else if is_dot_git && let Some(elsewhere) = resolve_gitfile(&path) {
                let names = ["HEAD", "config", "commondir", "packed-refs"];
                let special = names.iter().map(|name| elsewhere.join(name));
                found.extend(special.filter(|path| is_special_file(path)));
            }
        }
    }
}

/// Collects the links below `dir`, and the logs that have a second name, through which git would write elsewhere.
pub(crate) fn leading_elsewhere(dir: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.symlink_metadata() {
                Ok(meta) if meta.is_dir() => open.push(path),
                Ok(meta) if meta.is_symlink() || (meta.is_file() && meta.nlink() > 1) => {
                    found.insert(path);
                }
                _ => {}
            }
        }
    }
    found
}

/// Whether reading `path` may block or yield bytes without end.
pub(crate) fn is_special_file(path: &Path) -> bool {
    let is_endless = |meta: fs::Metadata| {
        let kind = meta.file_type();
        kind.is_fifo() || kind.is_char_device() || kind.is_block_device()
    };
    let meta = if is_link(path) {
        path.metadata()
    } else {
        path.symlink_metadata()
    };
    meta.is_ok_and(is_endless)
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
    fn special_files_are_found_where_git_reads_and_nowhere_else() {
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
        assert_eq!(special_files_in(&[top]), expected);
    }
}
