//! Annotations on lines of files, the most important first.

use super::{outputs, sentence, text};
use crate::domain::assess::AssessmentKind;
use crate::domain::attempt::{Blame, BlamedTest};
use crate::domain::checks::verdict::CheckKind;
use crate::domain::event::WarningTopic;
use crate::domain::outcome::{Reason, RunStatus, TaskEnd};
use crate::domain::review;
use crate::domain::summary::{CheckLine, RunSummary, TaskSummary};
use std::collections::HashSet;

/// The severity of an annotation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Something failed.
    Error,
    /// A person should look at it.
    Warning,
    /// For information.
    #[default]
    Notice,
}

/// An annotation. All texts are clean but not yet escaped for any format.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Annotation {
    /// The severity.
    pub level: Level,
    /// The file, relative to the work tree, or `.github` for no file.
    pub path: String,
    /// The line, from 1, or `None` for the whole file.
    pub line: Option<u32>,
    /// The last line of a range.
    pub end_line: Option<u32>,
    /// The first column, from 1. It counts only if the range is within one line: see [`Annotation::columns`].
    pub column: Option<u32>,
    /// The last column.
    pub end_column: Option<u32>,
    /// A short title.
    pub title: String,
    /// The text, of one or more lines.
    pub message: String,
    /// The related output of the tool or the check.
    pub details: Option<String>,
}

const TITLE_CHARS: usize = 200;
const MESSAGE_BYTES: usize = 4_000;
/// Maximum size of the details in bytes: GitHub's limit for an annotation's raw details.
pub const DETAILS_BYTES: usize = 64 * 1024;

impl Annotation {
    /// The first and the last column. `None` for several lines, because GitHub accepts columns only for one
    /// line.
    pub fn columns(&self) -> Option<(u32, u32)> {
        let one_line =
            self.line.is_some() && self.end_line.is_none_or(|end| Some(end) == self.line);
        let first = self.column.filter(|&column| column > 0 && one_line)?;
        Some((first, self.end_column.map_or(first, |last| last.max(first))))
    }
}

/// All annotations of a run, the most important first: errors of the last failing checks on lines of files,
/// failed tasks, a failed push, retries and nudges, the result, warnings, skipped checks and tasks, leftovers.
pub fn annotations(summary: &RunSummary) -> Vec<Annotation> {
    let tasks = || summary.tasks.iter();
    let failing = tasks()
        .filter(|task| sentence::is_undone(task))
        .flat_map(|task| {
            let notes = last_failing(task).flat_map(diagnostics);
            notes.map(|note| with_blame(note, &task.failing_tests))
        });
    let mut notes: Vec<Annotation> = failing.collect();
    for task in tasks() {
        notes.extend(blamed(task, &notes));
    }
    notes.extend(tasks().flat_map(found));
    notes.extend(tasks().flat_map(|task| ended(summary, task)));
    let unpushed = summary.push.iter().filter(|push| !push.pushed);
    notes.extend(unpushed.map(|push| {
        let title = "The commits are not on the branch";
        on_plan(summary, None, Level::Error, title, &sentence::push(push))
    }));
    notes.extend(tasks().flat_map(|task| repeated(summary, task)));
    notes.extend(tasks().flat_map(|task| {
        task.signals.iter().map(|signal| Annotation {
            path: signal.path.clone(),
            line: Some(signal.line),
            title: format!("{}: worth a look", task.id),
            message: format!("This line {}: {}", signal.kind.says(), signal.text),
            ..Annotation::default()
        })
    }));
    for (index, message) in summary.warnings.iter().enumerate() {
        let level = match summary.topic_of(index) {
            Some(WarningTopic::CheckArtifacts) => Level::Notice,
            _ => Level::Warning,
        };
        notes.push(on_plan(summary, None, level, "Sprag", message));
    }
    notes.extend(tasks().flat_map(|task| skipped(summary, task)));
    notes.extend(tasks().flat_map(|task| not_reached(summary, task)));
    notes.extend(final_status(summary));
    // The sort is stable: within a level the order above is kept.
    notes.sort_by_key(|note| note.level);
    let mut seen = HashSet::new();
    notes.retain(|note| seen.insert(note.clone()));
    notes
}

