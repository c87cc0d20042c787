//! The directories in which runs are stored, and the file for the events, which may lie in the work tree.

use crate::context::Context;
use crate::domain::settings::Resolved;
use crate::error::{Error, Result};
use crate::git::{GitError, Repo};
use crate::run::state::directory::RunDir;
use crate::secrets::sources::redactor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory for the runs of a repository.
pub fn runs_of(context: &Context, work_tree: &Path) -> PathBuf {
    if let Some(temp) = context.runner_temp() {
        return temp.join("sprag");
    }
    let name = work_tree.file_name().unwrap_or_default().to_string_lossy();
    let hash = blake3::hash(work_tree.as_os_str().as_encoded_bytes()).to_hex();
    context.state_home().join(format!("{name}-{}", &hash[..8]))
}

/// Creates a run directory at `root`, by default among those of the repository.
///
/// # Errors
/// When it cannot be created.
pub fn create_run_dir(
    context: &Context,
    work_tree: &Path,
    root: Option<PathBuf>,
) -> Result<RunDir> {
    let new = || runs_of(context, work_tree).join(uuid::Uuid::now_v7().to_string());
    RunDir::create(&root.unwrap_or_else(new), Arc::new(redactor(&context.env)))
        .map_err(|error| Error::environment(format!("{error:#}")))
}

/// Resolves the links in a path whose last parts may not exist yet.
pub fn resolved(path: &Path) -> PathBuf {
    // Resolving reads every directory above, so it is not tried for what is not there.
    let there = path.symlink_metadata();
    let whole = there.and_then(|_| path.canonicalize());
    match (whole, path.parent(), path.file_name()) {
        (Ok(path), _, _) => path,
        (Err(_), Some(parent), Some(name)) => resolved(parent).join(name),
        _ => path.to_path_buf(),
    }
}

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
) -> std::result::Result<(), GitError> {
    match settings.events.as_deref() {
        None | Some("-") => Ok(()),
        Some(path) => repo.leave_out(&events_file(context, path)),
    }
}
