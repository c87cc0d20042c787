//! The event that reports the start of a run.

use crate::context::Context;
use crate::domain::continuation::Continuation;
use crate::domain::event::{RunStarted, TaskLine};
use crate::domain::plan::{Task, TaskId};
use crate::domain::summary::NO_AGENT;
use crate::github::request::RunRequest;
use crate::run::state::parts::Parts;
use crate::settings::TaskConfig;
use std::collections::HashMap;

/// What the start of a run depends on besides its plan and settings.
pub(crate) struct StartFacts<'a> {
    /// All tasks of the plan.
    pub(crate) all: &'a [Task],
    /// The tasks to run.
    pub(crate) tasks: &'a [(Task, TaskConfig)],
    pub(crate) resumed: bool,
    pub(crate) has_agent: bool,
    /// Whether the run drafts a plan.
    pub(crate) is_draft: bool,
    /// Whether the run is only a review.
    pub(crate) is_review: bool,
    /// The cost limits, for people.
    pub(crate) limits: Option<String>,
}

pub(crate) fn started(
    context: &Context,
    parts: &mut Parts<'_>,
    request: Option<&RunRequest>,
    facts: StartFacts<'_>,
) -> RunStarted {
    let tasks = facts.tasks;
    // Warnings about the tree are emitted after this event.
    let exempt = parts.tree.exempt();
    let seen = parts.tree.repo.last_snapshot(&exempt).ok();
    let branch = seen.and_then(|seen| seen.known.branch.as_deref().map(short_branch));
    let plan = &parts.tree.plan;
    let first = tasks.first().map(|(_, config)| config);
    let agent = first.filter(|_| facts.has_agent);
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
        agent: agent
            .map_or(NO_AGENT, |config| config.agent.name())
            .to_owned(),
        checks: first.map_or_else(Vec::new, |config| {
            crate::domain::checks::verdict::ordered(&config.checks)
                .into_iter()
                .map(|check| check.name.clone())
                .collect()
        }),
        tasks: facts.all.iter().map(line).collect(),
        run_dir: parts.setup.run_dir.root().display().to_string(),
        resumed: facts.resumed,
        name: request.map(|it| it.context.place.name.as_str().to_owned()),
        limits: facts.limits,
        model: agent.and_then(|config| config.settings.model.clone()),
        host: context.host(),
        sandbox: Some(parts.setup.isolation.line().clone()),
        gateway: parts
            .setup
            .gateway
            .lines(tasks.iter().map(|(_, config)| config)),
        continuation: continuation(context, request, (facts.is_draft, facts.is_review)),
        allow_dirty: parts.setup.config.settings.allow_dirty,
        understood: plan.plan.understood(),
    }
}

/// How a person continues the run.
pub(crate) fn continuation(
    context: &Context,
    request: Option<&RunRequest>,
    (is_draft, is_review): (bool, bool),
) -> Continuation {
    match context.in_actions() {
        _ if is_draft => Continuation::Anew,
        true => request.map_or(Continuation::BY_WORKFLOW, |it| it.context.continuation()),
        // Somebody who has fixed the findings has moved HEAD, and a resumed run reviews the same change.
        false if is_review => Continuation::Anew,
        false => Continuation::Here,
    }
}

fn short_branch(name: &str) -> String {
    name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()
}
