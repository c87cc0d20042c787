//! Errors of git operations.

use crate::git::bytes::display_paths;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The result of a git operation.
pub(crate) type Result<T, E = GitError> = std::result::Result<T, E>;

/// A failed git operation. The first value is the subcommand of git or the path that it is about.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The git program could not be started.
    #[error("cannot start {}: {}", .0.display(), .1)]
    Spawn(PathBuf, #[source] io::Error),
    /// git did not end within this time and was killed.
    #[error("git {} did not end within {}s and was stopped", .0, .1.as_secs())]
    TimedOut(String, Duration),
    /// git wrote more than is kept in memory, and was killed.
    #[error("git {0} wrote more than Sprag keeps in memory and was stopped")]
    Flooded(String),
    /// The run was cancelled while git was running, and git was killed.
    #[error("git {0} was cancelled")]
    Cancelled(String),
    /// These pipes or devices in place of files blocked git, and it was killed.
    #[error("git {} was blocked by {}, a pipe or device in place of a file", .0, display_paths(&shown(.1)))]
    HeldBySpecialFiles(String, Vec<PathBuf>),
    /// A part of the git directory is not what git needs there. The text says what is wrong with it, and the remedy.
    #[error("{} {}", .0.display(), .1)]
    Damaged(PathBuf, String),
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
    /// git would start programs that cannot be confined, for this reason, so it was not started.
    #[error("git {0} was not started, because the filters that it starts cannot be confined: {1}")]
    NotConfined(String, String),
    /// A filter failed, of which git and the filter wrote this, and git would have used the content as it was.
    #[error(
        "a filter failed in git {0}: {1}\n`git config --get-regexp ^filter` shows the programs of filters: \
         each must be installed, and may write only to a directory of its own and to the places of `sandbox_write`"
    )]
    FilterFailed(String, String),
    /// An action (`read`, `write` …) on a file failed.
    #[error("cannot {} {}: {}", .0, .1.display(), .2)]
    Io(&'static str, PathBuf, #[source] io::Error),
    /// git's output did not have the documented form.
    #[error("unexpected answer from git {0}: {1}")]
    Malformed(&'static str, String),
    /// Not a full object id.
    #[error("`{}` is not the id of a commit", .0.escape_debug())]
    BadId(String),
    /// The git directory or the work tree is missing, or is not the same directory as at the start of the run.
    #[error("the repository's directory {} is no longer the one of the start: it was removed or replaced during the run", .0.display())]
    Replaced(PathBuf),
    /// A part of the git directory became a link, so a write there would go elsewhere.
    #[error("{} was turned into a link during the run; nothing is written through it", .0.display())]
    Linked(PathBuf),
    /// The private git directory of the run cannot be used, for this reason.
    #[error("the private git directory {} is unusable: {}", .0.display(), .1)]
    Private(PathBuf, String),
}

impl GitError {
    pub(crate) fn malformed(command: &'static str, what: impl Into<String>) -> Self {
        Self::Malformed(command, what.into())
    }

    /// The private directory cannot be used.
    pub(crate) fn private(path: &Path, why: impl Into<String>) -> Self {
        Self::Private(path.to_path_buf(), why.into())
    }
}

fn shown(paths: &[PathBuf]) -> Vec<Vec<u8>> {
    let bytes = |path: &PathBuf| path.as_os_str().as_bytes().to_vec();
    paths.iter().map(bytes).collect()
}

/// Adds the action and the path to an I/O error.
pub(crate) fn io_error<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> GitError + use<'a> {
    move |source| GitError::Io(action, path.to_path_buf(), source)
}

/// How `git update-index` reports a skipped path. It does not treat this as an error.
pub(crate) const IGNORED: &str = "Ignoring path ";

/// How git reports that a filter has failed. If the filter is not required, git then uses the content as it is.
const FAILURES: &[&str] = &[
    "error: external filter '",
    "error: cannot fork to run external filter '",
    "error: cannot feed the input to external filter '",
    "error: read from external filter '",
    "error: initialization for subprocess '",
];

/// How git names the file and the filter if that is required.
const REQUIRED: [&str; 2] = [": clean filter '", ": smudge filter '"];

/// Fails if git says that a filter has failed. What a filter that is not required has not converted would
/// otherwise be used as if it had.
pub(crate) fn refuse_failed_filter(command: &str, stderr: &str) -> Result<()> {
    let tells = |line: &str| {
        let is_required = line.starts_with("fatal: ") && line.ends_with("' failed");
        FAILURES.iter().any(|failure| line.starts_with(failure))
            || (is_required && REQUIRED.iter().any(|told| line.contains(told)))
    };
    if !stderr.lines().any(tells) {
        return Ok(());
    }
    // git starts a filter several times, and it fails in the same way.
    let mut said: Vec<&str> = Vec::new();
    for line in stderr.lines().filter(|line| !line.is_empty()) {
        if !said.contains(&line) && said.len() < LINES {
            said.push(line);
        }
    }
    Err(GitError::FilterFailed(command.to_owned(), said.join("\n")))
}

/// How many different lines are kept of what filters say.
const LINES: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_failed_is_found_in_what_git_says() {
        let failed = "warning: x\nerror: external filter './clean' failed 1\nerror: external filter './clean' failed";
        let refused = refuse_failed_filter("update-index", failed).unwrap_err();
        assert!(refused.to_string().contains("./clean"), "{refused}");
        let twice = format!("{failed}\n{failed}\nfatal: a.bin: clean filter 'up' failed");
        let GitError::FilterFailed(_, said) =
            refuse_failed_filter("update-index", &twice).unwrap_err()
        else {
            panic!("another error");
        };
        assert_eq!(
            said,
            format!("{failed}\nfatal: a.bin: clean filter 'up' failed")
        );
        let required = "fatal: a.bin: smudge filter 'up' failed";
        assert!(refuse_failed_filter("cat-file", required).is_err());
        let fine = "warning: in the working copy of 'a', LF will be replaced by CRLF";
        assert!(refuse_failed_filter("update-index", fine).is_ok());
    }
}
