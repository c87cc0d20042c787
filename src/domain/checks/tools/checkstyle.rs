//! Checkstyle in its plain format.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Severity, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "Checkstyle",
    kind: ToolKind::Lint,
    signs: &[
        r"^\[(?:ERROR|WARN|INFO)\] \S[^\n]*:\d+(?::\d+)?: .+ \[\w+\]$",
        r"^Starting audit\.\.\.$",
    ],
    read,
    ..Tool::NOTHING
};

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static VIOLATION: Pattern =
        Pattern::new(r"^\[(?:ERROR|WARN|INFO)\] (\S.*?):(\d+)(?::(\d+))?: (.+) \[(\w+)\]$");
    for (at, line) in output.lines.iter().enumerate() {
        if let Some(found) = VIOLATION.captures(line) {
            let severity = match line.get(1..5) {
                Some("ERRO") => Severity::Error,
                Some("WARN") => Severity::Warning,
                _ => Severity::Note,
            };
            let code = Some(group(&found, 5));
            sink.push(at, Location::of(&found), severity, code, group(&found, 4));
        }
    }
}
