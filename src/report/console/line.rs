//! One line of the log, and the formats that all its parts share.

use super::Style;
use crate::domain::summary::{RunSummary, Standing, TaskSummary};
use crate::report::text;
use anstyle::AnsiColor;

/// The longest line of foreign text, in characters.
pub(super) const LINE_CHARS: usize = 2_000;

/// The meaning of a line, which its colour shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Heading,
    Good,
    Warn,
    Bad,
    Dim,
}

/// One line before it is cut and coloured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    tone: Tone,
    text: String,
    whole: bool,
}

impl Line {
    pub(super) fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self {
            tone,
            text: text.into(),
            whole: false,
        }
    }

    /// A line that is never cut, because it contains a command or path to copy.
    pub(super) fn whole(tone: Tone, text: impl Into<String>) -> Self {
        Self {
            whole: true,
            ..Self::new(tone, text)
        }
    }

    pub(super) fn render(self, style: &Style) -> String {
        let text = match style.width {
            Some(width) if !self.whole => text::clip_columns(&self.text, width).into_owned(),
            _ => self.text,
        };
        let look = match self.tone {
            Tone::Plain => return text,
            Tone::Heading => anstyle::Style::new().bold(),
            Tone::Good => AnsiColor::Green.on_default(),
            Tone::Warn => AnsiColor::Yellow.on_default(),
            Tone::Bad => AnsiColor::Red.on_default(),
            Tone::Dim => anstyle::Style::new().dimmed(),
        };
        if style.color && !text.is_empty() {
            format!("{look}{text}{look:#}")
        } else {
            text
        }
    }
}

/// Foreign text of several lines, each with `prefix`.
pub(super) fn block(tone: Tone, prefix: &str, text: &str, most: usize) -> Vec<Line> {
    let clean = text::block(text);
    let line = |line| format!("{prefix}{}", text::clip_chars(line, LINE_CHARS));
    let lines = clean.lines().map(|text| Line::new(tone, line(text)));
    text::first_of(lines, most, |more| {
        let more = text::count(more, "line");
        Line::new(Tone::Dim, format!("{prefix}… {more} more"))
    })
}

/// The tone and the symbol for a task.
pub(super) fn mark(standing: Standing) -> (Tone, &'static str) {
    match standing {
        Standing::Verified | Standing::DoneBefore => (Tone::Good, "✓"),
        Standing::Unverified | Standing::Waits | Standing::Reviewed => (Tone::Warn, "○"),
        Standing::Answered => (Tone::Plain, "○"),
        Standing::Failed | Standing::Blocked => (Tone::Bad, "✗"),
        Standing::Pending => (Tone::Dim, "·"),
        Standing::Skipped => (Tone::Dim, "-"),
    }
}

/// The number of the task in the run, and the number of all tasks.
pub(super) fn place(summary: &RunSummary, id: &str) -> (usize, usize) {
    let at = worked_on(summary).position(|task| task.id == id);
    (at.map_or(0, |at| at + 1), worked_on(summary).count())
}

pub(super) fn worked_on(summary: &RunSummary) -> impl Iterator<Item = &TaskSummary> {
    summary.tasks.iter().filter(|task| task.selected)
}
