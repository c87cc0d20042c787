//! Whose name commits have.

use crate::git::{Identity, Repo};

/// The identity of GitHub's own bot, as its documentation gives it.
const BOT: (&str, &str) = (
    "github-actions[bot]",
    "41898282+github-actions[bot]@users.noreply.github.com",
);
/// The identity where git is configured for none.
const NOBODY: (&str, &str) = ("sprag", "sprag@localhost");

/// Whose name the commits of a run in this repository have.
pub(crate) fn identity_of_commits(in_actions: bool, repo: &Repo) -> Identity {
    match in_actions {
        true => named(BOT),
        false => repo.configured_identity().unwrap_or_else(nobody),
    }
}

/// Who commits where git is configured for nobody.
pub(crate) fn nobody() -> Identity {
    named(NOBODY)
}

fn named((name, email): (&str, &str)) -> Identity {
    Identity {
        name: name.into(),
        email: email.into(),
    }
}
