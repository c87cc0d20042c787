//! What an agent needs before its first turn: its program, and a key or a login.

use crate::agents::{Agent, CliAgent, CliSpec, Login, LoginSources, key_mistake};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::run::begin::programs::missing_of;
use crate::settings::TaskConfig;
use std::ffi::OsStr;
use std::path::Path;

/// Lets the fallback agent do a task from the start if the task's own agent is not installed or, with
/// `logins`, has neither a key nor a login. Returns one message per replaced agent.
pub fn fall_back<'t>(
    context: &Context,
    tasks: impl Iterator<Item = &'t mut TaskConfig>,
    logins: bool,
) -> Vec<String> {
    let mut told = Vec::new();
    for task in tasks.filter(|task| task.has_fallback()) {
        let Agent::Cli(CliAgent::Known(spec)) = &task.agent else {
            continue;
        };
        let (spec, one) = (*spec, [&*task]);
        let missing = match require_programs(context, one.into_iter()) {
            Ok(()) if logins => require_logins(context, one.into_iter()),
            found => found,
        };
        let Err(missing) = missing else { continue };
        if task.begin_with_fallback() {
            let line = format!(
                "{}, and `fallback` works instead of {}: {}",
                missing.message,
                spec.name,
                task.agent.name()
            );
            if !told.contains(&line) {
                told.push(line);
            }
        }
    }
    told
}

/// Fails if an agent's program is not on PATH.
///
/// # Errors
/// The first missing program, with its install command.
pub fn require_programs<'t>(
    context: &Context,
    tasks: impl Iterator<Item = &'t TaskConfig>,
) -> Result<()> {
    for (spec, _) in known(tasks) {
        if context.find_program(spec.name).is_none() {
            let message = format!("the agent {} was not found on PATH", spec.name);
            return Err(Error::agent(message)
                .hint(format!("install it: {}", spec.install_command()))
                .hint("or use another agent: --agent NAME or --agent-command 'COMMAND'"));
        }
    }
    Ok(())
}

/// Fails if the command of a role's own agent starts a program that is not installed: the turns before that
/// role's would be paid for in vain.
///
/// # Errors
/// The first such role, with its program.
pub fn require_commands_of_roles<'t>(
    context: &Context,
    work_tree: &Path,
    tasks: impl Iterator<Item = &'t TaskConfig>,
) -> Result<()> {
    for task in tasks {
        for (role, of_role) in task.by_role() {
            let (Agent::Cli(CliAgent::Command { command } | CliAgent::Acp { command }), false) =
                (&of_role.agent, of_role.agent == task.agent)
            else {
                continue;
            };
            if let Some(program) = missing_of(context, work_tree, command) {
                let role = role.as_str();
                let message =
                    format!("the {role}'s agent_command needs {program}, which was not found");
                return Err(Error::agent(message).hint(format!(
                    "install it, or correct `roles.{role}.agent_command`"
                )));
            }
        }
    }
    Ok(())
}

/// Fails if an agent has neither a key nor a login and would fail in its first turn.
///
/// # Errors
/// The first such agent, where its login was searched for, and the remedy.
pub fn require_logins<'t>(
    context: &Context,
    tasks: impl Iterator<Item = &'t TaskConfig>,
) -> Result<()> {
    for (spec, task) in known(tasks) {
        if with_login_sources(context, &task, |sources| spec.login(sources)) != Login::Nothing {
            continue;
        }
        let file = with_login_sources(context, &task, |sources| spec.login_file(sources))
            .map(|path| format!(" ({} is not there)", path.display()));
        let message = format!(
            "the agent {} cannot work: {} is not set, and it is not logged in{}",
            spec.name,
            spec.keys.join(" or "),
            file.unwrap_or_default()
        );
        let mistake = key_mistake(spec.keys, &context.env, context.in_actions());
        return Err(mistake
            .into_iter()
            .fold(Error::agent(message), Error::hint)
            .hint(spec.login_remedy())
            .hint("or use another agent: --agent NAME or --agent-command 'COMMAND'"));
    }
    Ok(())
}

/// How an agent is logged in, as far as that is known without running it.
pub fn login(context: &Context, spec: &CliSpec, task: &TaskConfig) -> Login {
    with_login_sources(context, task, |sources| spec.login(sources))
}

fn with_login_sources<T>(
    context: &Context,
    task: &TaskConfig,
    look: impl FnOnce(&LoginSources<'_>) -> T,
) -> T {
    look(&LoginSources {
        variable: &|name| context.var_os(name).map(OsStr::to_owned),
        is_file: &|path| path.is_file(),
        agent_env: &task.settings.agent_env,
        agent_args: &task.settings.agent_args,
    })
}

/// The agent CLIs of these tasks in every role, each with the settings for that role.
fn known<'t>(
    tasks: impl Iterator<Item = &'t TaskConfig>,
) -> impl Iterator<Item = (&'static CliSpec, TaskConfig)> {
    let in_roles = tasks.flat_map(TaskConfig::in_each_role);
    in_roles.filter_map(|task| match &task.agent {
        Agent::Cli(CliAgent::Known(spec)) => Some((*spec, task)),
        _ => None,
    })
}
