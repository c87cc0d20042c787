//! Damage of a git directory that keeps git from opening it, or makes git overlook what is in it: something else in the
//! place of a file or directory, and files that lost their content, as after a power loss.

use crate::git::bytes::as_path;
use crate::git::entries::resolve_gitfile;
use crate::git::error::{GitError, Result};
use crate::git::files::is_there;
use crate::plain_file;
use std::fs::{self, FileType};
use std::io::Read;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// Maximum length in bytes of HEAD or a ref.
const HEAD_LIMIT: u64 = 4096;

/// The smallest index in bytes: a header and a digest.
const INDEX_LEAST: u64 = 32;

/// The largest file in bytes that git gets to read as a whole: an index of about 20 million files.
pub(crate) const INDEX_MOST: u64 = 2 << 30;

/// The remedy that always works.
const ELSE: &str = "or check the repository out anew";

/// Refuses a git directory that git would not open, would block on, or would overlook and take the repository around
/// it. `dot_git` is the directory, or the file that names it.
pub(crate) fn refuse_unusable(dot_git: &Path) -> Result<()> {
    let is_fine = |kind: FileType| kind.is_file() || kind.is_dir();
    refuse_unless(is_fine, dot_git, "directory")?;
    let Some(git_dir) = resolve_gitfile(dot_git) else {
        return Ok(());
    };
    let link = git_dir.join("commondir");
    let named = plain_file::read(&link, HEAD_LIMIT).unwrap_or_default();
    let common_dir = git_dir.join(as_path(named.trim_ascii_end()));
    refuse_misplaced(&git_dir, &common_dir)?;
    if link.is_file() && named.trim_ascii().is_empty() {
        return Err(damaged(
            &link,
            "has lost its content; write `../..` into it",
        ));
    }
    let head = git_dir.join("HEAD");
    let needed = [&head, &common_dir.join("objects"), &common_dir.join("refs")];
    let missing = needed.iter().find(|path| !is_there(path));
    let (path, what) = match missing {
        Some(path) if needed.iter().any(|path| is_there(path)) => {
            let what = "is missing, without which git recognises no repository; put it back";
            (*path, what)
        }
        None if can_read(&head) && !is_head(&head) => {
            let what = "has lost its content; write `ref: refs/heads/BRANCH` into it";
            (&head, what)
        }
        Some(_) | None => return Ok(()),
    };
    Err(damaged(path, what))
}

/// Refuses something else in the place of a file that git always reads, or of a directory that it needs.
fn refuse_misplaced(git_dir: &Path, common_dir: &Path) -> Result<()> {
    let branch = branch_of(git_dir);
    for path in required_files([git_dir, common_dir], branch.as_deref()) {
        // git removes an empty directory that is in the way of a ref or its log.
        let may_be_directory = branch.as_ref().is_some_and(|name| path.ends_with(name));
        let is_fine = |kind: FileType| kind.is_file() || (may_be_directory && kind.is_dir());
        refuse_unless(is_fine, &path, "file")?;
    }
    let above_branch = branch
        .iter()
        .flat_map(|name| Path::new(name).ancestors().skip(1));
    let needed = ["objects", "refs"].into_iter().map(Path::new);
    for directory in needed.chain(above_branch) {
        let path = common_dir.join(directory);
        refuse_unless(|kind| kind.is_dir(), &path, "directory")?;
    }
    Ok(())
}

fn refuse_unless(is_fine: impl Fn(FileType) -> bool, path: &Path, needed: &str) -> Result<()> {
    let found = path.metadata().map(|meta| meta.file_type());
    let Some(kind) = found.ok().filter(|kind| !is_fine(*kind)) else {
        return Ok(());
    };
    let kind = name_of(kind);
    let what = format!("is a {kind}, and git needs a {needed} there; move it away");
    Err(damaged(path, &what))
}

fn name_of(kind: FileType) -> &'static str {
    match kind {
        _ if kind.is_dir() => "directory",
        _ if kind.is_file() => "file",
        _ if kind.is_fifo() => "pipe",
        _ if kind.is_socket() => "socket",
        _ => "device",
    }
}

fn damaged(path: &Path, what: &str) -> GitError {
    GitError::Damaged(path.to_path_buf(), format!("{what}, {ELSE}"))
}

