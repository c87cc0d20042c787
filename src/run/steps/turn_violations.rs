//! Violations of the policy in a turn of the agent.

use crate::domain::settings::{AgentCommits, OnProtected};
use crate::domain::snapshot::RevId;
use crate::domain::text::count;
use crate::git::{GitError, RawSnapshot, TurnReport};
use crate::run::state::parts::{Parts, TaskRun};
use crate::run::steps::agent_end::AgentEnd;
use crate::run::steps::policy::{of_own_commit, of_work_paths, secrets_in};

/// Violations in the turn. Those that were undone already are only warnings.
pub(super) fn violations(
    parts: &mut Parts<'_>,
    run: &mut TaskRun<'_>,
    inspected: Result<TurnReport, GitError>,
    nested: &[Vec<u8>],
    raw: Option<&RawSnapshot>,
) -> Vec<String> {
    let mut violations = parts.setup.violations();
    match inspected {
        Ok(report) => violations.extend(of_report(parts, run, &report)),
        Err(error) => {
            let why = format!("the repository could not be inspected: {error}");
            // Without a snapshot nothing is committed.
            match raw {
                Some(_) => violations.push(why),
                None => parts.warn(why),
            }
        }
    }
    let has_commits = !run.agent_commits.is_empty();
    let secrets = raw.map(|raw| secrets_in(parts, raw, has_commits));
    violations.extend(secrets.unwrap_or_default());
    let protected = &run.config.protected_paths;
    let found = raw.map(|raw| of_work_paths(parts, protected, nested, raw));
    violations.extend(found.unwrap_or_default());
    violations
}

/// Violations in what the turn did to the repository itself. Notes the commits that the agent made.
fn of_report(parts: &mut Parts<'_>, run: &mut TaskRun<'_>, report: &TurnReport) -> Vec<String> {
    for warning in &report.warnings {
        parts.warn(warning.clone());
    }
    let mut violations: Vec<String> = report.violations.iter().map(ToString::to_string).collect();
    if let Some(operation) = report.operation {
        violations.push(format!("{operation} was left in progress"));
    }
    let made = report.agent_commits.iter();
    let made: Vec<String> = made
        .map(|commit| format!("{} {} {}", commit.id, commit.author, commit.subject))
        .filter(|line| !run.agent_commits.contains(line))
        .collect();
    if run.config.settings.agent_commits == AgentCommits::Reject && !made.is_empty() {
        let commits = count(made.len() as u64, "commit");
        violations.push(format!("the agent made {commits} itself"));
    }
    run.agent_commits.extend(made);
    if run.config.settings.agent_commits == AgentCommits::Accept {
        for commit in &report.agent_commits {
            violations.extend(of_accepted_commit(parts, run, &commit.id));
        }
    }
    violations
}

/// Violations in a commit that the agent made and may make.
fn of_accepted_commit(parts: &Parts<'_>, run: &TaskRun<'_>, id: &RevId) -> Vec<String> {
    match parts.tree.repo.changed_by(id) {
        Ok(changed) => {
            let protected = &run.config.protected_paths;
            let found = of_own_commit(parts, protected, &changed).into_iter();
            found
                .map(|paths| format!("commit {id} by the agent: {paths}"))
                .collect()
        }
        Err(error) => vec![format!("commit {id} could not be read: {error}")],
    }
}

/// Warns that the agent's changes to its own configuration files are discarded. If changes of protected
/// paths block a task, these do, too.
pub(super) fn of_changed_configuration(
    parts: &mut Parts<'_>,
    run: &TaskRun<'_>,
    end: &AgentEnd,
) -> Option<String> {
    let changed = &end.changed_configuration;
    if changed.is_empty() {
        return None;
    }
    parts.warn(format!(
        "the agent changed its own configuration; these changes are not kept: {}",
        changed.join(", ")
    ));
    if run.config.settings.on_protected == OnProtected::Hold {
        return None;
    }
    let is_protected = |path: &&String| run.config.protected_paths.cover(path.as_bytes(), false);
    let paths: Vec<&str> = changed
        .iter()
        .filter(is_protected)
        .map(String::as_str)
        .collect();
    (!paths.is_empty()).then(|| format!("protected paths were changed: {}", paths.join(", ")))
}
