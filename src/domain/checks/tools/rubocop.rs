//! RuboCop.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Severity, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "RuboCop",
    kind: ToolKind::Lint,
    signs: &[
        r"^\S[^:\n]*:\d+:\d+: [CWEFRI]: (?:\[\w+\] )?[A-Z]\w*/",
        r"^\d+ files? inspected, (?:\d+|no) offenses? detected",
    ],
    read,
    ..Tool::NOTHING
};

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static OFFENSE: Pattern = Pattern::new(
        r"^(\S[^:]*):(\d+):(\d+): ([CWEFRI]): (?:\[\w+\] )?([A-Z]\w*(?:/\w+)+): (.+)$",
    );
    let lines = output.lines;
    for (at, found) in OFFENSE.in_lines(lines) {
        // Every offense fails RuboCop, whatever its severity.
        let severity = match group(&found, 4) {
            "I" => Severity::Note,
            _ => Severity::Error,
        };
        let code = Some(group(&found, 5));
        sink.push(at, Location::of(&found), severity, code, group(&found, 6))
            .lines(at..at + 3);
    }
}
