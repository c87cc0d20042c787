//! rustc, clippy and cargo in their human-readable formats.

use super::shape::severity;
use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Severity, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "rustc",
    kind: ToolKind::Code,
    signs: &[r"^(?:error|warning)(?:\[[\w:]+\])?: "],
    read,
    headers: &[r"error(?:\[\w+\])?: "],
    hint,
    ..Tool::NOTHING
};

static HEADER: Pattern = Pattern::new(r"^(error|warning)(?:\[([\w:]+)\])?: (.+)$");
static PLACE: Pattern = Pattern::new(r"^\s*--> (.+?):(\d+):(\d+)$");
static LINT: Pattern = Pattern::new(r"#\[(?:warn|deny|forbid)\(([\w:]+)\)\]");
static CARGO: Pattern =
    Pattern::new(r"^(?:\s+(?:Compiling|Checking|Documenting) \S+ v|error: could not compile )");
static SUMMARY: Pattern = Pattern::new(
    r"^(?:could not compile|aborting due to|test failed, to rerun|test run failed|doctest failed|\d+ targets? failed|build failed|process didn't exit|`.+` \(.+\) generated \d+ warning|\d+ warnings? emitted)",
);

/// The maximum number of lines between a message's header and its location.
const PLACE_WITHIN: usize = 4;
const BLOCK: usize = 60;

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let lines = output.lines;
    let cargo = lines.iter().any(|line| CARGO.is_match(line));
    for (at, header) in HEADER.in_lines(lines) {
        let (kind, code, message) = (group(&header, 1), group(&header, 2), group(&header, 3));
        let severity = severity(kind);
        let block = block(lines, at + 1);
        let place = block
            .iter()
            .take(PLACE_WITHIN)
            .enumerate()
            .find_map(|(offset, line)| PLACE.captures(line).map(|found| (at + 1 + offset, found)));
        let lint = block.iter().find_map(|line| LINT.captures(line));
        let code = match &lint {
            Some(lint) if code.is_empty() => group(lint, 1),
            _ => code,
        };
        match place {
            Some((placed_at, found)) => {
                sink.push(
                    placed_at,
                    Location::of(&found),
                    severity,
                    Some(code),
                    message,
                )
                .lines(at..at + 1 + block.len());
            }
            None if is_unplaced(severity, cargo || !code.is_empty(), message) => {
                sink.push(at, Location::default(), severity, Some(code), message);
            }
            None => {}
        }
    }
}

/// Whether a message without a location is a message of its own rather than a summary of others.
fn is_unplaced(severity: Severity, from_cargo: bool, message: &str) -> bool {
    severity == Severity::Error && from_cargo && !SUMMARY.is_match(message)
}

fn block<'a, 'b>(lines: &'b [&'a str], from: usize) -> &'b [&'a str] {
    let rest = lines.get(from..).unwrap_or_default();
    let end = rest
        .iter()
        .take(BLOCK)
        .take_while(|line| !line.trim().is_empty())
        .count();
    rest.get(..end).unwrap_or_default()
}

fn hint(line: &str) -> Option<String> {
    static MISSING: Pattern = Pattern::new(
        r"(?:use of unresolved module or unlinked crate|can't find crate for|use of undeclared crate or module|maybe a missing crate) `(\w+)`",
    );
    static ADD: Pattern = Pattern::new(r"use `cargo add ([\w-]+)`");
    let found = ADD.captures(line).or_else(|| MISSING.captures(line))?;
    let name = group(&found, 1);
    let own = matches!(name, "crate" | "self" | "super" | "std" | "core" | "alloc");
    (!own).then(|| format!(
        "`{name}` is neither a module nor a dependency. Run `cargo add {name}` if it is a crate, else declare the module or correct the path."
    ))
}
