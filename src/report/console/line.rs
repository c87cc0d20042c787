//! One line of the log, and the formats that all its parts share.

use super::Style;
use crate::domain::summary::{Hue, RunSummary, TaskSummary};
use crate::report::text;
use anstyle::AnsiColor;

/// The longest line, in characters.
const LINE_CHARS: usize = 2_000;

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
    /// A line with foreign text in any place, which becomes visible and stays on this line.
    pub(super) fn new(tone: Tone, text: impl AsRef<str>) -> Self {
        let text = text::clip_chars(&text::indented(text.as_ref()), LINE_CHARS).into_owned();
        Self {
            tone,
            text,
            whole: false,
        }
    }

    /// A line that is never cut, because it contains a command or path to copy.
    pub(super) fn whole(tone: Tone, text: impl AsRef<str>) -> Self {
        Self {
            tone,
            text: text::indented(text.as_ref()),
            whole: true,
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
    let line = |text: &str| Line::new(tone, format!("{prefix}{text}"));
    text::first_of(clean.lines().map(line), most, |more| {
        let more = text::count(more, "line");
        Line::new(Tone::Dim, format!("{prefix}… {more} more"))
    })
}

/// The tone and the symbol of a task or a run.
pub(super) fn mark(hue: Hue) -> (Tone, &'static str) {
    match hue {
        Hue::Green => (Tone::Good, "✓"),
        Hue::Amber => (Tone::Warn, "○"),
        Hue::Red => (Tone::Bad, "✗"),
        Hue::Grey => (Tone::Dim, "·"),
    }
}

/// A task's id and title.
pub(super) fn name(id: &str, title: &str) -> String {
    format!("{id} {}", text::short_line(title, 200))
}

/// The number of the task in the run, and the number of all tasks.
pub(super) fn place(summary: &RunSummary, id: &str) -> (usize, usize) {
    let at = worked_on(summary).position(|task| task.id == id);
    (at.map_or(0, |at| at + 1), worked_on(summary).count())
}

pub(super) fn worked_on(summary: &RunSummary) -> impl Iterator<Item = &TaskSummary> {
    summary.tasks.iter().filter(|task| task.selected)
}
