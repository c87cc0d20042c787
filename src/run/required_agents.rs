//! The programs of agents, which have to be there before a run begins.

use crate::agents::{Agent, CliAgent};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::run::prepare::Prepared;

/// The program of an agent that is one, and the command that installs it.
pub fn program_of(agent: &Agent) -> Option<(&'static str, &'static str)> {
    match agent {
        Agent::Cli(CliAgent::Codex) => Some(("codex", "npm install --global @openai/codex")),
        Agent::Cli(CliAgent::Claude) => {
            Some(("claude", "npm install --global @anthropic-ai/claude-code"))
        }
        Agent::Cli(CliAgent::Command { .. }) | Agent::Builtin(_) => None,
    }
}

/// Fails where an agent's program is not to be found, before anything is begun.
///
/// # Errors
/// When one is missing, naming how to get it.
pub fn require_agents(context: &Context, prepared: &Prepared) -> Result<()> {
    for (_, config) in &prepared.tasks {
        let Some((program, remedy)) = program_of(&config.agent) else {
            continue;
        };
        if context.find_program(program).is_none() {
            return Err(
                Error::environment(format!("the agent {program} was not found on PATH"))
                    .hint(format!("install it: {remedy}"))
                    .hint("or use another agent: --agent NAME or --agent-command 'COMMAND'"),
            );
        }
    }
    Ok(())
}
