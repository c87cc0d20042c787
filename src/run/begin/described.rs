//! Describes as text what a run would do.

use crate::agents::{Agent, CliAgent};
use crate::domain::attempt::{PhaseSpec, ROUNDS, are_named, phases};
use crate::domain::duration;
use crate::domain::plan::{StatusUpdate, TaskStatus};
use crate::run::begin::prepare::Prepared;
use crate::run::steps::first_prompt;
use crate::settings::{MissingAgent, TaskConfig};
use std::time::Duration;

/// The output of `sprag run --dry-run`.
pub(crate) fn dry_run(prepared: &Prepared) -> String {
    let plan = &prepared.book.plan;
    let mut text = format!("plan: {}\n", plan.title);
    for warning in &prepared.asked.warnings {
        text += &format!("warning: {warning}\n");
    }
    for command in &prepared.run.setup {
        text += &format!("setup: {command}\n");
    }
    if prepared.tasks.is_empty() {
        text += "nothing to do: every selected task is done\n";
    }
    // The prompt of a task lists the tasks before it as done, as in a run without failures.
    let mut book = prepared.book.clone();
    for (task, config) in &prepared.tasks {
        text += &format!("\ntask {}: {}\n", task.id, task.title);
        text += &task_settings(config);
        let reviewed = prepared.asked.work.reviewed();
        let base = reviewed.map(|change| change.base.as_str());
        text += "  prompt:\n";
        for line in first_prompt(&book, task, config, base).lines() {
            text += &format!("    {line}\n");
        }
        let done = StatusUpdate {
            status: TaskStatus::Done,
            attempts: None,
            completed_at: None,
        };
        book.set(&task.id, done);
    }
    text
}

/// The settings of a task, one per line, with an agent that is missing.
pub fn task_settings(config: &TaskConfig) -> String {
    let mut text = agent_of(config);
    text += &format!(
        "\n  retries: {}, nudges: {}\n",
        config.settings.max_retries, config.settings.nudges
    );
    text += &phases_of(config);
    text += if !config.checks.is_empty() {
        "  checks:\n"
    } else if config.settings.review_only {
        "  checks: none (this is only reviewed)\n"
    } else {
        "  checks: none (the task will end unverified; add `verify`)\n"
    };
    for check in crate::domain::checks::verdict::ordered(&config.checks) {
        let limit = duration::format(Duration::from_millis(check.timeout_ms));
        text += &format!(
            "    {} ({}, at most {limit}): {}\n",
            check.name,
            check.kind.as_str(),
            check.run
        );
    }
    text
}

/// The agent of a task and its model, and an agent that is missing.
fn agent_of(config: &TaskConfig) -> String {
    let missing = config.missing.as_deref();
    // The first remedy is enough here: `sprag doctor` prints all of them.
    let remedy = |missing: &MissingAgent| missing.error.hints.first().cloned().unwrap_or_default();
    let mut text = match (missing, &config.agent) {
        (Some(missing), _) if missing.is_own => format!("  agent: none ({})", remedy(missing)),
        (_, Agent::Cli(CliAgent::Acp { command } | CliAgent::Command { command })) => {
            format!("  agent: {} ({command})", config.agent.name())
        }
        (_, Agent::Cli(CliAgent::Known(spec))) => format!("  agent: {}", spec.name),
        (_, Agent::Builtin(builtin)) => {
            let (name, access) = (config.agent.name(), &builtin.access);
            let (model, provider, base) = (&access.model, &access.provider, &access.base);
            format!("  agent: {name} ({model} by {provider} at {base})")
        }
    };
    if let Some(model) = &config.settings.model {
        text += &format!(", model {model}");
    }
    if let Some(missing) = missing.filter(|missing| !missing.is_own) {
        let (why, remedy) = (&missing.error.message, remedy(missing));
        text += &format!("\n  another agent is missing: {why} ({remedy})");
    }
    text
}

/// The phases of a task with the agent of each, if it has others than the implementer's.
fn phases_of(config: &TaskConfig) -> String {
    let rows = phases(config.phases_asked());
    if !are_named(&rows) {
        return String::new();
    }
    let named = |row: &PhaseSpec| {
        let mut config = config.clone();
        config.take_role(row.role);
        format!("{} ({})", row.phase.as_str(), config.agent.name())
    };
    let of_cycle = |cycle| {
        let rows = rows.iter().filter(move |row| row.cycle == cycle);
        rows.map(named).collect::<Vec<_>>()
    };
    let again = of_cycle(2);
    let mut text = format!("  phases: {}", of_cycle(1).join(", "));
    if !again.is_empty() {
        text += &format!(", then at most {ROUNDS} rounds: {}", again.join(", "));
    }
    text + "\n"
}
