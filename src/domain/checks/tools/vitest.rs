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
    signs: &[
        // With colours, jest prints a file alone in this form.
        r"^ FAIL  .+ (?:>|\[) .+$",
        r"^\s+(?:Test Files|Tests)  \d",
    ],
    read,
    counts,
    encloses: Some((r"^ ?RUN +v[0-9]", r"^ +Test Files +[0-9]")),
    headers: &[r"\ FAIL\ \ \S"],
    ..Tool::NOTHING
};

static TEST: Pattern =
    Pattern::new(r"^ FAIL  ((?:\|[^|]+\| | \S+  )?((\S+\.\w+)?.*?)(?: \[ .+ \])?)$");

/// The failures are below a heading; what tests print may have the same form above it.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static HEADING: Pattern = Pattern::new(r"^⎯+ Failed (?:Suites|Tests) \d+ ⎯+$");
    let heading = output.lines.iter().position(|line| HEADING.is_match(line));
    let below = output.lines.iter().enumerate().skip(heading.unwrap_or(0));
    for (at, line) in below {
        if let Some(found) = TEST.captures(line) {
            sink.test_in(group(&found, 2), group(&found, 3));
            javascript::failure(output.lines, at, group(&found, 1).trim(), "", sink);
        }
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
    suites(lines, "Test Files ", "Tests ", |_| false)
}
