//! Resumes a run in another process: ends what the dead process left running and completes its Git
//! operations.

use crate::domain::attempt::{Step, TaskState, fold};
use crate::domain::event::{Event, EventKind};
use crate::domain::outcome::{Outcome, short};
use crate::domain::snapshot::{Head, RevId, Snapshot};
use crate::domain::summary::TaskSummary;
use crate::error::{Error, Result};
use crate::git::{Exempt, LandingIntent, MoveIntent, Repo};
use crate::process::kill_marked;
use crate::run::directory::RunDir;
use crate::run::emitter::Emitter;
use crate::run::layout::RunFile;
use crate::run::setup::Setup;
use crate::run::steps::{last_landing, restore_for_next};
use crate::run::task::TaskStart;
use crate::run::work_tree::WorkTree;

/// Kills the processes that the dead process left running, loads the list of files that its checks left
/// behind, and verifies that HEAD is where the run stopped.
///
/// # Errors
/// When somebody has moved HEAD meanwhile.
pub fn resume_run<'r>(
    setup: &Setup,
    tree: &mut WorkTree,
    emit: &mut Emitter<'_>,
    tasks: impl Iterator<Item = &'r TaskStart>,
) -> Result<()> {
    let killed = kill_marked(&setup.run_id);
    if !killed.is_empty() {
        let count = killed.len();
        emit.warn(format!(
            "{count} processes of the interrupted run were still running; they were ended"
        ));
    }
    let states: Vec<TaskState> = tasks.map(|start| fold(&start.earlier)).collect();
    tree.recall_artifacts(emit);
    ensure_where_it_stopped(tree, emit, &states)?;
    Ok(tell_plan_end(setup, tree, emit, &states)?)
}

/// Reports the commit with the plan's status if it landed just before the run died. A task tells its own.
fn tell_plan_end(
    setup: &Setup,
    tree: &WorkTree,
    emit: &mut Emitter<'_>,
    states: &[TaskState],
) -> anyhow::Result<()> {
    let Some(LandingIntent { commit: last, .. }) = last_landing(&setup.run_dir)? else {
        return Ok(());
    };
    let is_of_task = states.iter().any(|it| it.prepared.as_ref() == Some(&last));
    let tells_it = |event: &Event| matches!(&event.kind, EventKind::CommitCreated { commit, .. } if *commit == last.0);
    let has_landed = tree.repo.base().as_ref() == Some(&last);
    if has_landed && !is_of_task && !setup.run_dir.read_events()?.iter().any(tells_it) {
        tree.tell_commit(&last, emit);
    }
    Ok(())
}

/// Cleans up after a failed task as the dead process was about to do.
pub fn clean_up_after(
    setup: &Setup,
    tree: &mut WorkTree,
    emit: &mut Emitter<'_>,
    task: &TaskSummary,
    outcome: &Outcome,
) {
    let id = tree.plan.plan.tasks.iter().map(|task| &task.id);
    let id = id.clone().find(|id| id.as_str() == task.id).cloned();
    if let Some(id) = id {
        let told = (task.patch.is_some(), task.changed_files.as_slice());
        restore_for_next(setup, tree, emit, (&id, task.attempts), outcome, told);
    }
}

/// A run resumes only at a known HEAD: the last verified commit, or a commit that the agent made.
fn ensure_where_it_stopped(
    tree: &mut WorkTree,
    emit: &mut Emitter<'_>,
    states: &[TaskState],
) -> Result<()> {
    let Snapshot::Known(now) = tree.snapshot(emit).1 else {
        return Ok(());
    };
    let head = commit_of(&now.head);
    let base = tree.repo.base();
    let in_turn = |state: &TaskState| matches!(state.open.as_deref(), Some(Step::RunAgent { .. }));
    let left_there = |state: &TaskState| matches!(&state.current, Some(Snapshot::Known(known)) if known.head == now.head);
    if head == base
        || states
            .iter()
            .any(|state| in_turn(state) || left_there(state))
    {
        return Ok(());
    }
    fn name(id: Option<&RevId>) -> &str {
        id.map_or("no commit", short)
    }
    Err(Error::config(format!(
        "HEAD has moved since the run was interrupted: it was at {}, and is at {}",
        name(base.as_ref()),
        name(head.as_ref())
    ))
    .hint("start a new run, or go back to that commit and resume"))
}

/// Completes the bookkeeping of a commit that landed just before the run died, and releases the refs
/// that were locked for it.
///
/// # Errors
/// When the repository cannot be read or its index is locked.
pub fn finish_landing(repo: &mut Repo, run_dir: &RunDir) -> anyhow::Result<()> {
    let Some(intent) = last_landing(run_dir)? else {
        return Ok(());
    };
    let path = run_dir.path(RunFile::Landing);
    repo.release_refs(&intent, std::fs::metadata(&path)?.modified()?)?;
    let head = commit_of(&repo.snapshot(&Exempt::default())?.known.head);
    if head.as_ref() == Some(&intent.commit) && repo.base().as_ref() != Some(&intent.commit) {
        repo.finish_landing(&intent)?;
    }
    Ok(())
}

fn commit_of(head: &Head) -> Option<RevId> {
    match head {
        Head::At(id) => Some(id.clone()),
        Head::Unborn => None,
    }
}

/// Undoes a move of the branch that was in progress when the run died, or finishes undoing it, so that the
/// branch is back where its work was verified.
///
/// # Errors
/// When the repository is in a state that the move cannot have left.
pub fn undo_move(repo: &mut Repo, run_dir: &RunDir) -> anyhow::Result<()> {
    let Some(bytes) = run_dir.read(RunFile::Move) else {
        return Ok(());
    };
    let intent: MoveIntent = serde_json::from_slice(&bytes)?;
    let base = repo.base();
    // If the base has moved on from `to`, a commit made there has landed, and the branch stays.
    if base == Some(intent.from.clone()) || base == Some(intent.to.clone()) {
        repo.undo_move(&intent, &Exempt::default())?;
    }
    run_dir.remove(RunFile::Move);
    Ok(())
}
