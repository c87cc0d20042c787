//! What starts runs, and who may: set in the workflow, never by what an event says.

use crate::settings::Resolved;

/// The settings of triggers, and what else triage goes by.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TriggerSettings {
    /// What is set.
    pub rules: Resolved,
    /// Whether a failed workflow on the default branch is worked on.
    pub fix_default_branch: bool,
    /// A directory of plans for `schedule`, `push` and dispatch events.
    pub queue: Option<String>,
    /// The login that Sprag's token belongs to, where it is known.
    pub own_login: Option<String>,
    /// The name or the path of the workflow that runs Sprag, whose own failures start nothing.
    pub own_workflow: Option<String>,
}

impl TriggerSettings {
    /// Whether this person is listed as somebody who may start runs.
    pub fn lists_user(&self, login: &str) -> bool {
        self.rules
            .allowed_users
            .iter()
            .any(|listed| same_login(listed, login))
    }

    /// Whether this bot is listed as one that may start runs.
    pub fn lists_bot(&self, login: &str) -> bool {
        let bare = bare(login);
        self.rules
            .allowed_bots
            .iter()
            .any(|listed| same_login(self::bare(listed), bare))
    }

    /// Whether this login is Sprag's own.
    pub fn is_own(&self, login: &str) -> bool {
        self.own_login
            .as_deref()
            .is_some_and(|own| same_login(own, login))
    }
}

fn same_login(listed: &str, login: &str) -> bool {
    !login.is_empty()
        && listed
            .trim()
            .trim_start_matches('@')
            .eq_ignore_ascii_case(login)
}

fn bare(login: &str) -> &str {
    login.trim().trim_end_matches("[bot]")
}
