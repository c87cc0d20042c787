//! The end of a task: failed work is saved as a patch, and HEAD only moves to verified work.

use crate::domain::agent::{TodoItem, TodoStatus, progress};
use crate::domain::attempt::{Blame, BlamedTest, TaskState, evidence};
use crate::domain::event::{EventKind, TaskEnded, TaskWork};
use crate::domain::history::{AttemptOutcome, HistoryEntry};
use crate::domain::outcome::{Outcome, Reason, TaskEnd};
use crate::domain::plan::{StatusUpdate, TaskId, TaskStatus};
use crate::domain::snapshot::{RevId, Snapshot};
use crate::domain::text::cap_chars;
use crate::error::with_causes;
use crate::git::RawSnapshot;
use crate::run::state::emitter::Emitter;
use crate::run::state::layout::RunFile;
use crate::run::state::parts::{Parts, TaskRun};
use crate::run::state::setup::Setup;
use crate::run::state::work_tree::{WorkTree, changed_paths, head_of};
use crate::run::steps::commit::done_status;
use crate::run::steps::landing::warn_of_submodules;
use crate::secrets::redact::MASK;

/// The longest answer that reports show, in characters. The file of the final message has the rest.
const ANSWER_CHARS: usize = 100_000;

/// Ends a task.
///
/// # Errors
/// When the run's own state cannot be written.
pub fn finish_task(
    parts: &mut Parts<'_>,
    run: &mut TaskRun<'_>,
    outcome: &Outcome,
) -> anyhow::Result<()> {
    if is_stopped(outcome) {
        let reason = outcome.message();
        parts.emit.emit(EventKind::VerificationSkipped { reason });
    }
    let is_done = outcome.task_end() == TaskEnd::Done;
    let commits = !parts.setup.config.settings.allow_dirty;
    let mut patch = None;
    if is_done {
        let head = parts.last_snapshot().0.and_then(|raw| head_of(&raw));
        if commits && head != parts.tree.repo.base() {
            take_back_head(parts, run);
        }
        let passes = passes_original_tests(&parts.tree, run, outcome);
        parts.tree.save_judged(Some(passes))?;
        let is_left = |item: &TodoItem| item.status != TodoStatus::Completed;
        if let Some(progress) = progress(&run.plan).filter(|_| run.plan.iter().any(is_left)) {
            // Although the checks pass.
            parts.warn(format!("task {}: {progress}", run.task.id));
        }
        if matches!(outcome, Outcome::AlreadySatisfied { .. }) {
            parts.tree.plan.set(&run.task.id, done_status(run));
            if commits {
                parts.tree.save_plan()?;
            }
        }
        // Independent of which process of the run committed them.
        let changes = run.journal.state.changes.iter().cloned();
        parts.accounts.changed_files.extend(changes);
    } else {
        if commits {
            take_back_head(parts, run);
        }
        warn_of_submodules(parts);
        patch = save_patch(parts, run);
        // A merge is made anew from its two sides, so the tree is restored for moving the branch back.
        if parts.tree.merging.is_some() {
            restore(parts);
        }
    }
    let ended = ended(parts, run, outcome, patch);
    // The event comes first: a run that dies in between reports the end again instead of never.
    let (is_saved, files) = (ended.work.patch.is_some(), ended.work.changed_files.clone());
    parts.emit.emit(EventKind::TaskEnded(Box::new(ended)));
    parts.emit.ensure_stored()?;
    run.journal.finish(outcome.clone())?;
    if !is_done {
        let failed = FailedTask {
            id: &run.task.id,
            attempts: run.journal.state.all_attempts(),
            is_saved,
            files: &files,
            outcome,
        };
        restore_for_next(parts, failed);
    }
    parts.accounts.end_task(run.journal.state.spend);
    Ok(())
}

/// Whether the work of a task that is done is known to pass the original tests. The other side of a merge may have others.
fn passes_original_tests(tree: &WorkTree, run: &TaskRun<'_>, outcome: &Outcome) -> bool {
    let reason = outcome.reason();
    let is_verified = matches!(reason, Reason::Verified | Reason::AlreadySatisfied);
    is_verified && run.config.settings.test_changes.is_proved() && tree.merging.is_none()
}

/// Removes the agent's own unverified commits from the branch. They stay reachable under a reference.
fn take_back_head(parts: &mut Parts<'_>, run: &TaskRun<'_>) {
    let (run_id, task) = (&parts.setup.run_id, run.task.id.as_str());
    match parts.tree.repo.change().set_aside(run_id, task) {
        Ok(None) => {}
        Ok(Some(kept)) => {
            // HEAD and refs differ from those at the start of the turn, so a resumed turn must not be
            // compared with them.
            parts.setup.run_dir.remove(RunFile::TurnMark);
            parts.warn(format!(
                "the branch was reset to the start of the task; the agent's commits are kept under {kept}"
            ));
        }
        Err(error) => parts.warn(format!(
            "the agent's commits could not be removed from the branch: {error}"
        )),
    }
}

