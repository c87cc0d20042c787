//! `swift test`: XCTest and Swift Testing.

use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally, optional_number};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "swift test",
    kind: ToolKind::Tests,
    signs: &[
        r"^Test Case '.+' (?:passed|failed) \([\d.]+ seconds\)\.?$",
        r"^. Test run with \d+ tests? .*(?:passed|failed) after [\d.]+ seconds",
    ],
    // macOS names tests as `-[Tests.CalcTests testAdds]`, and other systems as `CalcTests.testAdds`.
    lines: &[
        r"^(?<path>\S+\.swift):(?<line>\d+): error: -\[(?:\w+\.)*(?<suite>\w+) (?<test>[^\]]+)\] : (?<text>.*?)(?: - )?$",
        r"^(?<path>\S+\.swift):(?<line>\d+): error: (?<test>\S.*?) : (?<text>.*?)(?: - )?$",
        r"^Test Case '-\[(?:\w+\.)*(?<suite>\w+) (?<listed>[^\]]+)\]' failed \([\d.]+ seconds\)\.?$",
        r"^Test Case '(?<listed>.+)' failed \([\d.]+ seconds\)\.?$",
        r"^✘ Test (?<test>.+?) recorded an issue .*?at (?<path>\S+?\.swift):(?<line>\d+):(?<column>\d+): (?<text>.*)$",
        r"^✘ Test (?<ignored>run with )",
        r"^✘ Test (?<listed>.+) failed after [\d.]+ seconds with ",
    ],
    between: ".",
    counts,
    headers: &[
        r"\S+\.swift:\d+:\ error:\ ",
        r"✘\ Test\ .+\ recorded\ an\ issue\ ",
    ],
    around: Some((
        r"^Test Suite '[^']+' started at ",
        r"^Test Suite '[^']+' (?:passed|failed) at ",
    )),
    ..Tool::NOTHING
};

/// Whether a test of Swift Testing failed; the line about the whole run has the same format and is excluded.
fn has_failed(line: &str) -> bool {
    static ENDED: Pattern = Pattern::new(r"^✘ Test .+ failed after [\d.]+ seconds with ");
    ENDED.is_match(line) && !line.starts_with("✘ Test run with ")
}

/// XCTest prints the total last, after those of the suites; Swift Testing prints how many tests ran in all.
fn counts(lines: &[&str]) -> Option<Counts> {
    static EXECUTED: Pattern = Pattern::new(
        r"^\s*Executed (\d+) tests?, with (?:(\d+) tests? skipped and )?(\d+) failures?",
    );
    static CASE: Pattern = Pattern::new(r"^Test Case '.+' (passed|failed) \(");
    static RUN: Pattern = Pattern::new(r"^. Test run with (\d+) tests? ");
    let mut tally = Tally::default();
    if lines.iter().any(|line| EXECUTED.is_match(line)) {
        let cases = lines.iter().filter_map(|line| CASE.captures(line));
        let (mut passed, mut failed) = (0, 0);
        for case in cases {
            match group(&case, 1) {
                "passed" => passed += 1,
                _ => failed += 1,
            }
        }
        tally.add(Some(passed), Some(failed));
    }
    if let Some(run) = lines.iter().find_map(|line| RUN.captures(line)) {
        let failed = lines.iter().filter(|line| has_failed(line)).count();
        let total = optional_number(group(&run, 1));
        tally.add_of_total(total, u64::try_from(failed).ok(), Some(0));
    }
    tally.finish()
}
