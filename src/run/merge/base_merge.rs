//! Merges the base branch into the branch of a pull request, on request. The merge is accepted once the
//! checks pass on it. An agent works only if the two sides conflict.

use crate::context::Context;
use crate::domain::attempt::{BlamedTest, Interruption, Role};
use crate::domain::commit_message::task_value;
use crate::domain::event::{EventKind, TaskEnded};
use crate::domain::outcome::{Outcome, Reason, TaskEnd, short};
use crate::domain::prompt::MergeText;
use crate::domain::settings::{AgentCommits, IfUnverified, ProveNewTests, TestChangePolicy};
use crate::domain::snapshot::RevId;
use crate::git::{BranchName, ConflictKind, MarkedMerge, RebaseError, display_path, display_paths};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::lookup::remote;
use crate::github::request::RunRequest;
use crate::run::begin::beginning::RunPlan;
use crate::run::begin::requirements::require_logins;
use crate::run::merge::merging::{Merging, accepted, impossible};
use crate::run::state::parts::Parts;
use crate::run::steps::{Before, NotMoved, identity, move_and_verify_with_reruns, plan_name};
use crate::settings::TaskConfig;
use std::collections::BTreeMap;

/// Merges the base branch and returns the result as the outcome of the run's only task.
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
    let mut attempt = match fetched(context, parts, request) {
        Ok(tips) => attempt(context, parts, &start.config, &id, tips),
        Err(why) => Attempt::Over(impossible(why)),
    };
    if let Attempt::Conflict(conflict) = attempt {
        attempt = match resolve(parts, plan, conflict).await? {
            Ok(outcomes) => return Ok(outcomes),
            Err(why) => Attempt::Over(impossible(why)),
        };
    }
    parts.emit.at(Some(&id), Some(1), None);
    parts.emit.emit(EventKind::TaskStarted {
        title: task.title.clone(),
    });
    let has_checks = !start.config.checks.is_empty();
    let End {
        outcome,
        files,
        failing,
    } = match attempt {
        Attempt::Merged(merge) => taken(parts, &start.config, merge).await?,
        // Only what was verified is on the branch.
        Attempt::Landed(commit) => End {
            files: parts.tree.report_commit(&commit, &mut parts.emit),
            ..End::of(accepted(Some(commit), has_checks, &[]))
        },
        Attempt::Over(outcome) => End::of(outcome),
        Attempt::Conflict(_) => return Ok(BTreeMap::new()),
    };
    parts.accounts.changed_files.extend(files.iter().cloned());
    let mut told = TaskEnded::without_turns(outcome.clone());
    told.attempts = 1;
    told.changes_made = !files.is_empty();
    told.work.changed_files = files;
    told.work.failing_tests = failing;
    parts.emit.emit(EventKind::TaskEnded(Box::new(told)));
    parts.emit.ensure_stored()?;
    parts.emit.at(None, None, None);
    Ok(BTreeMap::from([(id, outcome)]))
}

/// The result of merging two commits, before any branch moves.
enum Attempt {
    /// No branch moves.
    Over(Outcome),
    /// A merge without a conflict.
    Merged(Merge),
    /// An earlier process of this run has verified the merge and moved the branch to it.
    Landed(RevId),
    /// Conflicts for the agent to resolve.
    Conflict(Conflict),
}

/// The result of the run's only task.
struct End {
    outcome: Outcome,
    /// Files that the merge changes on the branch.
    files: Vec<String>,
    /// Tests that fail on the merge, each with what caused the failure.
    failing: Vec<BlamedTest>,
}

impl End {
    /// An end without a merge.
    fn of(outcome: Outcome) -> Self {
        Self {
            outcome,
            files: Vec::new(),
            failing: Vec::new(),
        }
    }
}

struct Merge {
    commit: RevId,
    subject: String,
    tips: Tips,
}

struct Conflict {
    marked: MarkedMerge,
    /// The message for a person who has to merge by hand.
    told: String,
    subject: String,
    tips: Tips,
}

/// The two branches. Enough of their history is fetched for a merge.
struct Tips {
    ours: RevId,
    our_name: String,
    theirs: RevId,
    their_name: String,
    /// The merge base.
    fork: RevId,
}

fn fetched(context: &Context, parts: &mut Parts<'_>, request: &RunRequest) -> Result<Tips, String> {
    let base = request.base_ref.as_deref();
    let base = base.ok_or("the base branch of the pull request is not known")?;
    let branch = request.branch.as_ref().ok_or("the branch is not known")?;
    let ours = parts.tree.repo.base().ok_or("the checkout has no commit")?;
    let actions = ActionsEnvironment::of(context).ok_or("there is no access to GitHub")?;
    let failed = |error: crate::git::RemoteError| format!("{base} cannot be fetched: {error}");
    let remote = remote(context, &actions).map_err(failed)?;
    let name = BranchName::parse(base).map_err(failed)?;
    let (repo, cancel) = (&parts.tree.repo, &parts.setup.cancel);
    let found = repo.fetch_until_fork(&remote, &name.full(), &ours, cancel);
    let (theirs, fork) = found.map_err(failed)?;
    let fork =
        fork.ok_or_else(|| format!("{} and {base} have no commit in common", branch.name))?;
    Ok(Tips {
        fork,
        ours,
        our_name: branch.name.clone(),
        theirs,
        their_name: base.to_owned(),
    })
}

