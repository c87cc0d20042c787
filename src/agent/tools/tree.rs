//! Access to the files of a work tree and nothing else.
//!
//! Every path is opened one component at a time, each relative to the directory that was opened before it and
//! never through a symbolic link. So no component can be replaced between check and use, on any system;
//! `openat2` would not add anything.

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, Stat};
use rustix::fs::{fchmod, fstat, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Maximum size in bytes of a file that is read.
pub(super) const MAX_FILE_BYTES: u64 = 8 << 20;

/// A work tree.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    root: PathBuf,
}

/// An open directory of the tree, and a name in it.
struct Place {
    directory: OwnedFd,
    name: String,
}

impl Place {
    fn facts(&self) -> rustix::io::Result<Stat> {
        statat(&self.directory, &*self.name, AtFlags::SYMLINK_NOFOLLOW)
    }
}

impl Tree {
    pub(super) fn new(root: &Path) -> Self {
        let root = root.to_owned();
        Self { root }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The size of a regular file in bytes, or `None` for anything else.
    pub(super) fn size(&self, path: &str) -> Option<u64> {
        let place = self.place(path, false).ok()?;
        let facts = place.facts().ok()?;
        regular(path, facts.st_mode).ok()?;
        u64::try_from(facts.st_size).ok()
    }

    /// A file's content.
    pub(super) fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let place = self.place(path, false)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&place.directory, &*place.name, flags, Mode::empty())
            .map_err(|error| why(path, error))?;
        let facts = fstat(&file).map_err(|error| why(path, error))?;
        regular(path, facts.st_mode)?;
        let size = u64::try_from(facts.st_size).unwrap_or_default();
        if size > MAX_FILE_BYTES {
            return Err(format!(
                "{path} has {size} bytes, too many to be read; use run_command to look at parts of it"
            ));
        }
        let mut bytes = Vec::new();
        let read = File::from(file)
            .take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut bytes);
        read.map_err(|error| format!("{path} cannot be read: {error}"))?;
        Ok(bytes)
    }

    /// Writes a file atomically. Missing directories are created, and a replaced file's permissions are kept.
    pub(super) fn write(&self, path: &str, content: &[u8]) -> Result<(), String> {
        let place = self.place(path, true)?;
        let mode = match place.facts() {
            Ok(facts) => {
                regular(path, facts.st_mode)?;
                Some(Mode::from_raw_mode(facts.st_mode & 0o7777))
            }
            Err(Errno::NOENT) => None,
            Err(error) => return Err(why(path, error)),
        };
        let draft = format!(".sprag-{}", uuid::Uuid::new_v4());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&place.directory, &*draft, flags, Mode::from_raw_mode(0o666))
            .map_err(|error| why(path, error))?;
        let mut file = File::from(file);
        let mut replace = || -> io::Result<()> {
            file.write_all(content)?;
            if let Some(mode) = mode {
                fchmod(&file, mode)?;
            }
            let directory = &place.directory;
            Ok(renameat(directory, &*draft, directory, &*place.name)?)
        };
        replace().map_err(|error| {
            let _ = unlinkat(&place.directory, &*draft, AtFlags::empty());
            format!("{path} cannot be written: {error}")
        })
    }

    /// Deletes a file, or a symbolic link itself.
    pub(super) fn delete(&self, path: &str) -> Result<(), String> {
        let place = self.place(path, false)?;
        unlinkat(&place.directory, &*place.name, AtFlags::empty()).map_err(|error| match error {
            Errno::ISDIR | Errno::PERM => {
                format!("{path} is a directory; only files can be deleted")
            }
            error => why(path, error),
        })
    }

    /// Moves a file to a path where nothing exists.
    pub(super) fn rename(&self, from: &str, to: &str) -> Result<(), String> {
        let source = self.place(from, false)?;
        let facts = source.facts().map_err(|error| why(from, error))?;
        regular(from, facts.st_mode)?;
        let target = self.place(to, true)?;
        match target.facts() {
            Err(Errno::NOENT) => {}
            Ok(_) => return Err(format!("{to} exists already; delete it first")),
            Err(error) => return Err(why(to, error)),
        }
        let (before, after) = (&source.directory, &target.directory);
        let moved = renameat(before, &*source.name, after, &*target.name);
        moved.map_err(|error| format!("{from} cannot be moved to {to}: {error}"))
    }

    /// A checked path in the form that the tools use, without `./` and doubled slashes. The root is empty.
    pub(super) fn normal(path: &str) -> Result<String, String> {
        names(path).map(|names| names.join("/"))
    }

    /// Whether a path is a directory of the tree and not behind a link.
    pub(super) fn is_directory(&self, path: &str) -> Result<bool, String> {
        if names(path)?.is_empty() {
            return Ok(true);
        }
        let place = self.place(path, false)?;
        let facts = place.facts().map_err(|error| why(path, error))?;
        match FileType::from_raw_mode(facts.st_mode) {
            FileType::Directory => Ok(true),
            _ => regular(path, facts.st_mode).map(|()| false),
        }
    }

    fn place(&self, path: &str, create: bool) -> Result<Place, String> {
        let mut names = names(path)?;
        let Some(name) = names.pop() else {
            return Err("the path is empty; name a file".into());
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut directory = rustix::fs::open(&self.root, flags, Mode::empty())
            .map_err(|error| format!("the work tree cannot be opened: {error}"))?;
        let flags = flags | OFlags::NOFOLLOW;
        for (depth, part) in names.iter().enumerate() {
            let shown = || names.get(..=depth).unwrap_or_default().join("/");
            let open = || openat(&directory, *part, flags, Mode::empty());
            let opened = match open() {
                Err(Errno::NOENT) if create => {
                    match mkdirat(&directory, *part, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => open(),
                        Err(error) => Err(error),
                    }
                }
                opened => opened,
            };
            directory = opened.map_err(|error| match error {
                Errno::LOOP | Errno::NOTDIR => format!(
                    "{} is a symbolic link or no directory; name the file by its own path",
                    shown()
                ),
                error => why(&shown(), error),
            })?;
        }
        Ok(Place {
            directory,
            name: name.to_owned(),
        })
    }
}

