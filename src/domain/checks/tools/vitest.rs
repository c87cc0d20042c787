//! vitest.

use super::javascript;
use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, suites};
use crate::checks::diagnostic::{Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "vitest",
    kind: ToolKind::Tests,
    signs: &[r"^ FAIL  \S", r"^\s+(?:Test Files|Tests)  \d"],
    read,
    counts,
    encloses: Some((r"^ ?RUN +v[0-9]", r"^ +Test Files +[0-9]")),
    headers: &[r"\ FAIL\ \ \S"],
    ..Tool::NOTHING
};

static TEST: Pattern = Pattern::new(r"^ FAIL  ((?:\|[^|]+\| )?((\S+\.\w+)?.*?)(?: \[ .+ \])?)$");

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    for (at, line) in output.lines.iter().enumerate() {
        if let Some(found) = TEST.captures(line) {
            sink.test_in(group(&found, 2), group(&found, 3));
            javascript::failure(output.lines, at, group(&found, 1).trim(), "", sink);
        }
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
    suites(lines, "Test Files ", "Tests ", |_| false)
}
