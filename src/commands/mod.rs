//! The commands: each reads what it needs, does its work and says what it came to.

mod begin;
pub mod demo;
pub mod prepare;
pub mod refusal;
pub mod reporting;
mod resume;
pub mod run;
pub mod small;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::vcs::git::{self, Real};
use std::path::{Path, PathBuf};

/// The directory to work in.
pub fn directory(context: &Context, asked: Option<&Path>) -> PathBuf {
    match asked {
        Some(dir) => context.cwd.join(dir),
        None => context.cwd.clone(),
    }
}

/// The repository of a directory.
///
/// # Errors
/// When there is none that can be worked in.
pub fn repository(context: &Context, directory: &Path) -> Result<Real> {
    use git::PreflightError as P;
    if !directory.is_dir() {
        return Err(
            Error::config(format!("there is no directory {}", directory.display()))
                .hint("-C takes the work tree of a repository"),
        );
    }
    let environment = git::Environment::new(context.env.iter().cloned());
    git::discover(directory, &environment).map_err(|error| match error {
        P::NoGit | P::OldGit { .. } | P::ForeignOwner { .. } => {
            Error::environment(error.to_string())
        }
        _ => Error::config(error.to_string()),
    })
}
