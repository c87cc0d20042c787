//! Errors of git operations.

use crate::git::bytes::display_paths;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A failed git operation.
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
        /// The time limit.
        after: Duration,
    },
    /// git wrote more than is kept in memory, and was killed.
    #[error("git {command} wrote more than Sprag keeps in memory and was stopped")]
    Flooded {
        /// The subcommand.
        command: String,
    },
    /// The run was cancelled while git was running, and git was killed.
    #[error("git {command} was cancelled")]
    Cancelled {
        /// The subcommand.
        command: String,
    },
    /// Pipes or devices in place of files blocked git, and it was killed.
    #[error("git {command} was blocked by {}, a pipe or device in place of a file", display_paths(&shown(paths)))]
    HeldBySpecialFiles {
        /// The subcommand.
        command: String,
        /// The pipes and devices.
        paths: Vec<PathBuf>,
    },
    /// A part of the git directory is not what git needs there.
    #[error("{} {what}", path.display())]
    Damaged {
        /// The part.
        path: PathBuf,
        /// What is wrong with it, and the remedy.
        what: String,
    },
    /// git ended with an error.
    #[error("git {command} failed ({}): {stderr}", status.map_or_else(|| "killed".to_owned(), |code| format!("code {code}")))]
    Failed {
        /// The subcommand.
        command: String,
        /// Exit code, or `None` if a signal ended the command.
        status: Option<i32>,
        /// The end of its standard error, trimmed.
        stderr: String,
    },
    /// git would start programs that cannot be confined, so it was not started.
    #[error(
        "git {command} was not started, because the filters that it starts cannot be confined: {why}"
    )]
    NotConfined {
        /// The subcommand.
        command: String,
        /// What the launcher said.
        why: String,
    },
    /// A filter failed, and git would have used the content as it was.
    #[error(
        "a filter failed in git {command}: {said}\n`git config --get-regexp ^filter` shows the programs of filters: \
         each must be installed, and may write only to a directory of its own and to the places of `sandbox_write`"
    )]
    FilterFailed {
        /// The subcommand.
        command: String,
        /// What git and the filter wrote to standard error.
        said: String,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The failed action (`read`, `write` …).
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// git's output did not have the documented form.
    #[error("unexpected answer from git {command}: {what}")]
    Malformed {
        /// The subcommand.
        command: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// The git directory or the work tree is missing, or is not the same directory as at the start of the run.
    #[error("the repository's directory {} is no longer the one of the start: it was removed or replaced during the run", path.display())]
    Replaced {
        /// Its original path.
        path: PathBuf,
    },
    /// A part of the git directory became a link, so a write there would go elsewhere.
    #[error("{} was turned into a link during the run; nothing is written through it", path.display())]
    Linked {
        /// The link.
        path: PathBuf,
    },
    /// The private git directory of the run cannot be used.
    #[error("the private git directory {} is unusable: {why}", path.display())]
    Private {
        /// Its path.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

fn shown(paths: &[PathBuf]) -> Vec<Vec<u8>> {
    paths
        .iter()
        .map(|path| path.as_os_str().as_bytes().to_vec())
        .collect()
}

/// Adds the action and the path to an I/O error.
pub(crate) fn io_error<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> GitError + use<'a> {
    move |source| GitError::Io {
        action,
        path: path.to_path_buf(),
        source,
    }
}
