//! ruff: `check` in its full and concise formats, and `format --check`.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Severity, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "ruff",
    kind: ToolKind::Lint,
    signs: &[
        r"^(?:[A-Z]{1,5}\d{2,4}|invalid-syntax|unformatted):? (?:\[\*\] )?\S.*\n\s+--> ",
        r"^Found \d+ errors?(?: \(\d+ fixed, \d+ remaining\))?\.$",
        r"^Would reformat: ",
    ],
    lines: &[
        r"^(?<path>\S[^:]*):(?<line>\d+):(?<column>\d+): (?<code>[A-Z]{1,5}\d{2,4}|invalid-syntax|unformatted):? (?:\[\*\] )?(?<text>.+)$",
        r"^Would reformat: (?<path>.+)$",
    ],
    read,
    ..Tool::NOTHING
};

const BLOCK: usize = 60;

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static HEADER: Pattern =
        Pattern::new(r"^([A-Z]{1,5}\d{2,4}|invalid-syntax|unformatted):? (?:\[\*\] )?(\S.*)$");
    static PLACE: Pattern = Pattern::new(r"^\s+--> (.+?):(\d+):(\d+)$");
    let lines = output.lines;
    for (at, line) in lines.iter().enumerate() {
        if let Some(header) = HEADER.captures(line) {
            let below = lines.get(at + 1).and_then(|line| PLACE.captures(line));
            let Some(found) = below else { continue };
            let block = lines
                .iter()
                .skip(at)
                .take(BLOCK)
                .take_while(|line| !line.trim().is_empty())
                .count();
            let code = Some(group(&header, 1));
            let (place, message) = (Location::of(&found), group(&header, 2));
            sink.push(at + 1, place, Severity::Error, code, message)
                .lines(at..at + block);
        }
    }
}
