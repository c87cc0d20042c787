//! The setting `roles`: the agents of the roles other than the implementer.

use super::AGENTS;
use super::kind::{Form, Kind, OneOf, Text, Texts, listed, literal, text_schema, texts_schema};
use crate::attempt::Role;
use crate::text_error::Fault;
use crate::yaml::{Node, read};
use serde_json::{Value as Json, json};

/// The settings for the agent of a role, or for an agent that replaces another one. What is absent is as for
/// the task's own agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoleAgent {
    /// The agent.
    pub agent: Option<String>,
    /// Its command line, if it is a command.
    pub agent_command: Option<String>,
    /// Arguments added to its command line.
    pub agent_args: Option<Vec<String>>,
    /// The model that it is told to use.
    pub model: Option<String>,
}

impl RoleAgent {
    /// A short description for people.
    pub fn shown(&self) -> String {
        let command = self.agent_command.as_ref().map(|_| "command");
        let agent = self.agent.as_deref().or(command);
        match (agent, self.model.as_deref()) {
            (Some(agent), Some(model)) => format!("{agent} with the model {model}"),
            (Some(agent), None) => agent.to_owned(),
            (None, Some(model)) => format!("the model {model}"),
            (None, None) => "other arguments".to_owned(),
        }
    }
}

/// The roles with settings of their own, in the order of their names in the table below.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roles(Vec<(Role, RoleAgent)>);

impl Roles {
    /// The roles that can be set.
    pub const ALL: [Role; 3] = [Role::Tester, Role::Reviewer, Role::Fixer];

    /// The settings of a role, if it has any.
    pub fn get(&self, role: Role) -> Option<&RoleAgent> {
        let mut set = self.0.iter();
        set.find(|(set, _)| *set == role).map(|(_, agent)| agent)
    }

    /// The settings without those of one role.
    #[must_use]
    pub fn without(mut self, role: Role) -> Self {
        self.0.retain(|(set, _)| *set != role);
        self
    }

    /// All roles with settings.
    pub fn iter(&self) -> impl Iterator<Item = (Role, &RoleAgent)> {
        self.0.iter().map(|(role, agent)| (*role, agent))
    }
}

const PARTS: [&str; 4] = ["agent", "agent_command", "agent_args", "model"];

/// The kind of [`Roles`].
pub struct RolesKind;

impl Kind for RolesKind {
    type Out = Roles;
    const FORM: Form = Form::Tree;
    fn schema(&self) -> Json {
        let role = agent_schema(&["object", "null"]);
        let roles = Roles::ALL.map(|name| (name.as_str().to_owned(), role.clone()));
        let roles: serde_json::Map<String, Json> = roles.into_iter().collect();
        json!({"type": "object", "properties": roles, "additionalProperties": false})
    }
    fn words(&self, value: &Roles) -> String {
        listed(value.iter().map(|(role, _)| literal(role.as_str())))
    }
    fn read(&self, key: &str, node: &Node) -> Result<Roles, Fault> {
        let names = Roles::ALL.map(Role::as_str);
        let expected = format!("a mapping with the keys {}", names.join(", "));
        let mut roles = Roles::default();
        for entry in read::entries(key, &expected, node)? {
            let part = format!("{key}.{}", entry.key);
            let mut roles_with_settings = Roles::ALL.into_iter();
            let role = roles_with_settings.find(|role| role.as_str() == entry.key);
            let role = role.ok_or_else(|| read::unknown_part(key, entry, &names))?;
            if !entry.value.is_null() {
                roles.0.push((role, role_agent(&part, &entry.value)?));
            }
        }
        Ok(roles)
    }
}

fn agent_schema(kinds: &[&str]) -> Json {
    json!({
        "type": kinds,
        "properties": {
            "agent": OneOf(AGENTS).schema(),
            "agent_command": text_schema(),
            "agent_args": texts_schema(),
            "model": text_schema(),
        },
        "additionalProperties": false,
    })
}

/// The kind of a single agent.
pub struct OneAgent;

impl Kind for OneAgent {
    type Out = RoleAgent;
    const FORM: Form = Form::Tree;
    fn schema(&self) -> Json {
        agent_schema(&["object"])
    }
    fn words(&self, value: &RoleAgent) -> String {
        literal(&value.shown())
    }
    fn read(&self, key: &str, node: &Node) -> Result<RoleAgent, Fault> {
        let agent = role_agent(key, node)?;
        if agent == RoleAgent::default() {
            let expected = "an agent that differs from the task's own";
            return Err(read::unexpected(key, expected, node));
        }
        Ok(agent)
    }
}

