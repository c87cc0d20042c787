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
    let mut unseen = None;
    match inspected {
        Ok(report) => violations.extend(of_report(parts, run, &report)),
        Err(error) => unseen = Some(format!("the repository could not be inspected: {error}")),
    }
    let Some(raw) = raw else {
        // Without a snapshot nothing is committed.
        unseen.into_iter().for_each(|why| parts.warn(why));
        return violations;
    };
    violations.extend(unseen);
    violations.extend(secrets_in(parts, raw, !run.agent_commits.is_empty()));
    let protected = &run.config.protected_paths;
    violations.extend(of_work_paths(parts, protected, nested, raw));
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
    let made = made.map(|commit| format!("{} {} {}", commit.id, commit.author, commit.subject));
    let mut made: Vec<String> = made.collect();
    made.retain(|line| !run.agent_commits.contains(line));
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
            let named = found.map(|paths| format!("commit {id} by the agent: {paths}"));
            named.collect()
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
    let mut paths: Vec<&str> = changed.iter().map(String::as_str).collect();
    paths.retain(|path| run.config.protected_paths.cover(path.as_bytes(), false));
    (!paths.is_empty()).then(|| format!("protected paths were changed: {}", paths.join(", ")))
}
