//! The log for people: plain lines, with colours and a live display where there is a terminal.

mod end;
mod line;
mod lines;
mod live;

pub use lines::lines;
pub use live::{Progress, Size, frame};

use super::Reporter;
use crate::domain::event::{Event, EventKind};
use crate::domain::settings::Color;
use crate::domain::summary::RunSummary;
use live::Live;
use std::io::{self, Write};

/// Most rows of a terminal that a line of the log takes. What is written there stays, so it is not
/// cut to one row; what a program prints in one line can be as long as it likes.
const MOST_ROWS: usize = 3;

/// Whether to use colours. `no_color` is the variable `NO_COLOR`, which counts where nothing is asked
/// for, unless it is empty; a terminal of type `dumb` counts as none.
pub fn is_colored(color: Color, terminal: bool, no_color: Option<&str>) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => terminal && no_color.is_none_or(str::is_empty),
    }
}

/// How much is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Verbosity {
    /// `-q`: warnings and the end.
    Quiet,
    /// What Sprag does.
    #[default]
    Normal,
    /// `-v`: also what the agent says, its tool calls and commands.
    Verbose,
    /// `-vv`: also raw lines and everything else.
    Trace,
}

impl Verbosity {
    /// From the number of `-v` and whether there is a `-q`, which wins.
    pub fn from_flags(verbose: u8, quiet: bool) -> Self {
        match (quiet, verbose) {
            (true, _) => Self::Quiet,
            (false, 0) => Self::Normal,
            (false, 1) => Self::Verbose,
            (false, _) => Self::Trace,
        }
    }
}

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// Whether with colours.
    pub color: bool,
    /// How much.
    pub verbosity: Verbosity,
    /// Columns to which lines are cut; `None` leaves them whole. The end is never cut: it holds
    /// commands to copy.
    pub width: Option<usize>,
}

/// Writes the log.
pub struct Console {
    style: Style,
    progress: Progress,
    to: To,
    failure: Option<io::Error>,
}

enum To {
    Plain(Box<dyn Write + Send>),
    Live(Live),
}

impl Console {
    /// Plain lines to `out`.
    pub fn new(out: Box<dyn Write + Send>, style: Style) -> Self {
        Self {
            style,
            progress: Progress::default(),
            to: To::Plain(out),
            failure: None,
        }
    }

    /// Lines with a live display below them on the terminal behind `out`; `size` asks for its
    /// size each time.
    pub fn live(
        out: Box<dyn Write + Send>,
        style: Style,
        size: Box<dyn Fn() -> Size + Send + Sync>,
    ) -> Self {
        let to = To::Live(Live::new(out, size));
        Self {
            style,
            progress: Progress::default(),
            to,
            failure: None,
        }
    }

    fn write(&mut self, event: &Event, summary: &RunSummary) -> io::Result<()> {
        let ended = matches!(event.kind, EventKind::RunEnded { .. });
        match &mut self.to {
            To::Plain(out) => {
                let mut text = String::new();
                for line in lines(event, summary, &self.style) {
                    text.push_str(&line);
                    text.push('\n');
                }
                out.write_all(text.as_bytes())?;
                out.flush()
            }
            To::Live(live) => {
                let width = live.width();
                let within = |columns| Style {
                    width: Some(columns),
                    ..self.style
                };
                if ended {
                    live.finish();
                }
                let log = within(width.saturating_mul(MOST_ROWS));
                live.print(&lines(event, summary, &log));
                if !ended && self.style.verbosity != Verbosity::Quiet {
                    live.show(&frame(summary, &self.progress, &within(width)));
                }
                live.take_error().map_or(Ok(()), Err)
            }
        }
    }
}

impl Reporter for Console {
    fn report(&mut self, event: &Event, summary: &RunSummary) {
        self.progress.apply(event);
        self.failure = self.write(event, summary).err();
    }

    fn failure(&mut self) -> Option<String> {
        self.failure.take().map(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests;
