//! The end of a run: what happened, what was kept, and the next command to type.

use super::line::{Line, Tone, block, mark};
use crate::domain::outcome::{Reason, RunStatus, TaskEnd};
use crate::domain::summary::{RunSummary, TaskSummary};
use crate::report::failure::{self, Failure};
use crate::report::next_steps::NextStep;
use crate::report::text::first_of;
use crate::report::{annotation, next_steps, outputs, sentence, text};

/// Maximum number of listed tasks.
const MAX_TASKS: usize = 30;
/// Maximum number of shown failures of a task.
const MAX_FAILURES: usize = 3;

pub(super) fn lines(summary: &RunSummary) -> Vec<Line> {
    if summary.reason == Some(Reason::NoWork) {
        let tasks = text::count(u64::from(summary.totals.tasks), "task");
        let what = format!(
            "✓ nothing left to do: {tasks}, {} done",
            summary.totals.done
        );
        return vec![Line::whole(Tone::Good, what)];
    }
    let mut lines = vec![Line::new(Tone::Plain, ""), headline(summary)];
    let happened = summary
        .tasks
        .iter()
        .filter(|task| task.selected || task.reason.is_some());
    let failures = failure::failures(summary);
    let of_task = |one: &TaskSummary| {
        let says = [
            (Tone::Dim, sentence::evidence(one)),
            (Tone::Plain, sentence::signals(one)),
        ];
        let says = says.into_iter().filter(|(_, says)| !says.is_empty());
        let mut lines = vec![task(one)];
        lines.extend(says.map(|(tone, says)| {
            let says = text::short_line(&says, 400);
            Line::whole(tone, format!("      {says}"))
        }));
        lines.extend(asked(one));
        lines.extend(failed(one, &failures, &summary.run_dir));
        lines
    };
    let rest = |more| {
        let more = text::count(more, "task");
        vec![Line::new(Tone::Dim, format!("  … {more} more"))]
    };
    lines.extend(
        first_of(happened.map(of_task), MAX_TASKS, rest)
            .into_iter()
            .flatten(),
    );
    let is_undecided = summary.tasks.iter().all(|task| task.reason.is_none());
    let words = summary
        .reason
        .map(|reason| (reason, sentence::end(summary, reason)));
    let words = words.filter(|(reason, words)| is_undecided || *words != sentence::reason(*reason));
    lines.extend(words.map(|(_, words)| Line::new(Tone::Plain, format!("  {words}"))));
    let done = summary.status == Some(RunStatus::Success);
    lines.extend(list(
        if done { "Done:" } else { "Kept:" },
        next_steps::kept(summary),
    ));
    let next = next_steps::next_steps(summary).into_iter();
    lines.extend(list("Next:", next.map(next_step).collect()));
    if !summary.run_dir.is_empty() {
        let dir = text::line(&summary.run_dir);
        let report = format!("  Report: {}/report.html", dir.trim_end_matches('/'));
        lines.push(Line::whole(Tone::Dim, report));
    }
    lines
}

fn headline(summary: &RunSummary) -> Line {
    let (tone, mark) = match summary.status {
        _ if summary.review_in_words().is_some() => (Tone::Warn, "○"),
        Some(RunStatus::Success) => (Tone::Good, "✓"),
        Some(RunStatus::Unverified | RunStatus::Answered | RunStatus::NoWork) => (Tone::Warn, "○"),
        Some(RunStatus::Cancelled | RunStatus::Budget | RunStatus::Deadline) => (Tone::Warn, "■"),
        _ => (Tone::Bad, "✗"),
    };
    let took = text::duration(summary.elapsed_ms);
    let mut facts = vec![format!("{} in {took}", outputs::one_line(summary))];
    facts.extend(sentence::usage(&summary.usage));
    Line::whole(tone, format!("{mark} Sprag: {}", facts.join(" · ")))
}

fn next_step(step: NextStep) -> String {
    match step {
        NextStep::Advice(what) => what,
        NextStep::Command { what, command } => format!("{what}:\n      {command}"),
        NextStep::Patch { task, command } => {
            format!(
                "{}:\n      {command}",
                next_steps::place_of_patch(task.as_deref())
            )
        }
        NextStep::Comment { text, what } => format!("comment {text} to {what}"),
    }
}

/// The answer or the question with which a task ended, in full.
fn asked(task: &TaskSummary) -> Vec<Line> {
    let Some((_, words)) = sentence::last_words(task) else {
        return Vec::new();
    };
    if task.status == TaskEnd::Done {
        return block(Tone::Plain, "      ", words, usize::MAX);
    }
    let heading = Line::new(Tone::Plain, "      the agent asks:");
    let said = block(Tone::Plain, "        ", words, usize::MAX);
    std::iter::once(heading).chain(said).collect()
}

/// The failures that keep a task from being done, and the path of the full output.
fn failed(task: &TaskSummary, failures: &[Failure], run_dir: &str) -> Vec<Line> {
    let of_task: Vec<&Failure> = failures
        .iter()
        .filter(|failure| failure.task == task.id)
        .collect();
    if of_task.is_empty() {
        return Vec::new();
    }
    let told = |it: &&Failure| {
        let who = match &it.check {
            Some(check) => format!("check {}", text::short_line(check, 60)),
            None => "review".to_owned(),
        };
        let place = it.place.as_ref().map(|place| format!("{place}: "));
        let place = place.unwrap_or_default();
        Line::whole(Tone::Bad, format!("      {who}: {place}{}", it.message))
    };
    let mut lines: Vec<Line> = of_task.iter().take(MAX_FAILURES).map(told).collect();
    let all = failure::count(task).max(of_task.len());
    let more = all.saturating_sub(MAX_FAILURES);
    if more > 0 {
        lines.push(Line::new(Tone::Dim, format!("      and {more} more")));
    }
    let logs = annotation::last_failing(task).filter_map(|check| check.log.as_deref());
    let dir = text::line(run_dir);
    let dir = dir.trim_end_matches('/');
    lines.extend(logs.take(MAX_FAILURES).map(|log| {
        let log = text::line(log);
        let path = if dir.is_empty() {
            log
        } else {
            format!("{dir}/{log}")
        };
        Line::whole(Tone::Dim, format!("      log: {path}"))
    }));
    lines
}

fn list(heading: &str, entries: Vec<String>) -> Vec<Line> {
    if entries.is_empty() {
        return Vec::new();
    }
    let entries = entries.iter().flat_map(|entry| {
        let marked = format!("    {entry}");
        marked
            .lines()
            .map(|line| Line::whole(Tone::Plain, line))
            .collect::<Vec<_>>()
    });
    std::iter::once(Line::new(Tone::Heading, format!("  {heading}")))
        .chain(entries)
        .collect()
}

fn task(task: &TaskSummary) -> Line {
    let standing = task.standing();
    let (tone, mark) = mark(standing);
    let (id, title) = (
        text::short_line(&task.id, 60),
        text::short_line(&task.title, 120),
    );
    let reason = task
        .reason
        // The message of a passed task already says why it is done.
        .filter(|reason| *reason != Reason::Verified && reason.as_str() != standing.as_str())
        .map_or(String::new(), |reason| format!(" ({})", reason.as_str()));
    let message = text::short_line(&sentence::task_message(task), 400);
    let word = standing.as_str();
    Line::whole(
        tone,
        format!("  {mark} {id} {title}: {word}{reason}: {message}"),
    )
}
