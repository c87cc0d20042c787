//! A diagram for GitHub that shows when each task was worked on.

use crate::domain::summary::{RunSummary, TaskSummary};
use crate::report::text;

/// Maximum number of tasks for a readable diagram.
const MAX_TASKS: usize = 40;
/// Maximum number of bars for a readable diagram.
const MAX_BARS: usize = 120;
/// Number of characters that fit to the left of the bars.
const LABEL_CHARS: usize = 26;
/// The diagram's clock has no second day.
const DAY_SECONDS: u64 = 24 * 60 * 60;

/// A Gantt chart of the attempts with separate bars for agent and checks, or empty if there is nothing to
/// compare or too much.
pub(super) fn timeline(summary: &RunSummary) -> String {
    let tasks = summary.tasks.iter();
    let worked: Vec<&TaskSummary> = tasks.filter(|task| !task.turns.is_empty()).collect();
    let (mut at, mut bars) = (0, 0);
    let mut lines = Vec::new();
    for task in &worked {
        let (id, title) = (text::short_line(&task.id, 14), text::line(&task.title));
        let name = label(&text::short_line(&format!("{id} {title}"), LABEL_CHARS));
        lines.push(format!("    section {name}"));
        for (name, tag, seconds) in bars_of(task) {
            bars += 1;
            let clock = clock(at);
            lines.push(format!("    {name} :{tag}b{bars}, {clock}, {seconds}s"));
            at += seconds;
        }
    }
    let readable = (2..=MAX_BARS).contains(&bars) && worked.len() <= MAX_TASKS;
    if !readable || at >= DAY_SECONDS {
        return String::new();
    }
    format!("```mermaid\n{INIT}\n{}\n```\n\n{LEGEND}", lines.join("\n"))
}

/// Mermaid draws what is done in grey, which means something else in the other reports.
const INIT: &str = r##"%%{init: {"gantt": {"leftPadding": 180}, "themeVariables": {"doneTaskBkgColor": "#2da44e"}}}%%
gantt
    dateFormat HH:mm:ss
    axisFormat %H:%M:%S"##;

const LEGEND: &str =
    "<sub>Blue: the agent works. Green: checks that passed. Red: checks that failed.</sub>";

/// Name, tags and seconds of each bar in chronological order.
fn bars_of(task: &TaskSummary) -> Vec<(String, &'static str, u64)> {
    let mut bars = Vec::new();
    for attempt in task.attempts_in_order().into_iter().take(60) {
        let agent = attempt.turns.iter().map(|turn| turn.elapsed_ms);
        bars.push((
            format!("attempt {}", attempt.name),
            "active, ",
            seconds(agent),
        ));
        let checks = &attempt.checks;
        if !checks.is_empty() {
            let passed = checks.iter().all(|check| check.passed);
            let tag = if passed { "done, " } else { "crit, " };
            let ms = checks.iter().map(|check| check.elapsed_ms);
            bars.push(("checks".to_owned(), tag, seconds(ms)));
        }
    }
    bars
}

/// At least one second, because a bar without width is invisible, and at most one day.
fn seconds(ms: impl Iterator<Item = u64>) -> u64 {
    let ms = ms.fold(0, u64::saturating_add);
    ms.div_ceil(1_000).clamp(1, DAY_SECONDS)
}

fn clock(seconds: u64) -> String {
    let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}", seconds % 60)
}

/// Escapes a text for Mermaid: every character except letters, digits and spaces is written as its number.
fn label(clean: &str) -> String {
    let chars = clean.chars().map(|c| match c {
        c if c.is_alphanumeric() || c == ' ' => c.to_string(),
        c => format!("#{};", u32::from(c)),
    });
    chars.collect()
}
