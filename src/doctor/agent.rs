//! The agent that the configuration chooses: its program, and its login.

use crate::agents::{Agent, CliAgent, CliSpec, Login, key_mistake};
use crate::context::Context;
use crate::doctor::configuration::Configured;
use crate::doctor::finding::Finding;
use crate::doctor::machine::quick_command;
use crate::domain::command_line::{CommandLine, Simple};
use crate::domain::sandbox::GatewayLine;
use crate::domain::settings::Gateway;
use crate::git::without_userinfo;
use crate::process::{Cancel, HeadTail, StreamKind, clean_text, find_program, run};
use crate::run::begin::model_gateway::ModelGateway;
use crate::run::begin::requirements;
use sprag_agent::access::{self, Access};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// Maximum number of bytes that are read of the output of `--version`.
const VERSION_BYTES: usize = 4 << 10;

/// The name of most findings.
const CHECK: &str = "agent";

pub(super) async fn findings(
    context: &Context,
    configured: Option<&Configured>,
    work_tree: &Path,
    cancel: &Cancel,
) -> Vec<Finding> {
    let Some(configured) = configured else {
        return vec![unknown()];
    };
    let task = &configured.task;
    if let Some(missing) = &task.missing {
        return vec![Finding::of_error(CHECK, &missing.error)];
    }
    let named_by = configured.agent_named_by;
    let mut findings = match &task.agent {
        Agent::Builtin(builtin) => {
            of_builtin(&builtin.access, key(context, &builtin.access), named_by)
        }
        Agent::Cli(CliAgent::Acp { command } | CliAgent::Command { command }) => {
            vec![of_command(context, command, work_tree)]
        }
        Agent::Cli(CliAgent::Known(spec)) => {
            let found = match context.find_program(spec.name) {
                None => None,
                Some(path) => Some((version(context, &path, cancel).await, path)),
            };
            vec![
                named(spec.name, named_by),
                program(spec, found),
                login(
                    spec,
                    &requirements::login(context, spec, task),
                    key_mistake(spec.keys, &context.env, context.in_actions()),
                ),
            ]
        }
    };
    let line = ModelGateway::of(context, &configured.run, None).line(task);
    let is_required = configured.run.settings.gateway == Gateway::On;
    findings.extend(line.map(|line| gateway(&line, is_required)));
    findings
}

pub(super) fn unknown() -> Finding {
    Finding::unknown(CHECK, "not known without the configuration")
}

/// Whether the key of an agent that sends its own requests to a model stays with Sprag.
fn gateway(line: &GatewayLine, is_required: bool) -> Finding {
    const CHECK: &str = "model-gateway";
    let Some(why) = &line.why else {
        return Finding::ok(CHECK, "the key of its model stays with Sprag");
    };
    if is_required {
        Finding::fail(
            CHECK,
            format!(
                "`gateway: on` keeps the key of its model with Sprag, which is not possible: {why}"
            ),
            "docs/security.md says which agents can be behind the gateway, and how; or set `gateway: auto`",
        )
    } else {
        Finding::ok(CHECK, format!("not used: {why}"))
    }
}

/// An agent, and what chose it.
pub(super) fn named(name: &str, named_by: Option<&str>) -> Finding {
    let found = match named_by {
        None => format!("{name}, chosen because no agent is named"),
        Some(source) => format!("{name}, named by {source}"),
    };
    Finding::ok(CHECK, found)
}

fn key(context: &Context, access: &Access) -> Option<&'static str> {
    let variable = |name: &str| match name {
        "GITHUB_TOKEN" => crate::settings::inputs::token(context).map(str::to_owned),
        _ => context.var(name).map(str::to_owned),
    };
    access::key_variable(access, &variable)
}

pub(super) fn of_builtin(
    access: &Access,
    key: Option<&str>,
    named_by: Option<&str>,
) -> Vec<Finding> {
    let mut finding = named("builtin", named_by);
    finding.found += &format!(
        ": {} by {} at {}",
        access.model,
        access.provider,
        without_userinfo(&access.base)
    );
    let key = match key {
        Some(name) => format!("{name} is set"),
        None => "none is used".to_owned(),
    };
    vec![finding, Finding::ok("model-key", key)]
}

