//! The author of commits.

use crate::git::{Identity, Repo};

/// The identity of GitHub's own bot, from its documentation.
const BOT: (&str, &str) = (
    "github-actions[bot]",
    "41898282+github-actions[bot]@users.noreply.github.com",
);
/// The identity if git has none configured.
const NOBODY: (&str, &str) = ("sprag", "sprag@localhost");

/// The author of the commits of a run in this repository.
pub(crate) fn identity_of_commits(in_actions: bool, repo: &Repo) -> Identity {
    match in_actions {
        true => named(BOT),
        false => repo.configured_identity().unwrap_or_else(nobody),
    }
}

/// The author if git has no identity configured.
pub(crate) fn nobody() -> Identity {
    named(NOBODY)
}

fn named((name, email): (&str, &str)) -> Identity {
    Identity {
        name: name.into(),
        email: email.into(),
    }
}
