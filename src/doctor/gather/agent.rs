//! Facts about the agent: its kind, its program, and its login.

use crate::agents::builtin::{self, Builtin};
use crate::agents::{self, CliAgent, CliSpec};
use crate::context::Context;
use crate::doctor::gather::{Configured, trouble};
use crate::doctor::{Agent, AgentKind, Cli, Queried};
use crate::domain::command_line::{CommandLine, Simple};
use crate::domain::settings::Gateway;
use crate::git::without_userinfo;
use crate::process::environment::environment;
use crate::process::{
    Cancel, CommandSpec, HeadTail, Input, Limits, StreamKind, clean_text, find_program, run,
};
use crate::run::begin::model_gateway;
use crate::run::begin::required_agents::login;
use crate::settings::TaskConfig;
use std::path::Path;
use std::time::Duration;

/// Time limit for a program to print its version. Its first start can take seconds.
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of bytes that are read of its output.
const VERSION_BYTES: usize = 4 << 10;

pub(crate) async fn gather(
    context: &Context,
    configured: Option<&Configured>,
    work_tree: &Path,
    cancel: &Cancel,
) -> Option<Agent> {
    let configured = configured?;
    let kind = match (&configured.task.missing, &configured.task.agent) {
        (Some(missing), _) => AgentKind::None(trouble(&missing.error)),
        (None, agents::Agent::Builtin(builtin)) => built_in(context, builtin),
        (None, agents::Agent::Cli(CliAgent::Acp { command } | CliAgent::Command { command })) => {
            of_command(context, command, work_tree)
        }
        (None, agents::Agent::Cli(CliAgent::Known(spec))) => {
            AgentKind::Cli(cli(context, spec, &configured.task, cancel).await)
        }
    };
    Some(Agent {
        named_by: configured.agent_named_by,
        kind,
        gateway: match configured.task.missing {
            Some(_) => None,
            None => model_gateway::line(context, &configured.run, &configured.task),
        },
        requires_gateway: configured.run.settings.gateway == Gateway::On,
    })
}

fn built_in(context: &Context, agent: &Builtin) -> AgentKind {
    let access = &agent.access;
    let var = |name: &str| match name {
        "GITHUB_TOKEN" => crate::settings::inputs::token(context).map(str::to_owned),
        _ => context.var(name).map(str::to_owned),
    };
    AgentKind::Builtin {
        model: access.model.clone(),
        provider: access.provider.to_owned(),
        base: without_userinfo(&access.base),
        key: builtin::key_variable(access, &var).map(str::to_owned),
    }
}

/// The first program of a command line. The other words may contain secrets and are not kept.
fn of_command(context: &Context, command: &str, work_tree: &Path) -> AgentKind {
    let line = CommandLine::read(command);
    let first = line.commands().find_map(Simple::started);
    let program = first.map(|program| program.word.to_owned());
    let plain = |word: &String| {
        let is_plain = |c: char| c.is_alphanumeric() || "/._-+~@".contains(c);
        let of_shell = ["cd", "exec", "set", "if", "for", "while", "export", "eval"];
        word.chars().all(is_plain) && !of_shell.contains(&word.as_str())
    };
    let program = program.filter(plain).filter(|word| !word.starts_with('~'));
    let search_path = context.var_os("PATH").unwrap_or_default();
    let find = |program: &String| find_program(program.as_ref(), search_path, work_tree);
    let found = program.as_ref().map(|program| find(program).is_some());
    AgentKind::Command { program, found }
}

async fn cli(context: &Context, spec: &'static CliSpec, task: &TaskConfig, cancel: &Cancel) -> Cli {
    let path = context.find_program(spec.program);
    let version = match &path {
        Some(path) => version(context, path, cancel).await,
        None => Err("it is not there".to_owned()),
    };
    Cli {
        spec,
        path: path.map(|path| path.display().to_string()),
        version,
        login: login(context, spec, task),
        key_mistake: agents::key_mistake(spec.keys, &context.env, context.in_actions()),
    }
}

/// Runs outside of the repository, so that none of its files affects the result.
async fn version(context: &Context, program: &Path, cancel: &Cancel) -> Queried<String> {
    let spec = CommandSpec {
        program: program.into(),
        args: vec!["--version".into()],
        cwd: "/".into(),
        env: environment(&context.env, &[]).variables,
        stdin: Input::Null,
        limits: Limits {
            timeout: Some(VERSION_TIMEOUT),
            grace: Duration::from_millis(500),
            ..Limits::default()
        },
        sandbox: None,
    };
    let mut said = HeadTail::new(VERSION_BYTES, 0);
    let ended = run(&spec, cancel, &mut |kind, chunk: &[u8]| {
        if kind == StreamKind::Stdout {
            said.push(chunk);
        }
    })
    .await;
    if !ended.exit.is_success() {
        return Err(format!("--version ended with {}", ended.exit));
    }
    let text = clean_text(&said.into_parts().0);
    match number(&text) {
        Some(version) => Ok(version.to_owned()),
        None => Err("--version names none".to_owned()),
    }
}

/// The first word that is a version: `codex-cli 0.169.0`, `2.1.197 (Claude Code)`.
fn number(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    words.find_map(|word| {
        let word = word.trim_start_matches('v');
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
        let starts = word.starts_with(|c: char| c.is_ascii_digit());
        (starts && word.contains('.') && word.len() <= 40 && word.chars().all(allowed))
            .then_some(word)
    })
}
