//! Resumes a run in another process: completes the dead process's Git operations and reports.

use crate::cli::RunArgs;
use crate::domain::answer::{Answered, TaskAnswer};
use crate::domain::attempt::{Record, Step, TaskState, fold, have_phases_of, phases};
use crate::domain::commit_message::RUN_TRAILER;
use crate::domain::event::{Event, EventKind};
use crate::domain::outcome::{Reason, short};
use crate::domain::snapshot::{RevId, Snapshot};
use crate::domain::summary::{RunSummary, TaskSummary};
use crate::error::{Error, Result};
use crate::git::{CommitFacts, Exempt, LandingIntent, MoveIntent, RawSnapshot, Repo};
use crate::process::kill_marked;
use crate::run::begin::beginning::{Place, RunPlan};
use crate::run::begin::prepare::Prepared;
use crate::run::state::directory::RunDir;
use crate::run::state::layout::RunFile;
use crate::run::state::orderly_end::changed_since_orderly_end;
use crate::run::state::parts::Parts;
use crate::run::state::work_tree::{check_artifacts, head_of};
use crate::run::steps::{FailedTask, last_landing, restore_for_next};
use std::collections::BTreeMap;

/// Loads the list of files that the dead process's checks left behind, reports a commit that it did not report, and
/// cleans up after a failed task as it was about to do.
///
/// # Errors
/// When the record of the run cannot be read.
pub(crate) fn resume_run(
    parts: &mut Parts<'_>,
    plan: &RunPlan,
    just_failed: Option<&TaskSummary>,
) -> anyhow::Result<()> {
    parts.tree.load_artifacts(&mut parts.emit);
    let run_dir = &parts.setup.run_dir;
    // The commit with the plan's status may have landed just before the run died. A task reports its own.
    if let Some(LandingIntent { commit: last, .. }) = last_landing(run_dir)? {
        let mut states = plan.tasks.iter().map(|(_, start)| fold(&start.earlier));
        let is_of_task = states.any(|state| state.prepared.as_ref() == Some(&last));
        let reports_it = |event: &Event| matches!(&event.kind, EventKind::CommitCreated { commit, .. } if *commit == last.0);
        let has_landed = parts.tree.repo.base().as_ref() == Some(&last);
        if has_landed && !is_of_task && !run_dir.read_events()?.iter().any(reports_it) {
            parts.tree.report_commit(&last, &mut parts.emit);
        }
    }
    let Some(task) = just_failed else {
        return Ok(());
    };
    let mut ids = parts.tree.plan.plan.tasks.iter().map(|task| &task.id);
    let id = ids.find(|id| id.as_str() == task.id).cloned();
    if let Some((id, outcome)) = id.zip(plan.outcomes.get(&task.id)) {
        let failed = FailedTask {
            id: &id,
            attempts: task.attempts,
            is_saved: task.work.patch.is_some(),
            files: &task.work.changed_files,
            outcome,
        };
        restore_for_next(parts, failed);
    }
    Ok(())
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
    let head = head_of(&repo.snapshot(&Exempt::default())?);
    if head.as_ref() == Some(&intent.commit) && repo.base().as_ref() != Some(&intent.commit) {
        repo.finish_landing(&intent)?;
    }
    Ok(())
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

/// What to do if HEAD has moved.
const GO_BACK: &str = "start a new run, or go back to that commit and resume";

/// Requires the repository to be as the run left it, and kills the processes that the dead process left
/// running. Returns a warning about these.
///
/// # Errors
/// When somebody has moved HEAD or changed files meanwhile, or the settings give an interrupted task other phases.
pub(crate) fn take_over(prepared: &Prepared, place: &mut Place) -> Result<Option<String>> {
    let Some(earlier) = &prepared.asked.earlier else {
        return Ok(None);
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
        let is_edited = file.is_some_and(|file| prepared.book.is_otherwise_in(&file.path));
        let hint = "a resumed run keeps its plan: for the edited one, commit it and start a new run on a clean work tree";
        return Err(if is_edited { error.hint(hint) } else { error });
    }
    let killed = kill_marked(&place.run_id).len();
    if let Some(now) = look() {
        let states: Vec<TaskState> = earlier.histories.values().map(fold).collect();
        ensure_where_it_stopped(&now, place.repo.base(), &states)?;
        ensure_no_other_run(&now, &place.repo)?;
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
    let began_as_review = prepared.asked.work.reviewed().is_some();
    if prepared.run.settings.review_only != began_as_review {
        let (with, what, remedy) = if began_as_review {
            ("without", "only reviews", "resume it with `review_only`")
        } else {
            let remedy = "resume it without `review_only`, or start a new run for a review";
            ("with", "does the tasks of a plan", remedy)
        };
        let message = format!("the run cannot be resumed {with} `review_only`: it {what}");
        return Err(Error::config(message).hint(remedy));
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
    now: &RawSnapshot,
    base: Option<RevId>,
    states: &[TaskState],
) -> Result<()> {
    let head = head_of(now);
    let in_turn = |state: &TaskState| matches!(state.open.as_deref(), Some(Step::RunAgent { .. }));
    let left_there = |state: &TaskState| matches!(&state.current, Some(Snapshot::Known(known)) if known.head == now.known.head);
    let mut states = states.iter();
    if head == base || states.any(|state| in_turn(state) || left_there(state)) {
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
fn ensure_no_other_run(now: &RawSnapshot, repo: &Repo) -> Result<()> {
    let (Some(base), Some(head)) = (repo.base(), head_of(now)) else {
        return Ok(());
    };
    let line = repo.commits_since(&base, &head)?;
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

/// Gives a task the answer of the command line or of a comment, after those that it got before.
///
/// # Errors
/// When the command line answers a run without a question, or with nothing.
pub(crate) fn give_answer(args: &RunArgs, prepared: &mut Prepared) -> Result<()> {
    let answer = args.answer.as_deref();
    if answer.is_some_and(|answer| answer.trim().is_empty()) {
        let message = "the answer is empty";
        return Err(Error::config(message).hint("write it after --answer, in quotation marks"));
    }
    let asked = &mut prepared.asked;
    let of_comment = asked
        .request
        .as_mut()
        .and_then(|request| request.answer.take());
    let new = args.answer.clone().or(of_comment);
    let place = asked.place.as_ref();
    let before = place.and_then(|place| place.run_dir.read_json::<TaskAnswer>(RunFile::Answer));
    let question = asked
        .earlier
        .as_ref()
        .and_then(|it| open_question(&it.summary));
    let section = |question: String, answer| Answered { question, answer }.section();
    let given = match (new, question) {
        (None, _) => before,
        (Some(_), None) if args.answer.is_some() => {
            let message = "the run has no open question, so that there is nothing to answer";
            return Err(Error::config(message).hint("resume it without --answer"));
        }
        (Some(answer), None) => prepared.tasks.first().map(|(task, _)| TaskAnswer {
            task: task.id.to_string(),
            text: section(String::new(), answer),
            is_new: true,
        }),
        (Some(answer), Some((task, question))) => {
            let before = before.filter(|before| before.task == task);
            let texts = before.map(|before| before.text).into_iter();
            let texts: Vec<String> = texts.chain([section(question, answer)]).collect();
            Some(TaskAnswer {
                task,
                text: texts.join("\n\n"),
                is_new: true,
            })
        }
    };
    let Some(given) = given else { return Ok(()) };
    for (task, _) in &mut prepared.tasks {
        if task.id.as_str() == given.task {
            task.description = format!("{}\n\n{}", task.description, given.text);
        }
    }
    prepared.answer = Some(given);
    Ok(())
}

/// The task of a run that waits for an answer, and its question.
fn open_question(summary: &RunSummary) -> Option<(String, String)> {
    let asks = |reason| reason == Some(Reason::NeedsAnswer);
    let task = summary.tasks.iter().rfind(|task| asks(task.reason))?;
    Some((task.id.clone(), task.question()?.to_owned()))
}
