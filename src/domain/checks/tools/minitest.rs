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
        r"^\s*(?:\d+\) )?(?:Failure|Error):\n\S.*#test_.+:$",
        r"^(?:Failure|Error): \S.*\([A-Z][\w:]*\)(?:: .*)?\n\S+:\d+:in ",
        r"^\d+ (?:runs|tests), \d+ assertions, ",
    ],
    read,
    counts,
    headers: &[
        r"\S.*\#test_.+:$",
        r"(?:Failure|Error):\ \S.*\([A-Z][\w:]*\)(?::\ .*)?$",
    ],
    around: Some((
        r"^# Running:$",
        r"^[0-9]+ (?:runs|tests), [0-9]+ assertions",
    )),
    ..Tool::NOTHING
};

const REACH: usize = 40;

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    minitest(output.lines, sink);
    test_unit(output.lines, sink);
}

/// A failed assertion has its location after the test's name; an error has it in the frames below. The names of
/// specifications are texts.
fn minitest(lines: &[&str], sink: &mut Sink<'_>) {
    static KIND: Pattern = Pattern::new(r"^\s*(?:\d+\) )?(?:Failure|Error):$");
    static FAILED: Pattern = Pattern::new(r"^(\S.*?#test_.*?)(?: \[([^\[\]]+):(\d+)\])?:$");
    static END: Pattern = Pattern::new(r"^\s*(?:\d+\) )?[A-Z]\w+:$|^\d+ (?:runs|tests), ");
    static FRAME: Pattern = Pattern::new(r"^\s+(\S+?):(\d+):in .+$");
    for (at, pair) in lines.windows(2).enumerate() {
        let [kind, line] = pair else { continue };
        let found = FAILED.captures(line).filter(|_| KIND.is_match(kind));
        let Some(found) = found else { continue };
        let at = at + 1;
        let said = below(lines, at, REACH, |line| !line.is_empty());
        let own = Location::new(group(&found, 2), group(&found, 3));
        let place = if own.path.is_empty() {
            // Ruby shows the source of some errors between empty lines above the frames.

            let whole = below(lines, at, REACH, |line| !END.is_match(line));
            sink.own_frame(&whole, &FRAME)
        } else {
            Some(own)
        };
        let message = joined(said.iter().take_while(|line| !FRAME.is_match(line)));
        let name = group(&found, 1);
        sink.failing(at, place.unwrap_or_default(), name, &message)
            .lines(at..at + 1 + said.len());
    }
}

/// Each failure is between two rules: the test, its frames, the source, and what was expected.
fn test_unit(lines: &[&str], sink: &mut Sink<'_>) {
    static FAILED: Pattern = Pattern::new(r"^(?:Failure|Error): (\S.*\([A-Z][\w:]*\))(?:: (.*))?$");
    static FRAME: Pattern = Pattern::new(r"^(\S+?):(\d+):in .+$");
    static SOURCE: Pattern = Pattern::new(r"^\s+(?:=> )?\s*\d+: ");
    for (at, found) in FAILED.in_lines(lines) {
        let below = below(lines, at, REACH, |line| !line.starts_with("====="));
        let Some(place) = sink.own_frame(&below, &FRAME) else {
            continue;
        };
        let said = below
            .iter()
            .filter(|line| !FRAME.is_match(line) && !SOURCE.is_match(line));
        let message = format!("{}\n{}", group(&found, 2), joined(said));
        sink.failing(at, place, group(&found, 1), &message)
            .lines(at..at + 1 + below.len());
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
    static SUMMARY: Pattern = Pattern::new(
        r"^(\d+) (?:runs|tests), \d+ assertions, (\d+) failures, (\d+) errors(?:, (\d+) (?:skips|pendings))?",
    );
    Tally::of_totals(lines, &SUMMARY)
}
