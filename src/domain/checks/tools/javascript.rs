//! jest, vitest, mocha and node's own test runner.

use crate::checks::diagnostic::{Place, Sink, Tool};
use crate::pattern::{Pattern, group};

static JEST: Pattern = Pattern::new(r"^  ● (.+)$");
static VITEST: Pattern = Pattern::new(r"^ FAIL  (.+)$");
static MOCHA: Pattern = Pattern::new(r"^  \d+\) (.+)$");
static NODE: Pattern = Pattern::new(r"^\s*✖ (.+?) \([\d.]+m?s\)$");
static FRAME: Pattern = Pattern::new(
    r"^\s*(?:at (?:.*\()?|❯ (?:\S+ )?)(?:file://)?([^\s():]+):(\d+):(\d+)\)?(?: \{)?$",
);
static SUMMARY: Pattern = Pattern::new(r"^\s*(?:Test Suites?|Test Files|Tests):?\s+\d");

/// jest's line above the failures of a file.
static FILE: Pattern = Pattern::new(r"^FAIL (?:\S+ )?(\S+\.[cm]?[jt]sx?)(?: \([\d.]+ m?s\))?$");
/// A file that could not be parsed: the frames below are the parser's own.
static SYNTAX: Pattern =
    Pattern::new(r"^\s*(\w*Error): (\S+\.\w+): (.+?)\.? \((\d{1,7}):(\d{1,6})\)$");

const MESSAGE_LINES: usize = 12;
const REACH: usize = 60;

pub(in crate::checks) fn parse(lines: &[&str], sink: &mut Sink<'_>) {
    let mut file = "";
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = FILE.captures(line) {
            file = found.get(1).map_or("", |path| path.as_str());
        } else if let Some(name) = header(line) {
            failure(lines, at, name, file, sink);
        }
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

/// From a failure's header to its first frame inside the project. `file` is that of jest's tests.
fn failure(lines: &[&str], header_at: usize, name: &str, file: &str, sink: &mut Sink<'_>) {
    let mut message = Vec::new();
    let mut in_message = true;
    let mut syntax = None;
    for (at, line) in lines.iter().enumerate().skip(header_at + 1).take(REACH) {
        if header(line).is_some() || FILE.is_match(line) || SUMMARY.is_match(line) {
            break;
        }
        if let Some(found) = FRAME.captures(line) {
            in_message = false;
            let place = Place {
                path: group(&found, 1),
                line: group(&found, 2),
                column: group(&found, 3),
            };
            if is_own(place.path, sink) {
                let text = format!("{name}: {}", message.join("\n"));
                sink.error(at, place, &text, Tool::JavaScript);
                return;
            }
        } else if in_message {
            syntax = syntax.or_else(|| SYNTAX.captures(line));
            let line = line.trim();
            if message.len() < MESSAGE_LINES && !line.is_empty() && !is_source(line) {
                message.push(line);
            }
        }
    }
    if let Some(found) = syntax {
        let place = Place {
            path: group(&found, 2),
            line: group(&found, 4),
            column: group(&found, 5),
        };
        let text = format!("{name}: {}: {}", group(&found, 1), group(&found, 3));
        sink.error(header_at, place, &text, Tool::JavaScript);
    } else if JEST.is_match(lines.get(header_at).unwrap_or(&"")) && is_own(file, sink) {
        let place = Place {
            path: file,
            ..Place::default()
        };
        let text = format!("{name}: {}", message.join("\n"));
        sink.error(header_at, place, &text, Tool::JavaScript);
    }
}

fn is_own(path: &str, sink: &Sink<'_>) -> bool {
    let relative = sink.relative(path);
    !path.starts_with("node:") && relative.is_some_and(|path| !path.contains("node_modules/"))
}

/// A line of the code that jest and vitest show around the failure.
fn is_source(line: &str) -> bool {
    let line = line.trim_start_matches(['>', ' ']);
    line.trim_start_matches(|c: char| c.is_ascii_digit())
        .trim_start()
        .starts_with('|')
}
