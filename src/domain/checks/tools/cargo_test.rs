//! `cargo test`, cargo-nextest, and panics of Rust tests and programs in the formats before and since Rust 1.73.

use super::shape::Below;
use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Output, Sink};
use crate::pattern::{Pattern, group};

/// `cargo test`. The place of an example of the documentation is in its name.
pub(super) const TOOL: Tool = Tool {
    name: "cargo test",
    kind: ToolKind::Tests,
    signs: &[
        r"^\s*thread '.*?' (?:\(\d+\) )?panicked at ",
        r"^test .+ \.\.\. (?:ok|FAILED|ignored)",
        r"^test result: (?:ok|FAILED)\. \d+ passed; ",
    ],
    // What a failed test printed follows.
    above: r"(?x)^(?:failures: | \s*----\ (?<about>.+)\ stdout\ ----$
        | \s+(?:FAIL|SIGABRT|SIGSEGV|SIGKILL|ABORT|TIMEOUT|LEAK-FAIL)(?:\ \S+)?\ \[\s*[\d.]+s\]\ (?:\(\s*\d+/\d+\)\ )?\S+\ (?<about_2>.+)$)",
    lines: &[
        r"^\s*thread '(?:main|<unnamed>|)(?<about>)' (?:\(\d+\) )?panicked at (?:(?<path>[^'].*?):(?<line>\d+):(?<column>\d+):|'(?<text>.*?)(?:', (?<path_2>[^',]+?):(?<line_2>\d+):(?<column_2>\d+))?)$",
        r"^\s*thread '(?<about>.*?)' (?:\(\d+\) )?panicked at (?:(?<path>[^'].*?):(?<line>\d+):(?<column>\d+):|'(?<text>.*?)(?:', (?<path_2>[^',]+?):(?<line_2>\d+):(?<column_2>\d+))?)$",
        // Tests that fail without a panic: they return an error, or should have panicked.
        r"^\s*(?:note: )?(?<text>test did not panic as expected)(?: at (?<path>.+?):(?<line>\d+):(?<column>\d+))?$",
        r"^\s*(?<text>Error: .*)$",
        r"^test (?<listed>(?<path>\S+\.\w+) - (?:.* )?\(line (?<line>\d+)\)) \.\.\. FAILED$",
        r"^test (?<listed>.+?)(?: - should panic)? \.\.\. FAILED$",
    ],
    below: Some(Below {
        until: r"^\s*(?:$|stack backtrace:|note: |---- .+ ----$|failures:|test .+ \.\.\. |test result: |thread '.*panicked at )",
        framing: "",
        frame: r"^(?<last>.*)', (?<path>[^',]+?):(?<line>\d+):(?<column>\d+)$",
        ..Below::NOTHING
    }),
    says: "panicked",
    read: listed,
    summary: &[
        r"^test result: ok\. (?<passed>\d+) passed; (?<failed>0) failed; ",
        r"^test result: FAILED\. (?<passed>\d+) passed; (?<failed>[1-9]\d*) failed; ",
    ],
    result,
    headers: &[r"---- .+ (?:stdout|stderr) ----$"],
    around: Some((r"^running [0-9]+ tests?$", r"^test result: ")),
    ..Tool::NOTHING
};

/// Adds the names of the list at the end. nextest prints the output of each test and names the tests itself.
fn listed(output: Output<'_>, sink: &mut Sink<'_>) {
    static LISTED: Pattern = Pattern::new(r"^    (\S.*)$");
    static NEXTEST: Pattern = Pattern::new(FAILED_TESTS);
    let mut is_list = false;
    for line in output.lines {
        if NEXTEST.is_match(line) {
            return;
        }
        match LISTED.captures(line).filter(|_| is_list) {
            Some(found) => sink.test(group(&found, 1)),
            None => is_list = *line == "failures:",
        }
    }
}

fn result(line: &str) -> Option<(&str, bool)> {
    static RESULT: Pattern = Pattern::new(r"^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED)$");
    let found = RESULT.captures(line)?;
    Some((group(&found, 1), group(&found, 2) == "FAILED"))
}

/// cargo-nextest.
pub(super) const NEXTEST: Tool = Tool {
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
