//! Chooses the agent that the settings of a task name.

use super::{DEFAULT_FILE, Sources};
use crate::agents::{self, Agent, CliAgent};
use crate::domain::settings::Resolved;
use crate::error::{Error, ErrorKind, Result};
use sprag_agent::access::{self, NoAccess};
use sprag_agent::options::Options;
use sprag_agent::turn::Builtin;

/// The configured agent, otherwise the built-in one if a model can be reached.
pub(super) fn agent(all: &Resolved, sources: &Sources) -> Result<Agent> {
    match available_agent(all, sources) {
        Err(missing) if sources.stand_ins && missing.kind == ErrorKind::Environment => {
            let command = "true".to_owned();
            Ok(Agent::Cli(CliAgent::Command { command }))
        }
        found => found,
    }
}

fn available_agent(all: &Resolved, sources: &Sources) -> Result<Agent> {
    let is_open = all.agent == "auto" && all.agent_command.is_none();
    if let Some(spec) = sources.installed.filter(|_| is_open) {
        return Ok(Agent::Cli(CliAgent::Known(spec)));
    }
    match (all.agent.as_str(), all.agent_command.as_deref()) {
        (agents::COMMAND | "auto", Some(command)) => {
            let command = command.to_owned();
            Ok(Agent::Cli(CliAgent::Command { command }))
        }
        (agents::ACP, Some(command)) => {
            let command = command.to_owned();
            Ok(Agent::Cli(CliAgent::Acp { command }))
        }
        (name, Some(_)) if agents::names().any(|known| known == name) => {
            let why = "is named beside an `agent_command`, which it does not use";
            let error = Error::config(format!("the agent {name} {why}"));
            Err(error.hint("leave out one of them"))
        }
        (agents::BUILTIN, _) => built_in(all, sources)?.map_err(|missing| {
            let error = with_mistake(Error::environment(missing.message), sources);
            missing.hints.into_iter().fold(error, Error::hint)
        }),
        (name @ (agents::ACP | agents::COMMAND), None) => {
            Err(Error::config(format!("agent `{name}` needs a command"))
                .hint("give one with --agent-command, or agent_command in plan or configuration"))
        }
        ("auto", None) => built_in(all, sources)?.map_err(|missing| {
            let flags = agent_flags();
            let none = with_mistake(Error::environment("no agent is configured"), sources).hint(
                format!("name one: {flags}; or set `agent` in {DEFAULT_FILE}"),
            );
            let mut hints = missing.hints.into_iter();
            let first = hints.next().unwrap_or_default();
            // If something is set, its problem is the reason why the built-in agent cannot work.
            let why = if missing.nothing_set {
                String::new()
            } else {
                format!("{}; ", missing.message)
            };
            let none = none.hint(format!("or use the built-in agent: {why}{first}"));
            hints.fold(none, Error::hint)
        }),
        (name, _) => match agents::cli(name) {
            Some(spec) => Ok(Agent::Cli(CliAgent::Known(spec))),
            None => Err(Error::config(format!("unknown agent `{name}`"))
                .hint(format!("use {}", agent_flags()))),
        },
    }
}

/// The flags that choose an agent, formatted for a message.
fn agent_flags() -> String {
    let named = agents::names().filter(|name| ![agents::ACP, agents::COMMAND].contains(name));
    let flags: Vec<String> = named.map(|name| format!("--agent {name}")).collect();
    format!("{}, or --agent-command 'COMMAND'", flags.join(", "))
}

/// The built-in agent, or the reason why its model cannot be reached.
fn built_in(all: &Resolved, sources: &Sources) -> Result<std::result::Result<Agent, NoAccess>> {
    let var = |name: &str| sources.models.get(name).cloned();
    let access = match access::choose(all.model.as_deref(), &var) {
        Ok(access) => access,
        Err(missing) => return Ok(Err(missing)),
    };
    let options = Options::read(&all.agent_args).map_err(Error::config)?;
    Ok(Ok(Agent::Builtin(Box::new(Builtin { access, options }))))
}

/// The error of a model that cannot be reached, with the mistake that may be its cause.
fn with_mistake(error: Error, sources: &Sources) -> Error {
    sources.key_mistake.iter().cloned().fold(error, Error::hint)
}
