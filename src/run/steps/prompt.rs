//! Makes the prompt of a turn from the plan and the history.

use crate::domain::attempt::{Expect, Phase, TurnKey, TurnPurpose};
use crate::domain::checks::signals::Signal;
use crate::domain::history::HistoryEntry;
use crate::domain::outcome::short;
use crate::domain::output_schema::OutputSchema;
use crate::domain::plan::Task;
use crate::domain::prompt::{
    FixPart, NudgeKind, Output, Part, PromptInput, Purpose, Retry, ReviewPart, prompt,
    resumed_prompt,
};
use crate::domain::review::ReviewVerdict;
use crate::domain::snapshot::{Head, Snapshot};
use crate::error::with_causes;
use crate::run::state::layout::RunFile;
use crate::run::state::parts::{Parts, TaskRun};
use crate::run::state::pictures;
use crate::run::state::plan_state::PlanState;
use crate::run::state::work_tree::changed_paths;
use crate::settings::TaskConfig;
use std::path::PathBuf;

/// The longest patch, in bytes, that a reviewer sees.
const DIFF_BYTES: usize = 60_000;

/// A prompt that is saved in the run directory.
#[derive(Debug)]
pub(crate) struct Prompt {
    /// The number of the turn's files.
    pub(crate) number: u32,
    /// The path of its file, relative to the run directory.
    pub(crate) name: String,
    /// The absolute path of its file.
    pub(crate) file: PathBuf,
    pub(crate) text: String,
}

/// The first prompt of a task, for display. In a review-only run `reviewed` is the base; the diff is
/// left out.
pub fn first_prompt(
    state: &PlanState,
    task: &Task,
    config: &TaskConfig,
    reviewed: Option<&str>,
) -> String {
    let part = match reviewed {
        Some(base) => Part::Review(ReviewPart {
            compared_with: Some(base),
            ..ReviewPart::default()
        }),
        None if config.asks => Part::Answer,
        None if config.settings.tdd => Part::Red,
        None => Part::Implement,
    };
    let mut input = input(state, task, part);
    let instructions = config.instructions();
    input.instructions = instructions.as_deref();
    prompt(&input)
}

/// Makes and saves the prompt of a turn.
///
/// # Errors
/// When it cannot be saved.
pub(crate) fn write_prompt(
    parts: &mut Parts<'_>,
    run: &TaskRun<'_>,
    key: TurnKey,
    purpose: &TurnPurpose,
    resumed: bool,
) -> anyhow::Result<Prompt> {
    let notes = parts.notes.shown(run.task.id.as_str());
    let pictures = pictures::names(&parts.setup.run_dir);
    let is_review = run.row(key).expect == Expect::Acceptable;
    let diff = if is_review {
        diff(parts)
    } else {
        Diff::default()
    };
    let state = &run.journal.state;
    let mut status = status(purpose, state.current.as_ref(), &state.changes);
    if matches!(purpose, TurnPurpose::Nudge { .. })
        && let (Some(raw), _) = parts.last_snapshot()
        && let Some(written) = parts.tree.ignored_work(&raw)
    {
        status = format!("{status}; {written}");
    }
    let history: Vec<HistoryEntry> = state.history_of_phase().cloned().collect();
    let retry = retry(run, purpose, &history);
    let instructions = run.config.instructions();
    let schema = parts.setup.output_schema.as_ref();
    let schema = schema
        .filter(|_| run.needs_output(key))
        .map(OutputSchema::text);
    let mut input = input(&parts.tree.plan, run.task, part(run, key, &diff));
    input.notes = &notes;
    input.instructions = instructions.as_deref();
    input.pictures = pictures;
    input.purpose = match purpose {
        TurnPurpose::Implement | TurnPurpose::Phase { .. } => Purpose::Implement,
        TurnPurpose::Nudge { n, kind } => Purpose::Nudge {
            number: *n,
            kind: *kind,
            status: &status,
            retry,
        },
        TurnPurpose::Retry { .. } => Purpose::Retry(retry.unwrap_or_default()),
    };
    let misfit = match &state.output {
        Some(Err(why)) => Some(why.as_str()),
        _ => None,
    };
    input.output = schema.as_deref().map(|schema| Output { schema, misfit });
    let text = if resumed {
        resumed_prompt(&input)
    } else {
        prompt(&input)
    };
    keep_prompt(parts, text)
}

/// Saves the prompt of a turn under the run's next number.
///
/// # Errors
/// When it cannot be saved.
pub(crate) fn keep_prompt(parts: &mut Parts<'_>, text: String) -> anyhow::Result<Prompt> {
    parts.accounts.turns += 1;
    let number = parts.accounts.turns;
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

/// A prompt for a part of a task, without what this turn adds.
fn input<'a>(state: &'a PlanState, task: &'a Task, part: Part<'a>) -> PromptInput<'a> {
    let ids = state.plan.tasks.iter().map(|task| &task.id);
    PromptInput {
        done: ids.filter(|id| state.is_done(id)).collect(),
        ..PromptInput::of(&state.plan, task, part)
    }
}

