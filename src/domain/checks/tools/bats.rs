//! bats in its human-readable format; its other format is TAP.

use super::tap::BATS_PLACE;
use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally, optional_number};
use crate::checks::diagnostic::{Location, Output, Sink, below, joined};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "bats",
    kind: ToolKind::Tests,
    signs: &[r"^\s+\((?:in test file|from function) .+, line \d+[,)]"],
    read,
    counts,
    ..Tool::NOTHING
};

/// The start of the next test, whose progress line was printed above its name.
static POINT: Pattern = Pattern::new(r"\d+/\d+ (?:✓|✗|-) ");

const REACH: usize = 20;

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static FAILED: Pattern = Pattern::new(r"^(?:   .*\d+/\d+)? ✗ (.+?)(?: in \d+m?s)?$");
    let lines = output.lines;
    for (at, found) in FAILED.in_lines(lines) {
        let below = below(lines, at, REACH, |line| {
            line.starts_with("   ") && !POINT.is_match(line)
        });
        let place = below
            .iter()
            .find_map(|line| BATS_PLACE.captures(line))
            .map(|found| Location::new(group(&found, 1), group(&found, 2)));
        let said = joined(below.iter().filter(|line| !BATS_PLACE.is_match(line)));
        let name = group(&found, 1).trim();
        sink.failing(at, place.unwrap_or_default(), name, &said)
            .lines(at..at + 1 + below.len());
    }
}

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
