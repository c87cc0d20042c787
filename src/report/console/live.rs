//! The live display at the bottom of a terminal during a run.

use super::Style;
use super::line::{Line, Tone, mark, name, place, worked_on};
use crate::domain::agent::{AgentEvent, TodoItem, TodoStatus};
use crate::domain::event::{Event, EventKind};
use crate::domain::summary::{RunSummary, TaskSummary};
use crate::report::text;
use anstream::adapter::strip_str;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use unicode_width::UnicodeWidthStr as _;

/// Maximum number of tasks in the checklist. The current one is always shown.
const MAX_TASKS: usize = 8;
/// Number of columns for the spinner and the clock before the first line.
const CLOCK_COLUMNS: usize = 12;

/// The position of the run within its task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    attempt: Option<u32>,
    turn: Option<u32>,
    action: String,
}

impl Progress {
    /// Updates the progress with one event.
    pub fn apply(&mut self, event: &Event) {
        self.attempt = event.place.attempt.or(self.attempt);
        self.turn = event.place.turn.or(self.turn);
        let action = match &event.kind {
            EventKind::TaskStarted { .. } => {
                (self.attempt, self.turn) = (event.place.attempt, event.place.turn);
                "taking a snapshot".into()
            }
            EventKind::TurnStarted { agent, .. } => format!("{agent} is working"),
            EventKind::Agent(AgentEvent::Message { text }) => text.clone(),
            EventKind::Agent(AgentEvent::ToolCall { name, summary, .. }) => {
                format!("{name}: {summary}")
            }
            EventKind::Agent(AgentEvent::FileChange { path, kind }) => format!("{kind} {path}"),
            EventKind::Agent(AgentEvent::Error { message, .. }) => message.clone(),
            EventKind::SetupStarted { command } => format!("setup {command}"),
            EventKind::CheckStarted { name, .. } => format!("check {name}"),
            EventKind::TurnEnded { .. } => "reading the changes".into(),
            EventKind::RetryScheduled(line) if line.delay_ms > 0 => {
                format!("waiting {}", text::duration(line.delay_ms))
            }
            EventKind::CancelRequested { .. } => "stopping".into(),
            _ => return,
        };
        self.action = text::short_line(&action, 300);
    }
}

/// The display's lines: the position of the run, the checklist, the agent's last action. A pure function.
pub fn frame(summary: &RunSummary, progress: &Progress, style: &Style) -> Vec<String> {
    let mut first = Vec::new();
    if let Some(task) = summary.current.as_deref().and_then(|id| summary.task(id)) {
        let (k, n) = place(summary, &task.id);
        first.push(format!("task {k} of {n}"));
        first.extend(progress.attempt.map(|n| format!("attempt {n}")));
        first.extend(progress.turn.map(|n| format!("turn {n}")));
        if !summary.todo.is_empty() {
            let is_done = |item: &&TodoItem| item.status == TodoStatus::Completed;
            let done = summary.todo.iter().filter(is_done).count();
            first.push(format!("to do {done}/{}", summary.todo.len()));
        }
    } else {
        first.push("preparing".into());
    }
    let narrow = Style {
        width: style.width.map(|w| w.saturating_sub(CLOCK_COLUMNS)),
        ..*style
    };
    let mut lines = vec![Line::new(Tone::Heading, first.join(" · ")).render(&narrow)];
    let action = Some(&progress.action).filter(|action| !action.is_empty());
    let action = action.map(|action| Line::new(Tone::Dim, format!("  › {action}")));
    let below = checklist(summary).into_iter().chain(action);
    lines.extend(below.map(|line| line.render(style)));
    lines
}

fn checklist(summary: &RunSummary) -> Vec<Line> {
    let tasks: Vec<&TaskSummary> = worked_on(summary).collect();
    let is_current = |task: &&TaskSummary| Some(&task.id) == summary.current.as_ref();
    let at = tasks.iter().position(is_current).unwrap_or(0);
    let last = tasks.len().saturating_sub(MAX_TASKS);
    let from = at.saturating_sub(MAX_TASKS / 2).min(last);
    let rest = |count: usize, place: &str| {
        let tasks = text::count(count as u64, "task");
        (count > 0).then(|| Line::new(Tone::Dim, format!("  … {tasks} {place}")))
    };
    let shown = tasks.iter().skip(from).take(MAX_TASKS).map(|task| {
        let (tone, sign) = if is_current(task) {
            (Tone::Heading, "▸")
        } else {
            mark(task.standing().hue())
        };
        Line::new(tone, format!("  {sign} {}", name(&task.id, &task.title)))
    });
    let before = rest(from, "before").into_iter();
    before
        .chain(shown)
        .chain(rest(last - from, "after"))
        .collect()
}

