//! The event that reports the start of a run.

use crate::domain::continuation::Continuation;
use crate::domain::event::{RunStarted, TaskLine};
use crate::domain::plan::{Task, TaskId};
use crate::run::parts::Parts;
use crate::settings::TaskConfig;
use std::collections::HashMap;

pub(super) fn started(
    parts: &mut Parts<'_>,
    all: &[Task],
    tasks: &[(Task, TaskConfig)],
    resumed: bool,
) -> RunStarted {
    // Warnings about the tree are emitted after this event.
    let exempt = parts.tree.exempt();
    let seen = parts.tree.repo.last_snapshot(&exempt).ok();
    let branch = seen.and_then(|seen| seen.known.branch.as_deref().map(short_branch));
    let plan = &parts.tree.plan;
    let first = tasks.first();
    let selected: HashMap<&TaskId, &TaskConfig> = tasks
        .iter()
        .map(|(task, config)| (&task.id, config))
        .collect();
    let line = |task: &Task| {
        let config = selected.get(&task.id);
        TaskLine {
            id: task.id.to_string(),
            title: task.title.clone(),
            done: plan.is_done(&task.id),
            selected: config.is_some(),
            line: plan.file.as_ref().and(u32::try_from(task.line).ok()),
            max_retries: config.map_or(0, |config| config.settings.max_retries),
        }
    };
    RunStarted {
        run_id: parts.setup.run_id.clone(),
        plan_title: plan.plan.title.clone(),
        plan_path: plan.file.as_ref().map(|file| file.name.clone()),
        branch,
        base: parts.tree.repo.base().map(|id| id.0),
        agent: first
            .map_or("none", |(_, config)| config.agent.name())
            .to_owned(),
        checks: first.map_or_else(Vec::new, |(_, config)| {
            crate::domain::checks::verdict::ordered(&config.checks)
                .into_iter()
                .map(|check| check.name.clone())
                .collect()
        }),
        tasks: all.iter().map(line).collect(),
        run_dir: parts.setup.run_dir.root().display().to_string(),
        resumed,
        name: None,
        limits: None,
        model: first.and_then(|(_, config)| config.settings.model.clone()),
        host: None,
        sandbox: Some(parts.setup.isolation.line().clone()),
        gateway: parts
            .setup
            .gateway
            .lines(tasks.iter().map(|(_, config)| config)),
        continuation: Continuation::Here,
    }
}

fn short_branch(name: &str) -> String {
    name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()
}
