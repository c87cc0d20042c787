//! The start of a task, new or resumed.

use crate::domain::attempt::{Observation, Role};
use crate::domain::event::EventKind;
use crate::domain::output_schema::OutputSchema;
use crate::domain::plan::{Task, TaskKind, is_question};
use crate::run::state::conversation;
use crate::run::state::emitter::Journal;
use crate::run::state::parts::{Drafting, Parts, TaskRun, TaskStart};
use crate::run::steps::commit::recover_commit;
use crate::run::steps::undo;

/// Starts a task, or resumes it where it stopped.
///
/// # Errors
/// When the run's own state cannot be read or written.
pub fn start_task<'t>(
    parts: &mut Parts<'_>,
    task: &'t Task,
    start: &TaskStart,
    is_last: bool,
) -> anyhow::Result<TaskRun<'t>> {
    let history = parts.setup.run_dir.history()?;
    let mut policy = parts.setup.policy(&start.config, parts.accounts.spent);
    policy.only_checks = task.kind == TaskKind::Check;
    policy.is_question = is_question(&task.title);
    let has_work = policy.phases.iter().any(|row| row.role != Role::Reviewer);
    let owed = parts
        .setup
        .output_schema
        .as_ref()
        .filter(|_| is_last && has_work);
    policy.wants_output = owed.is_some();
    let mut run = TaskRun {
        task,
        config: start.config.clone(),
        policy,
        drafting: Drafting::default(),
        output_schema: owed.map(OutputSchema::text),
        journal: Journal::new(task.id.as_str(), history, &start.earlier),
        final_message: None,
        session: None,
        session_phase: 0,
        permit: None,
        failed_on: None,
        agent_commits: Vec::new(),
        plan: Vec::new(),
        began_ms: parts.emit.elapsed_ms(),
        substitute: None,
        unavailable: parts.accounts.unavailable.clone(),
    };
    parts.emit.at(Some(task.id.as_str()), None, None);
    if run.journal.state.task_start.is_none() {
        conversation::forget(&parts.setup.run_dir)?;
        undo::forget(&parts.setup.run_dir);
        let (raw, start) = parts.last_snapshot();
        parts.tree.save_uncommitted(raw.as_deref(), &run.config)?;
        parts.tree.save_judged(None)?;
        parts.accounts.begin_task(&start);
        let elapsed_ms = parts.emit.elapsed_ms();
        let started = Observation::TaskStarted { start, elapsed_ms };
        run.journal.observe_before_intent(started)?;
        parts.emit.emit(EventKind::TaskStarted {
            title: task.title.clone(),
        });
    } else {
        resume_task(parts, &mut run, start)?;
    }
    Ok(run)
}

/// Determines how far the dead process came with the task.
fn resume_task(
    parts: &mut Parts<'_>,
    run: &mut TaskRun<'_>,
    start: &TaskStart,
) -> anyhow::Result<()> {
    recover_commit(parts, run)?;
    if run.journal.state.key.is_none() {
        // The task had only just started, or it failed and starts again with fresh counters.
        if start.continues_session {
            conversation::recall(&parts.setup.run_dir, run, &mut parts.accounts.session_usage);
        } else {
            conversation::forget(&parts.setup.run_dir)?;
        }
        undo::forget(&parts.setup.run_dir);
        parts.emit.emit(EventKind::TaskStarted {
            title: run.task.title.clone(),
        });
    } else {
        run.agent_commits.clone_from(&start.agent_commits);
        conversation::recall(&parts.setup.run_dir, run, &mut parts.accounts.session_usage);
    }
    run.journal.observe(Observation::Resumed)
}
