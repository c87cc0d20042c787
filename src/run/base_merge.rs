//! The base branch merged into the branch of a pull request, where somebody asks for that: no agent works, and the
//! merge is taken once the checks pass on it.

use crate::context::Context;
use crate::domain::attempt::Interruption;
use crate::domain::event::{EventKind, TaskEnded};
use crate::domain::outcome::{Outcome, Reason, TaskEnd, short};
use crate::domain::settings::IfUnverified;
use crate::domain::snapshot::RevId;
use crate::git::{BranchName, RebaseError, display_paths};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::lookup::remote;
use crate::github::request::RunRequest;
use crate::run::parts::Parts;
use crate::run::run_plan::RunPlan;
use crate::run::steps::{NotMoved, identity, move_and_verify_with_reruns, plan_name};
use crate::settings::TaskConfig;
use std::collections::BTreeMap;

/// Merges the base branch, and says how that ended as the end of the run's one task.
///
/// # Errors
/// When the run's own state cannot be written.
pub(crate) async fn merge_base(
    context: &Context,
    parts: &mut Parts<'_>,
    plan: &RunPlan,
    request: &RunRequest,
) -> anyhow::Result<BTreeMap<String, Outcome>> {
    let Some((task, start)) = plan.tasks.first() else {
        return Ok(BTreeMap::new());
    };
    let id = task.id.to_string();
    parts.emit.at(Some(&id), Some(1), None);
    parts.emit.emit(EventKind::TaskStarted {
        title: task.title.clone(),
    });
    let (outcome, files) = match fetched(context, parts, request) {
        Ok(tips) => merged(parts, &start.config, &id, tips).await?,
        Err(why) => (ended(TaskEnd::Failed, Reason::Environment, why), Vec::new()),
    };
    parts.accounts.changed_files.extend(files.iter().cloned());
    let told = TaskEnded {
        attempts: 1,
        changes_made: !files.is_empty(),
        changed_files: files,
        ..TaskEnded::without_turns(outcome.clone())
    };
    parts.emit.emit(EventKind::TaskEnded(Box::new(told)));
    parts.emit.all_kept()?;
    parts.emit.at(None, None, None);
    Ok(BTreeMap::from([(id, outcome)]))
}

/// The two branches, with as much of their history as a merge takes.
struct Tips {
    ours: RevId,
    our_name: String,
    theirs: RevId,
    their_name: String,
}

fn fetched(context: &Context, parts: &mut Parts<'_>, request: &RunRequest) -> Result<Tips, String> {
    let base = request.base_ref.as_deref();
    let base = base.ok_or("the base branch of the pull request is not known")?;
    let branch = request.branch.as_ref().ok_or("the branch is not known")?;
    let ours = parts.tree.repo.base().ok_or("the checkout has no commit")?;
    let actions = ActionsEnvironment::of(context).ok_or("there is no access to GitHub")?;
    let failed = |error: crate::git::RemoteError| format!("{base} cannot be had: {error}");
    let remote = remote(context, &actions).map_err(failed)?;
    let name = BranchName::parse(base).map_err(failed)?;
    let (repo, cancel) = (&parts.tree.repo, &parts.setup.cancel);
    let found = repo.fetch_until_fork(&remote, &name.full(), &ours, cancel);
    let (theirs, fork) = found.map_err(failed)?;
    if fork.is_none() {
        return Err(format!(
            "{} and {base} have no commit in common",
            branch.name
        ));
    }
    Ok(Tips {
        ours,
        our_name: branch.name.clone(),
        theirs,
        their_name: base.to_owned(),
    })
}

/// Makes the merge and takes it where the checks pass on it. Also returns the files that it changes on the branch.
async fn merged(
    parts: &mut Parts<'_>,
    config: &TaskConfig,
    task: &str,
    tips: Tips,
) -> anyhow::Result<(Outcome, Vec<String>)> {
    let (ours, theirs) = (&tips.our_name, &tips.their_name);
    let nothing = |end, reason, why| Ok((ended(end, reason, why), Vec::new()));
    let repo = &parts.tree.repo;
    if repo.contains_commit(&tips.ours, &tips.theirs) {
        let why = format!("{ours} has everything of {theirs} already");
        return nothing(TaskEnd::Done, Reason::AlreadySatisfied, why);
    }
    let has_checks = !config.checks.is_empty();
    if !has_checks && config.settings.if_unverified == IfUnverified::Fail {
        let end = Outcome::Unverified {
            commit: None,
            accepted: false,
        };
        return Ok((end, Vec::new()));
    }
    let subject = format!("Merge {theirs} into {ours}");
    let message = format!(
        "{subject}\n\nSprag-Task: {}/{task}\nSprag-Run: {}\n",
        plan_name(&parts.tree.plan),
        parts.setup.run_link()
    );
    let who = identity(&parts.setup, &parts.tree, &mut parts.emit);
    let merge = match parts
        .tree
        .repo
        .merge(&tips.ours, &tips.theirs, &message, &who)
    {
        Ok(merge) => merge,
        Err(RebaseError::Conflict { paths, .. }) => {
            let why = format!(
                "{ours} and {theirs} changed the same lines in {}: merge {theirs} by hand and resolve them",
                display_paths(&paths)
            );
            return nothing(TaskEnd::Blocked, Reason::Conflict, why);
        }
        Err(error) => return nothing(TaskEnd::Failed, Reason::Environment, error.to_string()),
    };
    let (setup, tree) = (&parts.setup, &mut parts.tree);
    let (memory, emit) = (&mut parts.accounts.checks, &mut parts.emit);
    let moved = move_and_verify_with_reruns(setup, tree, memory, emit, &merge, &[config]).await?;
    match moved {
        None => {}
        Some(NotMoved::Fails(failing)) => {
            let why = format!("with {theirs} merged, these checks fail: {failing}");
            return nothing(TaskEnd::Failed, Reason::VerificationFailed, why);
        }
        Some(NotMoved::Impossible(why)) => {
            return nothing(TaskEnd::Failed, Reason::Environment, why);
        }
        Some(NotMoved::Stopped) => {
            let by = parts.setup.interruption();
            let by = by.unwrap_or(Interruption::Deadline);
            return Ok((by.outcome(), Vec::new()));
        }
    }
    let files = parts.tree.repo.read_back(&merge);
    let files = files.map(|seen| seen.files).unwrap_or_default();
    parts.emit.emit(EventKind::CommitCreated {
        commit: merge.0.clone(),
        subject: format!("{subject} at {}", short(&tips.theirs)),
        files: files.clone(),
    });
    let commit = Some(merge);
    let end = match has_checks {
        true => Outcome::Verified { commit },
        false => Outcome::Unverified {
            commit,
            accepted: true,
        },
    };
    Ok((end, files))
}

fn ended(end: TaskEnd, reason: Reason, message: String) -> Outcome {
    Outcome::WithoutAgent {
        end,
        reason,
        message,
        commit: None,
    }
}
