//! Detects whether anybody except Sprag wrote to the private git directory.
//!
//! An agent that runs as the same user can find that directory and write to it. Sprag could then run a
//! planted filter, or git could report that nothing has changed. Therefore the directory is sealed whenever
//! foreign code may run, and checked before it is used again.

use crate::git::error::GitError;
use crate::git::private::programs::PROGRAMS;
use crate::process::{Quiescence, quiescence};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::path::Arg;
use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The files that control git are read. For all others the stat data is compared, whose change time no
/// program can set.
const READ: [&str; 4] = ["git/config", "git/HEAD", "git/info", PROGRAMS];
/// Written by git, filters and signing programs at any time, or moved there from the work tree, and never trusted.
const FREE: [&str; 4] = ["tmp", "home", "git/objects", MOVED_AWAY];
/// Its own part of the seal, since every look at the work tree writes it.
const INDEX: &str = "git/index";
/// Where the work tree's files are while checks run without them.
pub(crate) const MOVED_AWAY: &str = "swap/away";

const CHANGED: &str = "it was changed or removed during the run, and not by Sprag";

/// The state of the directory when Sprag last released it.
#[derive(Debug, Clone)]
pub(crate) struct Seal {
    root: PathBuf,
    held: Arc<Mutex<SealState>>,
}

/// What a user of the directory does there, besides what it writes below [`FREE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    Reads,
    /// Writes the stat data of the index.
    WritesIndex,
    Writes,
}

#[derive(Debug)]
struct SealState {
    users: usize,
    /// The most that one of the users may have done to the directory.
    done: Access,
    /// Whether it was compared for the users that there are now.
    is_compared: bool,
    /// What it was last without the index, or why that is not known.
    digest: Result<[u8; 32], String>,
    /// What the index was last.
    index: Option<IndexStamp>,
    /// The moment of the last comparison with the digest.
    compared: Option<Quiescence>,
}

/// Kind and mode, inode, size, and change time, which no program can set.
type IndexStamp = (u32, u64, u64, i64, i64);

fn index_stamp(root: &Path) -> Option<IndexStamp> {
    let meta = root.join(INDEX).symlink_metadata().ok()?;
    let changed = (meta.ctime(), meta.ctime_nsec());
    Some((meta.mode(), meta.ino(), meta.size(), changed.0, changed.1))
}

/// A guard for the use of the private directory. Dropping the last one seals the directory again if it may have
/// changed.
pub(crate) struct Unsealed(Seal);

impl Seal {
    pub(crate) fn new(root: &Path) -> Self {
        let held = SealState {
            users: 0,
            done: Access::Reads,
            is_compared: false,
            digest: known_digest(root),
            index: index_stamp(root),
            compared: None,
        };
        Self {
            root: root.to_path_buf(),
            held: Arc::new(Mutex::new(held)),
        }
    }

    /// Starts using the directory. Whoever does not write more than the index trusts the last comparison of all
    /// else if nothing that Sprag started can have written since.
    ///
    /// # Errors
    /// When anybody except Sprag wrote to it, or when it cannot be read.
    pub(crate) fn unseal(&self, access: Access) -> Result<Unsealed, GitError> {
        self.unseal_at(quiescence(), access)
    }

    fn unseal_at(&self, now: Option<Quiescence>, access: Access) -> Result<Unsealed, GitError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let private = |why| GitError::Private {
            path: self.root.clone(),
            why,
        };
        if held.users == 0 {
            held.is_compared = false;
            held.done = Access::Reads;
        }
        let is_trusted = match access {
            Access::Writes => held.is_compared || held.done == Access::Writes,
            _ => held.users > 0 || (now.is_some() && held.compared == now),
        };
        if !is_trusted {
            held.compared = None;
            let sealed = held.digest.clone().map_err(private)?;
            if known_digest(&self.root).map_err(private)? != sealed {
                return Err(private(CHANGED.to_owned()));
            }
            held.compared = now;
            held.is_compared = true;
        }
        if held.done == Access::Reads && held.index != index_stamp(&self.root) {
            return Err(private(CHANGED.to_owned()));
        }
        held.users += 1;
        held.done = held.done.max(access);
        Ok(Unsealed(self.clone()))
    }
}

impl Drop for Unsealed {
    fn drop(&mut self) {
        let mut held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.users = held.users.saturating_sub(1);
        if held.users > 0 {
            return;
        }
        if held.done == Access::Writes {
            held.digest = known_digest(&self.0.root);
        }
        if held.done != Access::Reads {
            held.index = index_stamp(&self.0.root);
        }
    }
}

