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
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The files that control git are read. For all others the stat data is compared, whose change time no
/// program can set.
const READ: [&str; 4] = ["git/config", "git/HEAD", "git/info", PROGRAMS];
/// Written by git, filters and signing programs at any time, or moved there from the work tree, and never trusted.
const FREE: [&str; 4] = ["tmp", "home", "git/objects", MOVED_AWAY];
/// Where the work tree's files are while checks run without them.
pub(in crate::git) const MOVED_AWAY: &str = "swap/away";

/// The state of the directory when Sprag last released it.
#[derive(Debug, Clone)]
pub(in crate::git) struct Seal {
    root: PathBuf,
    held: Arc<Mutex<SealState>>,
}

#[derive(Debug, Default)]
struct SealState {
    users: usize,
    /// Whether one of the users may have written to the directory.
    written: bool,
    digest: Option<[u8; 32]>,
    /// The moment of the last comparison with the digest.
    compared: Option<Quiescence>,
}

/// A guard for the use of the private directory. Dropping the last one seals the directory again if it may have
/// changed.
pub(in crate::git) struct Unsealed(Seal);

impl Seal {
    pub(in crate::git) fn new(root: &Path) -> Self {
        let held = SealState {
            digest: digest(root).ok(),
            ..SealState::default()
        };
        Self {
            root: root.to_path_buf(),
            held: Arc::new(Mutex::new(held)),
        }
    }

    /// Starts using the directory. Whoever only `reads` writes nothing there except below [`FREE`], and trusts the
    /// last comparison if nothing that Sprag started can have written since.
    ///
    /// # Errors
    /// When anybody except Sprag wrote to it.
    pub(in crate::git) fn unseal(&self, reads: bool) -> Result<Unsealed, GitError> {
        self.unseal_at(quiescence(), reads)
    }

    fn unseal_at(&self, now: Option<Quiescence>, reads: bool) -> Result<Unsealed, GitError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let is_compared = reads && now.is_some() && held.compared == now;
        if held.users == 0 && !is_compared {
            held.compared = None;
            if held.digest.is_none() || digest(&self.root).ok() != held.digest {
                return Err(GitError::Private {
                    path: self.root.clone(),
                    why: "it was changed or removed during the run, and not by Sprag".to_owned(),
                });
            }
            held.compared = now;
        }
        held.users += 1;
        held.written |= !reads;
        Ok(Unsealed(self.clone()))
    }
}

impl Drop for Unsealed {
    fn drop(&mut self) {
        let mut held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.users = held.users.saturating_sub(1);
        if held.users == 0 && std::mem::take(&mut held.written) {
            held.digest = digest(&self.0.root).ok();
        }
    }
}

fn digest(root: &Path) -> io::Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    add_directory(
        &mut hasher,
        open(CWD, root, OFlags::DIRECTORY)?,
        Path::new(""),
    )?;
    hasher.update(&fs::read(root.join("git/objects/info/alternates"))?);
    Ok(*hasher.finalize().as_bytes())
}

/// Adds everything below a directory, which is at `inside` in the private directory. Names are looked up in the
/// open directory and not by whole paths, which takes several times as long.
fn add_directory(hasher: &mut blake3::Hasher, dir: OwnedFd, inside: &Path) -> io::Result<()> {
    let mut listed = Dir::read_from(&dir)?;
    let mut names = Vec::new();
    while let Some(entry) = listed.read() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if ![b".".as_slice(), b".."].contains(&name) {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    drop(listed);
    names.sort();
    for name in names {
        let path = inside.join(&name);
        if FREE.iter().any(|free| path == Path::new(free)) {
            continue;
        }
        let meta = statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = FileType::from_raw_mode(meta.st_mode);
        hasher.update(path.as_os_str().as_bytes()).update(&[0]);
        hasher.update(&meta.st_mode.to_le_bytes());
        if kind.is_dir() {
            add_directory(hasher, open(&dir, &name, OFlags::DIRECTORY)?, &path)?;
            continue;
        }
        if kind.is_file() && READ.iter().any(|read| path.starts_with(read)) {
            hasher.update_reader(File::from(open(&dir, &name, OFlags::NONBLOCK)?))?;
        }
        hasher.update(&meta.st_size.to_le_bytes());
        hasher.update(&meta.st_ino.to_le_bytes());
        hasher.update(&meta.st_ctime.to_le_bytes());
        hasher.update(&meta.st_ctime_nsec.to_le_bytes());
    }
    Ok(())
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
            let reader = seal.unseal_at(None, true).unwrap();
            fs::write(dir.path().join(name), "x").unwrap();
            drop(reader);
            assert!(seal.unseal_at(None, true).is_err(), "{name}");
        }
    }

    #[test]
    fn only_readers_trust_a_comparison_and_only_while_nothing_has_run_since() {
        let (dir, seal) = private();
        let [before, after] = [1, 2].map(Quiescence::after);
        drop(seal.unseal_at(Some(before), true).unwrap());
        fs::write(dir.path().join("new"), "x").unwrap();
        assert!(seal.unseal_at(Some(before), true).is_ok());
        for (now, reads) in [(Some(after), true), (None, true), (Some(before), false)] {
            assert!(seal.unseal_at(now, reads).is_err(), "{now:?}");
        }
        // A comparison that failed is not trusted either.
        assert!(seal.unseal_at(Some(before), true).is_err());
    }

    #[test]
    fn a_writer_among_readers_seals_what_it_wrote() {
        let (dir, seal) = private();
        let reader = seal.unseal(true).unwrap();
        let writer = seal.unseal(false).unwrap();
        fs::write(dir.path().join("git/index"), "x").unwrap();
        drop(writer);
        drop(reader);
        assert!(seal.unseal(true).is_ok());
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
        assert!(seal.unseal(false).is_err());
    }
}
