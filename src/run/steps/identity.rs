//! The author and the signature of commits.

use crate::error::{Error, Result};
use crate::git::{Identity, Repo};
use crate::run::state::setup::Setup;

/// The identity of GitHub's own bot, from its documentation.
const BOT: [&str; 2] = [
    "github-actions[bot]",
    "41898282+github-actions[bot]@users.noreply.github.com",
];
/// The identity if git has none configured.
const NOBODY: [&str; 2] = ["sprag", "sprag@localhost"];

/// The author of the commits of a run in this repository.
pub(crate) fn identity_of_commits(in_actions: bool, repo: &Repo) -> Identity {
    if in_actions {
        named(BOT)
    } else {
        repo.configured_identity().unwrap_or_else(nobody)
    }
}

/// Signs a trial commit if the run signs commits: without a key, no work could be committed.
///
/// # Errors
/// When it cannot be signed, unless the run is to end anyway.
pub(crate) fn require_signature(setup: &Setup, repo: &Repo) -> Result<()> {
    if !setup.commits() {
        return Ok(());
    }
    match repo.try_signing(&identity_of_commits(setup.in_actions, repo)) {
        Err(error) if setup.interruption().is_none() => {
            let why = format!("commits cannot be signed: {error}");
            Err(Error::environment(why)
                .hint("give git a key that works without a question (user.signingKey, gpg.format)")
                .hint("or set commit.gpgSign to false"))
        }
        _ => Ok(()),
    }
}

/// The author if git has no identity configured.
pub(crate) fn nobody() -> Identity {
    named(NOBODY)
}

fn named([name, email]: [&str; 2]) -> Identity {
    Identity {
        name: name.into(),
        email: email.into(),
    }
}
