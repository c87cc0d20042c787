//! The common parts of jest, vitest, mocha and Node's own test runner: frames, and the lines between a
//! failure's header and its first frame.

use crate::checks::diagnostic::{Location, Sink};
use crate::checks::path::is_relative;
use crate::pattern::{Pattern, group};
use std::borrow::Cow;

/// The header of a failure in any of these tools; it ends the failure above it.
static HEADERS: [Pattern; 4] = [
    Pattern::new(r"^  ● (.+)$"),
    Pattern::new(r"^ FAIL  (.+)$"),
    Pattern::new(r"^  \d+\) (.+)$"),
    Pattern::new(r"^\s*✖ (.+?) \([\d.]+m?s\)(?: # .*)?$"),
];
pub(super) static FRAME: Pattern = Pattern::new(
    r"^\s*(?:at (?:.*\()?|❯ (?:\S+ )?)(?:file://)?([^\s():]+):(\d+):(\d+)\)?(?: \{)?$",
);
static SUMMARY: Pattern = Pattern::new(r"^\s*(?:Test Suites?|Test Files|Tests):?\s+\d");

/// The start of a test, as Node's runner prints it above each failure of its list.
pub(super) static START: Pattern = Pattern::new(r"^test at (.+?):(\d+):(\d+)$");

/// jest's line above the failures of a file.
pub(super) static FILE: Pattern =
    Pattern::new(r"^ ?FAIL  ?(?:\S+  ?)?(\S+\.[cm]?[jt]sx?)(?: \([\d.]+ m?s\))?$");
/// A file that could not be parsed: the frames below are the parser's own.
static SYNTAX: Pattern =
    Pattern::new(r"^\s*(\w*Error): (\S+\.\w+): (.+?)\.? \((\d{1,7}):(\d{1,6})\)$");

const MESSAGE_LINES: usize = 12;
const REACH: usize = 60;

/// The lines of a failure below its header.
#[derive(Default)]
pub(super) struct FailureLines<'a> {
    /// The lines of its message.
    pub(super) message: Vec<&'a str>,
    /// The first frame inside the project, and the line that names it.
    pub(super) frame: Option<(usize, Location<'a>)>,
    /// A location that the message itself names, with its message: a file could not be parsed.
    pub(super) syntax: Option<(Location<'a>, String)>,
    /// The index of the line after the failure.
    pub(super) end: usize,
}

/// Reads the lines below the line `header`, up to the next failure.
pub(super) fn below<'a>(lines: &[&'a str], header: usize, sink: &Sink<'_>) -> FailureLines<'a> {
    let mut read = FailureLines {
        end: header + 1,
        ..FailureLines::default()
    };
    let mut in_message = true;
    for (at, line) in lines.iter().enumerate().skip(header + 1).take(REACH) {
        if is_header(line) || FILE.is_match(line) || SUMMARY.is_match(line) || START.is_match(line)
        {
            break;
        }
        read.end = at + 1;
        if let Some(found) = FRAME.captures(line) {
            in_message = false;
            let place = Location::of(&found);
            if sink.is_own(place.path) {
                read.frame = Some((at, place));
                break;
            }
        } else if in_message {
            if let Some(found) = SYNTAX.captures(line).filter(|_| read.syntax.is_none()) {
                let place = Location {
                    path: group(&found, 2),
                    line: group(&found, 4),
                    column: group(&found, 5),
                };
                let said = format!("{}: {}", group(&found, 1), group(&found, 3));
                read.syntax = Some((place, said));
            }
            let line = line.trim();
            if read.message.len() < MESSAGE_LINES && !line.is_empty() && !is_source(line) {
                read.message.push(line);
            }
        }
    }
    read
}

/// Adds the failure of `test`, whose header is the line `header`; `file` is the test's file, if known.
pub(super) fn failure(lines: &[&str], header: usize, test: &str, file: &str, sink: &mut Sink<'_>) {
    let read = below(lines, header, sink);
    let range = header..read.end;
    let message = read.message.join("\n");
    if let Some((at, place)) = read.frame {
        let path = from_root(lines, header, place.path, file);
        let place = Location {
            path: &path,
            ..place
        };
        sink.failure(at, place, test, &message).lines(range);
    } else if let Some((place, said)) = read.syntax {
        sink.failure(header, place, test, &said).lines(range);
    } else if sink.is_own(file) {
        sink.failure(header, Location::new(file, ""), test, &message)
            .lines(range);
    }
}

/// The path of a frame. A project of jest names its files from its own directory in the frames, and from the one
/// in which jest runs above the failures of `file`.
fn from_root<'a>(lines: &[&str], header: usize, path: &'a str, file: &str) -> Cow<'a, str> {
    let frames = lines
        .iter()
        .skip(header + 1)
        .take(REACH)
        .take_while(|line| !is_header(line));
    let directory = frames
        .filter_map(|line| FRAME.captures(line))
        .find_map(|found| {
            let directory = file.strip_suffix(group(&found, 1))?;
            directory.ends_with('/').then_some(directory)
        });
    match directory {
        Some(directory) if is_relative(path) => Cow::Owned(format!("{directory}{path}")),
        _ => Cow::Borrowed(path),
    }
}

fn is_header(line: &str) -> bool {
    HEADERS.iter().any(|header| header.is_match(line))
}

/// Whether a line is source code that jest or vitest shows around the failure.
fn is_source(line: &str) -> bool {
    let line = line.trim_start_matches(['>', ' ']);
    line.trim_start_matches(|c: char| c.is_ascii_digit())
        .trim_start()
        .starts_with('|')
}
