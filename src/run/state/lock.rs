//! The lock that allows one run per repository on a machine.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::git::Real;
use crate::report::append::no_follow;
use crate::run::state::places::resolved;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

const LOCK_TIMEOUT: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(10);

/// What stands before the run's id in the text of a lock.
const RUN: &str = ", run ";

/// The lock of a repository, released on drop. The operating system releases it when the process dies.
#[derive(Debug)]
pub struct RunLock {
    file: File,
}

impl Drop for RunLock {
    /// Explicit, because a child that is just being started may still share the open file.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl RunLock {
    /// Locks the repository whose common git directory is `common_dir`, with a file in `state_dir`,
    /// which is created if missing. `holder` is one line that a refused run shows.
    ///
    /// # Errors
    /// When another run holds the lock, or the file is unusable.
    fn acquire(state_dir: &Path, common_dir: &Path, holder: &str) -> Result<Self> {
        let path = lock_file(state_dir, common_dir);
        let unusable = |error: io::Error| {
            Error::environment(format!("cannot lock {}: {error}", path.display())).hint(
                "fix its permissions or free space, or name another directory for state in XDG_STATE_HOME",
            )
        };
        let made = fs::create_dir_all(state_dir);
        let mut file = made.and_then(|()| open(&path)).map_err(unusable)?;
        match try_for(LOCK_TIMEOUT, &file) {
            Ok(()) => {
                write_holder(&mut file, holder).map_err(unusable)?;
                Ok(Self { file })
            }
            Err(TryLockError::WouldBlock) => {
                let text = read_holder(&mut file);
                let holder = text.split(RUN).next().unwrap_or_default();
                Err(Error::environment(format!(
                    "another run is working on this repository ({holder}); wait for it or stop it"
                )))
            }
            Err(TryLockError::Error(error)) => Err(unusable(error)),
        }
    }

    /// Names the run in the text of the lock. A failure is ignored, because the text is only for people.
    pub fn name_run(&mut self, run_id: &str) {
        let holder = format!("pid {}{RUN}{run_id}", std::process::id());
        let _ = write_holder(&mut self.file, &holder);
    }
}

fn lock_file(state_dir: &Path, common_dir: &Path) -> PathBuf {
    let key = blake3::hash(common_dir.as_os_str().as_bytes()).to_hex();
    state_dir.join(format!("{}.lock", &key[..32]))
}

/// The id of the run that is working on this repository now, in this or another process.
pub fn active_run(context: &Context, real: &Real) -> Option<String> {
    let path = lock_file(&context.state_home().join("locks"), real.common_dir());
    let mut file = File::open(path).ok()?;
    // Otherwise the lock is free; closing the file releases the shared one.
    let is_held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    let holder = is_held.then(|| read_holder(&mut file))?;
    let (_, run) = holder.split_once(RUN)?;
    Some(run.to_owned())
}

/// Locks a repository for this process.
///
/// # Errors
/// When another run holds the lock, or the lock file cannot be used. Nothing is written into the repository.
pub(crate) fn lock(context: &Context, real: &Real) -> Result<RunLock> {
    let home = context.state_home();
    if real.contains(&resolved(&home)) {
        let shown = home.display();
        return Err(Error::usage(format!(
            "the directory {shown}, where Sprag keeps its state, lies inside the repository"
        ))
        .hint("set XDG_STATE_HOME to an absolute path outside of the work tree: the agent could write there"));
    }
    let directory = home.join("locks");
    let holder = format!("pid {}", std::process::id());
    RunLock::acquire(&directory, real.common_dir(), &holder)
}

/// Retries for this long. If a holder is killed while it starts a child, the child's copy of the file keeps the lock
/// until the child executes its program.
fn try_for(patience: Duration, file: &File) -> std::result::Result<(), TryLockError> {
    let deadline = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(POLL),
            done => return done,
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.mode(0o600).custom_flags(no_follow()).open(path)
}

fn write_holder(file: &mut File, holder: &str) -> io::Result<()> {
    let plain = holder.chars().filter(|c| !c.is_control());
    let line: String = plain.take(200).collect();
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(line.as_bytes())
}

fn read_holder(file: &mut File) -> String {
    let mut text = Vec::new();
    match file.take(1024).read_to_end(&mut text) {
        Ok(_) if !text.is_empty() => String::from_utf8_lossy(&text).into_owned(),
        _ => "unknown holder".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_run_on_the_same_repository_is_refused_and_told_who_holds_it() {
        let state = tempfile::tempdir().unwrap();
        let held = RunLock::acquire(state.path(), Path::new("/r/.git"), "run 7, pid 42").unwrap();
        let refusal = RunLock::acquire(state.path(), Path::new("/r/.git"), "run 8").unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "another run is working on this repository (run 7, pid 42); wait for it or stop it"
        );
        drop(held);
        RunLock::acquire(state.path(), Path::new("/r/.git"), "run 9").unwrap();
    }

    #[test]
    fn a_copy_of_the_file_that_a_dead_holders_child_has_is_waited_for() {
        let state = tempfile::tempdir().unwrap();
        let held = RunLock::acquire(state.path(), Path::new("/r/.git"), "dead").unwrap();
        let copy = held.file.try_clone().unwrap();
        // Like a kill, which runs no destructor of the holder.
        std::mem::forget(held);
        let child = thread::spawn(move || {
            thread::sleep(POLL * 3);
            drop(copy.unlock());
        });
        let next = open(&lock_file(state.path(), Path::new("/r/.git"))).unwrap();
        try_for(Duration::from_secs(600), &next).unwrap();
        child.join().unwrap();
    }

    #[test]
    fn two_repositories_do_not_lock_one_another() {
        let state = tempfile::tempdir().unwrap();
        let _one = RunLock::acquire(state.path(), Path::new("/a/.git"), "a").unwrap();
        RunLock::acquire(state.path(), Path::new("/b/.git"), "b").unwrap();
    }

    #[test]
    fn a_lock_file_planted_as_a_symlink_is_refused_and_its_target_left_alone() {
        let state = tempfile::tempdir().unwrap();
        let target = state.path().join("target");
        fs::write(&target, "precious").unwrap();
        let key = blake3::hash(b"/r/.git").to_hex();
        let lock = state.path().join(format!("{}.lock", &key[..32]));
        std::os::unix::fs::symlink(&target, lock).unwrap();
        let refusal = RunLock::acquire(state.path(), Path::new("/r/.git"), "x").unwrap_err();
        assert!(refusal.message.starts_with("cannot lock "), "{refusal}");
        assert_eq!(fs::read_to_string(target).unwrap(), "precious");
    }
}