/// The components of a path.
fn names(path: &str) -> Result<Vec<&str>, String> {
    if path.starts_with('/') {
        return Err(format!(
            "{path} is an absolute path; name files from the root of the repository, like src/main.rs"
        ));
    }
    if path.contains('\0') || path.len() > 4_096 {
        return Err("the path is not a valid one".into());
    }
    let names: Vec<&str> = path
        .split('/')
        .filter(|name| !matches!(*name, "" | "."))
        .collect();
    if names.contains(&"..") {
        return Err(format!(
            "{path} leads out of a directory with `..`; name files from the root of the repository"
        ));
    }
    if names.iter().any(|name| is_git(name)) {
        return Err(format!(
            "{path} belongs to git; the executor alone works on it"
        ));
    }
    Ok(names)
}

/// Whether a name stands for `.git` on any file system: some ignore case, end names at a dot or a space,
/// ignore invisible characters, or have a short form of it.
fn is_git(name: &str) -> bool {
    let visible = name
        .chars()
        .filter(|c| c.is_ascii() && !c.is_ascii_control());
    let plain: String = visible.take_while(|c| *c != ':').collect();
    let plain = plain.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    matches!(plain.as_str(), ".git" | "git~1")
}

fn regular(path: &str, mode: RawMode) -> Result<(), String> {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => Ok(()),
        FileType::Symlink => Err(why(path, Errno::LOOP)),
        FileType::Directory => Err(why(path, Errno::ISDIR)),
        _ => Err(why(path, Errno::NXIO)),
    }
}

