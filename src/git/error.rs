//! What can go wrong between Sprag and git.

use crate::git::bytes::display_paths;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A git operation that did not work.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The git program could not be started.
    #[error("cannot start {}: {source}", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// git did not end in time and was killed.
    #[error("git {command} did not end within {}s and was stopped", after.as_secs())]
    TimedOut {
        /// The subcommand.
        command: String,
        /// The limit.
        after: Duration,
    },
    /// The run was cancelled while git was at work, and git was killed.
    #[error("git {command} was cancelled")]
    Cancelled {
        /// The subcommand.
        command: String,
    },
    /// git was held by pipes or devices in the place of files, and was killed.
    #[error("git {command} was held by {}, a pipe or a device in the place of a file", display_paths(&shown(paths)))]
    HeldBySpecialFiles {
        /// The subcommand.
        command: String,
        /// The pipes and devices.
        paths: Vec<PathBuf>,
    },
    /// git ended with an error.
    #[error("git {command} failed ({}): {stderr}", status.map_or_else(|| "killed".to_owned(), |code| format!("code {code}")))]
    Failed {
        /// The subcommand.
        command: String,
        /// Exit code; `None` when a signal ended it.
        status: Option<i32>,
        /// The end of its standard error, trimmed.
        stderr: String,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried (`read`, `write` …).
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// git's answer was not of the form it documents.
    #[error("unexpected answer from git {command}: {what}")]
    Malformed {
        /// The subcommand.
        command: &'static str,
        /// What was wrong with it.
        what: String,
    },
    /// The repository's git directory is gone or is another one than at the start of the run.
    #[error("the repository's git directory {} was removed or replaced during the run", path.display())]
    Replaced {
        /// Where it was.
        path: PathBuf,
    },
    /// A part of the git directory became a link: writing there would write elsewhere.
    #[error("{} was turned into a link during the run; nothing is written through it", path.display())]
    Linked {
        /// The link.
        path: PathBuf,
    },
    /// The run's private git directory cannot be used.
    #[error("the private git directory {} is unusable: {why}", path.display())]
    Private {
        /// Where it is.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

fn shown(paths: &[PathBuf]) -> Vec<Vec<u8>> {
    paths
        .iter()
        .map(|path| path.as_os_str().as_bytes().to_vec())
        .collect()
}

/// Names the action and the file of an I/O error.
pub(super) fn io_error<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> GitError + use<'a> {
    move |source| GitError::Io {
        action,
        path: path.to_path_buf(),
        source,
    }
}
