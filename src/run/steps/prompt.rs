//! Makes the prompt of a turn from the plan and the history.

use crate::domain::attempt::{Expect, Phase, TurnKey, TurnPurpose};
use crate::domain::checks::signals::Signal;
use crate::domain::history::HistoryEntry;
use crate::domain::outcome::short;
use crate::domain::plan::Task;
use crate::domain::prompt::{
    FixPart, NudgeKind, Output, Part, PromptInput, Purpose, Retry, ReviewPart, TaskName, TaskText,
    prompt, resumed_prompt,
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
    let instructions = config.instructions();
    let purpose = Purpose::Implement;
    prompt(&input(
        state,
        task,
        instructions.as_deref(),
        "",
        part,
        purpose,
    ))
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
    let diff = match run.row(key).expect {
        Expect::Acceptable => diff(parts),
        Expect::Pass | Expect::Fail | Expect::Answer => Diff::default(),
    };
    let state = &run.journal.state;
    let mut status = status(purpose, state.current.as_ref(), &state.changes);
    if matches!(purpose, TurnPurpose::Nudge { .. })
        && let (Some(raw), _) = parts.last_snapshot()
        && let Some(written) = parts.tree.ignored_work(&raw)
    {
        status = format!("{status}; {written}");
    }
    let text = prompt_text(
        &parts.tree.plan,
        run,
        (key, purpose),
        (&notes, &diff, &status),
        &pictures,
        resumed,
    );
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

fn prompt_text(
    plan: &PlanState,
    run: &TaskRun<'_>,
    (key, purpose): (TurnKey, &TurnPurpose),
    (notes, diff, status): (&str, &Diff, &str),
    pictures: &[String],
    resumed: bool,
) -> String {
    let state = &run.journal.state;
    let history: Vec<HistoryEntry> = state.history_of_phase().cloned().collect();
    let retry = retry(run, purpose, &history);
    let purpose = match purpose {
        TurnPurpose::Implement | TurnPurpose::Phase { .. } => Purpose::Implement,
        TurnPurpose::Nudge { n, kind } => Purpose::Nudge {
            number: *n,
            kind: *kind,
            status,
            retry,
        },
        TurnPurpose::Retry { .. } => Purpose::Retry(retry.unwrap_or_default()),
    };
    let instructions = run.config.instructions();
    let part = part(run, key, diff);
    let mut input = input(
        plan,
        run.task,
        instructions.as_deref(),
        notes,
        part,
        purpose,
    );
    input.pictures = pictures.to_vec();
    input.output = run.output(key).map(|schema| Output {
        schema,
        misfit: match &state.output {
            Some(Err(why)) => Some(why),
            _ => None,
        },
    });
    if resumed {
        resumed_prompt(&input)
    } else {
        prompt(&input)
    }
}

fn input<'a>(
    state: &'a PlanState,
    task: &'a Task,
    instructions: Option<&'a str>,
    notes: &'a str,
    part: Part<'a>,
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
        pictures: Vec::new(),
        output: None,
        part,
        purpose,
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
    let (patch, files) = match &parts.setup.reviewed {
        Some(change) => {
            let repo = &parts.tree.repo;
            let files = repo.paths_between(&change.from, &change.to);
            let patch = repo.patch_between(&change.from, &change.to);
            (
                patch.map_err(anyhow::Error::from),
                files.unwrap_or_default(),
            )
        }
        None => {
            let (raw, _) = parts.last_snapshot();
            let Some(raw) = raw else {
                return Diff::default();
            };
            let patch = parts.tree.repo.patch(&raw);
            (patch.map_err(anyhow::Error::from), changed_paths(&raw))
        }
    };
    let patch = match patch {
        Ok(patch) => patch,
        Err(error) => {
            parts.warn(format!(
                "the reviewer is not shown the diff, which could not be made: {}",
                with_causes(&error)
            ));
            Vec::new()
        }
    };
    let is_cut = patch.len() > DIFF_BYTES;
    let shown = patch.get(..DIFF_BYTES).unwrap_or(&patch);
    Diff {
        text: String::from_utf8_lossy(shown).into_owned(),
        is_cut,
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
            checks: run
                .config
                .checks
                .iter()
                .map(|check| check.name.as_str())
                .collect(),
            grounds: state.grounds,
            findings: &state.findings,
            answer: state.answer.as_deref().filter(|_| key_cycle(key) > 1),
            round: (key_cycle(key), last_cycle(run)),
            compared_with: diff.compared_with.as_deref(),
        }),
        Phase::Fix => {
            let verdict = state.review.as_ref().map(|review| review.verdict);
            let was_accepted = verdict == Some(ReviewVerdict::Acceptable);
            Part::Fix(FixPart {
                findings: &state.findings,
                review: state
                    .review
                    .as_ref()
                    .map_or("", |review| review.text.as_str()),
                hook: state.hook_message.as_deref(),
                failing: if was_accepted && state.hook_message.is_none() {
                    failing()
                } else {
                    ""
                },
            })
        }
    }
}

fn key_cycle(key: TurnKey) -> u32 {
    key.name.map_or(1, |name| name.cycle)
}

fn last_cycle(run: &TaskRun<'_>) -> u32 {
    run.policy.phases.last().map_or(1, |row| row.cycle)
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
    // What failed earlier says nothing about work that passes.
    let refused = state.refused.as_deref();
    let failure = state.last_failure.as_deref().filter(|_| refused.is_none());
    Some(Retry {
        number: number - 1,
        of: run.config.settings.max_retries,
        refused,
        cut_off: state.cut_off.as_deref(),
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
        history,
    })
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
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
    let kind = NudgeKind::EndedWithError;
    let since = match purpose {
        TurnPurpose::Nudge { kind: last, .. } if *last == kind => "",
        _ => " as before this turn",
    };
    match changes {
        [] => format!("{head}, no file has changed"),
        some => format!("{head}, changed files{since}: {}", some.join(", ")),
    }
}
