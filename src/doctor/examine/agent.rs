//! The configuration and the agent that it chooses.

use crate::agents::Login;
use crate::doctor::facts::{Agent, AgentKind, Cli, Configuration, Facts, Problem};
use crate::doctor::finding::{Finding, some_of};
use crate::run::begin::programs::MissingProgram;
use std::cmp::Ordering;
use std::collections::BTreeSet;

pub(super) fn configuration(facts: &Facts) -> Vec<Finding> {
    const CHECK: &str = "configuration";
    match &facts.configuration {
        Ok(configuration) => {
            let mut findings = vec![valid(CHECK, configuration), checks(configuration)];
            findings.extend(programs(configuration));
            let unread = configuration.unread.iter();
            findings.extend(unread.map(|it| Finding::warn("variables", &it.found, &it.remedy)));
            findings
        }
        Err(Problem { message, hints }) => {
            let remedy = match hints.as_slice() {
                [] => "correct it; sprag check shows the same error".to_owned(),
                hints => hints.join("\n"),
            };
            vec![
                Finding::fail(CHECK, message, remedy),
                Finding::unknown("checks", "not known without the configuration"),
            ]
        }
    }
}

fn valid(check: &'static str, it: &Configuration) -> Finding {
    let found = match &it.file {
        Some(file) => format!("{file} is valid"),
        None => "no file; settings have their defaults or are set elsewhere".to_owned(),
    };
    Finding::ok(check, found)
}

fn checks(it: &Configuration) -> Finding {
    const CHECK: &str = "checks";
    const REMEDY: &str =
        "add `verify` to the configuration or the plan; sprag init proposes commands";
    match (it.checks.as_slice(), it.unverified_fails) {
        ([], true) => Finding::warn(
            CHECK,
            "none, and with `if_unverified: fail` every task without checks in its plan fails",
            REMEDY,
        ),
        ([], false) => Finding::warn(
            CHECK,
            "none: tasks without checks in their plan are committed as unverified",
            REMEDY,
        ),
        (names, _) => Finding::ok(CHECK, some_of(names, 8)),
    }
}

/// The missing programs of checks and setup commands. A setup command may install the program of a check.
fn programs(it: &Configuration) -> Option<Finding> {
    const CHECK: &str = "programs";
    const REMEDY: &str = "install it, correct the command, or let a `setup` command install it";
    let other = it.missing.iter().find_map(|missing| {
        let other = missing.also_called?;
        Some(format!(
            "{other} is installed: write {other} instead of {}",
            missing.program
        ))
    });
    let told = |missing: &MissingProgram| format!("{} needs {}", missing.of, missing.program);
    let names: BTreeSet<String> = it.missing.iter().map(told).collect();
    let names: Vec<String> = names.into_iter().collect();
    if names.is_empty() {
        return None;
    }
    let found = format!("not found: {}", some_of(&names, 8));
    let surely = !it.has_setup || it.missing.iter().any(|missing| missing.in_setup);
    let remedy = other.unwrap_or_else(|| REMEDY.to_owned());
    Some(Finding::bad(surely, CHECK, found, remedy))
}

pub(super) fn findings(agent: Option<&Agent>) -> Vec<Finding> {
    let mut findings = of_agent(agent);
    findings.extend(agent.and_then(gateway));
    findings
}

/// Whether the key of an agent that sends its own requests to a model stays with Sprag.
fn gateway(agent: &Agent) -> Option<Finding> {
    const CHECK: &str = "model-gateway";
    let line = agent.gateway.as_ref()?;
    Some(match (&line.why, agent.requires_gateway) {
        (None, _) => Finding::ok(CHECK, "the key of its model stays with Sprag"),
        (Some(why), false) => Finding::ok(CHECK, format!("not used: {why}")),
        (Some(why), true) => Finding::fail(
            CHECK,
            format!(
                "`gateway: on` keeps the key of its model with Sprag, which is not possible: {why}"
            ),
            "docs/security.md says which agents can be behind the gateway, and how; or set `gateway: auto`",
        ),
    })
}

fn of_agent(agent: Option<&Agent>) -> Vec<Finding> {
    const CHECK: &str = "agent";
    let Some(Agent { named_by, kind, .. }) = agent else {
        return vec![Finding::unknown(
            CHECK,
            "not known without the configuration",
        )];
    };
    let why = match named_by {
        None => "chosen because no agent is named".to_owned(),
        Some(source) => format!("named by {source}"),
    };
    match kind {
        AgentKind::None(Problem { message, hints }) => {
            vec![Finding::fail(CHECK, message, hints.join("\n"))]
        }
        AgentKind::Builtin {
            model,
            provider,
            base,
            key,
        } => {
            let found = format!("builtin, {why}: {model} by {provider} at {base}");
            let key = match key {
                Some(name) => format!("{name} is set"),
                None => "none is used".to_owned(),
            };
            vec![Finding::ok(CHECK, found), Finding::ok("model-key", key)]
        }
        AgentKind::Command { program, found } => vec![command(program.as_deref(), *found)],
        AgentKind::Cli(cli) => {
            let mut findings = vec![
                Finding::ok(CHECK, format!("{}, {why}", cli.spec.name)),
                program(cli),
            ];
            findings.push(login(cli));
            findings
        }
    }
}

fn command(program: Option<&str>, found: Option<bool>) -> Finding {
    const CHECK: &str = "agent";
    match (program, found) {
        (Some(program), Some(true)) => {
            Finding::ok(CHECK, format!("a command that begins with {program}"))
        }
        (Some(program), Some(false)) => Finding::warn(
            CHECK,
            format!("a command that begins with {program}, which was not found"),
            "install it or give its path; `sh -c` runs it in the work tree",
        ),
        _ => Finding::ok(CHECK, "a command, run by sh -c in the work tree"),
    }
}

fn program(cli: &Cli) -> Finding {
    const CHECK: &str = "agent-program";
    let (name, tested) = (cli.spec.program, cli.spec.tested);
    let install = cli.spec.install_command();
    let Some(path) = &cli.path else {
        return Finding::fail(
            CHECK,
            format!("{name} was not found on PATH"),
            format!("install it: {install}"),
        );
    };
    let version = match &cli.version {
        Ok(version) => version,
        Err(why) => {
            return Finding::warn(
                CHECK,
                format!("{path} does not print its version: {why}"),
                format!("make sure that `{name} --version` works, or reinstall it: {install}"),
            );
        }
    };
    let found = format!("{name} {version} ({path})");
    match compare(version, tested) {
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

fn login(cli: &Cli) -> Finding {
    const CHECK: &str = "model-key";
    let name = cli.spec.name;
    let mistake = cli.key_mistake.iter().cloned();
    let remedies = mistake.chain([cli.spec.login_remedy()]);
    let remedy = || remedies.collect::<Vec<_>>().join("\n");
    match &cli.login {
        Login::Variable(name) => Finding::ok(CHECK, format!("{name} is set")),
        Login::File(path) => Finding::ok(CHECK, format!("logged in ({path})")),
        Login::Perhaps(path) => Finding::warn(
            CHECK,
            format!("no key is set; {path} may have a login or a key for {name}"),
            remedy(),
        ),
        Login::Nothing => Finding::fail(
            CHECK,
            format!("no key for {name} is set, and it is not logged in"),
            remedy(),
        ),
    }
}