/// The kind of a list of agents.
pub struct AgentList;

impl Kind for AgentList {
    type Out = Vec<RoleAgent>;
    const FORM: Form = Form::Tree;
    fn schema(&self) -> Json {
        json!({"type": "array", "items": OneAgent.schema()})
    }
    fn words(&self, value: &Vec<RoleAgent>) -> String {
        listed(value.iter().map(|agent| OneAgent.words(agent)))
    }
    fn read(&self, key: &str, node: &Node) -> Result<Vec<RoleAgent>, Fault> {
        let items = read::items(key, "a list of agents", node)?.into_iter();
        let item = |(at, item)| OneAgent.read(&format!("{key}[{at}]"), item);
        items.enumerate().map(item).collect()
    }
}

fn role_agent(key: &str, node: &Node) -> Result<RoleAgent, Fault> {
    let mut agent = RoleAgent::default();
    let expected = format!("a mapping with the keys {}", PARTS.join(", "));
    for entry in read::entries(key, &expected, node)? {
        let (part, value) = (format!("{key}.{}", entry.key), &entry.value);
        match entry.key.as_str() {
            _ if value.is_null() => {}
            "agent" => agent.agent = Some(OneOf(AGENTS).read(&part, value)?),
            "agent_command" => {
                agent.agent_command = Some(Text::named("COMMAND").read(&part, value)?);
            }
            "agent_args" => {
                agent.agent_args = Some(Texts::arguments("ARG").read(&part, value)?);
            }
            "model" => agent.model = Some(Text::named("MODEL").read(&part, value)?),
            _ => return Err(read::unknown_part(key, entry, &PARTS)),
        }
    }
    Ok(agent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    fn read(text: &str) -> Result<Roles, String> {
        let mut settings = Settings::default();
        settings.set_from_text("roles", text)?;
        Ok(settings.roles.unwrap_or_default())
    }

    #[test]
    fn each_role_has_an_agent_of_its_own() {
        let text =
            "{reviewer: {agent: claude, model: m, agent_args: [a, b]}, tester: {}, fixer: null}";
        let roles = read(text).unwrap();
        let reviewer = roles.get(Role::Reviewer).unwrap();
        assert_eq!(reviewer.agent.as_deref(), Some("claude"));
        assert_eq!(
            reviewer.agent_args.as_deref(),
            Some(&["a".to_owned(), "b".to_owned()][..])
        );
        assert_eq!(roles.get(Role::Tester), Some(&RoleAgent::default()));
        assert_eq!(roles.get(Role::Fixer), None);
    }

    #[test]
    fn agents_that_take_over_are_read_in_order() {
        let mut settings = Settings::default();
        let text = "[{model: large}, {agent: claude, model: m}]";
        settings.set_from_text("escalate", text).unwrap();
        let list = settings.escalate.clone().unwrap_or_default();
        let shown: Vec<String> = list.iter().map(RoleAgent::shown).collect();
        assert_eq!(shown, ["the model large", "claude with the model m"]);
        settings
            .set_from_text("fallback", "{agent_command: ./other}")
            .unwrap();
        assert_eq!(
            settings
                .fallback
                .map(|fallback| fallback.shown())
                .as_deref(),
            Some("command")
        );
        for (key, wrong) in [
            ("escalate", "[{}]"),
            ("fallback", "{}"),
            ("escalate", "[{modle: x}]"),
            ("fallback", "x"),
        ] {
            let refused = Settings::default().set_from_text(key, wrong).unwrap_err();
            assert!(refused.contains(key), "{refused}");
        }
    }

    #[test]
    fn what_is_no_role_or_no_part_of_one_is_refused_by_name() {
        let unknown = read("{reviwer: {}}").unwrap_err();
        assert!(unknown.contains("reviewer"), "{unknown}");
        let part = read("{reviewer: {modle: x}}").unwrap_err();
        assert!(
            part.contains("roles.reviewer") && part.contains("`model`"),
            "{part}"
        );
        assert!(read("{reviewer: {agent: nobody}}").is_err());
        assert!(read("reviewer").is_err());
    }
}
