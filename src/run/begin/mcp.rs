//! The MCP servers of a run: those of the configuration, on a pull request those of its base.

use crate::agents::{Agent, CliAgent};
use crate::cli::RunArgs;
use crate::context::Context;
use crate::domain::mcp::McpServer;
use crate::error::Result;
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::lookup::Checkout;
use crate::github::request::RunRequest;
use crate::run::begin::prepare::{Prepared, config_path, parse_config};

/// Decides which servers the agents get. On a pull request, a declaration in its head does not count.
///
/// # Errors
/// When the base cannot be read, or its configuration is invalid.
pub(crate) fn decide_servers(
    context: &Context,
    args: &RunArgs,
    prepared: &mut Prepared,
    request: Option<&RunRequest>,
) -> Result<()> {
    let declared = std::mem::take(&mut prepared.run.mcp);
    // A fork's configuration is that of the default branch already.
    let of_head = |request: &&RunRequest| request.is_pull && !request.context.report_only;
    prepared.run.mcp = match request.filter(of_head) {
        Some(request) if !declared.is_empty() => {
            let base = request.base_ref.as_deref().unwrap_or_default();
            let trusted = of_branch(context, args, prepared, base)?;
            warn_of_ignored(prepared, &declared, &trusted, base);
            trusted
        }
        _ => declared,
    };
    warn_of_others(prepared);
    Ok(())
}

/// Warns of the servers of the head that its base does not declare.
fn warn_of_ignored(
    prepared: &mut Prepared,
    declared: &[McpServer],
    trusted: &[McpServer],
    base: &str,
) {
    let ignored: Vec<&str> = declared
        .iter()
        .filter(|server| !trusted.contains(server))
        .map(|server| server.name.as_str())
        .collect();
    if !ignored.is_empty() {
        prepared.warnings.push(format!(
            "the MCP servers of the pull request's head are ignored, since its base {base} does not declare them so: {}",
            ignored.join(", ")
        ));
    }
}

/// The servers in the configuration of a branch. A file outside of the work tree is nobody's head.
fn of_branch(
    context: &Context,
    args: &RunArgs,
    prepared: &Prepared,
    base: &str,
) -> Result<Vec<McpServer>> {
    let path = config_path(context, &args.common, prepared.real.work_tree());
    let Ok(inside) = path.strip_prefix(prepared.real.work_tree()) else {
        return Ok(Vec::new());
    };
    let Some(actions) = ActionsEnvironment::of(context) else {
        return Ok(Vec::new());
    };
    let checkout = Checkout {
        context,
        actions: &actions,
        real: &prepared.real,
    };
    let text = checkout.file_of_branch(base, inside)?.unwrap_or_default();
    let name = format!("{}, on {base}", inside.display());
    Ok(parse_config(&name, &text)?.mcp)
}

/// Warns of agents that get no servers.
fn warn_of_others(prepared: &mut Prepared) {
    let without = |agent: &Agent| match agent {
        Agent::Cli(CliAgent::Command { .. }) => true,
        Agent::Builtin(_) | Agent::Cli(_) => false,
    };
    let mut agents = prepared.tasks.iter().map(|(_, config)| &config.agent);
    if !prepared.run.mcp.is_empty() && agents.any(without) {
        let warning = "the agents of `agent_command` get no MCP servers";
        prepared.warnings.push(warning.into());
    }
}
