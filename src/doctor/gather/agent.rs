//! The agent: which one, whether its program is there, and how it is paid for.

use crate::agents::builtin::{self, Builtin, Source};
use crate::agents::{self, CliAgent};
use crate::context::Context;
use crate::context::is_executable;
use crate::doctor::gather::{Configured, trouble};
use crate::doctor::{Agent, AgentKind, Asked, Cli, Login};
use crate::git::without_userinfo;
use crate::process::environment::environment;
use crate::process::{Cancel, CommandSpec, HeadTail, Input, Limits, StreamKind, clean_text, run};
use crate::run::required_agents::program_of;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest that a program may take to tell its version. The first start of one takes seconds.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// How much of what it tells is read, in bytes.
const VERSION_BYTES: usize = 4 << 10;

/// The versions that Sprag's tests drive.
const TESTED_CODEX: &str = "0.169.0";
const TESTED_CLAUDE: &str = "2.1.197";

pub(crate) async fn look(
    context: &Context,
    configured: Option<&Configured>,
    work_tree: &Path,
    cancel: &Cancel,
) -> Option<Agent> {
    let configured = configured?;
    let settings = &configured.settings;
    let named = settings.agent.as_deref().is_some_and(|name| name != "auto");
    let kind = match (&configured.no_agent, &configured.task.agent) {
        (Some(error), _) => AgentKind::None(trouble(error)),
        (None, agents::Agent::Builtin(builtin)) => built_in(context, builtin),
        (None, agents::Agent::Cli(CliAgent::Command { command })) => {
            of_command(context, command, work_tree)
        }
        (None, agents::Agent::Cli(known)) => {
            let program = program_of(&configured.task.agent)?;
            let given = &configured.task.settings.agent_env;
            AgentKind::Cli(cli(context, known, program, given, cancel).await)
        }
    };
    Some(Agent {
        auto: !named && settings.agent_command.is_none(),
        kind,
    })
}

fn built_in(context: &Context, agent: &Builtin) -> AgentKind {
    let access = match &agent.source {
        Source::Api(access) => access,
        Source::Recording(tape) => return AgentKind::Recording(tape.describe()),
    };
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

/// What a command line begins with. Its other words may be anybody's secret.
fn of_command(context: &Context, command: &str, work_tree: &Path) -> AgentKind {
    let words = shlex::split(command).unwrap_or_default();
    let program = words.into_iter().find(|word| !word.contains('='));
    let plain = |word: &String| {
        let is_plain = |c: char| c.is_alphanumeric() || "/._-+~@".contains(c);
        let of_shell = ["cd", "exec", "set", "if", "for", "while", "export", "eval"];
        word.chars().all(is_plain) && !of_shell.contains(&word.as_str())
    };
    let program = program.filter(plain).filter(|word| !word.starts_with('~'));
    let found = program.as_ref().map(|program| match program.contains('/') {
        true => is_executable(&work_tree.join(program)),
        false => context.find_program(program).is_some(),
    });
    AgentKind::Command { program, found }
}

async fn cli(
    context: &Context,
    known: &CliAgent,
    (name, install): (&'static str, &'static str),
    given: &[String],
    cancel: &Cancel,
) -> Cli {
    let path = context.find_program(name);
    let version = match &path {
        Some(path) => version(context, path, cancel).await,
        None => Err("it is not there".to_owned()),
    };
    let is_codex = *known == CliAgent::Codex;
    Cli {
        name,
        install,
        tested: if is_codex {
            TESTED_CODEX
        } else {
            TESTED_CLAUDE
        },
        path: path.map(|path| path.display().to_string()),
        version,
        login: login(context, known, given),
        keys: match is_codex {
            true => vec!["CODEX_API_KEY", "OPENAI_API_KEY"],
            false => vec!["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"],
        },
    }
}

/// Asked outside of the repository, so that none of its files has a say in it.
async fn version(context: &Context, program: &Path, cancel: &Cancel) -> Asked<String> {
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

fn login(context: &Context, known: &CliAgent, given: &[String]) -> Login {
    let is_set = |name: &str| context.var_os(name).is_some();
    let mut passed = agents::credentials_to_pass(known, is_set);
    let is_key = |it: &&agents::CredentialName| it.secret && !it.name.ends_with("_HEADERS");
    if let Some(key) = passed.find(is_key) {
        return Login::Variable(key.name.to_owned());
    }
    let mut passed = agents::credentials_to_pass(known, is_set);
    if let Some(cloud) = passed.find(|it| it.name.starts_with("CLAUDE_CODE_USE_")) {
        return Login::Variable(cloud.name.to_owned());
    }
    if let Some(name) = given.iter().find(|name| is_set(name)) {
        return Login::Perhaps(format!("{name}, which `agent_env` passes on,"));
    }
    let (home, sure, perhaps): (_, _, &[&str]) = match known {
        CliAgent::Codex => ("CODEX_HOME", "auth.json", &["config.toml"]),
        _ => ("CLAUDE_CONFIG_DIR", ".credentials.json", &["settings.json"]),
    };
    let hidden = match known {
        CliAgent::Codex => ".codex",
        _ => ".claude",
    };
    let user = context.path_var("HOME");
    let dir = context
        .path_var(home)
        .or_else(|| Some(user.as_ref()?.join(hidden)));
    let in_home = user.map(|user| user.join(".claude.json"));
    let in_home = in_home.filter(|_| *known == CliAgent::Claude);
    let there = |path: PathBuf| path.is_file().then(|| path.display().to_string());
    let sure = dir.as_ref().and_then(|dir| there(dir.join(sure)));
    let mut others = dir
        .iter()
        .flat_map(|dir| perhaps.iter().map(|name| dir.join(name)))
        .chain(in_home)
        .filter_map(there);
    match (sure, others.next()) {
        (Some(path), _) => Login::File(path),
        (None, Some(path)) => Login::Perhaps(path),
        (None, None) => Login::Nothing,
    }
}
