//! cargo-nextest.

use super::{Tool, ToolKind};
use crate::pattern::Pattern;

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "nextest",
    kind: ToolKind::Tests,
    signs: &[
        r"^\s+(?:FAIL|SIGABRT|SIGSEGV|SIGKILL|ABORT|TIMEOUT|LEAK-FAIL)(?: \S+)? \[\s*[\d.]+s\] ",
        r"^\s+Summary \[[^\]]*\]\s+\d+(?:/\d+)? tests? run: ",
    ],
    // The parser of `cargo test` reads the panics.
    lines: &[FAILED_TESTS],
    // The parentheses say how many tests were slow or flaky.
    summary: &[
        r"^\s+Summary \[[^\]]*\]\s+(?<total>\d+)(?:/\d+)? tests? run: (?<passed>\d+) passed(?: \([^)]*\))?(?:, (?<failed>\d+) failed(?: \([^)]*\))?|(?<failed_0>))(?:, (?<failed_1>\d+) exec failed)?(?:, (?<failed_2>\d+) timed out)?",
    ],
    headers: &[r"\s+(?:FAIL|SIGABRT|SIGSEGV|TIMEOUT) \["],
    ..Tool::NOTHING
};

const FAILED_TESTS: &str = r"^\s+(?:FAIL|SIGABRT|SIGSEGV|SIGKILL|ABORT|TIMEOUT|LEAK-FAIL)(?: \S+)? \[\s*[\d.]+s\] (?:\(\s*\d+/\d+\) )?(?<listed>\S+ .+)$";
static FAILED: Pattern = Pattern::new(FAILED_TESTS);

/// Whether `lines` contain failed tests named by nextest.
pub(super) fn is_in(lines: &[&str]) -> bool {
    lines.iter().any(|line| FAILED.is_match(line))
}

/// The binary and the name of the failed test that a line names.
pub(super) fn failed(line: &str) -> Option<&str> {
    FAILED.captures(line)?.get(1).map(|name| name.as_str())
}
