//! GoogleTest.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Sink, below};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "GoogleTest",
    kind: ToolKind::Tests,
    signs: &[r"^(?:\d+: )?\[(?: RUN      |       OK |  FAILED  |  PASSED  |==========)\] "],
    read,
    summary: &[
        r"^\[  PASSED  \] (?<passed>\d+) tests?[.,](?<failed>)",
        r"^\[  FAILED  \] (?<failed>\d+) tests?[.,](?<passed>)",
    ],
    headers: &[r".+:\d+:\ Failure$", r"unknown\ file:\ Failure$"],
    around: Some((
        r"^\[==========\] Running [0-9]+ tests? from ",
        r"^\[==========\] [0-9]+ tests? from .* ran\.",
    )),
    ..Tool::NOTHING
};

const MESSAGE_LINES: usize = 20;

/// Each failed assertion is between the lines that start and end its test. A test that starts and never ends
/// crashed the program.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static RUN: Pattern = Pattern::new(r"^\[ RUN      \] (\S+)$");
    static ENDED: Pattern = Pattern::new(r"^\[ *(OK|FAILED|SKIPPED) *\] ([^\s,]+)");
    static ASSERTION: Pattern =
        Pattern::new(r"^(?:(.+?):(\d+)|unknown file): Failure$|^(.+)\((\d+)\): error: ?(.*)$");
    let lines = output.lines;
    let mut running: Option<(usize, &str)> = None;
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = RUN.captures(line) {
            running = found.get(1).map(|name| (at, name.as_str()));
        } else if let Some(found) = ENDED.captures(line) {
            let numbers = group(&found, 2).starts_with(|c: char| c.is_ascii_digit());
            if group(&found, 1) == "FAILED" && !numbers {
                sink.test(group(&found, 2));
            }
            running = None;
        } else if let Some(found) = ASSERTION.captures(line)
            && let Some((_, name)) = running
        {
            let path = [group(&found, 1), group(&found, 3)].concat();
            let number = [group(&found, 2), group(&found, 4)].concat();
            let said = below(lines, at, MESSAGE_LINES, |line| {
                !line.starts_with('[') && !ASSERTION.is_match(line)
            });
            let message = [group(&found, 5), &said.join("\n")].concat();
            sink.failure(at, Location::new(&path, &number), name, &message)
                .lines(at..at + 1 + said.len());
        }
    }
    if let Some((at, name)) = running {
        sink.failing(at, Location::default(), name, "it began and never ended");
    }
}