/// The digest, or why there is none. A machine without free file descriptors is no sign of an agent.
fn known_digest(root: &Path) -> Result<[u8; 32], String> {
    digest(root).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => CHANGED.to_owned(),
        _ => format!("it cannot be read: {error}"),
    })
}

fn digest(root: &Path) -> io::Result<[u8; 32]> {
    let mut walk = Walk {
        hasher: blake3::Hasher::new(),
        buffer: vec![0; BUFFER],
        record: Vec::new(),
    };
    let root_dir = open(CWD, root, OFlags::DIRECTORY)?;
    walk.add_directory(root_dir, &mut Vec::new())?;
    let alternates = fs::read(root.join("git/objects/info/alternates"))?;
    Ok(*walk.hasher.update(&alternates).finalize().as_bytes())
}

/// Size in bytes of the buffer for the files that are read.
const BUFFER: usize = 16 * 1024;

struct Walk {
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
    /// What is added about an entry.
    record: Vec<u8>,
}

impl Walk {
    /// Adds everything below a directory, which is at `inside` in the private directory. Names are looked up in the
    /// open directory and not by whole paths, which takes several times as long.
    fn add_directory(&mut self, dir: OwnedFd, inside: &mut Vec<u8>) -> io::Result<()> {
        let mut dir = Dir::new(dir)?;
        let mut names = Vec::new();
        while let Some(entry) = dir.read() {
            let entry = entry?;
            if ![c".", c".."].contains(&entry.file_name()) {
                names.push(entry.file_name().to_owned());
            }
        }
        names.sort();
        let end = inside.len();
        for name in &names {
            if end > 0 {
                inside.push(b'/');
            }
            inside.extend_from_slice(name.to_bytes());
            self.add(dir.fd()?, name, inside)?;
            inside.truncate(end);
        }
        Ok(())
    }

    /// Adds the entry of this name in an open directory, which is at `path` in the private directory.
    fn add(&mut self, dir: BorrowedFd<'_>, name: &CStr, path: &mut Vec<u8>) -> io::Result<()> {
        if path == INDEX.as_bytes() || FREE.iter().any(|free| path == free.as_bytes()) {
            return Ok(());
        }
        let meta = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = FileType::from_raw_mode(meta.st_mode);
        self.record.clear();
        self.record.extend_from_slice(path);
        self.record.push(0);
        self.record.extend_from_slice(&meta.st_mode.to_le_bytes());
        if kind.is_dir() {
            self.hasher.update(&self.record);
            return self.add_directory(open(dir, name, OFlags::DIRECTORY)?, path);
        }
        if kind.is_file()
            && READ
                .iter()
                .any(|read| is_at_or_below(path, read.as_bytes()))
        {
            self.hasher.update(&self.record);
            self.record.clear();
            self.add_content(File::from(open(dir, name, OFlags::NONBLOCK)?))?;
        }
        self.record.extend_from_slice(&meta.st_size.to_le_bytes());
        self.record.extend_from_slice(&meta.st_ino.to_le_bytes());
        self.record.extend_from_slice(&meta.st_ctime.to_le_bytes());
        self.record
            .extend_from_slice(&meta.st_ctime_nsec.to_le_bytes());
        self.hasher.update(&self.record);
        Ok(())
    }