/// The checks that failed when they ran last, of the last attempt that has any.
pub fn last_failing(task: &TaskSummary) -> impl Iterator<Item = &CheckLine> {
    let mut seen = HashSet::new();
    let last_runs = task
        .checks
        .iter()
        .rev()
        .filter(|check| seen.insert(check.name.as_str()));
    let failing: Vec<&CheckLine> = last_runs.filter(|check| !check.passed).collect();
    let last = failing.first().map(|check| check.attempt_name());
    let of_last = move |check: &&CheckLine| Some(check.attempt_name()) == last;
    failing.into_iter().rev().filter(of_last)
}

fn diagnostics(check: &CheckLine) -> impl Iterator<Item = Annotation> + '_ {
    check.diagnostics.iter().filter_map(|diagnostic| {
        let path = text::line(diagnostic.path.as_deref()?);
        (!path.is_empty()).then(|| Annotation {
            level: Level::Error,
            path,
            line: diagnostic.line.filter(|&line| line > 0),
            end_line: diagnostic
                .end_line
                .filter(|&end| Some(end) > diagnostic.line),
            column: diagnostic.column,
            end_column: diagnostic.end_column,
            title: text::short_line(&format!("{} failed", check.name), TITLE_CHARS),
            message: bounded(&diagnostic.message),
            details: diagnostic.details.as_deref().map(text::block),
        })
    })
}

/// The severity of a failing test. A failure that the work did not cause is not an error.
fn level_of(blame: Blame) -> Level {
    match blame {
        Blame::New | Blame::Unknown => Level::Error,
        Blame::WasRedBefore | Blame::Flaky => Level::Warning,
    }
}

fn is_at(note: &Annotation, test: &BlamedTest) -> bool {
    test.line.is_some() && test.line == note.line && test.path.as_ref() == Some(&note.path)
}

/// Adds to an annotation on a failing test's line what caused the failure.
fn with_blame(note: Annotation, tests: &[BlamedTest]) -> Annotation {
    let known = tests.iter().filter(|test| test.blame != Blame::Unknown);
    match known.clone().find(|test| is_at(&note, test)) {
        Some(test) => Annotation {
            level: level_of(test.blame),
            title: text::short_line(
                &format!("{} ({})", note.title, test.blame.as_str()),
                TITLE_CHARS,
            ),
            ..note
        },
        None => note,
    }
}

/// Annotations on the lines of failing tests that have none yet.
fn blamed(task: &TaskSummary, notes: &[Annotation]) -> Vec<Annotation> {
    let tests = sentence::blamed(&task.failing_tests)
        .iter()
        .filter(|test| !notes.iter().any(|note| is_at(note, test)));
    let made = tests.filter_map(|test| {
        Some(Annotation {
            level: level_of(test.blame),
            path: text::line(test.path.as_deref()?),
            line: Some(test.line?),
            title: text::short_line(
                &format!("{} failed ({})", test.check, test.blame.as_str()),
                TITLE_CHARS,
            ),
            message: bounded(&test.says()),
            ..Annotation::default()
        })
    });
    made.collect()
}

/// Annotations for the unresolved findings of a review, on their lines.
fn found(task: &TaskSummary) -> impl Iterator<Item = Annotation> + '_ {
    review::open(&task.findings).map(|finding| Annotation {
        level: Level::Error,
        path: text::line(&finding.path),
        line: Some(finding.line),
        end_line: finding.end_line,
        title: text::short_line(&format!("Review finding ({})", task.id), TITLE_CHARS),
        message: bounded(&finding.text),
        ..Annotation::default()
    })
}

fn ended(summary: &RunSummary, task: &TaskSummary) -> Option<Annotation> {
    let reason = task.reason?;
    let level = match (task.status, reason) {
        (TaskEnd::Done | TaskEnd::Skipped, _) => return None,
        (_, Reason::Cancelled) => Level::Notice,
        (_, Reason::NoProgress | Reason::PlanningOnly | Reason::RepeatingFailure) => Level::Warning,
        _ => Level::Error,
    };
    let title = format!("{} {} ({})", task.id, task.status.as_str(), reason.as_str());
    Some(Annotation {
        details: sentence::is_undone(task).then(|| excerpt(task)).flatten(),
        ..on_plan(summary, Some(task), level, &title, &task.message)
    })
}

/// The end of the output of the task's last failing check.
fn excerpt(task: &TaskSummary) -> Option<String> {
    let excerpt = last_failing(task).find_map(|check| check.excerpt.as_deref())?;
    Some(text::tail_bytes(&text::block(excerpt), DETAILS_BYTES).to_owned())
}

