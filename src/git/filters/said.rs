//! What git says about files and filters on standard error.

use crate::git::error::{GitError, Result};

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
