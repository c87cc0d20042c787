//! cucumber-js.

use super::{Tool, ToolKind, javascript};
use crate::checks::counts::{Counts, Tally, worded};
use crate::checks::diagnostic::{Location, Output, Sink, below};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "cucumber-js",
    kind: ToolKind::Tests,
    signs: &[
        r"^\d+\) Scenario: .+ # \S+:\d+$",
        r"^\d+ scenarios?(?: \(.*\))?$",
    ],
    read,
    counts,
    headers: &[r"\d+\)\ Scenario:\ "],
    ..Tool::NOTHING
};

static SCENARIO: Pattern = Pattern::new(
    r"^\d+\) (?:Scenario|Example): (.+?)(?: \(attempt \d+(, retried)?\))? # (\S+):(\d+)$",
);
static SUMMARY: Pattern = Pattern::new(r"^\d+ scenarios?(?: \(.*\))?$");
const REACH: usize = 60;

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    for (at, line) in output.lines.iter().enumerate() {
        let found = SCENARIO.captures(line);
        let Some(found) = found.filter(|found| group(found, 2).is_empty()) else {
            continue;
        };
        let is_of_it = |line: &str| !SCENARIO.is_match(line) && !SUMMARY.is_match(line);
        let block = below(output.lines, at, REACH, is_of_it);
        let test = format!("{} › {}", group(&found, 3), group(&found, 1));
        let step = block
            .iter()
            .position(|line| line.trim_start().starts_with('✖'));
        let message: Vec<&str> = block
            .iter()
            .skip(step.unwrap_or(0))
            .map(|line| line.trim())
            .take_while(|line| !line.starts_with("at "))
            .filter(|line| !line.is_empty())
            .collect();
        let feature = Location::new(group(&found, 3), group(&found, 4));
        sink.test_at(&test, Location::new(group(&found, 3), group(&found, 4)));
        let place = javascript::own_frame(&block, sink).unwrap_or(feature);
        sink.failure(at, place, &test, &message.join("\n"))
            .lines(at..at + 1 + block.len());
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
    let mut tally = Tally::default();
    for (at, _) in SUMMARY.in_lines(lines) {
        let line = lines.get(at).copied().unwrap_or_default();
        let inside = line.split_once('(').map_or("", |(_, inside)| inside);
        let failed = [
            worded(inside, &["failed"]),
            worded(inside, &["undefined"]),
            worded(inside, &["ambiguous"]),
        ];
        let failed: u64 = failed.into_iter().flatten().sum();
        tally.add(Some(worded(inside, &["passed"]).unwrap_or(0)), Some(failed));
    }
    tally.finish()
}
