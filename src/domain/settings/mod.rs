//! The settings that a flag, an action input, a variable, a task, a plan and the configuration
//! file may all carry, under one name.
//!
//! One table ([`table`]) lists every key with its kind, scope, default and help. The readers, the
//! merge, the command line, the JSON Schemas, the inputs of the action, the reference and the
//! suggestions for misspelt keys all follow it.

pub mod agents;
pub mod check;
pub mod choice;
pub mod kind;
pub mod roles;
pub mod table;

pub use agents::AGENTS;
pub use choice::{
    AgentCommits, AgentConfig, Baseline, Color, CommitVia, Gateway, IfUnverified, KnownFailures,
    OnFinding, OnProtected, ProveNewTests, PullRequest, Report, ReviewFindings, ReviewThreads,
    Sandbox, TestChangePolicy,
};
pub use kind::{Network, Progress};
pub use roles::{RoleAgent, Roles};
pub use table::{MAX_RETRIES, NAMES, Resolved, Settings, keys};

use super::attempt::Role;
use super::suggest::did_you_mean;
use super::text_error::Fault;
use super::yaml::{Entry, Node, read};
use serde_json::Value as Json;

/// Above this many retries a warning speaks of the cost.
pub const COSTLY_RETRIES: u32 = 5;

/// What a setting concerns, and so where it may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A task: it may have its own.
    Task,
    /// The whole run: a task cannot say otherwise.
    Run,
    /// The whole run, and who may start it: a configuration file that a stranger may have written
    /// is not believed.
    Trigger,
    /// The process, not the run: a run that is resumed does not remember it.
    Process,
}

/// What a setting is about: a heading of the help and of the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Which agent works, and how it is started.
    Agent,
    /// How a tree is verified.
    Checks,
    /// Who works on a task, one after the other.
    Phases,
    /// When a turn, a task or the run is given up.
    Limits,
    /// What children may reach.
    Isolation,
    /// What is committed and what may be changed.
    Commits,
    /// How the commits reach the remote.
    Delivery,
    /// Where the result is shown.
    Reports,
    /// What starts a run, and who may.
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

/// How a value is written where there is no YAML: in a flag, an action input, a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `true` or `false`.
    Truth,
    /// One word or number.
    Word,
    /// Text, taken as it is.
    Text,
    /// A list: one item a line; a flag is repeated.
    Lines,
    /// A list: one item a line; a flag is repeated, and each of its values is one item as it is.
    Arguments,
    /// YAML.
    Tree,
}

/// What holds where nothing is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyDefault {
    /// This value, as it would be written.
    Value(String),
    /// Something that depends on where the run is, in words.
    Words(String),
}

impl KeyDefault {
    /// The value or the words.
    pub fn text(&self) -> &str {
        match self {
            Self::Value(text) | Self::Words(text) => text,
        }
    }
}

/// A row of the table, for whoever describes it.
#[derive(Debug, Clone)]
pub struct Key {
    /// Its name, in snake case.
    pub name: &'static str,
    /// What it means, in a sentence or two.
    pub help: &'static str,
    /// What holds where nothing is said.
    pub default: KeyDefault,
    /// What it concerns.
    pub scope: Scope,
    /// What it is about.
    pub group: Group,
    /// How its value is written outside of YAML.
    pub form: Form,
    /// A placeholder for its value, in capitals.
    pub value_name: &'static str,
    /// The words that it may be, where these are a closed set.
    pub choices: Vec<&'static str>,
    /// The least and the most that it may be, where there are such.
    pub range: Option<(u64, u64)>,
    /// JSON Schema of its value.
    pub schema: fn() -> Json,
}

impl Key {
    /// The name of its action input.
    pub fn input(&self) -> String {
        input_name(self.name)
    }

    /// The name of its flag, without the hyphens in front.
    pub fn flag(&self) -> String {
        flag_name(self.name)
    }

    /// The name of its variable.
    pub fn variable(&self) -> String {
        variable_name(self.name)
    }
}

/// Lists whose flags, which are repeated, are named for one item: the name there, and the key.
pub const REPEATED: &[(&str, &str)] = &[("agent_arg", "agent_args"), ("network_allow", "network")];

/// The flag of a key, without the hyphens in front.
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
    format!("SPRAG_{}", key.to_ascii_uppercase())
}

impl Settings {
    /// These settings, and where one is absent that of `lower`. Build chains from the strongest
    /// source on: `flags.or(task).or(plan).or(config)`.
    ///
    /// Lists and mappings are taken whole, never joined. `agent_command`, `agent_args` and
    /// `model` belong to an agent: where `self` names another agent than `lower`, those of
    /// `lower` are not taken, so that no agent gets the model of another.
    ///
    /// A stronger source with an `agent_command` and no `agent` chooses agent `command` over a
    /// weaker one's agent.
    pub fn or(mut self, lower: Self) -> Self {
        if self.agent.is_none() && self.agent_command.is_some() && lower.agent.is_some() {
            self.agent = Some("command".to_owned());
        }
        let lower = match (&self.agent, &lower.agent) {
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

    /// Sets a key from the text of a flag, an action input or a `SPRAG_*` variable. Lists have
    /// one item a line; `progress` is YAML. Blank text changes nothing.
    ///
    /// # Errors
    /// What is wrong, naming the key, as a fragment for a message; also an unknown key.
    pub fn set_from_text(&mut self, key: &str, text: &str) -> Result<(), String> {
        let Some(form) = Self::form(key) else {
            let nearest = did_you_mean(key, NAMES.iter().map(|(name, _)| *name));
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

    /// Sets a key from the texts of a flag, of which only a list has several.
    ///
    /// # Errors
    /// As for one text.
    pub fn set_from_flag(&mut self, key: &str, texts: &[String]) -> Result<(), String> {
        match Self::form(key) {
            Some(Form::Arguments) => self
                .set(key, &Node::list(texts.iter().map(String::as_str)))
                .map_err(|fault| fault.message),
            _ => self.set_from_text(key, &texts.join("\n")),
        }
    }

    /// Reads an entry of a mapping if its key is in the table; says whether it was.
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
    /// arguments or the model of another.
    #[must_use]
    pub fn of_role(&self, role: Role) -> Self {
        match self.roles.get(role) {
            Some(own) => self.with_agent(own),
            None => self.clone(),
        }
    }

    /// These settings with another agent, which does not get the command, the arguments or the model of this
    /// one.
    #[must_use]
    pub fn with_agent(&self, own: &RoleAgent) -> Self {
        let merged = own.settings().or(Settings {
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

    /// The checks, each with the limit that holds for it.
    pub fn checks(&self) -> Vec<super::checks::verdict::Check> {
        let limit = self.verify_timeout;
        let specs = self.verify.iter();
        specs.map(|spec| spec.with_default_timeout(limit)).collect()
    }
}

/// The key that another spelling stands for: the flag `--agent-arg` is repeated, the key is a
/// list.
pub(crate) fn canonical_name(key: &str) -> &str {
    let own = REPEATED.iter().find(|(one, _)| *one == key);
    own.map_or(key, |(_, many)| many)
}

/// Reads `setup`: commands that run once before the first turn.
///
/// # Errors
/// Anything but a list of texts or one text.
pub(crate) fn read_setup(node: &Node) -> Result<Vec<String>, Fault> {
    read::texts("setup", node)
}

#[cfg(test)]
mod tests;
