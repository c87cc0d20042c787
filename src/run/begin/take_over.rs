//! The conditions under which another process may resume a run. Nothing is written to the run's record before
//! they hold, so that a run that cannot be resumed keeps its end.

use crate::domain::attempt::{Record, Step, TaskState, fold, have_phases_of, phases};
use crate::domain::commit_message::RUN_TRAILER;
use crate::domain::outcome::short;
use crate::domain::snapshot::{KnownSnapshot, RevId, Snapshot};
use crate::error::{Error, Result};
use crate::git::{CommitFacts, Exempt, Repo};
use crate::process::kill_marked;
use crate::run::begin::beginning::{Beginning, Ready};
use crate::run::begin::prepare::Prepared;
use crate::run::begin::resume::commit_of;
use crate::run::state::orderly_end::changed_since_orderly_end;
use crate::run::state::work_tree::check_artifacts;
use std::collections::BTreeMap;

/// What to do if HEAD has moved.
const GO_BACK: &str = "start a new run, or go back to that commit and resume";

/// Requires the repository to be as the run left it, and kills the processes that the dead process left
/// running. Returns a warning about these.
///
/// # Errors
/// When somebody has moved HEAD or changed files meanwhile, or the settings give an interrupted task other phases.
pub(crate) fn take_over(ready: &mut Ready) -> Result<Option<String>> {
    let prepared = &ready.prepared;
    let (place, earlier) = match &mut ready.beginning {
        Beginning::New => return Ok(None),
        Beginning::Resumed(place, earlier) | Beginning::Restored(place, earlier) => {
            (place, &*earlier)
        }
    };
    ensure_same_phases(&earlier.histories, prepared)?;
    let exempt = Exempt {
        check_artifacts: check_artifacts(&place.run_dir),
        progress_ignore: prepared.run.progress_ignore.clone(),
        plan: prepared.book.exempt(),
    };
    let repo = &mut place.repo;
    // A state that cannot be read is reported by the run.
    let mut look = || repo.snapshot(&exempt).ok();
    if let Some(strange) = changed_since_orderly_end(&place.run_dir, &mut look) {
        let error = Error::config(format!("the run cannot be resumed: {}", strange.what))
            .hint(strange.remedy);
        let file = prepared.book.file.as_ref();
        return Err(
            if file.is_some_and(|file| prepared.book.is_otherwise_in(&file.path)) {
                error.hint(
                "a resumed run keeps its plan: for the edited one, commit it and start a new run on a clean work tree",
            )
            } else {
                error
            },
        );
    }
    let killed = kill_marked(&place.run_id).len();
    if let Some(now) = look() {
        let states = earlier.histories.values();
        let states: Vec<TaskState> = states.map(fold).collect();
        ensure_where_it_stopped(&now.known, place.repo.base(), &states)?;
        ensure_no_other_run(&now.known, &place.repo)?;
    }
    Ok((killed > 0).then(|| {
        format!("{killed} processes of the interrupted run were still running; they were ended")
    }))
}

/// Requires the run to review if it began as a review, and only then, and each interrupted task to have the phases
/// in which it began: their turns, verdicts and counts would be taken for those of other phases.
fn ensure_same_phases(
    histories: &BTreeMap<String, Vec<Record>>,
    prepared: &Prepared,
) -> Result<()> {
    match (prepared.run.settings.review_only, prepared.work.reviewed()) {
        (true, None) => {
            let message =
                "the run cannot be resumed with `review_only`: it does the tasks of a plan";
            return Err(Error::config(message)
                .hint("resume it without `review_only`, or start a new run for a review"));
        }
        (false, Some(_)) => {
            let message = "the run cannot be resumed without `review_only`: it only reviews";
            return Err(Error::config(message).hint("resume it with `review_only`"));
        }
        (true, Some(_)) | (false, None) => {}
    }
    for (task, config) in &prepared.tasks {
        let history = histories
            .get(task.id.as_str())
            .map_or(&[][..], Vec::as_slice);
        if !have_phases_of(history, &phases(config.phases_asked())) {
            let message = format!(
                "the run cannot be resumed: task {} began with other settings of `review`, `tdd` or `roles`",
                task.id
            );
            return Err(Error::config(message)
                .hint("resume it with the settings it began with, or start a new run"));
        }
    }
    Ok(())
}

/// A run resumes only at a known HEAD: the last verified commit, or a commit that the agent made.
fn ensure_where_it_stopped(
    now: &KnownSnapshot,
    base: Option<RevId>,
    states: &[TaskState],
) -> Result<()> {
    let head = commit_of(&now.head);
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
    .hint(GO_BACK))
}

/// A commit that was made during an interrupted turn counts as the agent's, unless it names the run that made it:
/// this run's own commits are all in the base.
fn ensure_no_other_run(now: &KnownSnapshot, repo: &Repo) -> Result<()> {
    let (Some(base), Some(head)) = (repo.base(), commit_of(&now.head)) else {
        return Ok(());
    };
    if base == head {
        return Ok(());
    }
    let line = repo
        .commits_since(&base, &head)
        .map_err(|error| Error::environment(error.to_string()))?;
    let commits = line.map_or_else(|_| Vec::new(), |line| line.commits);
    let is_of_a_run =
        |commit: &&CommitFacts| String::from_utf8_lossy(&commit.message).contains(RUN_TRAILER);
    match commits.iter().find(is_of_a_run) {
        None => Ok(()),
        Some(commit) => Err(Error::config(format!(
            "another run has made the commit {} since the run was interrupted at {}",
            short(&commit.id),
            short(&base)
        ))
        .hint(GO_BACK)),
    }
}
