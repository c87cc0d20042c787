//! The start of a task, new or resumed.

use crate::agents::BUILTIN;
use crate::domain::agent::Usage;
use crate::domain::assess::TurnExit;
use crate::domain::attempt::{Interruption, Observation, Role, Step};
use crate::domain::event::EventKind;
use crate::domain::plan::{Task, TaskKind, is_question};
use crate::run::state::conversation;
use crate::run::state::emitter::Journal;
use crate::run::state::layout::RunFile;
use crate::run::state::parts::{Parts, TaskRun, TaskStart};
use crate::run::steps::commit::recover_commit;
use crate::run::steps::turn::spend;
use crate::run::steps::undo;
use serde::Deserialize as _;
use serde_json::Value;
use std::sync::Arc;

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
    let mut config = start.config.clone();
    let named = parts.tree.repo.named_by_configuration();
    config.protected_paths = Arc::new(config.protected_paths.and(named));
    let mut policy = parts.setup.policy(&start.config, parts.accounts.spent);
    policy.only_checks = task.kind == TaskKind::Check;
    policy.is_question = is_question(&task.title);
    let has_work = policy.phases.iter().any(|row| row.role != Role::Reviewer);
    policy.wants_output = parts.setup.output_schema.is_some() && is_last && has_work;
    let mut run = TaskRun {
        task,
        config,
        policy,
        drafts: 0,
        draft_turns: 0,
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
    // Without a turn, the task had only just started, or it failed and starts again with fresh counters.
    let is_begun = run.journal.state.key.is_some();
    let run_dir = &parts.setup.run_dir;
    if is_begun || start.continues_session {
        conversation::recall(run_dir, run, &mut parts.accounts.session_usage);
    } else {
        conversation::forget(run_dir)?;
    }
    if is_begun {
        run.agent_commits.clone_from(&start.agent_commits);
    } else {
        undo::forget(run_dir);
        let title = run.task.title.clone();
        parts.emit.emit(EventKind::TaskStarted { title });
    }
    count_killed_turn(parts, run)?;
    run.journal.observe(Observation::Resumed)
}

/// Counts what a turn of the built-in agent has spent that a kill ended, as its transcript says.
fn count_killed_turn(parts: &mut Parts<'_>, run: &mut TaskRun<'_>) -> anyhow::Result<()> {
    let state = &run.journal.state;
    let is_open = matches!(state.open.as_deref(), Some(Step::RunAgent { .. }));
    let file = RunFile::Transcript(parts.accounts.turns, BUILTIN);
    let transcript = parts.setup.run_dir.read(file);
    let Some(transcript) = transcript.filter(|_| is_open && state.interrupted.is_none()) else {
        return Ok(());
    };
    let usage = usage_in(&transcript, run.task.id.as_str(), state.turns());
    let signal = 9;
    parts.emit.emit(EventKind::TurnEnded {
        exit: TurnExit::Signal(signal).describe(),
        elapsed_ms: 0,
        usage: Some(usage),
    });
    run.journal.observe(Observation::Interrupted {
        by: Interruption::Cancel { signal },
        spend: spend(&usage),
    })
}

/// The usage of all responses in a transcript of the built-in agent, if it is that of the turn.
fn usage_in(transcript: &[u8], task: &str, turn: u32) -> Usage {
    let mut all = Usage::default();
    let lines = transcript.split(|byte| *byte == b'\n');
    for line in lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok()) {
        if line["record"] == "session" && (line["task"] != task || line["turn"] != turn) {
            break;
        }
        let observation = &line["observation"];
        let usage = Usage::deserialize(&observation["usage"]).ok();
        let usage = usage.filter(|_| observation["observed"] == "model_responded");
        usage.iter().for_each(|usage| all.add(usage));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{Usage, usage_in};

    #[test]
    fn every_response_of_a_transcript_counts_once() {
        let transcript = br#"{"record":"session","task":"t1","turn":2}
{"record":"observed","observation":{"observed":"model_responded","text":"","usage":{"tokens_in":10,"tokens_out":2,"cost_usd":0.5}}}
{"record":"observed","observation":{"observed":"tools_applied"}}
{"record":"observed","observation":{"observed":"model_responded","usage":{"tokens_in":20,"tokens_out":3,"cost_usd":0.25}}}
{"record":"observed","observation":{"observed":"slice_ended","usage":{"tokens_in":20,"tokens_out":3,"cost_usd":0.25}}}
{"record":"obs"#;
        assert_eq!(usage_in(transcript, "t1", 1), Usage::default());
        let usage = usage_in(transcript, "t1", 2);
        assert_eq!((usage.tokens_in, usage.tokens_out), (Some(30), Some(5)));
        assert_eq!(usage.cost_usd, Some(0.75));
    }
}
