//! `swift test`: XCTest and Swift Testing.

use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally, optional_number};
use crate::checks::diagnostic::{Location, Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "swift test",
    kind: ToolKind::Tests,
    signs: &[
        r"^Test Case '.+' (?:passed|failed) \([\d.]+ seconds\)\.?$",
        r"^. Test run with \d+ tests? .*(?:passed|failed) after [\d.]+ seconds",
    ],
    read,
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

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static ASSERTED: Pattern = Pattern::new(r"^(\S+\.swift):(\d+): error: (\S.*?) : (.*)$");
    static FAILED: Pattern = Pattern::new(r"^Test Case '(.+)' failed \([\d.]+ seconds\)\.?$");
    static ISSUE: Pattern =
        Pattern::new(r"^✘ Test (.+?) recorded an issue .*?at (\S+?\.swift):(\d+):(\d+): (.*)$");
    for (at, line) in output.lines.iter().enumerate() {
        if let Some(found) = ASSERTED.captures(line) {
            let place = Location::new(group(&found, 1), group(&found, 2));
            let test = plain(group(&found, 3));
            let message = group(&found, 4).trim_end_matches(" - ");
            sink.failure(at, place, &test, message);
        } else if let Some(found) = FAILED.captures(line) {
            sink.test(&plain(group(&found, 1)));
        } else if let Some(found) = ISSUE.captures(line) {
            let place = Location {
                path: group(&found, 2),
                line: group(&found, 3),
                column: group(&found, 4),
            };
            sink.failure(at, place, group(&found, 1), group(&found, 5));
        } else if let Some(test) = ended(line) {
            sink.test(test);
        }
    }
}

/// Converts the macOS name `-[Tests.CalcTests testAdds]` to the name used elsewhere: `CalcTests.testAdds`.
fn plain(name: &str) -> String {
    let inner = name.strip_prefix("-[").and_then(|it| it.strip_suffix(']'));
    let parts = inner.and_then(|inner| inner.split_once(' '));
    match parts {
        Some((class, test)) => format!("{}.{test}", class.rsplit('.').next().unwrap_or(class)),
        None => name.to_owned(),
    }
}

/// The failed test of Swift Testing; the line about the whole run has the same format and is excluded.
fn ended(line: &str) -> Option<&str> {
    static ENDED: Pattern = Pattern::new(r"^✘ Test (.+) failed after [\d.]+ seconds with ");
    let test = ENDED.captures(line)?.get(1)?.as_str();
    (!test.starts_with("run with ")).then_some(test)
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
        let failed = lines.iter().filter(|line| ended(line).is_some()).count();
        let total = optional_number(group(&run, 1));
        tally.add_of_total(total, u64::try_from(failed).ok(), Some(0));
    }
    tally.finish()
}
