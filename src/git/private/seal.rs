//! Detects whether anybody except Sprag wrote to the private git directory.
//!
//! An agent that runs as the same user can find that directory and write to it. Sprag could then run a
//! planted filter, or git could report that nothing has changed. Therefore the directory is sealed whenever
//! foreign code may run, and checked before it is used again.

use crate::git::error::{GitError, Result};
use crate::git::private::config::PROGRAMS;
use crate::plain_file;
use crate::process::{Quiescence, quiescence};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The files that control git are read. For all others the stat data is compared, whose change time no
/// program can set.
const READ: [&str; 4] = ["git/config", "git/HEAD", "git/info", PROGRAMS];
/// Written by git, filters and signing programs at any time, or moved there from the work tree, and never trusted.
const FREE: [&str; 5] = ["tmp", "home", "git/objects", MOVED_AWAY, UNDONE];
/// Its own part of the seal, since every look at the work tree writes it.
const INDEX: &str = "git/index";
/// Where the work tree's files are while checks run without them.
pub(crate) const MOVED_AWAY: &str = "swap/away";

/// What was put back in the git directories, as it was before that. Nothing reads it.
pub(crate) const UNDONE: &str = "undone";

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
    pub(crate) fn unseal(&self, access: Access) -> Result<Unsealed> {
        self.unseal_at(quiescence(), access)
    }

    fn unseal_at(&self, now: Option<Quiescence>, access: Access) -> Result<Unsealed> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let private = |why: String| GitError::private(&self.root, why);
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
    let mut hasher = blake3::Hasher::new();
    add_directory(root, Path::new(""), &mut hasher)?;
    let alternates = fs::read(root.join("git/objects/info/alternates"))?;
    Ok(*hasher.update(&alternates).finalize().as_bytes())
}

/// Adds everything below a directory, which is at `inside` in the private directory.
fn add_directory(root: &Path, inside: &Path, hasher: &mut blake3::Hasher) -> io::Result<()> {
    let entries = fs::read_dir(root.join(inside))?;
    let names = entries.map(|entry| entry.map(|entry| inside.join(entry.file_name())));
    let mut names = names.collect::<io::Result<Vec<PathBuf>>>()?;
    names.sort();
    for inside in names {
        if inside == Path::new(INDEX) || FREE.iter().any(|free| inside == Path::new(free)) {
            continue;
        }
        let path = root.join(&inside);
        let meta = path.symlink_metadata()?;
        hasher.update(inside.as_os_str().as_bytes()).update(&[0]);
        hasher.update(&meta.mode().to_le_bytes());
        if meta.is_dir() {
            add_directory(root, &inside, hasher)?;
            continue;
        }
        if meta.is_file() && READ.iter().any(|read| inside.starts_with(read)) {
            hasher.update_reader(plain_file::open(&path)?)?;
        }
        for number in [meta.size(), meta.ino()] {
            hasher.update(&number.to_le_bytes());
        }
        for number in [meta.ctime(), meta.ctime_nsec()] {
            hasher.update(&number.to_le_bytes());
        }
    }
    Ok(())
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
