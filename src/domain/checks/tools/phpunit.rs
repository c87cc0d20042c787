//! PHPUnit.

use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally};
use crate::checks::diagnostic::{Location, Output, Sink, below};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "PHPUnit",
    kind: ToolKind::Tests,
    signs: &[
        r"^PHPUnit \d+\.\d+",
        r"^Tests: \d+, Assertions: \d+",
        r"^OK \(\d+ tests?, \d+ assertions?\)$",
    ],
    read,
    counts,
    headers: &[r"\d+\)\ \S+::\S+"],
    around: Some((
        r"^PHPUnit [0-9]+\.[0-9]+\S* by ",
        r"^(?:Time: |Available |No tests executed)",
    )),
    ..Tool::NOTHING
};

const REACH: usize = 60;

/// The innermost frame comes first below a failure; frames of libraries are in `vendor/`.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static FAILED: Pattern = Pattern::new(r"^\d+\) (\S+::\S+(?: with data set .+)?)$");
    static FRAME: Pattern = Pattern::new(r"^(\S+\.php):(\d+)$");
    let lines = output.lines;
    for (at, found) in FAILED.in_lines(lines) {
        let below = below(lines, at, REACH, |line| {
            !FAILED.is_match(line) && line != "--"
        });
        let frames = below.iter().filter_map(|line| FRAME.captures(line));
        let mut places = frames.map(|found| Location::of(&found));
        let own = |path: &str| {
            let path = sink.relative(path);
            path.is_some_and(|path| !path.contains("vendor/"))
        };
        let place = places.find(|place| own(place.path)).unwrap_or_default();
        let said = below.iter().take_while(|line| !FRAME.is_match(line));
        let said: Vec<&str> = said
            .map(|line| line.trim())
            .filter(|line| !line.is_empty())
            .collect();
        sink.failing(at, place, group(&found, 1), &said.join("\n"))
            .lines(at..at + 1 + said.len());
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
    static FAILED: Pattern = Pattern::new(r"^Tests: (\d+), Assertions: \d+(?:, (.+?))?\.$");
    static PASSED: Pattern = Pattern::new(r"^OK \((\d+) tests?, \d+ assertions?\)$");
    let mut tally = Tally::default();
    for line in lines {
        if let Some(found) = PASSED.captures(line) {
            tally.add(group(&found, 1).parse().ok(), Some(0));
        } else if let Some(found) = FAILED.captures(line) {
            let of = |kinds: &[&str]| {
                let pairs = group(&found, 2)
                    .split(", ")
                    .filter_map(|it| it.split_once(": "));
                let numbers = pairs.filter(|(kind, _)| kinds.contains(kind));
                numbers
                    .filter_map(|(_, number)| number.parse::<u64>().ok())
                    .sum::<u64>()
            };
            let failed = of(&["Errors", "Failures"]);
            let others = of(&["Skipped", "Incomplete", "Risky"]);
            let total: Option<u64> = group(&found, 1).parse().ok();
            tally.add_of_total(total, Some(failed), Some(others));
        }
    }
    tally.finish()
}
