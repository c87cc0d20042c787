//! What starts runs, and who may: set in the workflow, never by what an event says.

/// The settings of triggers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerSettings {
    /// What a line of a comment begins with that asks for something.
    pub phrase: String,
    /// The label that makes an issue or a pull request work. Case does not matter.
    pub label: String,
    /// Associations (GitHub's words, such as `OWNER`) of people who may start runs. Write access is
    /// needed besides.
    pub allowed_associations: Vec<String>,
    /// Logins of people who may start runs whatever their access and association.
    pub allowed_users: Vec<String>,
    /// Logins of bots that may start runs, with or without `[bot]`; no other bot may.
    pub allowed_bots: Vec<String>,
    /// Whether `pull_request_target` may start runs.
    pub allow_pull_request_target: bool,
    /// Runs on one issue or pull request within one day (UTC).
    pub max_runs_per_day: u32,
    /// Runs in a row that no person started.
    pub max_depth: u32,
    /// Whether a failed workflow on the default branch is worked on.
    pub fix_default_branch: bool,
    /// A directory of plans for `schedule`, `push` and dispatch events.
    pub queue: Option<String>,
    /// The login that Sprag's token belongs to, where it is known.
    pub own_login: Option<String>,
    /// The name or the path of the workflow that runs Sprag, whose own failures start nothing.
    pub own_workflow: Option<String>,
}

impl Default for TriggerSettings {
    fn default() -> Self {
        let associations = ["OWNER", "MEMBER", "COLLABORATOR"];
        Self {
            phrase: "/sprag".to_owned(),
            label: "sprag".to_owned(),
            allowed_associations: associations.map(str::to_owned).to_vec(),
            allowed_users: Vec::new(),
            allowed_bots: Vec::new(),
            allow_pull_request_target: false,
            max_runs_per_day: 20,
            max_depth: 2,
            fix_default_branch: false,
            queue: None,
            own_login: None,
            own_workflow: None,
        }
    }
}

impl TriggerSettings {
    /// Whether this person is listed as somebody who may start runs.
    pub fn lists_user(&self, login: &str) -> bool {
        self.allowed_users
            .iter()
            .any(|listed| same_login(listed, login))
    }

    /// Whether this bot is listed as one that may start runs.
    pub fn lists_bot(&self, login: &str) -> bool {
        let bare = bare(login);
        self.allowed_bots
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