fn why(path: &str, error: Errno) -> String {
    match error {
        Errno::NOENT => format!("there is no {path}; list_files and search show what there is"),
        Errno::LOOP => {
            format!("{path} is a symbolic link; name the file that it leads to by its own path")
        }
        Errno::ISDIR => format!("{path} is a directory; list_files shows what is in it"),
        Errno::NOTDIR => format!("a part of {path} is a file, not a directory"),
        Errno::NXIO => format!("{path} is not a regular file"),
        error => format!("{path} cannot be opened: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    struct Sample {
        top: tempfile::TempDir,
        tree: Tree,
    }

    /// A work tree beside a secret, with links to everywhere.
    fn sample() -> Sample {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().join("tree");
        fs::create_dir_all(root.join("src")).unwrap();
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(top.path().join("away")).unwrap();
        fs::write(top.path().join("secret"), "secret").unwrap();
        fs::write(root.join(".git/config"), "config").unwrap();
        fs::write(root.join("src/a.rs"), "a").unwrap();
        symlink("../secret", root.join("out")).unwrap();
        symlink("../away", root.join("away")).unwrap();
        symlink(".git", root.join("inner")).unwrap();
        symlink("src/a.rs", root.join("same")).unwrap();
        let tree = Tree::new(&root);
        Sample { top, tree }
    }

    const REFUSED: &[(&str, &str)] = &[
        ("../secret", "`..`"),
        ("src/../../secret", "`..`"),
        ("/etc/passwd", "absolute"),
        (".git/config", "belongs to git"),
        (".GIT/config", "belongs to git"),
        ("./.Git/config", "belongs to git"),
        ("src/.git/hooks/pre-commit", "belongs to git"),
        ("git~1/config", "belongs to git"),
        (".git./config", "belongs to git"),
        (".g\u{200c}it/config", "belongs to git"),
        (".git::$INDEX_ALLOCATION/config", "belongs to git"),
        (".git", "belongs to git"),
        ("out", "symbolic link"),
        ("same", "symbolic link"),
        ("away/new", "symbolic link"),
        ("inner/config", "symbolic link"),
        ("src", "directory"),
        ("", "empty"),
        ("src/a.rs/b", "no directory"),
        ("a\0b", "not a valid one"),
    ];

    #[test]
    fn nothing_leads_out_of_the_tree_or_into_gits_own() {
        let sample = sample();
        for (path, expected) in REFUSED {
            for outcome in [
                sample.tree.read(path).map(drop),
                sample.tree.write(path, b"x"),
                sample.tree.rename("src/a.rs", path),
            ] {
                let Err(why) = outcome else {
                    panic!("{path} was accepted");
                };
                let taken = why.contains("exists already");
                assert!(why.contains(expected) || taken, "{path}: {why}");
            }
        }
        let read = |path: &str| fs::read_to_string(sample.top.path().join(path)).unwrap();
        assert_eq!(read("secret"), "secret");
        assert_eq!(read("tree/.git/config"), "config");
        assert_eq!(read("tree/src/a.rs"), "a");
        let away = fs::read_dir(sample.top.path().join("away")).unwrap();
        assert_eq!(away.count(), 0);
    }

    #[test]
    fn a_parent_that_becomes_a_link_is_not_followed() {
        let sample = sample();
        let root = sample.top.path().join("tree");
        let place = sample.tree.place("src/new.rs", true).unwrap();
        fs::rename(root.join("src"), root.join("moved")).unwrap();
        symlink("../away", root.join("src")).unwrap();
        let flags = OFlags::WRONLY | OFlags::CREATE;
        drop(
            openat(
                &place.directory,
                &*place.name,
                flags,
                Mode::from_raw_mode(0o644),
            )
            .unwrap(),
        );
        assert!(root.join("moved/new.rs").exists());
        assert!(!sample.top.path().join("away/new.rs").exists());
        assert!(sample.tree.write("src/new.rs", b"x").is_err());
    }

    #[test]
    fn files_are_written_whole_with_their_permissions() {
        let sample = sample();
        let root = sample.top.path().join("tree");
        let script = root.join("src/run.sh");
        fs::write(&script, "old").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o750)).unwrap();
        sample.tree.write("src/run.sh", b"new").unwrap();
        sample
            .tree
            .write("app/[...slug]/page.tsx", b"page")
            .unwrap();
        sample
            .tree
            .rename("app/[...slug]/page.tsx", "app/new/page.tsx")
            .unwrap();
        sample.tree.delete("same").unwrap();
        assert_eq!(fs::read_to_string(&script).unwrap(), "new");
        assert_eq!(
            fs::metadata(&script).unwrap().permissions().mode() & 0o777,
            0o750
        );
        assert_eq!(sample.tree.read("app/new/page.tsx"), Ok(b"page".to_vec()));
        assert_eq!(sample.tree.read("src/a.rs"), Ok(b"a".to_vec()));
        let drafts = fs::read_dir(root.join("src")).unwrap().count();
        assert_eq!(drafts, 2);
    }

    #[test]
    fn a_hard_link_out_of_the_tree_is_not_written_through() {
        let sample = sample();
        let root = sample.top.path().join("tree");
        fs::hard_link(sample.top.path().join("secret"), root.join("hard")).unwrap();
        sample.tree.write("hard", b"new").unwrap();
        assert_eq!(
            fs::read_to_string(sample.top.path().join("secret")).unwrap(),
            "secret"
        );
    }

    #[test]
    fn what_is_no_file_or_too_large_is_not_read() {
        let sample = sample();
        let root = sample.top.path().join("tree");
        let large = File::create(root.join("large")).unwrap();
        large.set_len(MAX_FILE_BYTES + 1).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("fifo"),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert!(sample.tree.read("large").unwrap_err().contains("too many"));
        assert!(
            sample
                .tree
                .read("fifo")
                .unwrap_err()
                .contains("not a regular file")
        );
    }

    proptest! {
        #[test]
        fn no_path_ever_reaches_the_secret(
            path in "(\\.\\./|\\./|/|src/|out|away/|inner/|\\.git/|secret|\\.\\.|a){1,6}",
        ) {
            let sample = sample();
            if let Ok(bytes) = sample.tree.read(&path) {
                prop_assert_ne!(bytes, b"secret".to_vec());
            }
            let _ = sample.tree.write(&path, b"x");
            let secret = fs::read_to_string(sample.top.path().join("secret")).unwrap();
            prop_assert_eq!(secret, "secret");
            let config = fs::read_to_string(sample.top.path().join("tree/.git/config")).unwrap();
            prop_assert_eq!(config, "config");
        }
    }
}
