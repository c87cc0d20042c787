//! The credential that a checkout left in the repository is not there while an agent works.

use crate::run::emitter::Emitter;
use crate::run::setup::Setup;
use crate::run::work_tree::WorkTree;

/// Takes the checkout's credentials out of use. Only in a job of GitHub Actions, where they are the
/// runner's: at a prompt they are the user's own.
pub fn hide_credentials(setup: &Setup, tree: &mut WorkTree, emit: &mut Emitter<'_>) {
    if !setup.in_actions {
        return;
    }
    match tree.repo.change_credentials().hide_credentials() {
        Ok(left) => left.iter().for_each(|one| {
            emit.warn_once(&format!(
                "{} in {} is within reach of the agent; check out with persist-credentials: false",
                one.key,
                one.file.display()
            ));
        }),
        Err(error) => emit.warn(format!(
            "the checkout's credentials are within reach of the agent: {error}"
        )),
    }
}

/// Puts them back, for the steps that follow.
pub fn restore_credentials(setup: &Setup, tree: &mut WorkTree, emit: &mut Emitter<'_>) {
    if !setup.in_actions {
        return;
    }
    if let Err(error) = tree.repo.change_credentials().restore_credentials() {
        emit.warn(format!(
            "the checkout's credentials could not be put back: {error}"
        ));
    }
}
