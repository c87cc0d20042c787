//! mocha.

use super::javascript;
use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally};
use crate::checks::diagnostic::{Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "mocha",
    kind: ToolKind::Tests,
    signs: &[r"^  \d+ (?:passing \(|failing$)"],
    read,
    counts,
    headers: &[r"\ \ \d+\)\ \S"],
    ..Tool::NOTHING
};

static FAILING: Pattern = Pattern::new(r"^  \d+ failing$");
static HEADER: Pattern = Pattern::new(r"^  \d+\) (.+)$");

/// Reads the failures below `N failing`; the same headers above it only list them.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let lines = output.lines;
    let start = lines.iter().position(|line| FAILING.is_match(line));
    let Some(start) = start else { return };
    for (at, line) in lines.iter().enumerate().skip(start + 1) {
        let Some(found) = HEADER.captures(line) else {
            continue;
        };
        let first = group(&found, 1);
        let mut name = first.to_owned();
        let mut rest = lines.iter().skip(at + 1);
        while !name.ends_with(':') {
            let Some(more) = rest.next().filter(|more| more.starts_with("     ")) else {
                break;
            };
            name.push_str(" › ");
            name.push_str(more.trim());
        }
        let name = name.trim_end_matches(':');
        sink.test(name);
        let read = javascript::below(lines, at, sink);
        if let Some((frame, place)) = read.frame {
            let message = format!("{first}: {}", read.message.join("\n"));
            sink.error(frame, place, &message)
                .lines(at..read.end)
                .about(name);
        }
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
    static PASSING: Pattern = Pattern::new(r"^\s{2,}(\d+) passing \([^)]*\)$");
    static FAILING: Pattern = Pattern::new(r"^\s{2,}(\d+) failing$");
    let mut tally = Tally::default();
    for line in lines {
        if let Some(found) = PASSING.captures(line) {
            tally.add(group(&found, 1).parse().ok(), Some(0));
        } else if let Some(found) = FAILING.captures(line) {
            tally.break_if(!tally.seen);
            tally.add(Some(0), group(&found, 1).parse().ok());
        }
    }
    tally.finish()
}
