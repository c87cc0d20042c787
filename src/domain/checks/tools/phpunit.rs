//! PHPUnit.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Output, Sink, below};
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
    summary: &[
        r"^OK \((?<passed>\d+) tests?, \d+ assertions?\)(?<failed>)$",
        r"^Tests: (?<total>\d+), Assertions: \d+(?:, Errors: (?<failed>\d+)|(?<failed_0>))(?:, Failures: (?<failed_1>\d+))?(?:, (?:PHPUnit )?(?:Warnings|Deprecations|Notices): \d+)*(?:, Skipped: (?<skipped>\d+))?(?:, Incomplete: (?<skipped_1>\d+))?(?:, Risky: (?<skipped_2>\d+))?\.$",
    ],
    headers: &[r"\d+\)\ \S+::\S+"],
    around: Some((
        r"^PHPUnit [0-9]+\.[0-9]+\S* by ",
        r"^(?:Time: |Available |No tests executed)",
    )),
    ..Tool::NOTHING
};

const REACH: usize = 60;

/// The innermost frame comes first below a failure; frames of libraries are in `vendor/`. Tests that were skipped
/// or are risky are listed in the same form below other headings.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static FAILED: Pattern = Pattern::new(r"^\d+\) (\S+::\S+(?: with data set .+)?)$");
    static FRAME: Pattern = Pattern::new(r"^(\S+\.php):(\d+)$");
    static HEADING: Pattern = Pattern::new(r"^There (?:was|were) \d+ (.+):$");
    let lines = output.lines;
    let is_other = |line: &&str| HEADING.is_match(line) || line.starts_with(" ✘ ");
    let mut is_failure = !lines.iter().any(is_other);
    let mut none = true;
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = HEADING.captures(line) {
            let kind = group(&found, 1);
            is_failure = kind.starts_with("failure") || kind.starts_with("error");
        }
        let Some(found) = FAILED.captures(line).filter(|_| is_failure) else {
            continue;
        };
        let below = below(lines, at, REACH, |line| {
            !FAILED.is_match(line) && line != "--"
        });
        let place = sink.own_frame(&below, &FRAME).unwrap_or_default();
        let said = below.iter().take_while(|line| !FRAME.is_match(line));
        let said: Vec<&str> = said
            .map(|line| line.trim())
            .filter(|line| !line.is_empty())
            .collect();
        sink.failing(at, place, group(&found, 1), &said.join("\n"))
            .lines(at..at + 1 + said.len());
        none = false;
    }
    if none {
        test_dox(lines, sink);
    }
}

/// `--testdox`: a class, and below it a sentence about each test.
fn test_dox(lines: &[&str], sink: &mut Sink<'_>) {
    static FAILED: Pattern = Pattern::new(r"^ ✘ (\S.*?)(?: \[[\d.]+ m?s\])?$");
    static FRAME: Pattern = Pattern::new(r"^   [│╵] (\S+\.php):(\d+)$");
    const FRAMING: [char; 6] = [' ', '┐', '├', '│', '╵', '┴'];
    let mut class = "";
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with(|c: char| c.is_alphabetic()) {
            class = line;
        }
        let Some(found) = FAILED.captures(line) else {
            continue;
        };
        let below = below(lines, at, REACH, |line| {
            line.starts_with("   ") && !line.trim().is_empty()
        });
        let place = sink.own_frame(&below, &FRAME).unwrap_or_default();
        let said = below
            .iter()
            .filter(|line| !FRAME.is_match(line))
            .map(|line| line.trim_start_matches(FRAMING).trim());
        let said: Vec<&str> = said.filter(|line| !line.is_empty()).collect();
        let name = format!("{class}: {}", group(&found, 1));
        sink.failing(at, place, &name, &said.join("\n"))
            .lines(at..at + 1 + below.len());
    }
}