fn save_patch(parts: &mut Parts<'_>, run: &TaskRun<'_>) -> Option<String> {
    let (seen, _) = parts.snapshot();
    let seen = seen?;
    let raw = parts.tree.without_new_plan(&seen);
    if raw.changes.is_empty() && raw.uncounted.is_empty() {
        return None;
    }
    let file = RunFile::Patch(run.task.id.as_str());
    let patch = patch_of(&parts.tree, &raw);
    let patch = patch.map(|patch| without_secrets(&parts.setup, &mut parts.emit, patch));
    let saved = patch.and_then(|patch| {
        keep_earlier(&parts.setup, run.task.id.as_str(), &patch)?;
        parts.setup.run_dir.write(file, &patch)
    });
    match saved {
        Ok(_) => Some(file.path().into_owned()),
        Err(error) => {
            let why = with_causes(&error);
            parts.warn(format!("the work could not be saved as a patch: {why}"));
            None
        }
    }
}

/// The changes of the work relative to the branch, as a patch.
fn patch_of(tree: &WorkTree, raw: &RawSnapshot) -> anyhow::Result<Vec<u8>> {
    let Some(merging) = &tree.merging else {
        return Ok(tree.repo.patch(raw)?);
    };
    let now = tree.repo.write_snapshot_tree(raw)?;
    let now = RevId(now.as_str().to_owned());
    Ok(tree.repo.patch_between(&merging.ours, &now)?)
}

/// Renames a patch from an earlier end of the task, because it may be the only copy of that work. A
/// patch with the same content is from this end, in a process that died.
fn keep_earlier(setup: &Setup, task: &str, patch: &[u8]) -> anyhow::Result<()> {
    let earlier = setup.run_dir.read(RunFile::Patch(task));
    let now = setup.redactor.redact_bytes(patch);
    let Some(earlier) = earlier.filter(|earlier| *earlier != *now) else {
        return Ok(());
    };
    let mut names = (1_u32..).map(|number| format!("{task}-earlier-{number:02}"));
    let kept = |name: &String| setup.run_dir.read(RunFile::Patch(name));
    let free = names.find(|name| kept(name).is_none_or(|kept| kept == earlier));
    let name = free.unwrap_or_default();
    let file = RunFile::Patch(&name);
    setup.run_dir.write(file, &earlier).map(drop)
}

/// The patch with secrets masked. A masked patch may not apply.
fn without_secrets(setup: &Setup, emit: &mut Emitter<'_>, patch: Vec<u8>) -> Vec<u8> {
    let detector = setup.detector.as_ref();
    let holds_one = |text: &[u8]| detector.is_some_and(|detector| !detector.find(text).is_empty());
    if !holds_one(&patch) {
        return patch;
    }
    emit.warn("secrets are masked in the patch of the failed work");
    let masked = setup.redactor.redact_bytes(&patch).into_owned();
    if !holds_one(&masked) {
        return masked;
    }
    // Secrets that masking misses: replace their whole lines, or else the whole patch.
    let mask = format!("{MASK}\n").into_bytes();
    let kept = |line| {
        if holds_one(line) {
            mask.as_slice()
        } else {
            line
        }
    };
    let lines = masked.split_inclusive(|byte| *byte == b'\n').map(kept);
    let lines = lines.collect::<Vec<_>>().concat();
    if holds_one(&lines) { mask } else { lines }
}

/// A task that failed.
pub struct FailedTask<'a> {
    /// Its id.
    pub id: &'a TaskId,
    /// The number of attempts.
    pub attempts: u32,
    /// Whether its work is saved as a patch.
    pub is_saved: bool,
    /// The files that it changed.
    pub files: &'a [String],
    /// The outcome.
    pub outcome: &'a Outcome,
}

/// After a failed task, restores the tree for the next one, if there is one. This happens after the end of the task
/// is recorded, so that a resumed run repeats it. Unsaved work and files of other people are never removed.
pub fn restore_for_next(parts: &mut Parts<'_>, failed: FailedTask<'_>) {
    let settings = &parts.setup.config.settings;
    if !settings.keep_going || failed.outcome.ends_run() || settings.allow_dirty {
        return;
    }
    let (raw, _) = parts.snapshot();
    let raw = raw.map(|raw| parts.tree.without_new_plan(&raw));
    let there = raw.as_ref().map(changed_paths).unwrap_or_default();
    let is_known = |path: &String| failed.files.contains(path);
    if !there.iter().all(is_known) || (!failed.is_saved && !there.is_empty()) {
        parts.warn("the tree stays as it is: the failed work could not be saved");
        return;
    }
    restore(parts);
    let is_blocked = failed.outcome.task_end() == TaskEnd::Blocked;
    let update = StatusUpdate {
        status: if is_blocked {
            TaskStatus::Blocked
        } else {
            TaskStatus::Failed
        },
        attempts: Some(failed.attempts),
        completed_at: None,
    };
    parts.tree.plan.set(failed.id, update);
}

