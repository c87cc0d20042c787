//! cargo-nextest.

use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally, sum, worded};
use crate::checks::diagnostic::{Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "nextest",
    kind: ToolKind::Tests,
    signs: &[
        r"^\s+(?:FAIL|SIGABRT|SIGSEGV|SIGKILL|ABORT|TIMEOUT|LEAK-FAIL)(?: \S+)? \[\s*[\d.]+s\] ",
        r"^\s+Summary \[[^\]]*\]\s+\d+(?:/\d+)? tests? run: ",
    ],
    read,
    counts,
    headers: &[r"\s+(?:FAIL|SIGABRT|SIGSEGV|TIMEOUT) \["],
    ..Tool::NOTHING
};

static FAILED: Pattern = Pattern::new(
    r"^\s+(?:FAIL|SIGABRT|SIGSEGV|SIGKILL|ABORT|TIMEOUT|LEAK-FAIL)(?: \S+)? \[\s*[\d.]+s\] (?:\(\s*\d+/\d+\) )?(\S+ .+)$",
);

/// Whether `lines` contain failed tests named by nextest.
pub(super) fn is_in(lines: &[&str]) -> bool {
    lines.iter().any(|line| FAILED.is_match(line))
}

/// The parser of `cargo test` reads the panics.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    for name in output.lines.iter().filter_map(|line| failed(line)) {
        sink.test(name);
    }
}

/// The binary and the name of the failed test that a line names.
pub(super) fn failed(line: &str) -> Option<&str> {
    FAILED.captures(line)?.get(1).map(|name| name.as_str())
}

fn counts(lines: &[&str]) -> Option<Counts> {
    static SUMMARY: Pattern =
        Pattern::new(r"^\s+Summary \[[^\]]*\]\s+(\d+)(?:/(\d+))? tests? run: (\d+) passed(.*)$");
    let mut tally = Tally::default();
    for (_, found) in SUMMARY.in_lines(lines) {
        let rest = group(&found, 4);
        let passed: Option<u64> = group(&found, 3).parse().ok();
        let failed = failed_in_nextest(rest);
        let run: Option<u64> = group(&found, 1).parse().ok();
        tally.add(passed, failed);
        tally.break_if(run.is_none() || run != sum(&[passed, failed]));
    }
    tally.finish()
}

fn failed_in_nextest(rest: &str) -> Option<u64> {
    // The parenthesis after the passed tests says how many of them were slow or flaky.
    let rest = rest
        .strip_prefix(" (")
        .and_then(|it| it.split_once(')'))
        .map_or(rest, |it| it.1);
    worded(rest, &["failed", "timed"])
        .zip(worded(rest, &["exec"]))
        .map(|(f, e)| f.saturating_add(e))
}