/// Refuses a repository whose branch or index lost its content. git would take the branch for one without commits.
pub(crate) fn refuse_emptied(git_dir: &Path, common_dir: &Path) -> Result<()> {
    let index = git_dir.join("index");
    if can_read(&index) && !is_index(&index) {
        let what = "has lost its content; remove it and run `git reset`";
        return Err(damaged(&index, what));
    }
    let Some(branch) = branch_of(git_dir) else {
        return Ok(());
    };
    let path = common_dir.join(&branch);
    if !can_read(&path) || is_head(&path) {
        return Ok(());
    }
    let log = common_dir.join("logs").join(&branch);
    let what = format!(
        "has lost the id of its commit; write it into that file (the second word of the last line of {})",
        log.display()
    );
    Err(damaged(&path, &what))
}

/// Whether this is a file that can be read, so that its content is known. What a link leads to is left to git.
fn can_read(path: &Path) -> bool {
    plain_file::open(path).is_ok()
}

/// The full name of the checked-out branch, as far as HEAD names it in the usual way. HEAD of a reftable names none.
fn branch_of(git_dir: &Path) -> Option<String> {
    let line = plain_file::read(&git_dir.join("HEAD"), HEAD_LIMIT).ok()?;
    let name = std::str::from_utf8(line.strip_prefix(b"ref: ")?.trim_ascii_end()).ok()?;
    let is_branch = name.starts_with("refs/") && !name.ends_with("/.invalid");
    is_branch.then(|| name.to_owned())
}

/// The files that git always reads, in the git directory of the work tree and in the one that all work trees share.
pub(crate) fn required_files(dirs: [&Path; 2], branch: Option<&str>) -> Vec<PathBuf> {
    let [own, shared] = dirs;
    let of_own = "HEAD index FETCH_HEAD commondir config.worktree".split(' ');
    let of_shared = "config packed-refs shallow objects/info/alternates".split(' ');
    let mut paths: Vec<PathBuf> = of_own.map(|name| own.join(name)).collect();
    paths.extend(of_shared.map(|name| shared.join(name)));
    for dir in dirs {
        paths.push(dir.join("logs/HEAD"));
        paths.extend(branch.map(|name| dir.join(name)));
        paths.extend(branch.map(|name| dir.join("logs").join(name)));
    }
    paths
}

/// Whether git would accept a file as HEAD.
pub(crate) fn is_head(path: &Path) -> bool {
    if let Ok(target) = path.read_link() {
        return target.starts_with("refs");
    }
    let content = plain_file::read(path, HEAD_LIMIT).unwrap_or_default();
    let line = content.trim_ascii();
    let named = line.strip_prefix(b"ref:").map(<[u8]>::trim_ascii_start);
    let named = named.is_some_and(|name| name.starts_with(b"refs/"));
    let is_oid = matches!(line.len(), 40 | 64) && line.iter().all(u8::is_ascii_hexdigit);
    named || is_oid
}

