//! bats in its human-readable format; its other format is TAP.

use super::shape::{Below, NEVER};
use super::tap::{BATS_PLACE, BATS_PLACES};
use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally, optional_number};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "bats",
    kind: ToolKind::Tests,
    signs: &[r"^\s+\((?:in test file|from function) .+, line \d+[,)]"],
    lines: &[r"^(?:   .*\d+/\d+)? ✗ (?<test>.+?)(?: in \d+m?s)?$"],
    below: Some(Below {
        // The next line, or the next test, whose progress line was printed above its name.
        until: r"^ {0,2}(?:[^ ]|$)|\d+/\d+ (?:✓|✗|-) ",
        frame: BATS_PLACES,
        noise: NEVER,
    }),
    counts,
    ..Tool::NOTHING
};

fn counts(lines: &[&str]) -> Option<Counts> {
    static SUMMARY: Pattern =
        Pattern::new(r"^(\d+) tests?, (\d+) failures?(?:, (\d+) skipped)?(?: in .*)?$");
    lines.iter().find(|line| BATS_PLACE.is_match(line))?;
    let mut tally = Tally::default();
    for (_, found) in SUMMARY.in_lines(lines) {
        let [total, failed, skipped] = [1, 2, 3].map(|it| optional_number(group(&found, it)));
        tally.add_of_total(total, failed, skipped);
    }
    tally.finish()
}
