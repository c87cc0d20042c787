//! Maven Surefire.

use super::jvm;
use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Sink, below};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "Maven",
    kind: ToolKind::Tests,
    signs: &[
        r"<<< (?:FAILURE|ERROR)!",
        r"^(?:\[\w+\] )?Tests run: \d+, Failures: ",
    ],
    read,
    summary: &[
        r"^(?:\[\w+\] )?Tests run: (?<total>\d+), Failures: (?<failed>\d+), Errors: (?<errors>\d+), Skipped: (?<skipped>\d+)\s*$",
    ],
    ..Tool::NOTHING
};

static FAILED: Pattern = Pattern::new(r"^\[ERROR\] (\S+?\.\S+) .*<<< (?:FAILURE|ERROR)!");

const REACH: usize = 60;

/// The location is the one in the test's own class, which the stack trace names with its package.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let lines = output.lines;
    for (at, found) in FAILED.in_lines(lines) {
        let name = group(&found, 1);
        let below = below(lines, at, REACH, |line| {
            !line.trim().is_empty() && !line.starts_with('[')
        });
        let told = jvm::place(&below, class_of(name)).unwrap_or_default();
        let said = below.iter().take_while(|line| !line.starts_with("\tat "));
        let said: Vec<&str> = said.copied().collect();
        sink.failing(at, Location::new(&told.0, &told.1), name, &said.join("\n"))
            .lines(at..at + 1 + below.len());
    }
}

/// The class in `com.example.CalcTest.adds(int)[1]`, or in the older format `adds(com.example.CalcTest)`.
fn class_of(name: &str) -> &str {
    let (before, inside) = name.split_once(['(', '[']).unwrap_or((name, ""));
    match before.rsplit_once('.') {
        Some((class, _)) => class,
        None => inside.trim_end_matches(')'),
    }
}