pub(crate) fn is_index(path: &Path) -> bool {
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
    use rustix::fs::{CWD, Mode, mkfifoat};
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    const HEAD: &str = "ref: refs/heads/topic/one\n";
    const BRANCH: &str = "refs/heads/topic/one";
    const OID: &str = "0123456789abcdef0123456789abcdef01234567\n";

    /// A git directory with these files and nothing else, as far as it matters here.
    fn git_dir(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in ["objects/info", "refs/heads"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        for (name, content) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        dir
    }

    fn sound() -> tempfile::TempDir {
        git_dir(&[("HEAD", HEAD), (BRANCH, OID), ("config", "")])
    }

    /// Puts something of each other kind in the place of a path.
    fn replaced(path: &str, make: impl Fn(&Path)) -> Option<String> {
        let dir = sound();
        let place = dir.path().join(path);
        let _ = fs::remove_file(&place).or_else(|_| fs::remove_dir_all(&place));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        make(&place);
        let error = refuse_unusable(dir.path()).err()?.to_string();
        assert!(
            error.starts_with(&format!("{} is ", place.display())),
            "{error}"
        );
        Some(error)
    }

    #[test]
    fn something_else_in_the_place_of_what_git_reads_is_named() {
        assert!(refuse_unusable(sound().path()).is_ok());
        let pipe = |path: &Path| mkfifoat(CWD, path, Mode::RWXU).unwrap();
        let device = |path: &Path| symlink("/dev/zero", path).unwrap();
        let socket = |path: &Path| drop(UnixListener::bind(path).unwrap());
        let directory = |path: &Path| fs::create_dir(path).unwrap();
        let file = |path: &Path| fs::write(path, "").unwrap();
        let files = [
            "HEAD",
            "index",
            "commondir",
            "config",
            "config.worktree",
            "packed-refs",
            "shallow",
            "objects/info/alternates",
            "FETCH_HEAD",
            "logs/HEAD",
            "logs/refs/heads/topic/one",
            BRANCH,
        ];
        for path in files {
            let is = |kind: &str, found: Option<String>| {
                let expected = format!(" is a {kind}, and git needs a file there; ");
                assert!(
                    found.is_some_and(|error| error.contains(&expected)),
                    "{path}: {kind}"
                );
            };
            is("pipe", replaced(path, pipe));
            is("device", replaced(path, device));
            is("socket", replaced(path, socket));
            if path.ends_with(BRANCH) {
                assert_eq!(replaced(path, directory), None)
            } else {
                is("directory", replaced(path, directory))
            }
            if !["HEAD", "commondir"].contains(&path) {
                assert_eq!(replaced(path, file), None, "{path}");
            }
        }
        for path in ["objects", "refs", "refs/heads", "refs/heads/topic"] {
            for make in [&pipe as &dyn Fn(&Path), &device, &socket, &file] {
                let found = replaced(path, make);
                assert!(
                    found.is_some_and(|error| error.contains("git needs a directory there")),
                    "{path}"
                );
            }
            assert_eq!(replaced(path, directory), None);
        }
    }

    #[test]
    fn a_reftable_keeps_a_file_in_the_place_of_its_branches() {
        let dir = git_dir(&[("HEAD", "ref: refs/heads/.invalid\n")]);
        fs::remove_dir(dir.path().join("refs/heads")).unwrap();
        fs::write(dir.path().join("refs/heads"), "reftable").unwrap();
        assert!(refuse_unusable(dir.path()).is_ok());
        assert!(refuse_emptied(dir.path(), dir.path()).is_ok());
    }

    #[test]
    fn files_without_their_content_are_named_with_a_remedy() {
        let index = format!("DIRC{}", "\0".repeat(40));
        let emptied = |name: &str, content: &str| {
            let dir = git_dir(&[
                ("HEAD", HEAD),
                (BRANCH, OID),
                ("index", &index),
                (name, content),
            ]);
            let error = refuse_emptied(dir.path(), dir.path()).err()?;
            Some(
                error
                    .to_string()
                    .replace(&format!("{}/", dir.path().display()), ""),
            )
        };
        assert_eq!(emptied(BRANCH, OID), None);
        for lost in ["", "\0\0\0\0", "0123"] {
            let error = emptied(BRANCH, lost).unwrap();
            assert!(
                error.starts_with("refs/heads/topic/one has lost the id of its commit; "),
                "{error}"
            );
            assert!(
                error.contains("of the last line of logs/refs/heads/topic/one)"),
                "{error}"
            );
            let error = emptied("index", lost).unwrap();
            assert!(
                error.starts_with("index has lost its content; remove it and run `git reset`"),
                "{error}"
            );
        }
        let dir = git_dir(&[("HEAD", HEAD)]);
        assert!(refuse_emptied(dir.path(), dir.path()).is_ok());
    }

    #[test]
    fn a_git_directory_that_git_would_overlook_is_named() {
        let refused = |dir: &tempfile::TempDir| {
            let error = refuse_unusable(dir.path()).err()?;
            Some(
                error
                    .to_string()
                    .replace(&format!("{}/", dir.path().display()), ""),
            )
        };
        for lost in ["HEAD", "objects", "refs"] {
            let dir = sound();
            let place = dir.path().join(lost);
            let _ = fs::remove_file(&place).or_else(|_| fs::remove_dir_all(&place));
            let error = refused(&dir).unwrap();
            assert!(
                error.starts_with(&format!("{lost} is missing, ")),
                "{error}"
            );
        }
        let error = refused(&git_dir(&[("HEAD", "")])).unwrap();
        assert!(
            error.starts_with("HEAD has lost its content; write `ref: "),
            "{error}"
        );
        let error = refused(&git_dir(&[("HEAD", HEAD), ("commondir", "")])).unwrap();
        assert!(
            error.starts_with("commondir has lost its content"),
            "{error}"
        );
        let other = tempfile::tempdir().unwrap();
        assert_eq!(refused(&other), None);
        let pipe = other.path().join(".git");
        mkfifoat(CWD, &pipe, Mode::RWXU).unwrap();
        let error = refuse_unusable(&pipe).unwrap_err().to_string();
        assert!(
            error.contains("/.git is a pipe, and git needs a directory there"),
            "{error}"
        );
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
