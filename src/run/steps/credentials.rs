//! Hides the credential that the checkout left in the repository while an agent works.

use crate::run::state::parts::Parts;

/// Hides the checkout's credentials. Only in a GitHub Actions job, where they belong to the runner.
/// Elsewhere they are the user's own.
pub fn hide_credentials(parts: &mut Parts<'_>) {
    let (tree, emit) = (&mut parts.tree, &mut parts.emit);
    if !parts.setup.in_actions {
        return;
    }
    match tree.repo.change_credentials().hide_credentials() {
        Ok(left) => left.iter().for_each(|one| {
            emit.warn_once(&format!(
                "{} in {} can be read by the agent; check out with persist-credentials: false",
                one.key,
                one.file.display()
            ));
        }),
        Err(error) => emit.warn(format!(
            "the agent can read the checkout's credentials: {error}"
        )),
    }
}

/// Restores the credentials for the following steps of the job.
pub fn restore_credentials(parts: &mut Parts<'_>) {
    if !parts.setup.in_actions {
        return;
    }
    if let Err(error) = parts.tree.repo.change_credentials().restore_credentials() {
        parts.warn(format!(
            "the checkout's credentials could not be restored: {error}"
        ));
    }
}
