//! The commands: each reads what it needs, does its work and says what it came to.

mod api_commits;
mod begin;
mod beginning;
mod delivery;
pub mod demo;
pub mod doctor;
pub mod event;
pub mod hub;
pub mod mission;
pub mod prepare;
pub mod publish;
mod queue;
mod record;
pub mod refusal;
pub mod replay;
pub mod reporting;
mod resume;
pub mod run;
mod secrets;
pub mod small;
mod sources;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::vcs::git::{self, Real};

/// The repository that the working directory lies in.
///
/// # Errors
/// When there is none that can be worked in.
pub fn repository(context: &Context) -> Result<Real> {
    use git::PreflightError as P;
    let directory = &context.cwd;
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
