//! Maven Surefire.

use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally, optional_number, sum};
use crate::checks::diagnostic::{Output, Sink};
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
    counts,
    ..Tool::NOTHING
};

static FAILED: Pattern = Pattern::new(r"^\[ERROR\] (\S+?\.\S+) .*<<< (?:FAILURE|ERROR)!");

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    for line in output.lines {
        if let Some(found) = FAILED.captures(line) {
            sink.test(group(&found, 1));
        }
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
    static SUMMARY: Pattern = Pattern::new(
        r"^(?:\[\w+\] )?Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)\s*$",
    );
    let mut tally = Tally::default();
    for line in lines {
        let Some(found) = SUMMARY.captures(line) else {
            continue;
        };
        let [total, failures, errors, skips] =
            [1, 2, 3, 4].map(|index| optional_number(group(&found, index)));
        tally.add_of_total(total, sum(&[failures, errors]), skips);
    }
    tally.finish()
}