fn restore(parts: &mut Parts<'_>) {
    let exempt = parts.tree.exempt();
    match parts.tree.repo.change().restore_tree(&exempt) {
        Ok(restored) => restored.left.iter().for_each(|left| parts.warn_once(left)),
        Err(error) => parts.warn(format!("the tree could not be restored: {error}")),
    }
}

fn ended(
    parts: &mut Parts<'_>,
    run: &TaskRun<'_>,
    outcome: &Outcome,
    patch: Option<String>,
) -> TaskEnded {
    let state = &run.journal.state;
    let committed =
        outcome.task_end() == TaskEnd::Done && !matches!(outcome, Outcome::AlreadySatisfied { .. });
    let output = state.output.as_ref();
    let output = output.filter(|_| outcome.task_end() == TaskEnd::Done);
    let (raw, now) = parts.last_snapshot();
    let raw = raw.map(|raw| parts.tree.without_new_plan(&raw));
    let left = raw.as_ref().map(changed_paths).unwrap_or_default();
    let is_committed = committed && left.is_empty();
    TaskEnded {
        attempts: state.all_attempts().max(run.drafts),
        turns: state.turns() + run.draft_turns,
        nudges: state.all_nudges(),
        changes_made: changes_made(state, &now, outcome),
        work: TaskWork {
            verifications: state.verifications,
            history: history(state, outcome),
            changed_files: if is_committed {
                state.changes.clone()
            } else {
                left
            },
            failing_tests: failing_tests(state, outcome),
            evidence: evidence(state, outcome),
            signals: state.signals.clone(),
            held: state.held.clone(),
            answer: answer(run, outcome),
            structured_output: output.and_then(|output| output.as_ref().ok()).cloned(),
            patch,
            agent_commits: u32::try_from(run.agent_commits.len()).unwrap_or(u32::MAX),
        },
        elsewhere: None,
        elapsed_ms: parts.emit.elapsed_ms().saturating_sub(run.began_ms),
        outcome: outcome.clone(),
    }
}

/// The final message of a task that ended with an answer, with a question of the agent, or with a plan to show.
fn answer(run: &TaskRun<'_>, outcome: &Outcome) -> Option<String> {
    let is_told = matches!(
        outcome,
        Outcome::Answered | Outcome::NeedsAnswer | Outcome::Drafted { .. }
    );
    let message = run.final_message.as_deref().filter(|_| is_told)?;
    Some(cap_chars(message.trim(), ANSWER_CHARS).into_owned())
}

/// The tests that failed last. If the checks passed since, only the flaky ones.
fn failing_tests(state: &TaskState, outcome: &Outcome) -> Vec<BlamedTest> {
    let failed = state.last_failure.as_ref();
    let mut blamed = failed.map_or_else(Vec::new, |last| state.proofs.blame(&last.failed));
    let passed = matches!(
        outcome,
        Outcome::Verified { .. } | Outcome::AlreadySatisfied { verified: true }
    );
    if passed || state.has_passed {
        blamed.retain(|test| test.blame == Blame::Flaky);
    }
    blamed
}

/// The history of attempts, including the last one if it ended without a verification.
fn history(state: &TaskState, outcome: &Outcome) -> Vec<HistoryEntry> {
    let mut history = state.history.clone();
    let refused = matches!(outcome, Outcome::UnprovenTests { .. });
    let last = history.last_mut().filter(|_| refused);
    if let Some(last) = last.filter(|last| last.outcome == AttemptOutcome::Passed) {
        last.outcome = AttemptOutcome::FailedTests;
        last.errors = vec![outcome.message()];
    }
    let idle = matches!(
        outcome,
        Outcome::NoProgress { .. } | Outcome::PlanningOnly | Outcome::NeedsAnswer
    );
    let last = history.last_mut().filter(|_| idle);
    let last = last.filter(|last| last.phase == state.counted && last.attempt == state.attempt());
    if let Some(last) = last {
        // Checks that pass without the work are no result of it.
        if last.outcome == AttemptOutcome::Passed {
            last.outcome = AttemptOutcome::NoChange;
        }
    } else if idle {
        history.push(HistoryEntry {
            attempt: state.attempt(),
            changes: Vec::new(),
            outcome: AttemptOutcome::NoChange,
            errors: Vec::new(),
            phase: state.counted,
        });
    }
    history
}

/// Whether the task leaves a changed tree. A preflight stop means that the last attempt changed nothing.
/// The changes of an interrupted turn are visible only in the snapshot `now`.
fn changes_made(state: &TaskState, now: &Snapshot, outcome: &Outcome) -> bool {
    let start = state.task_start.as_ref().filter(|_| !is_stopped(outcome));
    start.is_some_and(|start| start.same_as(now) != Some(true))
}

/// Whether the pre-flight check has ended the task.
fn is_stopped(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::NoProgress { preflight, .. } if *preflight)
}
