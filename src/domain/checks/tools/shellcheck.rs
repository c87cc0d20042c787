//! ShellCheck: its formats `tty` and `gcc`.

use super::shape::severity;
use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Sink, number};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "ShellCheck",
    kind: ToolKind::Lint,
    signs: &[
        r"^\s*\^-*\^? SC\d{4} \((?:error|warning|info|style)\): ",
        r"^\S[^:\n]*:\d+:\d+: (?:error|warning|note): .+ \[SC\d{4}\]$",
    ],
    lines: &[
        r"^(?<path>\S[^:]*):(?<line>\d+):(?<column>\d+): (?<word>error|warning|note): (?<text>.+) \[(?<code>SC\d{4})\]$",
    ],
    read,
    ..Tool::NOTHING
};

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static HEADER: Pattern = Pattern::new(r"^In (.+) line (\d+):$");
    static MARK: Pattern =
        Pattern::new(r"^(\s*)(\^-*\^?) (SC\d{4}) \((error|warning|info|style)\): (.+)$");
    let lines = output.lines;
    let (mut path, mut line_number, mut header) = ("", "", 0);
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = HEADER.captures(line) {
            path = found.get(1).map_or("", |it| it.as_str());
            line_number = found.get(2).map_or("", |it| it.as_str());
            header = at;
        } else if let Some(found) = MARK.captures(line) {
            let column = group(&found, 1).chars().count() + 1;
            let last = column + group(&found, 2).len() - 1;
            let column_text = column.to_string();
            let place = Location {
                path,
                line: line_number,
                column: &column_text,
            };
            let severity = severity(group(&found, 4));
            let code = Some(group(&found, 3));
            sink.push(at, place, severity, code, group(&found, 5))
                .until(number(line_number), u32::try_from(last).ok())
                .lines(header..at + 1);
        }
    }
}
