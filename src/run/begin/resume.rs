//! Resumes a run in another process: completes the dead process's Git operations and reports.

use crate::domain::attempt::{TaskState, fold};
use crate::domain::event::{Event, EventKind};
use crate::domain::outcome::Outcome;
use crate::domain::snapshot::{Head, RevId};
use crate::domain::summary::TaskSummary;
use crate::git::{Exempt, LandingIntent, MoveIntent, Repo};
use crate::run::state::directory::RunDir;
use crate::run::state::layout::RunFile;
use crate::run::state::parts::Parts;
use crate::run::state::task::TaskStart;
use crate::run::steps::{FailedTask, last_landing, restore_for_next};

/// Loads the list of files that the dead process's checks left behind, and reports a commit that it did not
/// report.
///
/// # Errors
/// When the record of the run cannot be read.
pub fn resume_run<'r>(
    parts: &mut Parts<'_>,
    tasks: impl Iterator<Item = &'r TaskStart>,
) -> anyhow::Result<()> {
    let states: Vec<TaskState> = tasks.map(|start| fold(&start.earlier)).collect();
    parts.tree.load_artifacts(&mut parts.emit);
    // The commit with the plan's status may have landed just before the run died. A task reports its own.
    let run_dir = &parts.setup.run_dir;
    let Some(LandingIntent { commit: last, .. }) = last_landing(run_dir)? else {
        return Ok(());
    };
    let is_of_task = states
        .iter()
        .any(|state| state.prepared.as_ref() == Some(&last));
    let reports_it = |event: &Event| matches!(&event.kind, EventKind::CommitCreated { commit, .. } if *commit == last.0);
    let has_landed = parts.tree.repo.base().as_ref() == Some(&last);
    if has_landed && !is_of_task && !run_dir.read_events()?.iter().any(reports_it) {
        parts.tree.report_commit(&last, &mut parts.emit);
    }
    Ok(())
}

/// Cleans up after a failed task as the dead process was about to do.
pub fn clean_up_after(parts: &mut Parts<'_>, task: &TaskSummary, outcome: &Outcome) {
    let mut ids = parts.tree.plan.plan.tasks.iter().map(|task| &task.id);
    if let Some(id) = ids.find(|id| id.as_str() == task.id).cloned() {
        let failed = FailedTask {
            id: &id,
            attempts: task.attempts,
            is_saved: task.patch.is_some(),
            files: &task.changed_files,
            outcome,
        };
        restore_for_next(parts, failed);
    }
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

pub(crate) fn commit_of(head: &Head) -> Option<RevId> {
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
