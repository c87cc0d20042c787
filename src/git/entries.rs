//! Reads what is at each path of the work tree without following links.

use crate::git::bytes::as_path;
use crate::git::files::is_directory;
use crate::plain_file;
use std::collections::HashMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub(crate) type Digest = [u8; 32];

/// The most that is read of one list of paths, in bytes. GitHub accepts no push with more. Without a limit, a file
/// without content (a sparse one) of any size would hold up the run.
pub(crate) const MAX_READ_BYTES: u64 = 2 << 30;

/// The entry at a path of the work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OnDisk {
    /// Nothing, or a path behind a link, which is outside of the work tree.
    Missing,
    File {
        executable: bool,
        length: u64,
        digest: Digest,
    },
    Link {
        digest: Digest,
    },
    Directory,
    /// A socket, a pipe or a device.
    Special,
    /// A file without read permission. The digest covers its size and modification time.
    Unreadable {
        digest: Digest,
    },
    /// A file that [`MAX_READ_BYTES`] leaves no room for. The digest is like that of an unreadable one.
    TooLarge {
        digest: Digest,
    },
}

impl OnDisk {
    /// What distinguishes a file or link from others.
    pub(crate) fn digest(&self) -> Option<Digest> {
        match self {
            Self::File { digest, .. }
            | Self::Link { digest }
            | Self::Unreadable { digest }
            | Self::TooLarge { digest } => Some(*digest),
            Self::Missing | Self::Directory | Self::Special => None,
        }
    }
}

/// The git directory behind a `.git` entry, which may be a file that contains its path.
pub(crate) fn resolve_gitfile(dot_git: &Path) -> Option<PathBuf> {
    if dot_git.is_dir() {
        return Some(dot_git.to_path_buf());
    }
    let text = plain_file::read(dot_git, 8192).ok()?;
    let target = text.strip_prefix(b"gitdir: ")?;
    let target = target.strip_suffix(b"\n").unwrap_or(target);
    Some(dot_git.parent()?.join(as_path(target)))
}

/// Splits a path into directory and name. The directory of a top-level path is empty.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

/// All directories above a path, the top directory as the empty path.
pub(crate) fn directories_of(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    std::iter::once(b"".as_slice()).chain(slashes.map(|(at, _)| &path[..at]))
}

/// Inspects every path below `top`.
pub(crate) fn inspect_all(top: &Path, paths: &[impl AsRef<[u8]>]) -> Vec<OnDisk> {
    let mut inspector = PathInspector::new(top);
    inspector.read_up_to = largest_read(top, paths);
    let paths = paths.iter().map(AsRef::as_ref);
    paths.map(|path| inspector.inspect(path)).collect()
}

/// The length of the largest file that is read. Smaller files are preferred, and files of one length are all read
/// or all left, so that the result depends only on the lengths.
fn largest_read(top: &Path, paths: &[impl AsRef<[u8]>]) -> u64 {
    let paths = paths.iter().map(|path| top.join(as_path(path.as_ref())));
    let files = paths
        .filter_map(|path| path.symlink_metadata().ok())
        .filter(Metadata::is_file);
    let mut lengths: Vec<u64> = files.map(|meta| meta.len()).collect();
    lengths.sort_unstable();
    let (mut total, mut largest) = (0_u64, 0);
    for same in lengths.chunk_by(|one, other| one == other) {
        let length = same.first().copied().unwrap_or_default();
        total = total.saturating_add(length.saturating_mul(same.len() as u64));
        if total > MAX_READ_BYTES {
            return largest;
        }
        largest = length;
    }
    u64::MAX
}

/// Inspects paths, and caches which directories are real so that no path is followed through a link.
pub(crate) struct PathInspector<'a> {
    top: &'a Path,
    real_directories: HashMap<Vec<u8>, bool>,
    /// The length of the largest file that is read.
    read_up_to: u64,
}

impl<'a> PathInspector<'a> {
    pub(crate) fn new(top: &'a Path) -> Self {
        Self {
            top,
            real_directories: HashMap::new(),
            read_up_to: MAX_READ_BYTES,
        }
    }

