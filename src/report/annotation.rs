//! Annotations on lines of files, the most important first.

use super::{outputs, sentence, text};
use crate::domain::assess::AssessmentKind;
use crate::domain::attempt::{Blame, BlamedTest};
use crate::domain::checks::verdict::CheckKind;
use crate::domain::event::WarningTopic;
use crate::domain::history::AttemptOutcome;
use crate::domain::outcome::{Reason, RunStatus, TaskEnd};
use crate::domain::review;
use crate::domain::summary::{CheckLine, Hue, RunSummary, TaskSummary};
use std::collections::HashSet;

/// The severity of an annotation.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, strum::IntoStaticStr,
)]
#[strum(serialize_all = "lowercase")]
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
    let of_checks = summary.undone().flat_map(|task| {
        let notes = last_failing(task).flat_map(diagnostics);
        notes.map(|note| with_blame(note, &task.work.failing_tests))
    });
    let mut notes: Vec<Annotation> = of_checks.collect();
    for task in tasks() {
        let blamed: Vec<Annotation> = blamed(task, &notes).collect();
        notes.extend(blamed);
    }
    notes.extend(tasks().flat_map(found));
    notes.extend(tasks().filter_map(|task| ended(summary, task)));
    let unpushed = summary.push.iter().filter(|push| !push.pushed);
    notes.extend(unpushed.map(|push| {
        let title = "The commits are not on the branch";
        on_plan(summary, None, Level::Error, title, &sentence::push(push))
    }));
    notes.extend(tasks().filter_map(|task| repeated(summary, task)));
    notes.extend(tasks().flat_map(|task| {
        task.work.signals.iter().map(|signal| Annotation {
            path: signal.path.clone(),
            line: Some(signal.line),
            title: format!("{}: worth a look", task.id),
            message: format!("This line {}: {}", signal.kind.says(), signal.text),
            ..Annotation::default()
        })
    }));
    notes.extend(summary.warnings.iter().enumerate().map(|(index, message)| {
        let level = match summary.topic_of(index) {
            Some(WarningTopic::CheckArtifacts) => Level::Notice,
            _ => Level::Warning,
        };
        on_plan(summary, None, level, "Sprag", message)
    }));
    notes.extend(tasks().filter_map(|task| skipped(summary, task)));
    notes.extend(tasks().filter_map(|task| not_reached(summary, task)));
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
    let mut failing: Vec<&CheckLine> = task.checks.iter().rev().collect();
    failing.retain(|check| seen.insert(check.name.as_str()) && !check.passed);
    let last = failing.first().map(|check| check.attempt_name());
    failing.retain(|check| Some(check.attempt_name()) == last);
    failing.into_iter().rev()
}

