//! golangci-lint in its text format.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Severity, Sink, below};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "golangci-lint",
    kind: ToolKind::Lint,
    signs: &[r"^(?:[A-Za-z]:)?[^\s:]+\.go:\d+(?::\d+)?: .+ \([a-z][a-z0-9]*\)$"],
    read,
    ..Tool::NOTHING
};

/// The linter's name is the code; the source line and a marker follow.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static FOUND: Pattern =
        Pattern::new(r"^((?:[A-Za-z]:)?[^\s:]+\.go):(\d+)(?::(\d+))?: (.+) \(([a-z][a-z0-9]*)\)$");
    for (at, found) in FOUND.in_lines(output.lines) {
        let source = below(output.lines, at, 2, |line| line.starts_with(['\t', ' ']));
        let (place, code) = (Location::of(&found), Some(group(&found, 5)));
        sink.push(at, place, Severity::Error, code, group(&found, 4))
            .lines(at..at + 1 + source.len());
    }
}