/// Creates the merge commit, without moving a branch.
fn attempt(
    context: &Context,
    parts: &mut Parts<'_>,
    config: &TaskConfig,
    task: &str,
    tips: Tips,
) -> Attempt {
    let (ours, theirs) = (&tips.our_name, &tips.their_name);
    let repo = &parts.tree.repo;
    if repo.contains_commit(&tips.ours, &tips.theirs) {
        let start = parts.setup.start_commit();
        if start.is_some_and(|start| !repo.contains_commit(&start, &tips.theirs)) {
            return Attempt::Landed(tips.ours);
        }
        let why = format!("{ours} already contains all of {theirs}");
        let outcome = Outcome::without_agent(TaskEnd::Done, Reason::AlreadySatisfied, why);
        return Attempt::Over(outcome);
    }
    if config.checks.is_empty() && config.settings.if_unverified == IfUnverified::Fail {
        return Attempt::Over(Outcome::Unverified {
            commit: None,
            accepted: false,
        });
    }
    let subject = format!("Merge {theirs} into {ours}");
    let message = format!(
        "{subject}\n\nSprag-Task: {}\nSprag-Run: {}\n",
        task_value(&plan_name(&parts.tree.plan), task),
        parts.setup.run_link()
    );
    let who = identity(parts);
    let repo = &parts.tree.repo;
    match repo.merge(&tips.ours, &tips.theirs, &message, &who) {
        Ok(commit) => Attempt::Merged(Merge {
            commit,
            subject,
            tips,
        }),
        Err(RebaseError::Conflict { paths, .. }) => {
            let told = format!(
                "{ours} and {theirs} changed the same lines in {}: merge {theirs} by hand and resolve them",
                display_paths(&paths)
            );
            // The commit with conflict markers, if the agent may resolve the conflicts in these files.
            let marked = may_resolve(context, parts, config, &paths).and_then(|()| {
                let marked = repo.merge_with_markers(&tips.ours, &tips.theirs, &who);
                marked.map_err(|error| error.to_string())
            });
            match marked {
                Ok(marked) => Attempt::Conflict(Conflict {
                    marked,
                    told,
                    subject,
                    tips,
                }),
                Err(why) => {
                    let why = format!("{told}; the agent was not asked to resolve them: {why}");
                    let reason = Reason::Conflict;
                    Attempt::Over(Outcome::without_agent(TaskEnd::Blocked, reason, why))
                }
            }
        }
        Err(error) => Attempt::Over(impossible(error)),
    }
}

/// Whether the agent gets the conflicts in these files. The error says why not.
fn may_resolve(
    context: &Context,
    parts: &Parts<'_>,
    config: &TaskConfig,
    paths: &[Vec<u8>],
) -> Result<(), String> {
    if config.checks.is_empty() {
        return Err("no check is configured to verify its work".to_owned());
    }
    if parts.setup.config.settings.allow_dirty {
        return Err("allow_dirty commits nothing".to_owned());
    }
    let protected = |path: &&Vec<u8>| config.protected_paths.cover(path, false);
    let kept: Vec<Vec<u8>> = paths.iter().filter(protected).cloned().collect();
    if !kept.is_empty() {
        let names = display_paths(&kept);
        return Err(format!("it may not change protected paths: {names}"));
    }
    let files = &parts.setup.agent_files;
    let unseen = |path: &Vec<u8>| files.instead_of(path).map(|of| (path.clone(), of));
    if let Some((path, of)) = paths.iter().find_map(unseen) {
        let instead = match of {
            Some(branch) => format!("it works with that of {branch}"),
            None => "it works without it".to_owned(),
        };
        let name = display_path(&path);
        return Err(format!("{name} configures the agent, and {instead}"));
    }
    let login = require_logins(context, std::iter::once(config));
    login.map_err(|error| error.to_string())
}

