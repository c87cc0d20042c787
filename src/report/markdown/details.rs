//! The details of each task: what was tried, why it was retried, what failed.

use super::escape::{code, fence, inline, quotation};
use super::{Limits, joined, list, upper_first};
use crate::domain::history::HistoryEntry;
use crate::domain::outcome::TaskEnd;
use crate::domain::summary::{CheckLine, RunSummary, TaskSummary, TurnSummary};
use crate::domain::trigger::approval::{self, plan_to_approve};
use crate::report::annotation::last_failing;
use crate::report::text::first_of;
use crate::report::{section, sentence, text};

/// The details of all tasks that were worked on. Tasks that are not done come first in their own open
/// sections; successful tasks are folded.
pub(super) fn all(summary: &RunSummary, limits: &Limits) -> String {
    let worked = |task: &&TaskSummary| !task.turns.is_empty() || task.failed_report.is_some();
    let mut tasks: Vec<&TaskSummary> = summary.tasks.iter().filter(worked).collect();
    tasks.sort_by_key(|task| task.status == TaskEnd::Done);
    let sections = tasks.into_iter().map(|task| section(task, limits));
    let rest = |more| {
        let more = text::count(more, "task");
        format!("Details of {more} more are in the run directory.")
    };
    first_of(sections, limits.details, rest).join("\n\n")
}

/// The reports of agents that cannot do their task. They are not folded, because a person must act on them.
pub(super) fn reported(summary: &RunSummary, limits: &Limits) -> String {
    let tasks = summary.tasks.iter();
    let blocked = tasks.filter(|task| task.failed_report.is_some() && task.status != TaskEnd::Done);
    let blocks = blocked.take(limits.details).map(|task| {
        let report = failed_report(task, limits);
        format!("### {}\n\n{report}", name(task))
    });
    text::joined("\n\n", blocks)
}

/// The answers of agents, and the questions that they ask. A long one is folded.
pub(super) fn answers(summary: &RunSummary, limits: &Limits) -> String {
    let told = summary.tasks.iter().filter_map(|task| {
        let (heading, words) = sentence::last_words(task)?;
        if plan_to_approve(summary).is_some_and(|shown| shown.plan == words) {
            return Some(format!("### {heading}\n\n{}", approval::shown(words)));
        }
        let text = quotation(words, limits.section_bytes * ANSWER_SHARE);
        Some(if text.lines().count() > SHOWN_LINES {
            folded_below(&format!("<b>{heading}</b>"), &text)
        } else {
            format!("### {heading} of {}\n\n{text}", name(task))
        })
    });
    text::joined("\n\n", told)
}

/// How much more room an answer has than a section of a report that it is not about.
const ANSWER_SHARE: usize = 10;

/// The number of lines from which an answer is folded.
const SHOWN_LINES: usize = 40;

/// The history of every task that was worked on but is not done, and the proofs of the finished ones, folded.
pub(super) fn folded(summary: &RunSummary, limits: &Limits) -> String {
    let undone = summary.undone().filter(|task| !task.turns.is_empty());
    let undone = undone.map(|task| fold(task, parts(task, limits)));
    let shown = |task: &&TaskSummary| {
        let tests = &task.work.failing_tests;
        !(task.proofs.is_empty() && tests.is_empty() && task.reviews.is_empty())
    };
    let done = summary.done().filter(shown);
    let done = done.map(|task| fold(task, sections(task, limits)));
    text::joined("\n\n", undone.chain(done).take(limits.details))
}

fn section(task: &TaskSummary, limits: &Limits) -> String {
    let report = failed_report(task, limits);
    if task.status == TaskEnd::Done {
        return fold(task, joined(&[report, parts(task, limits)]));
    }
    let status = match task.reason {
        Some(reason) => format!("{} (`{}`)", task.status.as_str(), reason.as_str()),
        None => "in progress".to_owned(),
    };
    let message = if task.reason.is_none() || task.failed_report.is_some() {
        String::new()
    } else {
        upper_first(&inline(&task.message, 1_000))
    };
    let parts = joined(&[message, report, parts(task, limits)]);
    format!("### {}: {status}\n\n{parts}", name(task))
}

fn name(task: &TaskSummary) -> String {
    format!("{} {}", code(&task.id, 60), inline(&task.title, 120))
}

/// What failed, what was found and proved, and what was tried.
fn parts(task: &TaskSummary, limits: &Limits) -> String {
    joined(&[
        failures(task, limits),
        sections(task, limits),
        list(
            "**Turns**",
            task.turns.iter().map(turn),
            limits.lines,
            "turn",
        ),
        history(task, limits),
        left(task, limits),
    ])
}

fn fold(task: &TaskSummary, content: String) -> String {
    // Markdown has no effect inside HTML; only entities count.
    let html = |text: &str, max| inline(text, max).replace('\\', "");
    let (id, title) = (html(&task.id, 60), html(&task.title, 120));
    let message = html(&task.message, 300);
    folded_below(&format!("<b>{id}</b> {title}: {message}"), &content)
}