    fn add_content(&mut self, mut file: File) -> io::Result<()> {
        loop {
            match file.read(&mut self.buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => {
                    self.hasher
                        .update(self.buffer.get(..read).unwrap_or_default());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn is_at_or_below(path: &[u8], top: &[u8]) -> bool {
    let below = path.strip_prefix(top);
    below.is_some_and(|below| below.is_empty() || below.starts_with(b"/"))
}

fn open(dir: impl AsFd, name: impl Arg, also: OFlags) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | also;
    Ok(openat(dir, name, flags, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn private() -> (tempfile::TempDir, Seal) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("git/objects/info")).unwrap();
        fs::create_dir_all(dir.path().join("recorded/hooks")).unwrap();
        for name in ["git/config", "git/objects/info/alternates"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let seal = Seal::new(dir.path());
        (dir, seal)
    }

    #[test]
    fn whoever_only_reads_does_not_hide_what_others_write() {
        for name in ["git/config", "recorded/hooks/pre-commit", "new"] {
            let (dir, seal) = private();
            let reader = seal.unseal_at(None, Access::Reads).unwrap();
            fs::write(dir.path().join(name), "x").unwrap();
            drop(reader);
            assert!(seal.unseal_at(None, Access::Reads).is_err(), "{name}");
        }
    }

    #[test]
    fn only_readers_trust_a_comparison_and_only_while_nothing_has_run_since() {
        let (dir, seal) = private();
        let [before, after] = [1, 2].map(Quiescence::after);
        drop(seal.unseal_at(Some(before), Access::Reads).unwrap());
        fs::write(dir.path().join("new"), "x").unwrap();
        assert!(seal.unseal_at(Some(before), Access::Reads).is_ok());
        assert!(seal.unseal_at(Some(before), Access::WritesIndex).is_ok());
        for (now, access) in [
            (Some(after), Access::Reads),
            (None, Access::WritesIndex),
            (Some(before), Access::Writes),
        ] {
            assert!(seal.unseal_at(now, access).is_err(), "{now:?}");
        }
        // A comparison that failed is not trusted either.
        assert!(seal.unseal_at(Some(before), Access::Reads).is_err());
    }

    #[test]
    fn a_writer_among_readers_that_trusted_compares() {
        let (dir, seal) = private();
        let now = Some(Quiescence::after(1));
        drop(seal.unseal_at(now, Access::Reads).unwrap());
        fs::write(dir.path().join("new"), "x").unwrap();
        let _reader = seal.unseal_at(now, Access::Reads).unwrap();
        assert!(seal.unseal_at(now, Access::Writes).is_err());
    }

    #[test]
    fn the_index_is_compared_every_time_and_sealed_by_whoever_writes_it() {
        let (dir, seal) = private();
        let now = Some(Quiescence::after(1));
        let index = dir.path().join(INDEX);
        drop(seal.unseal_at(now, Access::Reads).unwrap());
        let writer = seal.unseal_at(now, Access::WritesIndex).unwrap();
        fs::write(&index, "x").unwrap();
        drop(writer);
        for access in [Access::Reads, Access::WritesIndex, Access::Writes] {
            assert!(seal.unseal_at(now, access).is_ok(), "{access:?}");
        }
        fs::remove_file(&index).unwrap();
        std::os::unix::fs::symlink("config", &index).unwrap();
        for access in [Access::Reads, Access::WritesIndex, Access::Writes] {
            assert!(seal.unseal_at(now, access).is_err(), "{access:?}");
        }
    }

    #[test]
    fn a_writer_of_the_index_does_not_hide_what_others_write() {
        let (dir, seal) = private();
        let writer = seal.unseal_at(None, Access::WritesIndex).unwrap();
        fs::write(dir.path().join("git/config"), "x").unwrap();
        drop(writer);
        assert!(seal.unseal_at(None, Access::WritesIndex).is_err());
    }

    #[test]
    fn a_writer_among_readers_seals_what_it_wrote() {
        let (dir, seal) = private();
        let reader = seal.unseal(Access::Reads).unwrap();
        let writer = seal.unseal(Access::Writes).unwrap();
        fs::write(dir.path().join("git/index"), "x").unwrap();
        drop(writer);
        drop(reader);
        assert!(seal.unseal(Access::Reads).is_ok());
    }

    #[test]
    fn a_directory_that_cannot_be_read_is_not_called_changed() {
        let (dir, seal) = private();
        // Whoever runs the test, nobody can follow a link to itself.
        fs::remove_dir_all(dir.path().join("git")).unwrap();
        std::os::unix::fs::symlink("git", dir.path().join("git")).unwrap();
        let why = seal.unseal(Access::Reads).err().unwrap().to_string();
        assert!(why.contains("it cannot be read: "), "{why}");
        fs::remove_dir_all(dir.path()).unwrap();
        let why = seal.unseal(Access::Reads).err().unwrap().to_string();
        assert!(why.ends_with(CHANGED), "{why}");
    }

    #[test]
    fn a_change_of_the_same_size_is_found() {
        let (dir, _) = private();
        fs::write(dir.path().join("recorded/hooks/x"), "1").unwrap();
        let seal = Seal::new(dir.path());
        let hook = dir.path().join("recorded/hooks/x");
        let changed = || hook.metadata().and_then(|meta| meta.modified()).unwrap();
        let before = changed();
        // The clock of the file system is coarse.
        while changed() == before {
            fs::write(&hook, "2").unwrap();
        }
        assert!(seal.unseal(Access::Writes).is_err());
    }
}
