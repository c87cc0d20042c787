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
    read,
    ..Tool::NOTHING
};

const BLOCK: usize = 60;

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static HEADER: Pattern =
        Pattern::new(r"^([A-Z]{1,5}\d{2,4}|invalid-syntax|unformatted):? (?:\[\*\] )?(\S.*)$");
    static PLACE: Pattern = Pattern::new(r"^\s+--> (.+?):(\d+):(\d+)$");
    static CONCISE: Pattern = Pattern::new(
        r"^(\S[^:]*):(\d+):(\d+): ([A-Z]{1,5}\d{2,4}|invalid-syntax|unformatted):? (?:\[\*\] )?(.+)$",
    );
    static FORMAT: Pattern = Pattern::new(r"^Would reformat: (.+)$");
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
        } else if let Some(found) = CONCISE.captures(line) {
            let code = Some(group(&found, 4));
            let place = Location::of(&found);
            sink.push(at, place, Severity::Error, code, group(&found, 5));
        } else if let Some(found) = FORMAT.captures(line) {
            sink.error(
                at,
                Location::new(group(&found, 1), ""),
                "it is not formatted",
            );
        }
    }
}
