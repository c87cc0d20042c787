//! Prettier: `--check`.

use super::{Tool, ToolKind, is_file};
use crate::checks::diagnostic::{Location, Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "prettier",
    kind: ToolKind::Lint,
    signs: &[
        r"^Checking formatting\.\.\.$",
        r"^\[warn\] Code style issues (?:found|fixed) in ",
        r"^\[error\] .+: \w*Error: .+ \(\d+:\d+\)$",
    ],
    read,
    ..Tool::NOTHING
};

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static BROKEN: Pattern = Pattern::new(r"^\[error\] (.+?): (\w*Error: .+) \((\d+):(\d+)\)$");
    static UNFORMATTED: Pattern = Pattern::new(r"^\[warn\] (\S.*)$");
    for (at, line) in output.lines.iter().enumerate() {
        if let Some(found) = BROKEN.captures(line) {
            let place = Location {
                path: group(&found, 1),
                line: group(&found, 3),
                column: group(&found, 4),
            };
            sink.error(at, place, group(&found, 2));
        } else if let Some(found) = UNFORMATTED.captures(line)
            && is_file(group(&found, 1))
        {
            let place = Location::new(group(&found, 1), "");
            sink.error(at, place, "it is not formatted");
        }
    }
}
