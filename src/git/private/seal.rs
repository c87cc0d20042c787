//! Detects whether anybody except Sprag wrote to the private git directory.
//!
//! An agent that runs as the same user can find that directory and write to it. Sprag could then run a
//! planted filter, or git could report that nothing has changed. Therefore the directory is sealed whenever
//! foreign code may run, and checked before it is used again.

use crate::git::error::GitError;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The files that control git are read. For all others the stat data is compared, whose change time no
/// program can set.
const READ: [&str; 3] = ["git/config", "git/HEAD", "git/info"];
/// Written by git, filters and signing programs at any time, and never trusted.
const FREE: [&str; 3] = ["tmp", "home", "git/objects"];

/// The state of the directory when Sprag last released it.
#[derive(Debug, Clone)]
pub(in crate::git) struct Seal {
    root: PathBuf,
    held: Arc<Mutex<SealState>>,
}

#[derive(Debug, Default)]
struct SealState {
    users: usize,
    digest: Option<[u8; 32]>,
}

/// A guard for the use of the private directory. Dropping the last one seals the directory again.
pub(in crate::git) struct Unsealed(Seal);

impl Seal {
    pub(in crate::git) fn new(root: &Path) -> Self {
        let held = SealState {
            users: 0,
            digest: digest(root).ok(),
        };
        Self {
            root: root.to_path_buf(),
            held: Arc::new(Mutex::new(held)),
        }
    }

    /// Starts using the directory.
    ///
    /// # Errors
    /// When anybody except Sprag wrote to it.
    pub(in crate::git) fn unseal(&self) -> Result<Unsealed, GitError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.users == 0 && (held.digest.is_none() || digest(&self.root).ok() != held.digest) {
            return Err(GitError::Private {
                path: self.root.clone(),
                why: "it was changed or removed during the run, and not by Sprag".to_owned(),
            });
        }
        held.users += 1;
        Ok(Unsealed(self.clone()))
    }
}

impl Drop for Unsealed {
    fn drop(&mut self) {
        let mut held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.users = held.users.saturating_sub(1);
        if held.users == 0 {
            held.digest = digest(&self.0.root).ok();
        }
    }
}

fn digest(root: &Path) -> io::Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(dir) = open.pop() {
        let mut names = Vec::new();
        for entry in fs::read_dir(&dir)? {
            names.push(entry?.file_name());
        }
        names.sort();
        for name in names {
            let path = dir.join(name);
            let inside = path.strip_prefix(root).unwrap_or(&path);
            if FREE.iter().any(|free| inside == Path::new(free)) {
                continue;
            }
            let meta = path.symlink_metadata()?;
            hasher.update(inside.as_os_str().as_bytes()).update(&[0]);
            hasher.update(&meta.mode().to_le_bytes());
            if meta.is_dir() {
                open.push(path);
                continue;
            }
            if meta.is_file() && READ.iter().any(|read| inside.starts_with(read)) {
                hasher.update(&fs::read(&path)?);
            }
            for number in [meta.size(), meta.ino()] {
                hasher.update(&number.to_le_bytes());
            }
            for number in [meta.ctime(), meta.ctime_nsec()] {
                hasher.update(&number.to_le_bytes());
            }
        }
    }
    hasher.update(&fs::read(root.join("git/objects/info/alternates"))?);
    Ok(*hasher.finalize().as_bytes())
}
