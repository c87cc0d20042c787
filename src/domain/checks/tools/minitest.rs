//! minitest and test-unit.

use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally};
use crate::checks::diagnostic::{Location, Output, Sink, below, joined};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "minitest",
    kind: ToolKind::Tests,
    signs: &[
        r"^[A-Z]\S*#test_\S+?(?: \[\S+\])?:$",
        r"^\d+ (?:runs|tests), \d+ assertions, ",
    ],
    read,
    counts,
    headers: &[r"[A-Z]\S*\#test_\S+?(?:\ \[\S+\])?:$"],
    around: Some((
        r"^# Running:$",
        r"^[0-9]+ (?:runs|tests), [0-9]+ assertions",
    )),
    ..Tool::NOTHING
};

const REACH: usize = 40;

/// A failed assertion has its location after the test's name; an error has it in the frames below.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static FAILED: Pattern = Pattern::new(r"^([A-Z]\S*#test_\S+?)(?: \[(\S+):(\d+)\])?:$");
    static END: Pattern = Pattern::new(r"^\s+\d+\) [A-Z]\w+:$|^\d+ (?:runs|tests), ");
    static FRAME: Pattern = Pattern::new(r"^\s+(\S+?):(\d+):in .+$");
    let lines = output.lines;
    for (at, found) in FAILED.in_lines(lines) {
        let said = below(lines, at, REACH, |line| !line.is_empty());
        let own = Location::new(group(&found, 2), group(&found, 3));
        let place = match own.path.is_empty() {
            false => Some(own),
            // Ruby shows the source of some errors between empty lines above the frames.
            true => {
                let whole = below(lines, at, REACH, |line| !END.is_match(line));
                sink.own_frame(&whole, &FRAME)
            }
        };
        let message = joined(said.iter().take_while(|line| !FRAME.is_match(line)));
        let name = group(&found, 1);
        sink.failing(at, place.unwrap_or_default(), name, &message)
            .lines(at..at + 1 + said.len());
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
    static SUMMARY: Pattern = Pattern::new(
        r"^(\d+) (?:runs|tests), \d+ assertions, (\d+) failures, (\d+) errors(?:, (\d+) (?:skips|pendings))?",
    );
    Tally::of_totals(lines, &SUMMARY)
}
