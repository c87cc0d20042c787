//! mypy.

use super::shape::severity;
use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Sink, below, number};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "mypy",
    kind: ToolKind::Lint,
    signs: &[
        r"^\S[^:\n]*\.pyi?:\d+(?::\d+){0,3}: (?:error|note): ",
        r"^Found \d+ errors? in \d+ files? \(checked ",
    ],
    read,
    ..Tool::NOTHING
};

static MESSAGE: Pattern = Pattern::new(
    r"^(\S[^:]*\.pyi?):(\d+)(?::(\d+))?(?::(\d+):(\d+))?: (error|warning|note): (.+)$",
);
static CODE: Pattern = Pattern::new(r"^(.*\S)\s+\[([a-z][a-z0-9-]*)\]$");

/// The maximum number of lines into which `--pretty` wraps a message.
const WRAPPED: usize = 6;

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let lines = output.lines;
    for (at, found) in MESSAGE.in_lines(lines) {
        let severity = severity(group(&found, 6));
        let (message, end) = unwrapped(lines, at, group(&found, 7));
        let coded = CODE.captures(&message);
        let (text, code) = match &coded {
            Some(found) => (group(found, 1), Some(group(found, 2))),
            None => (message.as_str(), None),
        };
        let source = lines
            .iter()
            .skip(end)
            .take_while(|line| line.starts_with("    "));
        sink.push(at, Location::of(&found), severity, code, text)
            .until(number(group(&found, 4)), number(group(&found, 5)))
            .lines(at..end + source.take(2).count());
    }
}

/// The complete message, and the index of the line after it. It continues only if a line with its code
/// follows.
fn unwrapped(lines: &[&str], at: usize, first: &str) -> (String, usize) {
    let more = below(lines, at, WRAPPED, |line| {
        !line.starts_with(' ') && !MESSAGE.is_match(line)
    });
    let coded = more
        .iter()
        .position(|line| CODE.is_match(&format!("x {line}")));
    match coded.filter(|_| !CODE.is_match(first)) {
        Some(last) => {
            let rest = more.get(..=last).unwrap_or_default();
            let whole: Vec<&str> = std::iter::once(first).chain(rest.iter().copied()).collect();
            let whole: Vec<&str> = whole.iter().map(|line| line.trim()).collect();
            (whole.join(" "), at + 2 + last)
        }
        None => (first.to_owned(), at + 1),
    }
}
