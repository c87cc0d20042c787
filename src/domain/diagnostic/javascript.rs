//! jest, vitest, mocha and node's own test runner.

use super::{Place, Sink, Tool};
use crate::domain::pattern::{Pattern, group};

static JEST: Pattern = Pattern::new(r"^  ● (.+)$");
static VITEST: Pattern = Pattern::new(r"^ FAIL  (.+)$");
static MOCHA: Pattern = Pattern::new(r"^  \d+\) (.+)$");
static NODE: Pattern = Pattern::new(r"^\s*✖ (.+?) \([\d.]+m?s\)$");
static FRAME: Pattern = Pattern::new(
    r"^\s*(?:at (?:.*\()?|❯ (?:\S+ )?)(?:file://)?([^\s():]+):(\d+):(\d+)\)?(?: \{)?$",
);
static SUMMARY: Pattern = Pattern::new(r"^\s*(?:Test Suites?|Test Files|Tests):?\s+\d");

const MESSAGE_LINES: usize = 12;
const REACH: usize = 60;

pub(super) fn parse(lines: &[&str], sink: &mut Sink<'_>) {
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        if let Some(name) = header(line) {
            failure(lines, at, name, sink);
        }
        at += 1;
    }
}

fn header(line: &str) -> Option<&str> {
    let found = [&JEST, &VITEST, &MOCHA, &NODE]
        .into_iter()
        .find_map(|it| it.captures(line))?;
    found
        .get(1)
        .map(|name| name.as_str().trim())
        .filter(|name| *name != "Console")
}

/// From a failure's header to its first frame inside the project.
fn failure(lines: &[&str], header_at: usize, name: &str, sink: &mut Sink<'_>) {
    let mut message = Vec::new();
    let mut in_message = true;
    for (at, line) in lines.iter().enumerate().skip(header_at + 1).take(REACH) {
        if header(line).is_some() || SUMMARY.is_match(line) {
            return;
        }
        if let Some(found) = FRAME.captures(line) {
            in_message = false;
            let path = group(&found, 1);
            let own = sink
                .relative(path)
                .is_some_and(|path| !path.contains("node_modules/"));
            if own && !path.starts_with("node:") {
                let place = Place {
                    path,
                    line: group(&found, 2),
                    column: group(&found, 3),
                };
                let text = format!("{name}: {}", message.join("\n"));
                sink.error(at, place, &text, Tool::JavaScript);
                return;
            }
        } else if in_message && message.len() < MESSAGE_LINES {
            let line = line.trim();
            if !line.is_empty() && !is_source(line) {
                message.push(line);
            }
        }
    }
}

/// A line of the code that jest and vitest show around the failure.
fn is_source(line: &str) -> bool {
    let line = line.trim_start_matches(['>', ' ']);
    line.trim_start_matches(|c: char| c.is_ascii_digit())
        .trim_start()
        .starts_with('|')
}
