//! The file for the events, which may lie in the work tree.

use crate::context::Context;
use crate::domain::settings::Resolved;
use crate::git::{GitError, Repo};
use std::path::PathBuf;

/// The file that `--events` names.
pub(crate) fn events_file(context: &Context, path: &str) -> PathBuf {
    context.cwd.join(path)
}

/// Keeps the file for the events out of the work, which each event would change.
///
/// # Errors
/// When the private git directory cannot be written.
pub(crate) fn leave_out_events(
    context: &Context,
    settings: &Resolved,
    repo: &mut Repo,
) -> Result<(), GitError> {
    match settings.events.as_deref() {
        None | Some("-") => Ok(()),
        Some(path) => repo.leave_out(&events_file(context, path)),
    }
}
