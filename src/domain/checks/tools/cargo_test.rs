//! `cargo test`, and panics of Rust tests and programs in the formats before and since Rust 1.73.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "cargo test",
    kind: ToolKind::Tests,
    signs: &[
        r"^\s*thread '.*?' (?:\(\d+\) )?panicked at ",
        r"^test .+ \.\.\. (?:ok|FAILED|ignored)",
        r"^test result: (?:ok|FAILED)\. \d+ passed; ",
    ],
    read,
    summary: &[
        r"^test result: ok\. (?<passed>\d+) passed; (?<failed>0) failed; ",
        r"^test result: FAILED\. (?<passed>\d+) passed; (?<failed>[1-9]\d*) failed; ",
    ],
    result,
    headers: &[r"---- .+ (?:stdout|stderr) ----$"],
    around: Some((r"^running [0-9]+ tests?$", r"^test result: ")),
    ..Tool::NOTHING
};

static NEW: Pattern =
    Pattern::new(r"^\s*thread '(.*?)' (?:\(\d+\) )?panicked at (.+?):(\d+):(\d+):$");
static OLD: Pattern = Pattern::new(r"^\s*thread '(.*?)' (?:\(\d+\) )?panicked at '(.*)$");
static OLD_END: Pattern = Pattern::new(r"^(.*)', ([^',]+?):(\d+):(\d+)$");
static END: Pattern = Pattern::new(
    r"^\s*(?:stack backtrace:|note: |---- .+ ----$|failures:|test .+ \.\.\. |test result: |thread '.*panicked at )",
);

/// What a failed test printed follows.
static SECTION: Pattern = Pattern::new(r"^\s*---- (.+) stdout ----$");

const MESSAGE_LINES: usize = 30;

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    panics(output.lines, sink);
    quiet(output.lines, sink);
    // nextest prints the output of each test and names the tests itself.
    if !super::nextest::is_in(output.lines) {
        names(output.lines, sink);
    }
}

fn panics(lines: &[&str], sink: &mut Sink<'_>) {
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = NEW.captures(line) {
            let place = Location::at(&found, 2);
            let message = message_below(lines, at + 1);
            panicked(at, place, group(&found, 1), &message, sink);
        } else if let Some(found) = OLD.captures(line) {
            old(lines, at, group(&found, 1), group(&found, 2), sink);
        }
    }
}

fn message_below(lines: &[&str], from: usize) -> String {
    let mut message = Vec::new();
    for line in lines.iter().skip(from).take(MESSAGE_LINES) {
        if END.is_match(line) || line.trim().is_empty() {
            break;
        }
        message.push(*line);
    }
    message.join("\n")
}

fn old(lines: &[&str], at: usize, test: &str, first: &str, sink: &mut Sink<'_>) {
    let mut message = String::new();
    let rest = lines.iter().skip(at + 1).copied();
    for line in std::iter::once(first).chain(rest).take(MESSAGE_LINES) {
        if let Some(found) = OLD_END.captures(line) {
            message.push_str(group(&found, 1));
            let place = Location::at(&found, 2);
            panicked(at, place, test, &message, sink);
            return;
        }
        message.push_str(line);
        message.push('\n');
    }
}

fn panicked(at: usize, place: Location<'_>, thread: &str, message: &str, sink: &mut Sink<'_>) {
    let message = match message.trim() {
        "" => "panicked",
        message => message,
    };
    match thread {
        "main" | "<unnamed>" | "" => sink.error(at, place, message),
        test => sink.failure(at, place, test, message),
    };
}

/// Tests that fail without a panic: they return an error, or should have panicked.
fn quiet(lines: &[&str], sink: &mut Sink<'_>) {
    static CALM: Pattern =
        Pattern::new(r"^\s*(?:note: )?(test did not panic as expected)(?: at (.+?):(\d+):(\d+))?$");
    let mut test = "";
    for (at, line) in lines.iter().enumerate() {
        if let Some(name) = super::nextest::failed(line) {
            test = name.split_once(' ').map_or(name, |(_, test)| test);
        } else if let Some(found) = SECTION.captures(line) {
            test = found.get(1).map_or("", |name| name.as_str());
        } else if let Some(found) = CALM.captures(line).filter(|_| !test.is_empty()) {
            let place = Location::at(&found, 2);
            sink.failure(at, place, test, group(&found, 1));
        } else if line.trim_start().starts_with("Error: ") && !test.is_empty() {
            sink.failure(at, Location::default(), test, line.trim_start());
        } else if line.starts_with("failures:") {
            test = "";
        }
    }
}

fn names(lines: &[&str], sink: &mut Sink<'_>) {
    static LISTED: Pattern = Pattern::new(r"^    (\S.*)$");
    let mut listed = false;
    // What a test prints may have the form of a result.
    let mut is_printed = false;
    for line in lines {
        is_printed |= SECTION.is_match(line);
        if let Some((name, true)) = result(line).filter(|_| !is_printed) {
            named(name, sink);
        }
        if *line == "failures:" {
            listed = true;
            is_printed = false;
        } else if let Some(found) = LISTED.captures(line).filter(|_| listed) {
            named(group(&found, 1), sink);
        } else {
            listed = false;
        }
    }
}

/// Adds a failed test. An example of the documentation has its place in its name.
fn named(name: &str, sink: &mut Sink<'_>) {
    static EXAMPLE: Pattern = Pattern::new(r"^(\S+\.\w+) - (?:.* )?\(line (\d+)\)$");
    let place = EXAMPLE
        .captures(name)
        .map(|found| Location::new(group(&found, 1), group(&found, 2)));
    sink.test_at(name, place.unwrap_or_default());
}

fn result(line: &str) -> Option<(&str, bool)> {
    static RESULT: Pattern = Pattern::new(r"^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED)$");
    let found = RESULT.captures(line)?;
    Some((group(&found, 1), group(&found, 2) == "FAILED"))
}
