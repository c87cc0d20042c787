//! black: `--check`.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "black",
    kind: ToolKind::Lint,
    signs: &[
        r"^would reformat \S",
        r"^error: cannot (?:format|parse)[ :]",
    ],
    read,
    ..Tool::NOTHING
};

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static UNFORMATTED: Pattern = Pattern::new(r"^would reformat (\S.*)$");
    // `cannot format` until 2026.
    static BROKEN: Pattern =
        Pattern::new(r"^error: cannot format (\S.*?): (Cannot parse.*?: (\d+):(\d+): .*)$");
    static UNREADABLE: Pattern = Pattern::new(r"^error: cannot parse: (\S.*?):(\d+):(\d+)$");
    for (at, line) in output.lines.iter().enumerate() {
        if let Some(found) = UNFORMATTED.captures(line) {
            let place = Location::new(group(&found, 1), "");
            sink.error(at, place, "it is not formatted");
        } else if let Some(found) = BROKEN.captures(line) {
            let place = Location {
                path: group(&found, 1),
                line: group(&found, 3),
                column: group(&found, 4),
            };
            sink.error(at, place, group(&found, 2));
        } else if let Some(found) = UNREADABLE.captures(line) {
            sink.error(at, Location::of(&found), "black cannot parse it");
        }
    }
}
