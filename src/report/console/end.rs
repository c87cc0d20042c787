//! The end of a run: what happened, what was kept, and the next command to type.

use super::line::{Line, Tone, block, mark, name};
use crate::domain::outcome::{Reason, RunStatus, TaskEnd};
use crate::domain::summary::{RunSummary, TaskSummary};
use crate::report::failure::{self, Failure};
use crate::report::text::{count, first_of, short_line};
use crate::report::{Format, annotation, next_steps, outputs, sentence, text};

/// Maximum number of listed tasks.
const MAX_TASKS: usize = 30;
/// Maximum number of shown failures of a task.
const MAX_FAILURES: usize = 3;

pub(super) fn lines(summary: &RunSummary) -> Vec<Line> {
    let done = summary.totals.done;
    if summary.reason == Some(Reason::NoWork) {
        let tasks = count(u64::from(summary.totals.tasks), "task");
        let what = format!("✓ nothing left to do: {tasks}, {done} done");
        return vec![Line::whole(Tone::Good, what)];
    }
    let mut lines = vec![Line::new(Tone::Plain, ""), headline(summary)];
    let is_told = |task: &&TaskSummary| task.selected || task.reason.is_some();
    let failures = failure::failures(summary);
    let told = summary.tasks.iter().filter(is_told);
    let told = told.map(|task| of_task(task, &failures, &summary.facts.run_dir));
    let told = first_of(told, MAX_TASKS, |more| {
        vec![Line::new(
            Tone::Dim,
            format!("  … {} more", count(more, "task")),
        )]
    });
    lines.extend(told.into_iter().flatten());
    if let Some(reason) = summary.reason {
        let words = sentence::end(summary, reason);
        let is_undecided = summary.tasks.iter().all(|task| task.reason.is_none());
        if is_undecided || words != sentence::reason(reason) {
            lines.push(Line::new(Tone::Plain, format!("  {words}")));
        }
    }
    let is_success = summary.status == Some(RunStatus::Success);
    let kept = if is_success { "Done:" } else { "Kept:" };
    lines.extend(list(kept, next_steps::kept(summary)));
    let next = next_steps::next_steps(summary);
    let next = next.iter().flat_map(|step| match step.parts() {
        (before, Some(typed), after) if after.is_empty() => vec![before, format!("  {typed}")],
        (before, Some(typed), after) => vec![format!("{before} {typed}{after}")],
        (before, None, _) => vec![before],
    });
    lines.extend(list("Next:", next));
    if !summary.facts.run_dir.is_empty() {
        let report = format!(
            "  Report: {}",
            next_steps::path_in(&summary.facts.run_dir, Format::Html.file())
        );
        lines.push(Line::whole(Tone::Dim, report));
    }
    lines
}

fn headline(summary: &RunSummary) -> Line {
    let (tone, mark) = match (summary.status, mark(summary.hue())) {
        (Some(RunStatus::Cancelled | RunStatus::Budget | RunStatus::Deadline), (tone, _)) => {
            (tone, "■")
        }
        (_, mark) => mark,
    };
    let (what, took) = (
        outputs::one_line(summary),
        text::duration(summary.elapsed_ms),
    );
    let usage = sentence::usage(&summary.usage);
    let usage = usage.map_or_else(String::new, |usage| format!(" · {usage}"));
    Line::whole(tone, format!("{mark} Sprag: {what} in {took}{usage}"))
}

/// The end of a task: how it stands, what the checks show, what it asks, and what keeps it from being done.
fn of_task(task: &TaskSummary, failures: &[Failure], run_dir: &str) -> Vec<Line> {
    let (tone, mark) = mark(task.standing().hue());
    let (name, says) = (name(&task.id, &task.title), sentence::standing(task));
    let mut lines = vec![Line::whole(tone, format!("  {mark} {name}: {says}"))];
    let more = [
        (Tone::Dim, sentence::evidence(task)),
        (Tone::Plain, sentence::signals(task)),
    ];
    let more = more.iter().filter(|(_, says)| !says.is_empty());
    lines.extend(more.map(|(tone, says)| {
        let says = short_line(says, 400);
        Line::whole(*tone, format!("      {says}"))
    }));
    match sentence::last_words(task) {
        Some((_, words)) if task.status == TaskEnd::Done => {
            lines.extend(block(Tone::Plain, "      ", words, usize::MAX));
        }
        Some((_, words)) => {
            lines.push(Line::new(Tone::Plain, "      the agent asks:"));
            lines.extend(block(Tone::Plain, "        ", words, usize::MAX));
        }
        None => {}
    }
    lines.extend(failed(task, failures, run_dir));
    lines
}

/// The failures that keep a task from being done, and the path of the full output.
fn failed(task: &TaskSummary, failures: &[Failure], run_dir: &str) -> Vec<Line> {
    let failures = failures.iter().filter(|failure| failure.task == task.id);
    let mut lines: Vec<Line> = failures
        .map(|failure| {
            let place = failure.place.iter().map(|place| format!("{place}: "));
            let (who, place) = (failure.who(), place.collect::<String>());
            Line::whole(
                Tone::Bad,
                format!("      {who}: {place}{}", failure.message),
            )
        })
        .collect();
    if lines.is_empty() {
        return lines;
    }
    let all = failure::count(task).max(lines.len());
    lines.truncate(MAX_FAILURES);
    if all > MAX_FAILURES {
        let more = all - MAX_FAILURES;
        lines.push(Line::new(Tone::Dim, format!("      and {more} more")));
    }
    let logs = annotation::last_failing(task).filter_map(|check| check.log.as_deref());
    lines.extend(logs.take(MAX_FAILURES).map(|log| {
        let path = next_steps::path_in(run_dir, log);
        Line::whole(Tone::Dim, format!("      log: {path}"))
    }));
    lines
}

fn list(heading: &str, entries: impl IntoIterator<Item = String>) -> Vec<Line> {
    let entries = entries.into_iter();
    let mut lines = vec![Line::new(Tone::Heading, format!("  {heading}"))];
    lines.extend(entries.map(|entry| Line::whole(Tone::Plain, format!("    {entry}"))));
    if lines.len() == 1 { Vec::new() } else { lines }
}
