//! Catch2.

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

const RULE: &str =
    "-------------------------------------------------------------------------------";
const MESSAGE_LINES: usize = 20;

/// A test case and its sections are between two rules, and its failures are below them.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static FAILED: Pattern = Pattern::new(r"^(\S.*?)(?::(\d+)|\((\d+)\)): FAILED:$");
    let lines = output.lines;
    let mut name = String::new();
    let mut heading: Option<Vec<&str>> = None;
    for (at, line) in lines.iter().enumerate() {
        if *line == RULE {
            match heading.take() {
                Some(parts) => name = parts.join(" › "),
                None => heading = Some(Vec::new()),
            }
        } else if let Some(parts) = &mut heading {
            parts.push(line.trim());
        } else if let Some(found) = FAILED.captures(line) {
            let below = lines.iter().skip(at + 1).take(MESSAGE_LINES);
            let said: Vec<&str> = below
                .take_while(|line| !line.trim().is_empty())
                .map(|line| line.trim())
                .collect();
            let number = [group(&found, 2), group(&found, 3)].concat();
            let place = Location::new(group(&found, 1), &number);
            sink.failing(at, place, &name, &said.join("\n"))
                .lines(at..at + 1 + said.len());
        }
    }
}