fn diagnostics(check: &CheckLine) -> impl Iterator<Item = Annotation> + '_ {
    check.diagnostics.iter().filter_map(|it| {
        let path = text::line(it.path.as_deref()?);
        (!path.is_empty()).then(|| Annotation {
            level: Level::Error,
            path,
            line: it.line.filter(|&line| line > 0),
            end_line: it.end_line.filter(|&end| Some(end) > it.line),
            column: it.column,
            end_column: it.end_column,
            title: text::short_line(&format!("{} failed", check.name), TITLE_CHARS),
            message: bounded(&it.message),
            details: it.details.as_deref().map(text::block),
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
    let mut known = tests.iter().filter(|test| test.blame != Blame::Unknown);
    let Some(test) = known.find(|test| is_at(&note, test)) else {
        return note;
    };
    let title = format!("{} ({})", note.title, test.blame.as_str());
    Annotation {
        level: level_of(test.blame),
        title: text::short_line(&title, TITLE_CHARS),
        ..note
    }
}

/// Annotations on the lines of failing tests that have none yet.
fn blamed(task: &TaskSummary, notes: &[Annotation]) -> impl Iterator<Item = Annotation> {
    let tests = sentence::blamed(&task.work.failing_tests).iter();
    let tests = tests.filter(|test| !notes.iter().any(|note| is_at(note, test)));
    tests.filter_map(|test| {
        let title = format!("{} failed ({})", test.check, test.blame.as_str());
        Some(Annotation {
            level: level_of(test.blame),
            path: text::line(test.path.as_deref()?),
            line: Some(test.line?),
            title: text::short_line(&title, TITLE_CHARS),
            message: bounded(&test.says()),
            ..Annotation::default()
        })
    })
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
    // The end of the output of the last failing check.
    let excerpt = last_failing(task).find_map(|check| check.excerpt.as_deref());
    let excerpt = excerpt.map(text::block);
    Some(Annotation {
        details: excerpt.map(|text| text::tail_bytes(&text, DETAILS_BYTES).to_owned()),
        ..on_plan(summary, Some(task), level, &title, &task.message)
    })
}

/// How the run ended.
fn final_status(summary: &RunSummary) -> Option<Annotation> {
    let level = match (summary.status?, summary.hue()) {
        (RunStatus::Answered, _) | (_, Hue::Green) => Level::Notice,
        (RunStatus::Blocked, _) | (_, Hue::Red) => Level::Error,
        _ => Level::Warning,
    };
    let (title, message) = ("Sprag: the run's result", outputs::one_line(summary));
    Some(on_plan(summary, None, level, title, &message))
}

/// The retries and nudges that a task needed.
fn repeated(summary: &RunSummary, task: &TaskSummary) -> Option<Annotation> {
    let counts = [(task.retries, "retry"), (task.nudges, "nudge")];
    let needed = counts.into_iter().filter(|(count, _)| *count > 0);
    let needed: Vec<String> = needed
        .map(|(count, what)| text::count(u64::from(count), what))
        .collect();
    if needed.is_empty() {
        return None;
    }
    let turns = task.turns.iter();
    let unchanged = turns.filter(|turn| turn.assessment != AssessmentKind::Changed);
    let mut lines: Vec<String> = unchanged
        .take(4)
        .map(|turn| {
            let what = sentence::assessment(turn.assessment, &turn.detail);
            let said = sentence::indicators(&turn.indicators);
            let said = text::behind(": ", &said.join(" · "));
            format!("turn {}: {what}{said}", turn.turn)
        })
        .collect();
    let attempts = task.work.history.iter();
    let failed = attempts.filter(|entry| entry.outcome != AttemptOutcome::Passed);
    lines.extend(failed.take(4).map(|entry| {
        let (outcome, why) = (
            entry.outcome.as_str().replace('_', " "),
            entry.errors.join("; "),
        );
        format!("attempt {}: {outcome}: {why}", entry.attempt)
    }));
    if lines.is_empty() {
        lines.push("a turn had to be repeated because nothing was done".into());
    }
    let title = format!("{}: {}", task.id, needed.join(", "));
    let level = match task.status {
        TaskEnd::Done => Level::Notice,
        _ => Level::Warning,
    };
    let text = lines.join("\n");
    Some(on_plan(summary, Some(task), level, &title, &text))
}

/// The checks that did not run because a build failed.
fn skipped(summary: &RunSummary, task: &TaskSummary) -> Option<Annotation> {
    let mut failing = last_failing(task);
    let failed = failing.find(|check| check.kind == CheckKind::Build)?;
    let is_told = task.is_undone() && summary.facts.checks.contains(&failed.name);
    let checks = task.checks.iter();
    let ran = checks.filter(|check| check.attempt_name() == failed.attempt_name());
    let ran: HashSet<&String> = ran.map(|check| &check.name).collect();
    let mut left = summary.facts.checks.clone();
    left.retain(|name| !ran.contains(name));
    (is_told && !left.is_empty()).then(|| {
        let count = text::count(left.len() as u64, "check");
        let title = format!("{}: {count} skipped", task.id);
        let (name, left) = (&failed.name, text::some_of(&left, 20));
        let why = format!("not run because the check {name} failed: {left}");
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
    let plan = summary.facts.plan.path.as_deref().map(text::line);
    let plan = plan.filter(|path| !path.is_empty() && !path.starts_with(['/', '.']));
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
