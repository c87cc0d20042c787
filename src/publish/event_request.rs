//! What the event of a publishing job requests.

use crate::cli::PublishArgs;
use crate::context::Context;
use crate::domain::outcome::{Reason, RunStatus};
use crate::domain::settings::Settings;
use crate::domain::summary::RunSummary;
use crate::domain::trigger::refname;
use crate::error::{Error, Result};
use crate::git::{Real, path_in_tree};
use crate::github::actions_environment::{self, ActionsEnvironment};
use crate::github::lookup::{self, JobEnd, NoRun, Purpose, RequestedWork, WorkSource};
use crate::github::queue;
use crate::github::request::RunRequest;
use crate::run::begin::source::of_issue;
use crate::settings::inputs;

/// Finds what the event, or the arguments in its place, ask to publish: the request, and the plan's path from the root of
/// the tree.
///
/// # Errors
/// When there is nothing to publish, GitHub cannot be asked, or the request or an argument is invalid.
pub(super) async fn find(
    context: &Context,
    actions: &ActionsEnvironment,
    settings: &Settings,
    real: &Real,
    handed: &RunSummary,
    args: &PublishArgs,
) -> Result<(RunRequest, Option<String>), NoRun> {
    let has_event = context.in_actions() && actions_environment::event(context).is_some();
    let found = match args.issue {
        Some(number) => of_issue(context, actions, settings, number).await?,
        None if has_event => lookup::decide(context, actions, settings, Purpose::Publish).await?,
        None => RequestedWork::configured(context, actions),
    };
    let RequestedWork {
        source,
        mut request,
    } = found.placed(context, real);
    let named = args.plan.as_deref().or_else(|| inputs::plan(context));
    let queue = match (&args.queue, named, &source) {
        (Some(dir), ..) => Some(dir.display().to_string()),
        (None, None, WorkSource::Queue(dir)) => Some(dir.clone()),
        _ => None,
    };
    let checkout = lookup::Checkout::of(context, actions, real);
    if let Some(dir) = queue {
        let dir = dir.trim_end_matches('/');
        refname::check_path(dir).map_err(|why| Error::usage(format!("--queue {dir}: {why}")))?;
        request.branch = None;
        let path = queue::choose(checkout, settings, dir, &mut request).await?;
        return Ok((request, Some(path_in_tree(&path, real.work_tree()))));
    }
    let plan = match (named, source) {
        (Some(path), _) => Some(path_in_tree(&context.cwd.join(path), real.work_tree())),
        (None, WorkSource::Plan(path)) => Some(path),
        _ => None,
    };
    // Work that did not continue the plan's own branch gets a new one.
    let worked_on = handed.facts.branch.as_deref();
    let is_on_base = worked_on == request.base_ref.as_deref();
    let of_plan = plan.as_deref().filter(|_| !is_on_base);
    let of_run = lookup::OwnWork::Run(&handed.facts.run_id, worked_on);
    let work = of_plan.map_or(of_run, lookup::OwnWork::Plan);
    lookup::give_own_branch(checkout, settings, work, &mut request).await?;
    Ok((request, plan))
}

/// An event that requests nothing did not cause a run, so the run directory comes from another event. A
/// refused request did not cause one either, but then the job does not fail.
pub(super) fn not_asked(no_run: NoRun) -> NoRun {
    match no_run {
        NoRun::Over(ended) if ended.reason == Reason::NoWork => NoRun::Over(JobEnd {
            status: RunStatus::Blocked,
            reason: Reason::Refused,
            why: format!("the run directory is not published: {}", ended.why),
            remedy: Some(
                "Publish in the workflow run that did the work, with the same inputs.".to_owned(),
            ),
            ..ended
        }),
        _ => no_run,
    }
}
