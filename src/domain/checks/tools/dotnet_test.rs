//! `dotnet test`.

use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally, sum};
use crate::checks::diagnostic::{Output, Sink, below, joined};
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

const REACH: usize = 80;

/// The location is the first frame of the stack trace that is in the project.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static NEXT: Pattern = Pattern::new(r"^(?:  (?:Failed|Passed|Skipped) \S|(?:Failed|Passed)! )");
    static FRAME: Pattern = Pattern::new(r"^\s+at .+ in (.+\.(?:cs|fs|vb)):line (\d+)$");
    let lines = output.lines;
    for (at, found) in FAILED.in_lines(lines) {
        let below = below(lines, at, REACH, |line| !NEXT.is_match(line));
        let place = sink.own_frame(&below, &FRAME);
        let said = below
            .iter()
            .skip_while(|line| line.trim() != "Error Message:")
            .skip(1)
            .take_while(|line| line.trim() != "Stack Trace:");
        let name = group(&found, 1);
        sink.failing(at, place.unwrap_or_default(), name, &joined(said))
            .lines(at..at + 1 + below.len());
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
    static SUMMARY: Pattern = Pattern::new(
        r"^(?:Passed|Failed|Skipped)!\s+- Failed:\s*(\d+), Passed:\s*(\d+), Skipped:\s*(\d+), Total:\s*(\d+),?",
    );
    let mut tally = Tally::default();
    for (_, found) in SUMMARY.in_lines(lines) {
        let [failed, passed, skipped, total] =
            [1, 2, 3, 4].map(|index| group(&found, index).parse::<u64>().ok());
        tally.add(passed, failed);
        tally.break_if(sum(&[failed, passed, skipped]) != total);
    }
    tally.finish()
}
