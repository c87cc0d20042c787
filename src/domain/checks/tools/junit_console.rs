//! The JUnit console launcher.

use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "JUnit console",
    kind: ToolKind::Tests,
    signs: &[r"^\[\s*\d+ tests (?:successful|failed)\s*\]$"],
    counts,
    ..Tool::NOTHING
};

fn counts(lines: &[&str]) -> Option<Counts> {
    static NUMBER: Pattern = Pattern::new(r"^\[\s*(\d+) tests (successful|failed)\s*\]$");
    let mut tally = Tally::default();
    for (_, found) in NUMBER.in_lines(lines) {
        let number = group(&found, 1).parse().ok();
        match group(&found, 2) {
            "successful" => tally.add(number, Some(0)),
            _ => tally.add(Some(0), number),
        }
    }
    tally.finish()
}
