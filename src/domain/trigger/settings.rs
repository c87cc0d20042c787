//! What starts runs, and who may start them: set in the workflow, never by the content of an event.

use crate::settings::Resolved;

/// The trigger settings, and the other inputs of triage.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TriggerSettings {
    /// The resolved settings.
    pub rules: Resolved,
    /// A directory of plans for `schedule`, `push` and dispatch events.
    pub queue: Option<String>,
    /// The login of Sprag's token, if known.
    pub own_login: Option<String>,
    /// The name or path of the workflow that runs Sprag, whose own failures start nothing.
    pub own_workflow: Option<String>,
}

impl TriggerSettings {
    /// Whether this person is listed as allowed to start runs.
    pub fn lists_user(&self, login: &str) -> bool {
        let mut users = self.rules.allowed_users.iter();
        users.any(|listed| same_login(listed, login))
    }

    /// Whether this bot is listed as allowed to start runs.
    pub fn lists_bot(&self, login: &str) -> bool {
        let mut bots = self.rules.allowed_bots.iter();
        bots.any(|listed| same_login(bare(listed), bare(login)))
    }

    /// Whether this login is Sprag's own.
    pub fn is_own(&self, login: &str) -> bool {
        let own = self.own_login.as_deref();
        own.is_some_and(|own| same_login(own, login))
    }
}

fn same_login(listed: &str, login: &str) -> bool {
    let listed = listed.trim().trim_start_matches('@');
    !login.is_empty() && listed.eq_ignore_ascii_case(login)
}

fn bare(login: &str) -> &str {
    login.trim().trim_end_matches("[bot]")
}
