//! clang-tidy. Its messages have the format of a compiler's, with the check's name at the end.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Severity, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "clang-tidy",
    kind: ToolKind::Lint,
    signs: &[
        r"^\S[^:\n]*:\d+:\d+: (?:warning|error): .+ \[[a-z][a-z0-9]*(?:-[A-Za-z0-9.]+)+(?:,-warnings-as-errors)?\]$",
    ],
    read,
    ..Tool::NOTHING
};

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static MESSAGE: Pattern = Pattern::new(
        r"^(\S[^:]*):(\d+):(\d+): (warning|error): (.+) \[([a-z][a-z0-9]*(?:-[A-Za-z0-9.]+)+)(?:,-warnings-as-errors)?\]$",
    );
    let lines = output.lines;
    for (at, found) in MESSAGE.in_lines(lines) {
        let severity = match group(&found, 4) {
            "error" => Severity::Error,
            _ => Severity::Warning,
        };
        let below = lines.iter().skip(at + 1);
        let shown = below.take_while(|line| line.starts_with(' ')).count();
        let code = Some(group(&found, 6));
        sink.push(at, Location::of(&found), severity, code, group(&found, 5))
            .lines(at..at + 1 + shown);
    }
}
