//! `file:line:column: message`, the format of gcc and many other tools.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Severity, Sink};
use crate::pattern::{Pattern, group};
use crate::text::has_word;

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "other",
    kind: ToolKind::Code,
    signs: &[r":\d{1,7}(?::\d{1,6})?:\s"],
    read,
    ..Tool::NOTHING
};

static PLACED: Pattern = Pattern::new(
    r"^((?:[A-Za-z]:[\\/])?[^\s:()<>]+):(\d{1,7})(?::(\d{1,6}))?:\s+(?:((?i:fatal error|error|warning|note|info|information|hint|remark|debug|trace))\b:?\s*)?(.+)$",
);
static NUMBERED: Pattern = Pattern::new(r"^([A-Z]{1,5}\d{2,5}):? (.+)$");
static BRACKETED: Pattern = Pattern::new(r"^(.+?)\s+\[([A-Za-z][\w-]*)\]$");

/// Top-level domains, after which a number is a port.
const HOSTS: &str = "com org net io dev local internal localhost app";

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let is_placed = sink.found.iter().any(|found| found.place().is_some());
    for (at, found) in PLACED.in_lines(output.lines) {
        let place = Location::of(&found);
        if !is_file(place.path) {
            continue;
        }
        let word = group(&found, 4);
        let is_bare = || word.is_empty() && !is_placed && sink.exists(place.path);
        let severity = severity(word, place);
        let Some(severity) = severity.or_else(|| is_bare().then_some(Severity::Error)) else {
            continue;
        };
        let (code, message) = coded(group(&found, 5));
        sink.push(at, place, severity, code, message);
    }
}

/// A line with neither a severity nor a column is much more likely a log line than a diagnostic. It is taken for one if
/// no other tool names a place and the file exists.
fn severity(word: &str, place: Location<'_>) -> Option<Severity> {
    match word.to_ascii_lowercase().as_str() {
        "error" | "fatal error" => Some(Severity::Error),
        "warning" => Some(Severity::Warning),
        "note" | "hint" | "remark" => Some(Severity::Note),
        "" if !place.column.is_empty() => Some(Severity::Error),
        _ => None,
    }
}

/// Whether a path names a file rather than a host.
pub(in crate::checks) fn is_file(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    if matches!(name, "Makefile" | "Dockerfile" | "makefile" | "GNUmakefile") {
        return true;
    }
    let Some((stem, extension)) = name.rsplit_once('.') else {
        return false;
    };
    let written = extension.starts_with(|c: char| c.is_ascii_alphabetic())
        && extension.len() <= 10
        && extension
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '+' || c == '_');
    let host = path == name && has_word(HOSTS, extension);
    written && !stem.is_empty() && !host
}

/// Splits off a linter's code before its message (`E501 line too long`) or after it (`… [arg-type]`).
fn coded(message: &str) -> (Option<&str>, &str) {
    match (NUMBERED.captures(message), BRACKETED.captures(message)) {
        (Some(found), _) => (Some(group(&found, 1)), group(&found, 2)),
        (None, Some(found)) => (Some(group(&found, 2)), group(&found, 1)),
        (None, None) => (None, message),
    }
}
