//! The log for people: plain lines, with colours and a live display on a terminal.

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

/// Maximum number of terminal rows for a line of the log. Such lines stay, so they are not cut to one row,
/// but a program can print a line of any length.
const MAX_ROWS: usize = 3;

/// Whether to use colours. `wanted` is the wish of the environment, which counts if the setting is automatic. A
/// terminal of type `dumb` does not count as one.
pub fn is_colored(color: Color, terminal: bool, wanted: Option<bool>) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => wanted.unwrap_or(terminal),
    }
}

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Verbosity {
    /// `-q`: warnings and the end.
    Quiet,
    /// The steps of the run.
    #[default]
    Normal,
    /// `-v`: also the agent's messages, tool calls and commands.
    Verbose,
    /// `-vv`: also raw lines and everything else.
    Trace,
}

impl Verbosity {
    /// The level for the number of `-v` flags and the `-q` flag, which takes precedence.
    pub fn from_flags(verbose: u8, quiet: bool) -> Self {
        match (quiet, verbose) {
            (true, _) => Self::Quiet,
            (false, 0) => Self::Normal,
            (false, 1) => Self::Verbose,
            (false, _) => Self::Trace,
        }
    }
}

/// The format of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// Whether to use colours.
    pub color: bool,
    /// How much is logged.
    pub verbosity: Verbosity,
    /// The number of columns to which lines are cut, or `None` for complete lines. The end is never cut,
    /// because it contains commands to copy.
    pub width: Option<usize>,
}

/// Writes the log.
pub struct Console {
    style: Style,
    progress: Progress,
    to: Destination,
}

enum Destination {
    Plain(Box<dyn Write + Send>),
    Live(Live),
}

impl Console {
    /// Writes plain lines to `out`.
    pub fn new(out: Box<dyn Write + Send>, style: Style) -> Self {
        Self {
            style,
            progress: Progress::default(),
            to: Destination::Plain(out),
        }
    }

    /// Writes lines with a live display below them on the terminal behind `out`. `size` is called for each
    /// drawing.
    pub fn live(
        out: Box<dyn Write + Send>,
        style: Style,
        size: Box<dyn Fn() -> Size + Send + Sync>,
    ) -> Self {
        Self {
            to: Destination::Live(Live::new(out, size)),
            ..Self::new(Box::new(io::sink()), style)
        }
    }
}

impl Reporter for Console {
    fn report(&mut self, event: &Event, summary: &RunSummary) -> io::Result<()> {
        self.progress.apply(event);
        let ended = matches!(event.kind, EventKind::RunEnded { .. });
        match &mut self.to {
            Destination::Plain(out) => {
                let lines = lines(event, summary, &self.style).into_iter();
                let text: String = lines.map(|line| line + "\n").collect();
                out.write_all(text.as_bytes())?;
                out.flush()
            }
            Destination::Live(live) => {
                let width = live.width();
                let within = |columns| Style {
                    width: Some(columns),
                    ..self.style
                };
                if ended {
                    live.finish();
                }
                let log = within(width.saturating_mul(MAX_ROWS));
                // While something runs, the live line says so.
                let is_start = matches!(
                    event.kind,
                    EventKind::CheckStarted { .. } | EventKind::SetupStarted { .. }
                );
                if !is_start || self.style.verbosity > Verbosity::Normal {
                    live.print(&lines(event, summary, &log));
                }
                if !ended && self.style.verbosity != Verbosity::Quiet {
                    live.show(&frame(summary, &self.progress, &within(width)));
                }
                live.take_error().map_or(Ok(()), Err)
            }
        }
    }
}

#[cfg(test)]
mod tests;