/// Names the first program of a command line. The other words may contain secrets.
fn of_command(context: &Context, command: &str, work_tree: &Path) -> Finding {
    let of_shell = ["cd", "exec", "set", "if", "for", "while", "export", "eval"];
    let is_plain = |character: char| character.is_alphanumeric() || "/._-+~@".contains(character);
    let line = CommandLine::read(command);
    let first = line.commands().find_map(Simple::started);
    let program = first.map(|program| program.word).filter(|word| {
        word.chars().all(is_plain) && !of_shell.contains(word) && !word.starts_with('~')
    });
    let Some(program) = program else {
        return Finding::ok(CHECK, "a command, run by sh -c in the work tree");
    };
    let search_path = context.var_os("PATH").unwrap_or_default();
    let found = format!("a command that begins with {program}");
    match find_program(program.as_ref(), search_path, work_tree) {
        Some(_) => Finding::ok(CHECK, found),
        None => Finding::fail(
            CHECK,
            format!("{found}, which was not found"),
            "install it or give its path; `sh -c` runs it in the work tree",
        ),
    }
}

/// The program of an agent, and its version or why it is unknown.
pub(super) fn program(spec: &CliSpec, found: Option<(Result<String, String>, PathBuf)>) -> Finding {
    const CHECK: &str = "agent-program";
    let (name, tested) = (spec.name, spec.tested);
    let install = spec.install_command();
    let (version, path) = match found {
        None => {
            return Finding::fail(
                CHECK,
                format!("{name} was not found on PATH"),
                format!("install it: {install}"),
            );
        }
        Some((Err(why), path)) => {
            return Finding::warn(
                CHECK,
                format!("{} does not print its version: {why}", path.display()),
                format!("make sure that `{name} --version` works, or reinstall it: {install}"),
            );
        }
        Some((Ok(version), path)) => (version, path),
    };
    let found = format!("{name} {version} ({})", path.display());
    match compare(&version, tested) {
        Ordering::Equal => Finding::ok(CHECK, format!("{found}, known to work")),
        Ordering::Greater => Finding::ok(
            CHECK,
            format!("{found}, newer than {tested}, which is known to work"),
        ),
        Ordering::Less => Finding::warn(
            CHECK,
            format!("{found}, older than {tested}, which is known to work"),
            format!("{install}@{tested}"),
        ),
    }
}

/// Compares two versions by their numbers.
fn compare(one: &str, other: &str) -> Ordering {
    let numbers = |version: &str| -> Vec<u64> {
        let parts = version.split(['.', '-', '+']);
        parts.map_while(|part| part.parse().ok()).collect()
    };
    numbers(one).cmp(&numbers(other))
}

/// Runs outside of the repository, so that none of its files affects the result.
async fn version(context: &Context, program: &Path, cancel: &Cancel) -> Result<String, String> {
    let mut said = HeadTail::new(VERSION_BYTES, 0);
    let command = quick_command(context, program.into(), &["--version"]);
    let ended = run(&command, cancel, &mut |kind, chunk: &[u8]| {
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
    let is_allowed =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '+');
    text.split_whitespace()
        .map(|word| word.trim_start_matches('v'))
        .find(|word| {
            word.starts_with(|character: char| character.is_ascii_digit())
                && word.contains('.')
                && word.len() <= 40
                && word.chars().all(is_allowed)
        })
}

pub(super) fn login(spec: &CliSpec, login: &Login, mistake: Option<String>) -> Finding {
    const CHECK: &str = "model-key";
    let name = spec.name;
    let remedies: Vec<String> = mistake.into_iter().chain([spec.login_remedy()]).collect();
    match login {
        Login::Variable(name) => Finding::ok(CHECK, format!("{name} is set")),
        Login::File(path) => Finding::ok(CHECK, format!("logged in ({path})")),
        Login::Perhaps(path) => Finding::warn(
            CHECK,
            format!("no key is set; {path} may have a login or a key for {name}"),
            remedies.join("\n"),
        ),
        Login::Nothing => Finding::fail(
            CHECK,
            format!("no key for {name} is set, and it is not logged in"),
            remedies.join("\n"),
        ),
    }
}
