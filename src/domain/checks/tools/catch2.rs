//! Catch2.

use super::shape::Below;
use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "Catch2",
    kind: ToolKind::Tests,
    signs: &[
        r"^\S+ is a Catch2? v\d.* host application\.$",
        r"^test cases: +\d+ \|",
        r"^All tests passed \(\d+ assertions? in \d+ test cases?\)$",
    ],
    read,
    summary: &[
        r"^test cases: +\d+ \|(?:[ |]*(?<passed>\d+) passed)?(?:[ |]*(?<failed>\d+) failed)?",
        r"^All tests passed \(\d+ assertions? in (?<passed>\d+) test cases?\)(?<failed>)$",
    ],
    headers: &[r"\S.*:\d+:\ FAILED:$"],
    ..Tool::NOTHING
};

/// The lines of a failure.
const FAILURE: Below = Below {
    until: r"^\s*$",
    ..Below::NOTHING
};

/// A test case and its sections are between two rules, and its failures are below them.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static FAILED: Pattern = Pattern::new(r"^(\S.*?)[:(](\d+)\)?: FAILED:$");
    static RULE: Pattern = Pattern::new(r"^-{79}$");
    let lines = output.lines;
    let mut name = String::new();
    let mut heading: Option<Vec<&str>> = None;
    for (at, line) in lines.iter().enumerate() {
        if RULE.is_match(line) {
            match heading.take() {
                Some(parts) => name = parts.join(" › "),
                None => heading = Some(Vec::new()),
            }
        } else if let Some(parts) = &mut heading {
            parts.push(line.trim());
        } else if let Some(found) = FAILED.captures(line) {
            let block = FAILURE.block(lines, at + 1, &name, "", sink);
            let place = Location::new(group(&found, 1), group(&found, 2));
            sink.failing(at, place, &name, &block.message.join("\n"))
                .lines(at..block.end);
        }
    }
}
