//! The settings that flags, action inputs, variables, tasks, plans and the configuration file share under the
//! same names.
//!
//! One table ([`table`]) lists every key with its kind, scope, default and help. The readers, the merge, the
//! command line, the JSON Schemas, the action's inputs, the reference and the suggestions for misspelt keys
//! are all derived from it.

pub mod agents;
pub mod branch;
pub mod check;
pub mod choice;
pub mod kind;
pub mod roles;
pub mod table;
pub mod variables;

pub use agents::AGENTS;
pub use choice::{
    AgentCommits, AgentConfig, Approve, Baseline, Caches, Color, CommitVia, Gateway, IfUnverified,
    KnownFailures, OnFinding, OnProtected, ProveNewTests, PullRequest, Report, ReviewFindings,
    ReviewThreads, Sandbox, SignalPolicy, TestChangePolicy,
};
pub use kind::{Form, Network, Progress};
pub use roles::{RoleAgent, Roles};
pub use table::{MAX_RETRIES, NAMES, Resolved, Settings, keys};

use super::attempt::Role;
use super::suggest::did_you_mean;
use super::text_error::Fault;
use super::yaml::{Entry, Node, read};
use serde_json::Value as Json;

/// The number of retries above which a warning mentions the cost.
pub const COSTLY_RETRIES: u32 = 5;

/// What a setting applies to, which determines where it may be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A task: it may have its own value.
    Task,
    /// The whole run: a task cannot override it.
    Run,
    /// The whole run, and who may start it: the setting is ignored in a configuration file that an untrusted
    /// person may have written.
    Trigger,
    /// The process rather than the run: a resumed run does not keep it.
    Process,
}

impl Settings {
    /// The template of the names of new branches.
    pub fn branch_template(&self) -> &str {
        self.branch.as_deref().unwrap_or(branch::DEFAULT_BRANCH)
    }
}

impl From<&RoleAgent> for Settings {
    /// The settings of a role, with precedence over those of the implementer.
    fn from(role: &RoleAgent) -> Self {
        Self {
            agent: role.agent.clone(),
            agent_command: role.agent_command.clone(),
            agent_args: role.agent_args.clone(),
            model: role.model.clone(),
            ..Self::default()
        }
    }
}

/// The topic of a setting: a heading of the help and of the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// The agent, and how it is started.
    Agent,
    /// How a tree is verified.
    Checks,
    /// The roles that work on a task, one after the other.
    Phases,
    /// The limits at which a turn, a task or the run ends.
    Limits,
    /// What child processes may access.
    Isolation,
    /// What is committed, and what may be changed.
    Commits,
    /// How the commits reach the remote.
    Delivery,
    /// Where the result is shown.
    Reports,
    /// What starts a run, and who may start it.
    Triggers,
}

impl Group {
    /// The heading.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Agent => "Agent",
            Self::Checks => "Checks",
            Self::Phases => "Review and tests first",
            Self::Limits => "Limits",
            Self::Isolation => "Sandbox",
            Self::Commits => "Tasks and commits",
            Self::Delivery => "Push and pull request",
            Self::Reports => "Reports",
            Self::Triggers => "Who may ask for a run",
        }
    }
}

/// The default of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyDefault {
    /// This value, as it would be written.
    Value(String),
    /// A description of a default that depends on where the run is.
    Words(String),
}

impl KeyDefault {
    /// The value or the description.
    pub fn text(&self) -> &str {
        match self {
            Self::Value(text) | Self::Words(text) => text,
        }
    }
}

/// A row of the table, for documentation and schemas.
#[derive(Debug, Clone)]
pub struct Key {
    /// Its name, in snake case.
    pub name: &'static str,
    /// Its help, in a sentence or two.
    pub help: &'static str,
    /// Its default.
    pub default: KeyDefault,
    /// What it applies to.
    pub scope: Scope,
    /// Its topic.
    pub group: Group,
    /// How its value is written outside YAML.
    pub form: Form,
    /// The placeholder for its value, in capitals.
    pub value_name: &'static str,
    /// The accepted words, if these are a closed set.
    pub choices: Vec<&'static str>,
    /// The minimum and maximum, if there are any.
    pub range: Option<(u64, u64)>,
    /// JSON Schema of its value.
    pub schema: fn() -> Json,
}

impl Key {
    /// The name of its action input.
    pub fn input(&self) -> String {
        input_name(self.name)
    }

    /// The name of its flag, without the leading hyphens.
    pub fn flag(&self) -> String {
        flag_name(self.name)
    }

    /// The name of its variable.
    pub fn variable(&self) -> String {
        variable_name(self.name)
    }
}

/// The names of all settings.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    NAMES.iter().map(|(name, _)| *name)
}

/// Whether a key is the name of a setting.
pub fn is_name(key: &str) -> bool {
    names().any(|name| name == key)
}

/// Lists whose repeatable flags are named for one item: the flag's name and the key.
pub const REPEATED: &[(&str, &str)] = &[("agent_arg", "agent_args"), ("network_allow", "network")];

/// The flag of a key, without the leading hyphens.
pub fn flag_name(key: &str) -> String {
    let own = REPEATED.iter().find(|(_, many)| *many == key);
    input_name(own.map_or(key, |(one, _)| one))
}

/// The action input of a key.
pub fn input_name(key: &str) -> String {
    key.replace('_', "-")
}