/// How the run ended.
fn final_status(summary: &RunSummary) -> Option<Annotation> {
    let level = match summary.status? {
        RunStatus::Success | RunStatus::Answered => Level::Notice,
        RunStatus::Unverified
        | RunStatus::NoWork
        | RunStatus::Cancelled
        | RunStatus::Budget
        | RunStatus::Deadline => Level::Warning,
        _ => Level::Error,
    };
    let message = outputs::one_line(summary);
    Some(on_plan(
        summary,
        None,
        level,
        "Sprag: the run's result",
        &message,
    ))
}

/// The retries and nudges that a task needed.
fn repeated(summary: &RunSummary, task: &TaskSummary) -> Option<Annotation> {
    let counts = [(task.retries, "retry"), (task.nudges, "nudge")];
    let needed: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| text::count(u64::from(count), what))
        .collect();
    if needed.is_empty() {
        return None;
    }
    let unchanged = task
        .turns
        .iter()
        .filter(|turn| turn.assessment != AssessmentKind::Changed);
    let mut lines: Vec<String> = unchanged
        .take(4)
        .map(|turn| {
            let said = sentence::indicators(&turn.indicators).join(" · ");
            let what = sentence::assessment(turn.assessment, &turn.detail);
            if said.is_empty() {
                format!("turn {}: {what}", turn.turn)
            } else {
                format!("turn {}: {what}: {said}", turn.turn)
            }
        })
        .collect();
    let failed = task
        .history
        .iter()
        .filter(|entry| entry.outcome != "passed");
    lines.extend(failed.take(4).map(|entry| {
        let outcome = entry.outcome.replace('_', " ");
        let why: Vec<&str> = entry.errors.iter().map(String::as_str).collect();
        format!("attempt {}: {outcome}: {}", entry.attempt, why.join("; "))
    }));
    if lines.is_empty() {
        lines.push("a turn had to be repeated because nothing was done".into());
    }
    let title = format!("{}: {}", task.id, needed.join(", "));
    let level = if task.status == TaskEnd::Done {
        Level::Notice
    } else {
        Level::Warning
    };
    Some(on_plan(
        summary,
        Some(task),
        level,
        &title,
        &lines.join("\n"),
    ))
}

/// The checks that did not run because a build failed.
fn skipped(summary: &RunSummary, task: &TaskSummary) -> Option<Annotation> {
    let failed = last_failing(task)
        .find(|check| check.kind == CheckKind::Build)
        .filter(|_| sentence::is_undone(task))?;
    let ran = task
        .checks
        .iter()
        .filter(|check| check.attempt_name() == failed.attempt_name());
    let ran: HashSet<&str> = ran.map(|check| check.name.as_str()).collect();
    let names = summary.checks.iter().map(String::as_str);
    let left: Vec<String> = names
        .filter(|name| !ran.contains(name))
        .map(str::to_owned)
        .collect();
    (!left.is_empty() && summary.checks.contains(&failed.name)).then(|| {
        let title = format!(
            "{}: {} skipped",
            task.id,
            text::count(left.len() as u64, "check")
        );
        let why = format!(
            "not run because the check {} failed: {}",
            failed.name,
            text::some_of(&left, 20)
        );
        on_plan(summary, Some(task), Level::Notice, &title, &why)
    })
}

fn not_reached(summary: &RunSummary, task: &TaskSummary) -> Option<Annotation> {
    let skipped = task.status == TaskEnd::Skipped;
    let pending = task.status == TaskEnd::Pending && task.selected && task.reason.is_none();
    (skipped || pending).then(|| {
        let title = format!("{} {}", task.id, task.status.as_str());
        on_plan(summary, Some(task), Level::Notice, &title, &task.message)
    })
}

fn on_plan(
    summary: &RunSummary,
    task: Option<&TaskSummary>,
    level: Level,
    title: &str,
    message: &str,
) -> Annotation {
    // A plan outside of the work tree has no line that a reviewer could see.
    let plan = summary
        .plan
        .path
        .as_deref()
        .map(text::line)
        .filter(|path| !path.is_empty() && !path.starts_with(['/', '.']));
    let line = plan.as_ref().and(task.and_then(|task| task.line));
    Annotation {
        level,
        path: plan.unwrap_or_else(|| ".github".into()),
        line: line.filter(|&line| line > 0),
        title: text::short_line(title, TITLE_CHARS),
        message: bounded(message),
        ..Annotation::default()
    }
}

fn bounded(message: &str) -> String {
    let clean = text::block(message);
    if clean.len() > MESSAGE_BYTES {
        format!("{}…", text::head_bytes(&clean, MESSAGE_BYTES))
    } else {
        clean
    }
}