/// Accepts a merge without conflicts if the checks pass on it.
async fn taken(parts: &mut Parts<'_>, config: &TaskConfig, merge: Merge) -> anyhow::Result<End> {
    let mut before = Before::at(parts.tree.repo.base_tree());
    let (to, checks) = (&merge.commit, [config]);
    let moved = move_and_verify_with_reruns(parts, to, &mut before, &checks).await?;
    let known = match moved {
        Ok(known) => known,
        Err(NotMoved::Fails(failing)) => {
            let theirs = &merge.tips.their_name;
            let why = format!("with {theirs} merged, these checks fail: {failing}");
            let outcome = Outcome::without_agent(TaskEnd::Failed, Reason::VerificationFailed, why);
            return Ok(End {
                failing: failing.tests,
                ..End::of(outcome)
            });
        }
        Err(NotMoved::Impossible(why)) => {
            return Ok(End::of(impossible(why)));
        }
        Err(NotMoved::Stopped) => {
            let by = parts.setup.interruption().unwrap_or(Interruption::Deadline);
            return Ok(End::of(by.outcome()));
        }
    };
    let files = parts.tree.repo.files_of(&merge.commit).unwrap_or_default();
    parts.emit.emit(EventKind::CommitCreated {
        commit: merge.commit.0.clone(),
        subject: format!("{} at {}", merge.subject, short(&merge.tips.theirs)),
        files: files.clone(),
    });
    let outcome = accepted(Some(merge.commit), !config.checks.is_empty(), &known);
    Ok(End {
        outcome,
        files,
        failing: known,
    })
}

/// Lets the agent resolve the conflicts as the run's task. Meanwhile the branch is at a commit with
/// conflict markers. It moves back unless the task ends with the merge commit. The inner error says why
/// no task was started.
///
/// # Errors
/// When the run's own state cannot be written.
async fn resolve(
    parts: &mut Parts<'_>,
    plan: &RunPlan,
    conflict: Conflict,
) -> anyhow::Result<Result<BTreeMap<String, Outcome>, String>> {
    let Conflict {
        marked,
        told,
        subject,
        tips,
    } = conflict;
    let plan = plan_for_agent(plan, &marked, &tips);
    let (repo, ours, theirs) = (&parts.tree.repo, &tips.ours, &tips.theirs);
    let merging = match Merging::of(repo, ours, theirs, &tips.fork, marked.files, subject, told) {
        Ok(merging) => merging,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let intent = match parts.tree.move_to(&marked.commit, &mut parts.emit)? {
        Ok(intent) => intent,
        Err(error) => return Ok(Err(error.to_string())),
    };
    parts.tree.merging = Some(merging);
    let outcomes = crate::run::run(parts, &plan).await?;
    parts.tree.merging = None;
    if parts.tree.repo.base().as_ref() == Some(&marked.commit) {
        parts.tree.move_back(&intent, &mut parts.emit);
    } else {
        parts.tree.arrive();
        report_growth(parts, &tips);
    }
    Ok(Ok(outcomes))
}

/// Warns about files that differ from the base branch only since the conflicts were resolved.
fn report_growth(parts: &mut Parts<'_>, tips: &Tips) {
    let repo = &parts.tree.repo;
    let Some(head) = repo.base() else { return };
    let before = repo.paths_between(&tips.fork, &tips.ours);
    let after = repo.paths_between(&tips.theirs, &head);
    let (Ok(before), Ok(mut more)) = (before, after) else {
        return;
    };
    more.retain(|path| !before.contains(path));
    if !more.is_empty() {
        parts.emit.warn(format!(
            "the branch {} differs from {} in more files than before the merge: {}",
            tips.our_name,
            tips.their_name,
            more.join(", ")
        ));
    }
}

/// A copy of the plan whose only task is to resolve these conflicts.
fn plan_for_agent(plan: &RunPlan, marked: &MarkedMerge, tips: &Tips) -> RunPlan {
    let mut plan = plan.clone();
    let (ours, theirs) = (&tips.our_name, &tips.their_name);
    let what = |kind| match kind {
        ConflictKind::BothChanged => "both sides changed it".to_owned(),
        ConflictKind::BothAdded => "both sides added it".to_owned(),
        ConflictKind::DeletedHere => format!("{ours} deleted it, {theirs} changed it"),
        ConflictKind::DeletedThere => format!("{ours} changed it, {theirs} deleted it"),
    };
    let files = marked.files.iter();
    let files: Vec<(String, String)> = files
        .map(|file| (display_path(&file.path), what(file.kind)))
        .collect();
    let text = MergeText {
        ours: (ours, &tips.ours.0),
        theirs: (theirs, &tips.theirs.0),
        fork: &tips.fork.0,
        files: &files,
    };
    for (task, start) in &mut plan.tasks {
        task.description = text.description();
        let settings = &mut start.config.settings;
        // Tests with conflict markers do not show the earlier state, and this task adds no tests.
        settings.tdd = false;
        settings.roles = std::mem::take(&mut settings.roles).without(Role::Tester);
        settings.test_changes = TestChangePolicy::Warn;
        settings.prove_new_tests = ProveNewTests::Off;
        if settings.agent_commits == AgentCommits::Accept {
            settings.agent_commits = AgentCommits::Squash;
        }
    }
    plan
}
