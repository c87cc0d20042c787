//! The start of a task, new or resumed.

use crate::domain::attempt::{Observation, Role};
use crate::domain::event::EventKind;
use crate::domain::output_schema::OutputSchema;
use crate::domain::plan::{Task, TaskKind, is_question};
use crate::run::state::accounts::Accounts;
use crate::run::state::conversation;
use crate::run::state::emitter::Emitter;
use crate::run::state::journal::Journal;
use crate::run::state::setup::Setup;
use crate::run::state::task::{Drafting, TaskRun, TaskStart};
use crate::run::state::work_tree::WorkTree;
use crate::run::steps::commit::recover_commit;
use crate::run::steps::undo;

/// Starts a task, or resumes it where it stopped.
///
/// # Errors
/// When the run's own state cannot be read or written.
pub fn start_task<'t>(
    setup: &Setup,
    tree: &mut WorkTree,
    accounts: &mut Accounts,
    emit: &mut Emitter<'_>,
    task: &'t Task,
    start: &TaskStart,
    is_last: bool,
) -> anyhow::Result<TaskRun<'t>> {
    let history = setup.run_dir.history()?;
    let mut policy = setup.policy(&start.config, accounts.spent);
    policy.only_checks = task.kind == TaskKind::Check;
    policy.is_question = is_question(&task.title);
    let has_work = policy.phases.iter().any(|row| row.role != Role::Reviewer);
    let owed = setup.output_schema.as_ref().filter(|_| is_last && has_work);
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
        began_ms: emit.elapsed_ms(),
        substitute: None,
        unavailable: accounts.unavailable.clone(),
    };
    emit.at(Some(task.id.as_str()), None, None);
    if run.journal.state.task_start.is_none() {
        conversation::forget(&setup.run_dir)?;
        undo::forget(&setup.run_dir);
        let (raw, start) = tree.last_snapshot(emit);
        tree.save_uncommitted(raw.as_deref(), &run.config)?;
        tree.save_judged(None)?;
        accounts.begin_task(&start);
        let elapsed_ms = emit.elapsed_ms();
        let started = Observation::TaskStarted { start, elapsed_ms };
        run.journal.observe_before_intent(started)?;
        emit.emit(EventKind::TaskStarted {
            title: task.title.clone(),
        });
    } else {
        resume_task(setup, tree, accounts, emit, &mut run, start)?;
    }
    Ok(run)
}

/// Determines how far the dead process came with the task.
fn resume_task(
    setup: &Setup,
    tree: &mut WorkTree,
    accounts: &mut Accounts,
    emit: &mut Emitter<'_>,
    run: &mut TaskRun<'_>,
    start: &TaskStart,
) -> anyhow::Result<()> {
    recover_commit(setup, tree, accounts, emit, run)?;
    if run.journal.state.key.is_none() {
        // The task had only just started, or it failed and starts again with fresh counters.
        if start.continues_session {
            conversation::recall(&setup.run_dir, run, &mut accounts.session_usage);
        } else {
            conversation::forget(&setup.run_dir)?;
        }
        undo::forget(&setup.run_dir);
        emit.emit(EventKind::TaskStarted {
            title: run.task.title.clone(),
        });
    } else {
        run.agent_commits.clone_from(&start.agent_commits);
        conversation::recall(&setup.run_dir, run, &mut accounts.session_usage);
    }
    run.journal.observe(Observation::Resumed)
}
