//! The repository that a command works in.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::git::{self, Real};
use std::path::Path;

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
    let found = git::discover(directory, &environment);
    found.map_err(|error| match error {
        P::NoGit | P::NoJj { .. } | P::OldGit { .. } | P::ForeignOwner { .. } => {
            Error::environment(error.to_string())
        }
        _ => Error::config(error.to_string()),
    })
}

/// The error for people elsewhere, such as on GitHub: paths in the repository are relative to it.
#[must_use]
pub fn for_others(context: &Context, error: &Error) -> Error {
    match repository(context) {
        Ok(real) => error.with_texts(|text| relative(text, real.work_tree())),
        Err(_) => error.with_texts(str::to_owned),
    }
}

/// The text with paths relative to the work tree.
#[must_use]
pub fn relative(text: &str, work_tree: &Path) -> String {
    match work_tree.to_str() {
        Some(root) if root.len() > 1 => text.replace(&format!("{root}/"), ""),
        _ => text.to_owned(),
    }
}
