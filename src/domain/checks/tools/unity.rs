//! Unity, the test framework for C.

use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally};
use crate::checks::diagnostic::{Location, Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "Unity",
    kind: ToolKind::Tests,
    signs: &[
        r"^(?:TEST\(.+\))?(?:[A-Za-z]:)?[^:\n]+:\d+:[^:\n]*:(?:PASS|FAIL|IGNORE)(?:$|: )",
        r"^\d+ Tests \d+ Failures \d+ Ignored\s*$",
    ],
    read,
    counts,
    headers: &[r"(?:[A-Za-z]:)?[^:\n]+:\d+:[^:\n]*:FAIL(?:$|:\ )"],
    ..Tool::NOTHING
};

/// `file:line:test:FAIL: message`; the verbose fixture runner prints the test first.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static FAILED: Pattern =
        Pattern::new(r"^(TEST\(.+?\))?((?:[A-Za-z]:)?[^:]+):(\d+):([^:]*):FAIL(?:: (.*))?$");
    for (at, found) in FAILED.in_lines(output.lines) {
        let place = Location::new(group(&found, 2), group(&found, 3));
        let name = [group(&found, 1), group(&found, 4)].concat();
        sink.failing(at, place, &name, group(&found, 5));
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
    static SUMMARY: Pattern = Pattern::new(r"^(\d+) Tests (\d+) Failures (\d+) Ignored\s*$");
    let mut tally = Tally::default();
    for (_, found) in SUMMARY.in_lines(lines) {
        let [total, failed, ignored] = [1, 2, 3].map(|it| group(&found, it).parse::<u64>().ok());
        tally.add_of_total(total, failed, ignored);
    }
    tally.finish()
}
