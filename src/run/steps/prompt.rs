//! The prompt of a turn, made of the plan and of what has happened.

use crate::domain::attempt::TurnPurpose;
use crate::domain::outcome::short;
use crate::domain::plan::Task;
use crate::domain::prompt::{
    PromptInput, Purpose, Retry, TaskName, TaskText, prompt, resumed_prompt,
};
use crate::domain::snapshot::{Head, Snapshot};
use crate::run::layout::RunFile;
use crate::run::parts::Parts;
use crate::run::plan_state::PlanState;
use crate::run::task::TaskRun;
use std::path::PathBuf;

/// A prompt that is kept in the run directory.
#[derive(Debug)]
pub(crate) struct Prompt {
    /// The number under which the turn's files are kept.
    pub(crate) number: u32,
    /// Its file, relative to the run directory.
    pub(crate) name: String,
    /// Its file.
    pub(crate) file: PathBuf,
    pub(crate) text: String,
}

/// The prompt that a task begins with.
pub fn first_prompt(state: &PlanState, task: &Task, instructions: Option<&str>) -> String {
    prompt(&input(state, task, (instructions, ""), Purpose::Implement))
}

/// Makes the prompt of a turn and keeps it.
///
/// # Errors
/// When it cannot be kept.
pub(crate) fn write_prompt(
    parts: &mut Parts<'_>,
    run: &TaskRun<'_>,
    purpose: &TurnPurpose,
    resumed: bool,
) -> anyhow::Result<Prompt> {
    parts.accounts.turns += 1;
    let number = parts.accounts.turns;
    let notes = parts.notes.shown(run.task.id.as_str());
    let text = prompt_text(&parts.tree.plan, run, (purpose, &notes), resumed);
    let file = RunFile::Prompt(number);
    let name = file.path().into_owned();
    let file = parts.setup.run_dir.write(file, text.as_bytes())?;
    Ok(Prompt {
        number,
        name,
        file,
        text,
    })
}

fn prompt_text(
    plan: &PlanState,
    run: &TaskRun<'_>,
    (purpose, notes): (&TurnPurpose, &str),
    resumed: bool,
) -> String {
    let state = &run.journal.state;
    let status = unchanged_status(state.current.as_ref(), &state.changes);
    let retry = retry(run, purpose);
    let purpose = match purpose {
        TurnPurpose::Implement => Purpose::Implement,
        TurnPurpose::Nudge { n, kind } => Purpose::Nudge {
            number: *n,
            kind: *kind,
            status: &status,
            retry,
        },
        TurnPurpose::Retry { .. } => Purpose::Retry(retry.unwrap_or_default()),
    };
    let instructions = run.config.settings.instructions.as_deref();
    let input = input(plan, run.task, (instructions, notes), purpose);
    if resumed {
        resumed_prompt(&input)
    } else {
        prompt(&input)
    }
}

fn input<'a>(
    state: &'a PlanState,
    task: &'a Task,
    (instructions, notes): (Option<&'a str>, &'a str),
    purpose: Purpose<'a>,
) -> PromptInput<'a> {
    let plan = &state.plan;
    let others = |done: bool| -> Vec<TaskName<'a>> {
        plan.tasks
            .iter()
            .filter(|other| other.id != task.id && state.is_done(&other.id) == done)
            .map(|other| TaskName {
                id: other.id.as_str(),
                title: &other.title,
            })
            .collect()
    };
    PromptInput {
        plan_title: &plan.title,
        goal: some(&plan.goal),
        details: some(&plan.details),
        task: TaskText {
            id: task.id.as_str(),
            title: &task.title,
            description: some(&task.description),
            acceptance: task.acceptance.iter().map(String::as_str).collect(),
        },
        done: others(true),
        pending: others(false),
        notes,
        instructions,
        purpose,
    }
}

fn retry<'a>(run: &'a TaskRun<'_>, purpose: &'a TurnPurpose) -> Option<Retry<'a>> {
    let state = &run.journal.state;
    let number = match purpose {
        TurnPurpose::Retry { .. } => state.attempt().max(1),
        _ if state.attempt() > 1 => state.attempt(),
        _ => return None,
    };
    let failure = state.last_failure.as_deref();
    let cut_off = match purpose {
        TurnPurpose::Retry { cut_off } => cut_off.as_deref(),
        _ => None,
    };
    Some(Retry {
        number: number.saturating_sub(1),
        of: run.config.settings.max_retries,
        cut_off,
        failing_checks: failure
            .map(|failure| failure.failing_checks.iter().map(String::as_str).collect())
            .unwrap_or_default(),
        failing: failure.map_or("", |failure| failure.failing_output.as_str()),
        blame: failure
            .map(|failure| state.proofs.blame(&failure.failed))
            .unwrap_or_default(),
        hints: failure
            .map(|failure| failure.hints.clone())
            .unwrap_or_default(),
        commit_rejected: state.hook_message.as_deref(),
        history: &state.history,
    })
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// What a nudge shows of a tree in which nothing happened.
fn unchanged_status(current: Option<&Snapshot>, changes: &[String]) -> String {
    let head = match current {
        Some(Snapshot::Known(known)) => match &known.head {
            Head::At(id) => format!("HEAD is {}", short(id)),
            Head::Unborn => "there is no commit yet".into(),
        },
        _ => "HEAD is unknown".into(),
    };
    match changes {
        [] => format!("{head}, no file has changed"),
        some => format!(
            "{head}, changed files as before this turn: {}",
            some.join(", ")
        ),
    }
}