/// The variable of a key.
pub fn variable_name(key: &str) -> String {
    format!("{}{}", variables::PREFIX, key.to_ascii_uppercase())
}

impl Settings {
    /// These settings, completed with those of `lower`. Build a chain from the strongest source on:
    /// `flags.or(task).or(plan).or(config)`.
    ///
    /// Lists and mappings are replaced as a whole, never merged. `agent_command`, `agent_args` and `model`
    /// belong to an agent: if `self` names another agent than `lower`, those of `lower` are ignored, so that
    /// no agent gets another agent's model.
    ///
    /// A stronger source with an `agent_command` and no `agent` selects the agent `command` instead of a
    /// weaker source's agent.
    pub fn or(mut self, lower: Self) -> Self {
        if self.agent.is_none() && self.agent_command.is_some() && lower.agent.is_some() {
            self.agent = Some("command".to_owned());
        }
        let lower = match (&self.agent, &lower.agent) {
            // A command without an agent is for the agents that are commands.
            (Some(agent), None) if !["acp", "auto", "command"].contains(&agent.as_str()) => Self {
                agent_command: None,
                ..lower
            },
            (Some(agent), Some(other)) if agent != other => Self {
                agent_command: None,
                agent_args: None,
                model: None,
                ..lower
            },
            _ => lower,
        };
        self.filled_from(lower)
    }

    /// Sets a key from the text of a flag, an action input or a `SPRAG_*` variable. Lists have one item per
    /// line; `progress` is YAML. Blank text changes nothing.
    ///
    /// # Errors
    /// The problem, as a fragment for a message that names the key; an unknown key is an error too.
    pub fn set_from_text(&mut self, key: &str, text: &str) -> Result<(), String> {
        let Some(form) = Self::form(key) else {
            let nearest = did_you_mean(key, names());
            return Err(format!("unknown key `{key}`{nearest}"));
        };
        if text.trim().is_empty() {
            return Ok(());
        }
        let node = match form {
            Form::Truth | Form::Word => Node::plain(text.trim()),
            Form::Text => Node::quoted(text),
            Form::Lines | Form::Arguments => {
                Node::list(text.lines().map(str::trim).filter(|line| !line.is_empty()))
            }
            Form::Tree => match super::yaml::parse(text) {
                Ok(node) => node.unwrap_or_else(|| Node::plain("")),
                Err(fault) => return Err(format!("{key}: {}", fault.message)),
            },
        };
        self.set(key, &node).map_err(|fault| fault.message)
    }

    /// Sets a key from the texts of a flag, which has several only for a list.
    ///
    /// # Errors
    /// As for [`Self::set_from_text`].
    pub fn set_from_flag(&mut self, key: &str, texts: &[String]) -> Result<(), String> {
        match Self::form(key) {
            Some(Form::Arguments) => self
                .set(key, &Node::list(texts.iter().map(String::as_str)))
                .map_err(|fault| fault.message),
            _ => self.set_from_text(key, &texts.join("\n")),
        }
    }

    /// Reads an entry of a mapping if its key is in the table, and returns the key's scope.
    ///
    /// # Errors
    /// A value of the wrong type or out of range.
    pub(crate) fn read_entry(&mut self, entry: &Entry) -> Result<Option<Scope>, Fault> {
        let key = canonical_name(&entry.key);
        let Some((_, scope)) = NAMES.iter().find(|(name, _)| *name == key) else {
            return Ok(None);
        };
        self.set(key, &entry.value)?;
        Ok(Some(*scope))
    }
}

impl Resolved {
    /// These settings with the agent of a role. As everywhere, an agent does not get the command, the
    /// arguments or the model of another agent.
    #[must_use]
    pub fn of_role(&self, role: Role) -> Self {
        match self.roles.get(role) {
            Some(own) => self.with_agent(own),
            None => self.clone(),
        }
    }

    /// These settings with another agent, which does not get this agent's command, arguments or model.
    #[must_use]
    pub fn with_agent(&self, own: &RoleAgent) -> Self {
        let merged = Settings::from(own).or(Settings {
            agent: Some(self.agent.clone()),
            agent_command: self.agent_command.clone(),
            agent_args: Some(self.agent_args.clone()),
            model: self.model.clone(),
            ..Settings::default()
        });
        Self {
            agent: merged.agent.unwrap_or_else(|| self.agent.clone()),
            agent_command: merged.agent_command,
            agent_args: merged.agent_args.unwrap_or_default(),
            model: merged.model,
            ..self.clone()
        }
    }

    /// The checks of a task in this directory, each with its effective time limit and a name of its own.
    pub fn checks(&self, directory: &str) -> Vec<super::checks::verdict::Check> {
        let limit = self.verify_timeout;
        let specs = self.verify.iter();
        let mut checks: Vec<_> = specs
            .map(|spec| spec.with_defaults(limit, directory))
            .collect();
        check::distinguish(&mut checks);
        checks
    }
}

/// The key for another spelling: the flag `--agent-arg` is repeatable, while the key is a list.
pub(crate) fn canonical_name(key: &str) -> &str {
    let own = REPEATED.iter().find(|(one, _)| *one == key);
    own.map_or(key, |(_, many)| many)
}

/// Reads `setup`: commands that run once before the first turn.
///
/// # Errors
/// Anything but a text or a list of texts.
pub(crate) fn read_setup(node: &Node) -> Result<Vec<String>, Fault> {
    read::texts("setup", node)
}

#[cfg(test)]
mod tests;
