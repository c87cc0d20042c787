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
    let worked = summary.tasks.iter().filter(|task| !task.turns.is_empty());
    let worked: Vec<&TaskSummary> = worked.collect();
    let mut at = 0;
    let mut lines = Vec::new();
    let mut bars = 0;
    for task in &worked {
        let name = format!(
            "{} {}",
            text::short_line(&task.id, 14),
            text::line(&task.title)
        );
        let name = label(&text::short_line(&name, LABEL_CHARS));
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
    format!(
        "```mermaid\n%%{{init: {{\"gantt\": {{\"leftPadding\": 180}}}}}}%%\ngantt\n    dateFormat HH:mm:ss\n    axisFormat %H:%M:%S\n{}\n```\n\n<sub>Blue: the agent works. Grey: checks that passed. Red: checks that failed.</sub>",
        lines.join("\n")
    )
}

/// Name, tags and seconds of each bar in chronological order.
fn bars_of(task: &TaskSummary) -> Vec<(String, &'static str, u64)> {
    let mut bars = Vec::new();
    for attempt in task.attempts_in_order().into_iter().take(60) {
        let turns = attempt.turns.iter().map(|turn| turn.elapsed_ms);
        let agent = turns.fold(0_u64, u64::saturating_add);
        let name = format!("attempt {}", attempt.name);
        bars.push((name, "active, ", seconds(agent)));
        let (mut ms, mut ran, mut passed) = (0_u64, false, true);
        for check in attempt.checks {
            ms = ms.saturating_add(check.elapsed_ms);
            ran = true;
            passed &= check.passed;
        }
        if ran {
            let tag = if passed { "done, " } else { "crit, " };
            bars.push(("checks".to_owned(), tag, seconds(ms)));
        }
    }
    bars
}

/// At least one second, because a bar without width is invisible, and at most one day.
fn seconds(ms: u64) -> u64 {
    ms.div_ceil(1_000).clamp(1, DAY_SECONDS)
}

fn clock(seconds: u64) -> String {
    format!(
        "{:02}:{:02}:{:02}",
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// Escapes a text for Mermaid: every character except letters, digits and spaces is written as its number.
fn label(clean: &str) -> String {
    let mut out = String::with_capacity(clean.len());
    for c in clean.chars() {
        if c.is_alphanumeric() || c == ' ' {
            out.push(c)
        } else {
            out.push_str(&format!("#{};", u32::from(c)))
        }
    }
    out
}