/// A line with breaks between its words where a terminal would break within one. A word that is longer than a line,
/// such as a path, stays whole.
pub(super) fn wrapped(line: &str, columns: usize) -> String {
    let plain = strip_str(line).to_string();
    let indent = plain.len() - plain.trim_start().len() + 2;
    let (mut text, mut used) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        let shown = strip_str(word).to_string();
        if used > indent && used + shown.trim_end().width() > columns {
            text.truncate(text.trim_end().len());
            text += &format!("\n{:indent$}", "");
            used = indent;
        }
        text += word;
        used += shown.width();
    }
    text
}

/// The display on a terminal.
pub(super) struct Live {
    bar: ProgressBar,
    screen: Screen,
    shown: bool,
}

impl Live {
    pub(super) fn new(
        out: Box<dyn Write + Send>,
        size: Box<dyn Fn() -> Size + Send + Sync>,
    ) -> Self {
        let out = Out {
            to: out,
            pending: String::new(),
            error: None,
        };
        let screen = Screen {
            out: Arc::new(Mutex::new(out)),
            size: Arc::from(size),
        };
        let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}") {
            bar.set_style(style);
        }
        Self {
            bar,
            screen,
            shown: false,
        }
    }

    pub(super) fn width(&self) -> usize {
        usize::from((self.screen.size)().columns)
    }

    pub(super) fn print(&self, lines: &[String]) {
        let columns = self.width();
        let lines: Vec<String> = lines.iter().map(|line| wrapped(line, columns)).collect();
        if !self.shown || self.bar.is_finished() {
            for line in lines {
                self.screen.write(&format!("{line}\n"));
            }
            self.screen.flush_pending();
        } else if !lines.is_empty() {
            self.bar.println(lines.join("\n"));
        }
    }

    pub(super) fn show(&mut self, frame: &[String]) {
        self.bar.set_message(frame.join("\n"));
        if !std::mem::replace(&mut self.shown, true) {
            self.bar.enable_steady_tick(Duration::from_millis(250));
        }
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    pub(super) fn take_error(&self) -> Option<io::Error> {
        self.screen.lock().error.take()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Its width.
    pub columns: u16,
    /// Its height.
    pub rows: u16,
}

/// The output behind the display. A drawing is buffered and written at once, because partial drawings
/// flicker.
struct Out {
    to: Box<dyn Write + Send>,
    pending: String,
    error: Option<io::Error>,
}

/// The terminal as the display's library needs it. All output goes to the one injected writer.
#[derive(Clone)]
struct Screen {
    out: Arc<Mutex<Out>>,
    size: Arc<dyn Fn() -> Size + Send + Sync>,
}

impl Screen {
    fn lock(&self) -> std::sync::MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, text: &str) {
        self.lock().pending.push_str(text);
    }

    /// Writes pending output, and keeps the first error for the reporter, because the library ignores errors.
    fn flush_pending(&self) {
        let mut out = self.lock();
        let text = std::mem::take(&mut out.pending);
        let written = out.to.write_all(text.as_bytes());
        if let Err(error) = written.and_then(|()| out.to.flush()) {
            out.error.get_or_insert(error);
        }
    }

    fn moved(&self, n: usize, direction: char) {
        if n > 0 {
            self.write(&format!("\u{1b}[{n}{direction}"));
        }
    }
}

impl fmt::Debug for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Screen")
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        (self.size)().columns
    }

    fn height(&self) -> u16 {
        (self.size)().rows
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.moved(n, 'A');
        Ok(())
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.moved(n, 'B');
        Ok(())
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.moved(n, 'C');
        Ok(())
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.moved(n, 'D');
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write(&format!("{text}\n"));
        Ok(())
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.write(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.write("\r\u{1b}[2K");
        Ok(())
    }

    /// The library leaves the cursor at the right edge, where the `^C` that a terminal echoes would break the
    /// line and shift later drawings. At the left edge it does no harm.
    fn flush(&self) -> io::Result<()> {
        self.write("\r");
        self.flush_pending();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn a_line_breaks_between_words_with_colours_and_wide_characters() {
        for (line, expected) in [
            ("a bc", "a bc"),
            ("  one two three", "  one two\n    three"),
            (
                "one \u{1b}[1mtwo\u{1b}[0m three",
                "one \u{1b}[1mtwo\u{1b}[0m\n  three",
            ),
            ("in /a/very/long/path now", "in\n  /a/very/long/path\n  now"),
            ("日本 日本 日", "日本 日本\n  日"),
        ] {
            assert_eq!(wrapped(line, 10), expected);
        }
    }
}