fn folded_below(summary: &str, content: &str) -> String {
    format!("<details>\n<summary>{summary}</summary>\n\n{content}\n\n</details>")
}

fn failed_report(task: &TaskSummary, limits: &Limits) -> String {
    let parts = task.failed_report.iter().flat_map(sentence::report);
    let parts = parts.map(|(heading, body)| {
        let body = quotation(body, limits.section_bytes);
        format!("**{heading}**\n\n{body}")
    });
    text::joined("\n\n", parts)
}

fn failures(task: &TaskSummary, limits: &Limits) -> String {
    if task.status == TaskEnd::Done {
        return String::new();
    }
    let failing: Vec<&CheckLine> = last_failing(task).collect();
    let each = limits.excerpt_bytes / failing.len().max(1);
    let blocks = failing.iter().map(|check| failure(check, each));
    text::joined("\n\n", blocks)
}

/// What reviews found, and what is known of failing tests.
fn sections(task: &TaskSummary, limits: &Limits) -> String {
    super::sections(&section::of_task(task), ["**", "**"], limits.lines)
}

fn failure(check: &CheckLine, excerpt_bytes: usize) -> String {
    let facts = [
        Some(inline(&check.detail, 200)),
        check.failed_count.map(|n| format!("{n} failed")),
        check.passed_count.map(|n| format!("{n} passed")),
        Some(text::duration(check.elapsed_ms)),
    ];
    let facts = text::joined(", ", facts.into_iter().flatten());
    let (name, attempt) = (code(&check.name, 100), check.attempt_name());
    let log = code(check.log.as_deref().unwrap_or_default(), 200);
    let log = text::behind(" · log ", &log);
    let head = format!("**Check {name}** in attempt {attempt}: {facts}{log}");
    let excerpt = check.excerpt.as_deref().unwrap_or_default();
    let excerpt = Some(excerpt).filter(|text| !text.trim().is_empty());
    let excerpt = excerpt.map(|text| fence(text, excerpt_bytes));
    joined(&[head, excerpt.unwrap_or_default()])
}

fn turn(turn: &TurnSummary) -> String {
    let purpose = inline(&turn.purpose, 20);
    let what = inline(&sentence::assessment(turn.assessment, &turn.detail), 300);
    let took = text::duration(turn.elapsed_ms);
    let exit = Some(turn.exit.as_str()).filter(|exit| *exit != "code 0");
    let exit = inline(exit.unwrap_or_default(), 100);
    let exit = text::behind(", ended with ", &exit);
    let said = sentence::indicators(&turn.indicators);
    let said = said
        .iter()
        .map(|text| format!("“{}”", inline(text, sentence::INDICATOR_CHARS)));
    let said = text::behind(": ", &text::joined(" · ", said));
    format!("Turn {} ({purpose}): {what}, {took}{exit}{said}", turn.turn)
}

fn history(task: &TaskSummary, limits: &Limits) -> String {
    let history = &task.work.history;
    // A single successful attempt adds nothing to the table.
    if history.len() < 2 && task.status == TaskEnd::Done {
        return String::new();
    }
    let from = history.len().saturating_sub(limits.lines);
    let before = format!("… {} before", text::count(from as u64, "attempt"));
    let before = (from > 0).then_some(before).into_iter();
    let lines = before.chain(history.iter().skip(from).map(attempt));
    list("**Attempts**", lines, usize::MAX, "attempt")
}

fn attempt(entry: &HistoryEntry) -> String {
    let files = match entry.changes.as_slice() {
        [] => "no file".to_owned(),
        files => inline(&text::some_of(files, 6), 400),
    };
    let (name, outcome) = (
        entry.attempt_name(),
        entry.outcome.as_str().replace('_', " "),
    );
    let errors = entry.errors.iter().take(2);
    let errors = errors.map(|error| format!("\n  - {}", inline(error, 300)));
    format!(
        "Attempt {name}: {files} → {outcome}{}",
        errors.collect::<String>()
    )
}

fn left(task: &TaskSummary, limits: &Limits) -> String {
    let work = &task.work;
    let mut lines = Vec::new();
    if work.agent_commits > 0 {
        let count = text::count(u64::from(work.agent_commits), "commit");
        lines.push(format!("The agent made {count} itself."));
    }
    if !work.changed_files.is_empty() {
        let files = work.changed_files.iter().map(|path| code(path, 200));
        let files = text::some_of(&files.collect::<Vec<_>>(), limits.lines);
        lines.push(format!("Changed: {files}"));
    }
    if let Some(patch) = work.patch.as_ref().filter(|_| task.status != TaskEnd::Done) {
        lines.push(format!(
            "Patch of the unfinished work: {}",
            code(patch, 200)
        ));
    }
    lines.join("  \n")
}
