//! `deno test`.

use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally, optional_number};
use crate::checks::diagnostic::{Location, Output, Sink, below, joined};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "deno test",
    kind: ToolKind::Tests,
    signs: &[
        r"^running \d+ tests? from \S+$",
        r"^(?:ok|FAILED) \| \d+ passed ",
    ],
    read,
    counts,
    headers: &[r"\S.* => \S+:\d+:\d+$"],
    ..Tool::NOTHING
};

const REACH: usize = 60;

/// The location is the first frame in the project, otherwise the start of the test. The list of failures at
/// the end adds nothing.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static FAILED: Pattern = Pattern::new(r"^(\S.*) => (\S+?):(\d+):(\d+)$");
    static FRAME: Pattern = Pattern::new(r"^\s+at (?:.+ \()?(file://\S+?):(\d+):(\d+)\)?$");
    let lines = output.lines;
    for (at, found) in FAILED.in_lines(lines) {
        let below = below(lines, at, REACH, |line| {
            !FAILED.is_match(line) && line.trim() != "FAILURES"
        });
        if !below
            .first()
            .is_some_and(|line| line.starts_with("error: "))
        {
            sink.claim(at);
            continue;
        }
        let begin = Location {
            path: group(&found, 2),
            line: group(&found, 3),
            column: group(&found, 4),
        };
        let place = sink.own_frame(&below, &FRAME).unwrap_or(begin);
        let said = below
            .iter()
            .take_while(|line| !line.trim().starts_with("at "));
        let message = joined(said);
        let message = message.trim_start_matches("error: ");
        sink.failing(at, place, group(&found, 1), message)
            .lines(at..at + 1 + below.len());
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
    static SUMMARY: Pattern =
        Pattern::new(r"^(?:ok|FAILED) \| (\d+) passed (?:\([^)]*\) )?\| (\d+) failed");
    let mut tally = Tally::default();
    for (_, found) in SUMMARY.in_lines(lines) {
        let [passed, failed] = [1, 2].map(|it| optional_number(group(&found, it)));
        tally.add(passed, failed);
    }
    tally.finish()
}
