//! What a run needs on this machine: the programs of agents and commands, and a key or a login for each agent.

use crate::agents::{Agent, CliAgent, CliSpec, Login, LoginSources, key_mistake};
use crate::context::Context;
use crate::domain::checks::verdict::Check;
use crate::domain::command_line::{CommandLine, Simple};
use crate::error::{Error, Result};
use crate::process::find_program;
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
        let name = task.agent.name().to_owned();
        let missing = require_programs(context, std::iter::once(&*task));
        let missing = match missing {
            Ok(()) if logins => require_logins(context, std::iter::once(&*task)),
            found => found,
        };
        let Err(missing) = missing else { continue };
        if matches!(task.agent, Agent::Cli(CliAgent::Known(_))) && task.begin_with_fallback() {
            let line = format!(
                "{}, and `fallback` works instead of {name}: {}",
                missing.message,
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
            if let Agent::Cli(CliAgent::Command { command } | CliAgent::Acp { command }) =
                &of_role.agent
                && of_role.agent != task.agent
                && let Some(program) = missing_of(context, work_tree, command)
            {
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
        if login(context, spec, &task) != Login::Nothing {
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

/// Shell built-ins.
const BUILT_IN: &[&str] = &[
    ":", "[", "[[", "break", "cd", "continue", "echo", "exit", "export", "false", "getopts",
    "hash", "local", "popd", "printf", "pushd", "pwd", "read", "readonly", "return", "set",
    "shift", "test", "times", "trap", "true", "type", "ulimit", "umask", "unalias", "unset",
    "wait",
];

/// Shell built-ins that may define commands or change where they are found, as an environment's `activate`
/// does.
const DEFINES_COMMANDS: &[&str] = &[".", "alias", "eval", "source"];

/// Other names under which a program may be installed.
const ALSO_CALLED: &[(&str, &str)] = &[
    ("fd", "fdfind"),
    ("gmake", "make"),
    ("make", "gmake"),
    ("nodejs", "node"),
    ("node", "nodejs"),
    ("pip", "pip3"),
    ("pip3", "pip"),
    ("python", "python3"),
    ("python3", "python"),
];

/// A program that a command needs and that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingProgram {
    /// The command, as it is named for people.
    pub of: String,
    /// Whether it is a setup command.
    pub in_setup: bool,
    /// The program, as the command names it.
    pub program: String,
    /// Another name under which it is there.
    pub also_called: Option<&'static str>,
}

/// The programs that setup commands and checks need and that are not there. A setup command may install the
/// program of a check.
pub fn missing(
    context: &Context,
    work_tree: &Path,
    setup: &[String],
    checks: &[Check],
) -> Vec<MissingProgram> {
    let search_path = context.var_os("PATH").unwrap_or_default();
    let is_there = |program: &str| find_program(program.as_ref(), search_path, work_tree).is_some();
    let setup = setup.iter().map(|line| (true, "setup".to_owned(), line));
    let checks = checks
        .iter()
        .map(|check| (false, format!("check {}", check.name), &check.run));
    let mut missing = Vec::new();
    for (in_setup, of, line) in setup.chain(checks) {
        for program in programs(line) {
            if is_there(&program) {
                continue;
            }
            let mut others = ALSO_CALLED.iter().filter(|(name, _)| *name == program);
            let other = others.find(|(_, other)| is_there(other));
            missing.push(MissingProgram {
                of: of.clone(),
                in_setup,
                also_called: other.map(|(_, other)| *other),
                program,
            });
        }
    }
    missing
}

/// The first program that a command line needs and that is not installed. A path in the work tree may lead to
/// a program that does not exist yet.
pub fn missing_of(context: &Context, work_tree: &Path, line: &str) -> Option<String> {
    let search_path = context.var_os("PATH").unwrap_or_default();
    programs(line).into_iter().find(|program| {
        let is_installed = !program.contains('/') || program.starts_with('/');
        is_installed && find_program(program.as_ref(), search_path, work_tree).is_none()
    })
}

/// The programs that a command line starts unconditionally, in order. Everything that depends on a condition,
/// a variable or another program's output is left out, and so is everything after it that it may affect.
fn programs(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let line = CommandLine::read(line);
    if line.not_understood.contains("an open quote") {
        return found;
    }
    let certain = |command: &&Simple| command.is_certain && !command.is_substitution;
    for command in line.commands().filter(certain) {
        // What follows may be found elsewhere than this process looks.
        if command.assignments.iter().any(|(name, _)| name == "PATH") {
            break;
        }
        let Some(program) = command.started() else {
            continue;
        };
        if !command.sourced.is_empty() || DEFINES_COMMANDS.contains(&program.word) {
            break;
        }
        let word = program.word;
        let is_here = command.directory.as_deref() == Some("") || !word.contains('/');
        let is_known = BUILT_IN.contains(&word) || found.iter().any(|known| known == word);
        if is_plain(word) && is_here && !is_known {
            found.push(word.to_owned());
        }
    }
    found
}

fn is_plain(word: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@".contains(c);
    !word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_of_a_command_line_are_those_that_are_started_in_any_case() {
        for (line, expected) in [
            ("cargo test", &["cargo"][..]),
            ("npm ci && npm test -- --ci", &["npm"]),
            ("CI=1 ./gradlew check", &["./gradlew"]),
            ("cd web && ./run && yarn test", &["yarn"]),
            ("make lint; make test | tee log 2>&1", &["make", "tee"]),
            ("env FOO=x pytest -k 'a && b'", &["pytest"]),
            ("! grep -r TODO src", &["grep"]),
            ("pip --version || python -m ensurepip", &["pip"]),
            ("if [ -f x ]; then prettier; fi", &[]),
            ("$RUNNER test", &[]),
            (". .venv/bin/activate && pytest", &[]),
            ("cargo fmt; source env.sh; pytest", &["cargo"]),
            ("export PATH=\"$PWD/bin:$PATH\"; jest", &[]),
            ("PATH=bin:$PATH jest", &[]),
            ("PATH=bin:$PATH\njest", &[]),
            ("eval \"$(pyenv init -)\" && pytest", &[]),
            ("(cd web; yarn)", &["yarn"]),
            ("true", &[]),
            ("echo 'a | b'", &[]),
            ("test -f x && jq . x &> log", &["jq"]),
            ("unbalanced 'quote", &[]),
            ("", &[]),
        ] {
            assert_eq!(programs(line), expected, "{line}");
        }
    }
}
