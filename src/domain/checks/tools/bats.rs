//! bats in its form for people; its other form is TAP.

use super::tap::BATS_PLACE;
use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally, optional_number};
use crate::checks::diagnostic::{Output, Place, Sink};
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

/// The next test, above whose name its progress was.
static POINT: Pattern = Pattern::new(r"\d+/\d+ (?:✓|✗|-) ");

const REACH: usize = 20;

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static FAILED: Pattern = Pattern::new(r"^(?:   .*\d+/\d+)? ✗ (.+?)(?: in \d+m?s)?$");
    let lines = output.lines;
    for (at, line) in lines.iter().enumerate() {
        let Some(found) = FAILED.captures(line) else {
            continue;
        };
        let below = lines.iter().skip(at + 1).take(REACH);
        let below: Vec<&str> = below
            .take_while(|line| line.starts_with("   ") && !POINT.is_match(line))
            .copied()
            .collect();
        let place = below.iter().find_map(|line| BATS_PLACE.captures(line));
        let place = place.map(|found| Place::new(group(&found, 1), group(&found, 2)));
        let said: Vec<&str> = below
            .iter()
            .filter(|line| !BATS_PLACE.is_match(line))
            .map(|line| line.trim())
            .collect();
        let name = group(&found, 1).trim();
        sink.failing(at, place.unwrap_or_default(), name, &said.join("\n"))
            .lines(at..at + 1 + below.len());
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
    static SUMMARY: Pattern =
        Pattern::new(r"^(\d+) tests?, (\d+) failures?(?:, (\d+) skipped)?(?: in .*)?$");
    lines.iter().find(|line| BATS_PLACE.is_match(line))?;
    let mut tally = Tally::default();
    for found in lines.iter().filter_map(|line| SUMMARY.captures(line)) {
        let [total, failed, skipped] = [1, 2, 3].map(|it| optional_number(group(&found, it)));
        let others = failed.zip(skipped).and_then(|(f, s)| f.checked_add(s));
        let passed = total
            .zip(others)
            .and_then(|(all, others)| all.checked_sub(others));
        tally.add(passed, failed);
    }
    tally.finish()
}
