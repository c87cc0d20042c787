//! minitest and test-unit.

use super::shape::Below;
use super::{Tool, ToolKind};
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
    // Those of test-unit, each between two rules: the test, its frames, the source, and what was expected.
    lines: &[r"^(?:Failure|Error): (?<test>\S.*\([A-Z][\w:]*\))(?:: (?<text>.*))?$"],
    below: Some(Below {
        until: r"^=====",
        frame: r"^(?<path>\S+?):(?<line>\d+):in .+$",
        noise: r"^\s+(?:=> )?\s*\d+: ",
    }),
    read,
    summary: &[
        r"^(?<total>\d+) (?:runs|tests), \d+ assertions, (?<failed>\d+) failures, (?<errors>\d+) errors(?:, (?<skipped>\d+) (?:skips|pendings))?",
    ],
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

/// A failed assertion has its location after the test's name; an error has it in the frames below. The names of
/// specifications are texts.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let lines = output.lines;
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
