//! What git says about files and filters on standard error.

use crate::git::error::GitError;

/// How `git update-index` reports a skipped path. It does not treat this as an error.
pub(in crate::git) const IGNORED: &str = "Ignoring path ";

/// How git reports that a filter has failed. If the filter is not required, git then uses the content as it is.
const FAILURES: &[&str] = &[
    "error: external filter '",
    "error: cannot fork to run external filter '",
    "error: cannot feed the input to external filter '",
    "error: read from external filter '",
    "error: initialization for subprocess '",
];

/// Fails if git says that a filter has failed. What a filter that is not required has not converted would
/// otherwise be used as if it had.
pub(in crate::git) fn refuse_failed_filter(command: &str, stderr: &str) -> Result<(), GitError> {
    let mut lines = stderr.lines();
    match lines.any(|line| FAILURES.iter().any(|failure| line.starts_with(failure))) {
        false => Ok(()),
        true => Err(GitError::FilterFailed {
            command: command.to_owned(),
            said: stderr.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_failed_is_found_in_what_git_says() {
        let failed = "warning: x\nerror: external filter './clean' failed 1\nerror: external filter './clean' failed";
        let refused = refuse_failed_filter("update-index", failed).unwrap_err();
        assert!(refused.to_string().contains("./clean"), "{refused}");
        let fine = "warning: in the working copy of 'a', LF will be replaced by CRLF";
        assert!(refuse_failed_filter("update-index", fine).is_ok());
    }
}
