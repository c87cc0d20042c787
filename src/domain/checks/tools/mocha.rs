//! mocha.

use super::javascript;
use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "mocha",
    kind: ToolKind::Tests,
    signs: &[r"^  \d+ (?:passing \(|failing$)"],
    read,
    summary: &[
        r"^\s{2,}(?<passed>\d+) passing \([^)]*\)(?<failed>)$",
        r"^\s{2,}(?<failed>\d+) failing$",
    ],
    headers: &[r"\ \ \d+\)\ \S"],
    ..Tool::NOTHING
};

static FAILING: Pattern = Pattern::new(r"^  \d+ failing$");
static HEADER: Pattern = Pattern::new(r"^  \d+\) (.+)$");

/// The file of a test that ran out of time, which has no frame.
static TIMEOUT: Pattern =
    Pattern::new(r"^Error: Timeout of \d+ms exceeded\. .* \((\S+\.\w+)\)(?:\n|$)");

/// Reads the failures below `N failing`; the same headers above it only list them.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let lines = output.lines;
    let start = lines.iter().position(|line| FAILING.is_match(line));
    let Some(start) = start else { return };
    for (at, line) in lines.iter().enumerate().skip(start + 1) {
        let Some(found) = HEADER.captures(line) else {
            continue;
        };
        let mut name = group(&found, 1).to_owned();
        let mut title = at;
        while !name.ends_with(':') {
            let more = lines.get(title + 1);
            let Some(more) = more.filter(|more| more.starts_with("     ")) else {
                break;
            };
            name.push_str(" › ");
            name.push_str(more.trim());
            title += 1;
        }
        let name = name.trim_end_matches(':');
        sink.test(name);
        let read = javascript::below(lines, title, sink);
        let message = read.message.join("\n");
        if let Some((frame, place)) = read.frame {
            sink.failure(frame, place, name, &message)
                .lines(at..read.end);
        } else if let Some(found) = TIMEOUT.captures(&message) {
            let place = Location::new(group(&found, 1), "");
            sink.failure(at, place, name, &message).lines(at..read.end);
        }
    }
}
