//! Warnings of tasks and their settings before a run starts.

use crate::context::Context;
use crate::domain::plan::{Task, TaskId};
use crate::domain::settings::COSTLY_RETRIES;
use crate::git::Real;
use crate::run::begin::programs;
use crate::run::state::plan_state::PlanState;
use crate::secrets::redact::MIN_SECRET_BYTES;
use crate::secrets::sources::holds_secret;
use crate::settings::TaskConfig;

/// The warnings of what may be wrong with the selected tasks. `has_own_programs` says that their checks use only what
/// is installed now.
pub(super) fn of_tasks(
    context: &Context,
    real: &Real,
    tasks: &[(Task, TaskConfig)],
    named: &[TaskId],
    book: &PlanState,
    has_own_programs: bool,
) -> Vec<String> {
    let mut warnings = Vec::new();
    for (task, config) in tasks {
        if !config.place(real.work_tree()).is_dir() {
            warnings.push(format!(
                "task {} works in {}, which does not exist yet",
                task.id, config.directory
            ));
        }
        warn_of_open_dependencies(task, named, book, &mut warnings);
        warn_of_cost(task, config, &mut warnings);
        warn_of_short_secrets(context, config, &mut warnings);
        if has_own_programs {
            warn_of_missing_programs(context, real, config, &mut warnings);
        }
    }
    warnings
}

/// The warning of roles that no task uses.
pub(super) fn of_unused_roles(tasks: &[(Task, TaskConfig)]) -> Option<String> {
    let has_phases = |(_, config): &(Task, TaskConfig)| {
        let set = &config.settings;
        set.review || set.tdd || set.review_only
    };
    let is_unused = !tasks.is_empty() && !tasks.iter().any(has_phases);
    is_unused.then(|| "`roles` has no effect: no task has `review` or `tdd`".to_owned())
}

/// Warns that a task selected by id runs although a dependency is not done.
fn warn_of_open_dependencies(
    task: &Task,
    named: &[TaskId],
    book: &PlanState,
    warnings: &mut Vec<String>,
) {
    let undone: Vec<&str> = task
        .depends_on
        .iter()
        .filter(|id| !named.is_empty() && !named.contains(id) && !book.is_done(id))
        .map(TaskId::as_str)
        .collect();
    if !undone.is_empty() {
        warnings.push(format!(
            "task {} is run alone: it depends on {}, which is not done",
            task.id,
            undone.join(", ")
        ));
    }
}

/// Warns of checks that cannot start here: each turn would be paid for before the run finds out.
fn warn_of_missing_programs(
    context: &Context,
    real: &Real,
    config: &TaskConfig,
    warnings: &mut Vec<String>,
) {
    for missing in programs::missing(context, real.work_tree(), &[], &config.checks) {
        let other = missing.also_called.map_or_else(
            || "`sprag doctor` looks for all of them".to_owned(),
            |other| format!("{other} is, so write {other} there"),
        );
        let warning = format!(
            "{} needs {}, which is not installed here; {other}",
            missing.of, missing.program
        );
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
}

/// Warns of secrets that children get and that are too short to be redacted.
fn warn_of_short_secrets(context: &Context, config: &TaskConfig, warnings: &mut Vec<String>) {
    let set = &config.settings;
    for name in set.agent_env.iter().chain(&set.verify_env) {
        let value = context.var(name).unwrap_or_default().trim();
        if value.is_empty() || value.len() >= MIN_SECRET_BYTES || !holds_secret(name) {
            continue;
        }
        let warning = format!(
            "{name} is passed on, and its value is not redacted: it has fewer than {MIN_SECRET_BYTES} bytes"
        );
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
}

fn warn_of_cost(task: &Task, config: &TaskConfig, warnings: &mut Vec<String>) {
    if config.settings.max_retries > COSTLY_RETRIES {
        warnings.push(format!(
            "task {} has up to {} retries: more than {COSTLY_RETRIES} are costly",
            task.id, config.settings.max_retries
        ));
    }
}
