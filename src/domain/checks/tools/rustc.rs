//! rustc, clippy and cargo in their human-readable formats.

use super::shape::severity;
use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Severity, Sink, below};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "rustc",
    kind: ToolKind::Code,
    signs: &[r"^(?:error|warning)(?:\[[\w:]+\])?: "],
    read,
    headers: &[r"error(?:\[\w+\])?: "],
    advice: &[
        (r"use `cargo add (?<name>[\w-]+)`", MISSING),
        (
            r"(?:use of unresolved module or unlinked crate|can't find crate for|use of undeclared crate or module|maybe a missing crate) `(?:crate|self|super|std|core|alloc)`",
            "",
        ),
        (
            r"(?:use of unresolved module or unlinked crate|can't find crate for|use of undeclared crate or module|maybe a missing crate) `(?<name>\w+)`",
            MISSING,
        ),
    ],
    ..Tool::NOTHING
};

const MISSING: &str = "`$name` is neither a module nor a dependency. Run `cargo add $name` if it is a crate, else declare the module or correct the path.";

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

/// Adds each message at its place, which is a few lines below the header. One without a place is a message of its own, and
/// no summary of others, if it is an error of the compiler.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let lines = output.lines;
    let is_cargo = lines.iter().any(|line| CARGO.is_match(line));
    for (at, header) in HEADER.in_lines(lines) {
        let [kind, code, message] = [1, 2, 3].map(|index| group(&header, index));
        let block = below(lines, at, BLOCK, |line| !line.trim().is_empty());
        let place = PLACE.in_lines(&block).next();
        let lint = LINT.in_lines(&block).next().filter(|_| code.is_empty());
        let code = lint.as_ref().map_or(code, |(_, lint)| group(lint, 1));
        let severity = severity(kind);
        let is_own = severity == Severity::Error && (is_cargo || !code.is_empty());
        match place.filter(|(offset, _)| *offset < PLACE_WITHIN) {
            Some((offset, found)) => {
                let place = Location::of(&found);
                sink.push(at + 1 + offset, place, severity, Some(code), message)
                    .lines(at..at + 1 + block.len());
            }
            None if is_own && !SUMMARY.is_match(message) => {
                sink.push(at, Location::default(), severity, Some(code), message);
            }
            None => {}
        }
    }
}
