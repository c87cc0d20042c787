//! `dotnet test`.

use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally, sum};
use crate::checks::diagnostic::{Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "dotnet test",
    kind: ToolKind::Tests,
    signs: &[
        r"^  Failed \S.* \[[^\]]+\]$",
        r"^(?:Passed|Failed|Skipped)!\s+- Failed:",
    ],
    read,
    counts,
    ..Tool::NOTHING
};

static FAILED: Pattern = Pattern::new(r"^  Failed (\S.*?) \[[^\]]+\]$");

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    for line in output.lines {
        if let Some(found) = FAILED.captures(line) {
            sink.test(group(&found, 1));
        }
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
    static SUMMARY: Pattern = Pattern::new(
        r"^(?:Passed|Failed|Skipped)!\s+- Failed:\s*(\d+), Passed:\s*(\d+), Skipped:\s*(\d+), Total:\s*(\d+),?",
    );
    let mut tally = Tally::default();
    for line in lines {
        let Some(found) = SUMMARY.captures(line) else {
            continue;
        };
        let [failed, passed, skipped, total] =
            [1, 2, 3, 4].map(|index| group(&found, index).parse::<u64>().ok());
        tally.add(passed, failed);
        tally.break_if(sum(&[failed, passed, skipped]) != total);
    }
    tally.finish()
}