/// The part of the work that a reviewer sees.
#[derive(Debug, Default)]
struct Diff {
    text: String,
    is_cut: bool,
    files: Vec<String>,
    /// The base of the comparison, in a review-only run.
    compared_with: Option<String>,
}

/// The work of the task, or the change under review, as a patch up to the size limit.
fn diff(parts: &mut Parts<'_>) -> Diff {
    let (patch, files) = if let Some(change) = &parts.setup.reviewed {
        let repo = &parts.tree.repo;
        let files = repo.paths_between(&change.from, &change.to);
        let patch = repo.patch_between(&change.from, &change.to);
        (
            patch.map_err(anyhow::Error::from),
            files.unwrap_or_default(),
        )
    } else {
        let (Some(raw), _) = parts.last_snapshot() else {
            return Diff::default();
        };
        let patch = parts.tree.repo.patch(&raw);
        (patch.map_err(anyhow::Error::from), changed_paths(&raw))
    };
    let patch = patch.unwrap_or_else(|error| {
        let why = with_causes(&error);
        parts.warn(format!(
            "the reviewer is not shown the diff, which could not be made: {why}"
        ));
        Vec::new()
    });
    let shown = patch.get(..DIFF_BYTES).unwrap_or(&patch);
    Diff {
        text: String::from_utf8_lossy(shown).into_owned(),
        is_cut: patch.len() > DIFF_BYTES,
        files,
        compared_with: parts.setup.reviewed.as_ref().map(|it| it.base.clone()),
    }
}

/// The agent's part in this phase.
fn part<'a>(run: &'a TaskRun<'_>, key: TurnKey, diff: &'a Diff) -> Part<'a> {
    let state = &run.journal.state;
    let failing = || {
        let failure = state.last_failure.as_deref();
        failure.map_or("", |failure| failure.failing_output.as_str())
    };
    let cycle = key.name.map_or(1, |name| name.cycle);
    let last_cycle = run.policy.phases.last().map_or(1, |row| row.cycle);
    let checks = run.config.checks.iter();
    match run.row(key).phase {
        Phase::Implement => Part::Implement,
        Phase::Test => Part::Test,
        Phase::Red => Part::Red,
        Phase::Green => Part::Green(failing()),
        Phase::Refactor => Part::Refactor,
        Phase::Answer => Part::Answer,
        Phase::Review => Part::Review(ReviewPart {
            diff: &diff.text,
            signals: state.signals.iter().map(Signal::says).collect(),
            is_cut: diff.is_cut,
            files: &diff.files,
            checks: checks.map(|check| check.name.as_str()).collect(),
            grounds: state.grounds,
            findings: &state.findings,
            answer: state.answer.as_deref().filter(|_| cycle > 1),
            round: (cycle, last_cycle),
            compared_with: diff.compared_with.as_deref(),
        }),
        Phase::Fix => {
            let (review, hook) = (state.review.as_ref(), state.hook_message.as_deref());
            let verdict = review.map(|review| review.verdict);
            let was_accepted = verdict == Some(ReviewVerdict::Acceptable);
            let has_failed = was_accepted && hook.is_none();
            Part::Fix(FixPart {
                findings: &state.findings,
                review: review.map_or("", |review| review.text.as_str()),
                hook,
                failing: if has_failed { failing() } else { "" },
            })
        }
    }
}

fn retry<'a>(
    run: &'a TaskRun<'_>,
    purpose: &TurnPurpose,
    history: &'a [HistoryEntry],
) -> Option<Retry<'a>> {
    let state = &run.journal.state;
    let is_begun = matches!(
        purpose,
        TurnPurpose::Nudge { .. } | TurnPurpose::Retry { .. }
    );
    let number = state.attempt();
    if number < 2 || !is_begun {
        return None;
    }
    let mut retry = Retry {
        number: number - 1,
        of: run.config.settings.max_retries,
        refused: state.refused.as_deref(),
        cut_off: state.cut_off.as_deref(),
        commit_rejected: state.hook_message.as_deref(),
        history,
        ..Retry::default()
    };
    // What failed earlier says nothing about work that passes.
    let failure = state.last_failure.as_deref();
    if let Some(failure) = failure.filter(|_| retry.refused.is_none()) {
        let checks = failure.failing_checks.iter();
        retry.failing_checks = checks.map(String::as_str).collect();
        retry.failing = &failure.failing_output;
        retry.blame = state.proofs.blame(&failure.failed);
        retry.hints.clone_from(&failure.hints);
    }
    Some(retry)
}

/// The status of the tree in a nudge. Only an agent that ended with an error has changed something in its last turn.
fn status(purpose: &TurnPurpose, current: Option<&Snapshot>, changes: &[String]) -> String {
    let head = match current {
        Some(Snapshot::Known(known)) => match &known.head {
            Head::At(id) => format!("HEAD is {}", short(id)),
            Head::Unborn => "there is no commit yet".into(),
        },
        _ => "HEAD is unknown".into(),
    };
    let since = match purpose {
        TurnPurpose::Nudge {
            kind: NudgeKind::EndedWithError,
            ..
        } => "",
        _ => " as before this turn",
    };
    match changes {
        [] => format!("{head}, no file has changed"),
        some => format!("{head}, changed files{since}: {}", some.join(", ")),
    }
}
