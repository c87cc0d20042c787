//! Biome: `check`, `ci`, `lint` and `format`.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Severity, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "biome",
    kind: ToolKind::Lint,
    signs: &[
        r"^\S.* (?:lint/\S+|assist/\S+|suppressions/\S+|organizeImports|format|parse) .*━{3,}$",
    ],
    read,
    ..Tool::NOTHING
};

/// The maximum number of lines of a message below its header.
const REACH: usize = 60;

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static HEADER: Pattern = Pattern::new(
        r"^(\S.*?)(?::(\d+):(\d+))? (lint/\S+|assist/\S+|suppressions/\S+|organizeImports|format|parse) .*━{3,}$",
    );
    static MESSAGE: Pattern = Pattern::new(r"^\s+([✖×⚠!ℹxi]) (\S.*)$");
    let lines = output.lines;
    for (at, found) in HEADER.in_lines(lines) {
        let rest = lines.get(at + 1..).unwrap_or_default();
        let block = rest.iter().take(REACH);
        let size = block.take_while(|line| !line.contains("━━━")).count();
        let block = rest.get(..size).unwrap_or_default();
        let Some(message) = block.iter().find_map(|line| MESSAGE.captures(line)) else {
            continue;
        };
        let severity = match group(&message, 1) {
            "✖" | "×" | "x" => Severity::Error,
            "⚠" | "!" => Severity::Warning,
            _ => Severity::Note,
        };
        let code = Some(group(&found, 4));
        let place = Location::of(&found);
        sink.push(at, place, severity, code, group(&message, 2))
            .lines(at..at + 1 + size);
    }
}
