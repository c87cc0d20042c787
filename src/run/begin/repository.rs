//! The repository that a command works in.

use crate::context::Context;
use crate::domain::settings::Settings;
use crate::error::{Error, Result};
use crate::git::{self, GitError, Real, RemoteError};
use crate::run::begin::isolation::filters_before_the_run;
use std::path::Path;

/// The remedy for a git that cannot be started.
pub(crate) const GIT_STARTS: &str =
    "this user must be able to run git here, within the limits that `ulimit -a` shows";

/// The remedy for a git that does not end.
const BLOCKED: &str = "look for a pipe in the place of a file of git, such as ~/.gitconfig or one that git's configuration includes";

/// The repository that contains the working directory.
///
/// # Errors
/// When there is none, or Sprag cannot work in it.
pub fn repository(context: &Context) -> Result<Real> {
    use git::PreflightError as P;
    let directory = &context.cwd;
    if !directory.is_dir() {
        return Err(
            Error::config(format!("there is no directory {}", directory.display()))
                .hint("-C needs the path of a repository's work tree"),
        );
    }
    let environment = git::Environment::new(context.env.iter().cloned());
    let found = git::discover(directory, &environment).map(|mut real| {
        let filters = filters_before_the_run(context, &real, &Settings::default());
        real.confine_filters(filters);
        real
    });
    found.map_err(|error| match error {
        P::Machine(why) => Error::environment(why),
        P::Repository(why) => Error::config(why),
        P::Git(error) => of_git(&error, GIT_STARTS),
    })
}

/// The error of a git operation before a run has started, with this remedy unless there is a better one.
pub(crate) fn of_git(error: &GitError, remedy: &str) -> Error {
    let told = Error::environment(error.to_string());
    let remedy = match error {
        GitError::Damaged { .. } => return told,
        GitError::HeldBySpecialFiles { .. } => "move it away",
        GitError::TimedOut { .. } => BLOCKED,
        GitError::Spawn { .. } => GIT_STARTS,
        _ => remedy,
    };
    told.hint(remedy)
}

impl From<GitError> for Error {
    fn from(error: GitError) -> Self {
        Self::environment(error.to_string())
    }
}

impl From<RemoteError> for Error {
    fn from(error: RemoteError) -> Self {
        Self::environment(error.to_string())
    }
}

/// The error for people elsewhere, such as on GitHub: paths in the repository are relative to it.
#[must_use]
pub fn for_others(context: &Context, error: &Error) -> Error {
    match repository(context) {
        Ok(real) => error.with_texts(|text| relative(text, real.work_tree())),
        Err(_) => error.with_texts(str::to_owned),
    }
}

/// The text with paths relative to the work tree. A path that goes on before the work tree's is another one.
#[must_use]
pub fn relative(text: &str, work_tree: &Path) -> String {
    let Some(root) = work_tree.to_str().filter(|root| root.len() > 1) else {
        return text.to_owned();
    };
    let root = format!("{root}/");
    let goes_on = |c: char| c.is_alphanumeric() || "/._-~%+@:=&?#$!*\\".contains(c);
    let mut shown = String::with_capacity(text.len());
    let mut before = None;
    for (n, part) in text.split(&root).enumerate() {
        if n > 0 {
            if before.is_some_and(goes_on) {
                shown.push_str(&root);
            }
            before = Some('/');
        }
        shown.push_str(part);
        before = part.chars().next_back().or(before);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_path_in_the_work_tree_becomes_relative() {
        for (given, expected) in [
            ("/app/x.py:3: no", "x.py:3: no"),
            ("`/app/x`, '/app/y' (/app/z)", "`x`, 'y' (z)"),
            ("a\n/app/app/x", "a\napp/x"),
            ("/app/web/app/x.py", "web/app/x.py"),
            ("web/app/x.py", "web/app/x.py"),
            ("https://host/app/a", "https://host/app/a"),
            ("/home/é/app/x and /app", "/home/é/app/x and /app"),
            ("/app//app/x", "/app/x"),
        ] {
            assert_eq!(relative(given, Path::new("/app")), expected);
        }
        assert_eq!(relative("/etc/x", Path::new("/")), "/etc/x");
    }
}
