//! A run taken up again by another process: what the dead one left is found, ended and finished.

use crate::domain::attempt::{Step, TaskState, fold};
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
use crate::run::steps::make_room;
use crate::run::task::TaskStart;
use crate::run::work_tree::WorkTree;

/// Ends what the dead process left running, takes up the files that its checks left behind, and makes sure that HEAD is
/// where it stopped.
///
/// # Errors
/// When somebody has moved HEAD meanwhile.
pub fn take_up_run<'r>(
    setup: &Setup,
    tree: &mut WorkTree,
    emit: &mut Emitter<'_>,
    tasks: impl Iterator<Item = &'r TaskStart>,
) -> Result<()> {
    let killed = kill_marked(&setup.run_id);
    if !killed.is_empty() {
        let count = killed.len();
        emit.warn(format!(
            "{count} processes of the interrupted run were still there; they were ended"
        ));
    }
    let states: Vec<TaskState> = tasks.map(|start| fold(&start.earlier)).collect();
    tree.recall_artifacts(emit);
    ensure_where_it_stopped(tree, emit, &states)
}

/// Makes the room that the dead process was about to make after a task that failed.
pub fn make_room_after(
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
        make_room(setup, tree, emit, (&id, task.attempts), outcome, told);
    }
}

/// A run goes on only from a HEAD that it knows: the last verified commit, or what the agent
/// made of it.
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

/// Finishes the bookkeeping of a commit that landed just before the run died, and lets go of the refs
/// that were locked for one.
///
/// # Errors
/// When the repository cannot be read or its index is held.
pub fn finish_landing(repo: &mut Repo, run_dir: &RunDir) -> anyhow::Result<()> {
    let Some(bytes) = run_dir.read(RunFile::Landing) else {
        return Ok(());
    };
    let intent: LandingIntent = serde_json::from_slice(&bytes)?;
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

/// Undoes a move of the branch that was under state when the run died, so that the branch is where its
/// work was verified.
///
/// # Errors
/// When the repository is not where the move can have left it.
pub fn undo_move(repo: &mut Repo, run_dir: &RunDir) -> anyhow::Result<()> {
    let Some(bytes) = run_dir.read(RunFile::Move) else {
        return Ok(());
    };
    let intent: MoveIntent = serde_json::from_slice(&bytes)?;
    let exempt = Exempt::default();
    // A commit that was made of what was there has landed, and that is where the branch stays.
    if repo.base().as_ref() == Some(&intent.to) {
        // The checks may have been at work; what they changed is nobody's.
        repo.restore_tree(&exempt)?;
        repo.move_back(&intent, &exempt)?;
    }
    run_dir.remove(RunFile::Move);
    Ok(())
}