    pub(crate) fn inspect(&mut self, path: &[u8]) -> OnDisk {
        let full = self.top.join(as_path(path));
        let meta = match full.symlink_metadata() {
            Ok(meta) if self.is_real(split(path).0) => meta,
            // The whole path is too long for one system call. git reaches such a file one directory at a
            // time.
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
                let digest = *blake3::hash(b"too long").as_bytes();
                return OnDisk::Unreadable { digest };
            }
            Ok(_) | Err(_) => return OnDisk::Missing,
        };
        let digest = by_metadata(&meta);
        if meta.is_symlink() {
            return full
                .read_link()
                .map_or(OnDisk::Unreadable { digest }, |target| {
                    let digest = *blake3::hash(target.as_os_str().as_bytes()).as_bytes();
                    OnDisk::Link { digest }
                });
        }
        if !meta.is_file() {
            return if meta.is_dir() {
                OnDisk::Directory
            } else {
                OnDisk::Special
            };
        }
        if meta.len() > self.read_up_to {
            return OnDisk::TooLarge { digest };
        }
        let mut hasher = blake3::Hasher::new();
        match plain_file::open(&full).and_then(|file| hasher.update_reader(file).map(drop)) {
            Ok(()) => OnDisk::File {
                executable: meta.permissions().mode() & 0o100 != 0,
                length: hasher.count(),
                digest: *hasher.finalize().as_bytes(),
            },
            Err(_) => OnDisk::Unreadable { digest },
        }
    }

    /// Whether `directory` and all its parents below the top are directories and not links.
    pub(crate) fn is_real(&mut self, directory: &[u8]) -> bool {
        if directory.is_empty() {
            return true;
        }
        if let Some(known) = self.real_directories.get(directory) {
            return *known;
        }
        let path = self.top.join(as_path(directory));
        let real = self.is_real(split(directory).0) && is_directory(&path);
        self.real_directories.insert(directory.to_vec(), real);
        real
    }
}

fn by_metadata(meta: &Metadata) -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"unreadable\0");
    hasher.update(&meta.len().to_le_bytes());
    hasher.update(&meta.mtime().to_le_bytes());
    hasher.update(&meta.mtime_nsec().to_le_bytes());
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_more_than_the_limit_is_read_and_the_smaller_files_first() {
        let dir = tempfile::tempdir().unwrap();
        let sized = |name: &str, length: u64| {
            let file = fs::File::create(dir.path().join(name)).unwrap();
            file.set_len(length).unwrap();
        };
        let paths: [&[u8]; 4] = [b"huge", b"one", b"other", b"small"];
        let too_large = || {
            let seen = inspect_all(dir.path(), &paths);
            let names = paths.iter().zip(seen);
            let left = names.filter(|(_, it)| matches!(it, OnDisk::TooLarge { .. }));
            left.map(|(path, _)| String::from_utf8_lossy(path).into_owned())
                .collect::<Vec<String>>()
        };
        sized("huge", 40 << 30);
        sized("small", 3);
        assert_eq!(too_large(), ["huge"]);
        // Neither of two equal files is preferred.
        sized("huge", MAX_READ_BYTES / 2 + 1);
        sized("one", MAX_READ_BYTES / 2 + 1);
        sized("other", 1);
        assert_eq!(too_large(), ["huge", "one"]);
        let digests: Vec<OnDisk> = inspect_all(dir.path(), &paths);
        sized("huge", MAX_READ_BYTES / 2 + 2);
        assert_ne!(inspect_all(dir.path(), &paths)[0], digests[0]);
        sized("one", 5);
        sized("huge", 5);
        assert_eq!(too_large(), Vec::<String>::new());
    }

    #[test]
    fn links_are_seen_and_never_followed() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        fs::create_dir_all(top.join("real")).unwrap();
        fs::create_dir_all(dir.path().join("outside")).unwrap();
        fs::write(dir.path().join("outside/secret"), "s").unwrap();
        fs::write(top.join("real/file"), "content").unwrap();
        symlink("../outside", top.join("link")).unwrap();
        let paths: Vec<&[u8]> = vec![
            b"link/secret",
            b"link",
            b"real/file",
            b"real",
            b"gone",
            b"real/file/below",
        ];
        let file = OnDisk::File {
            executable: false,
            length: 7,
            digest: *blake3::hash(b"content").as_bytes(),
        };
        let link = OnDisk::Link {
            digest: *blake3::hash(b"../outside").as_bytes(),
        };
        assert_eq!(
            inspect_all(&top, &paths),
            [
                OnDisk::Missing,
                link,
                file,
                OnDisk::Directory,
                OnDisk::Missing,
                OnDisk::Missing
            ]
        );
    }
}
