//! Gradle.

use super::jvm;
use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Sink, below, joined};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "Gradle",
    kind: ToolKind::Tests,
    signs: &[r"^\S+ > .+ FAILED$"],
    read,
    ..Tool::NOTHING
};

static FAILED: Pattern = Pattern::new(r"^(\S+ > .+?) FAILED$");

const REACH: usize = 60;

/// The location is the one in the test's own class. The stack trace names it with its package, the short form
/// without.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static SHORT: Pattern =
        Pattern::new(r"^    (\S+) at ([\w$]+\.(?:java|kt|scala|groovy)):(\d+)$");
    let lines = output.lines;
    for (at, found) in FAILED.in_lines(lines) {
        let name = group(&found, 1);
        let class = name.split(" > ").next().unwrap_or_default();
        let below = below(lines, at, REACH, |line| line.starts_with("    "));
        let short = below.first().and_then(|line| SHORT.captures(line));
        let (place, said) = match &short {
            Some(short) => (
                (group(short, 2).to_owned(), group(short, 3).to_owned()),
                group(short, 1).to_owned(),
            ),
            None => {
                let said = below
                    .iter()
                    .take_while(|line| !line.trim().starts_with("at "));
                (jvm::place(&below, class).unwrap_or_default(), joined(said))
            }
        };
        sink.failing(at, Location::new(&place.0, &place.1), name, &said)
            .lines(at..at + 1 + below.len());
    }
}
