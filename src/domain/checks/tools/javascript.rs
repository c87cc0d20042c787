//! jest, vitest, mocha, Playwright and AVA, whose failures are a header, a message, and frames below it.

use super::shape::Below;
use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Output, Sink};
use crate::pattern::Pattern;

/// A test runner.
const RUNNER: Tool = Tool {
    kind: ToolKind::Tests,
    below: Some(FAILURE),
    ..Tool::NOTHING
};

/// The lines of a failure in any of these tools, up to the header of the next one.
pub(super) const FAILURE: Below = Below {
    until: r"(?x)^(?:\ \ ●\ .+ | \ FAIL\ \ .+ | \ \ \d+\)\ .+ | \s*✖\ .+?\ \([\d.]+m?s\)(?:\ \#\ .*)?
        | \ ?FAIL\ \ ?(?:\S+\ \ ?)?\S+\.[cm]?[jt]sx?(?:\ \([\d.]+\ m?s\))? | test\ at\ .+:\d+:\d+)$
        | ^\s*(?:Test\ Suites?|Test\ Files|Tests):?\s+\d",
    // A file that could not be parsed is named in the message: the frames below are the parser's own. So is one of whose
    // tests a hook or a test ran out of time.
    frame: r"(?x)^\s*(?:at\ (?:.*\()?|❯\ (?:\S+\ )?)(?:file://)?(?<path>[^\s():]+):(?<line>\d+):(?<column>\d+)\)?(?:\ \{)?$
        | ^\s*(?<text>\w*Error:\ (?<path_2>/?\S+\.\w+):\ .+?)\.?\ \((?<line_2>\d{1,7}):(?<column_2>\d{1,6})\)$
        | ^\s*(?<text_2>Error:\ Timeout\ of\ \d+ms\ exceeded\..*\ \((?<path_3>\S+\.\w+)\))$",
    // Source code around the failure, and frames of Node.js.
    noise: r"^[>\s]*\d*\s*\||^\s*at .*\bnode:",
    ..Below::NOTHING
};

/// jest. With colours, it prints a file alone as vitest does. A project has its name in front of the file.
pub(super) const JEST: Tool = Tool {
    name: "jest",
    signs: &[r"^  ● ", r"^Test Suites:\s+\d"],
    above: r"^ ?FAIL  ?(?<within>(?:\S+  ?)?(?<path>\S+\.[cm]?[jt]sx?)|\S.*?)(?: \([\d.]+ m?s\))?$|^\s*PASS ",
    lines: &[
        r"^  ● (?<ignored>Console)\s*$",
        r"^  ● (?<test>(?<whole>Test suite failed to run))\s*$",
        r"^  ● (?<test>.+)$",
    ],
    needs: r"^\s*Test Suites: +\d",
    summary: &[
        r"^\s*Test Suites: +(?:(?<files>\d+) failed)?",
        r"^\s*Tests: +(?<passed_0>)(?<failed_0>)(?:(?:(?<passed>\d+) passed|(?<failed>\d+) failed|(?<skipped>\d+) skipped|(?<skipped_1>\d+) todo|(?<skipped_2>\d+) pending|(?<total>\d+) total)(?:, )?)+",
    ],
    headers: &[r"  ● ", r"\ ?FAIL \ ?\S"],
    ..RUNNER
};

/// vitest. The failures are below a heading; what tests print may have the same form above it.
pub(super) const VITEST: Tool = Tool {
    name: "vitest",
    signs: &[
        // With colours, jest prints a file alone in this form.
        r"^ FAIL  .+ (?:>|\[) .+$",
        r"^\s+(?:Test Files|Tests)  \d",
    ],
    from: r"^⎯+ Failed (?:Suites|Tests) \d+ ⎯+$",
    lines: &[r"^ FAIL  (?:\|[^|]+\| | \S+  )?(?<test>(?<path>\S+\.\w+)?.*?)(?: \[ .+ \])?$"],
    needs: r"^\s*Test Files  ?\d",
    summary: &[
        r"^\s*Test Files  ?(?:(?<files>\d+) failed)?",
        r"^\s*Tests  ?(?<passed_0>)(?<failed_0>)(?:(?:(?<passed>\d+) passed|(?<failed>\d+) failed|\d+ \w+(?: \w+)*)(?: \| )?)+",
    ],
    encloses: Some((r"^ ?RUN +v[0-9]", r"^ +Test Files +[0-9]")),
    headers: &[r"\ FAIL\ \ \S"],
    ..RUNNER
};

/// mocha. The same headers above the list of failures only list them.
pub(super) const MOCHA: Tool = Tool {
    name: "mocha",
    signs: &[r"^  \d+ (?:passing \(|failing$)"],
    from: r"^  \d+ failing$",
    lines: &[r"^  \d+\) (?<test>.+)$"],
    more: r"^     ",
    summary: &[
        r"^\s{2,}(?<passed>\d+) passing \([^)]*\)(?<failed>)$",
        r"^\s{2,}(?<failed>\d+) failing$",
    ],
    headers: &[r"\ \ \d+\)\ \S"],
    ..RUNNER
};

/// Playwright's `list`, `line` and `dot` reporters. A test that passed in a later try has failures, too: only those that
/// the summary lists have failed. The line of a test changes, so it is not in its name.
pub(super) const PLAYWRIGHT: Tool = Tool {
    name: "Playwright",
    signs: &[
        r"^ {2,}\d+\) (?:\[[^\]]+\] › )?\S+:\d+:\d+ › .+$",
        r"^Running \d+ tests? using \d+ workers?(?:, shard \d+ of \d+)?$",
    ],
    above: r"^  \d+ (?:(?:failed|interrupted)|(?<ignored>passed|flaky|skipped|did not run))(?: \([^()]+\))?$",
    lines: &[
        r"^ {2,}\d+\) (?<suite>(?:\[[^\]]+\] › )?(?<path>\S+?)):(?<line>\d+):(?<column>\d+) › (?<about>.+?)[ ─]*$",
        r"^ {2,}(?<suite>(?:\[[^\]]+\] › )?(?<path>\S+?)):(?<line>\d+):(?<column>\d+) › (?<listed>.+?)[ ─]*$",
    ],
    read: |_, sink| sink.keep_failed(),
    summary: &[
        r"^  (?<passed>\d+) (?:passed|flaky)(?: \([^()]+\))?(?<failed>)$",
        r"^  (?<failed>\d+) (?:failed|interrupted)(?: \([^()]+\))?(?<passed>)$",
        r"^  \d+ (?:skipped|did not run)(?: \([^()]+\))?(?<passed>)(?<failed>)$",
    ],
    headers: &[r"\ \ +\d+\)\ (?:\[[^\]]+\]\ ›\ )?\S+:\d+:\d+\ ›\ "],
    ..RUNNER
};

/// AVA's own reporter.
pub(super) const AVA: Tool = Tool {
    name: "AVA",
    signs: &[r"^  ✘ \[fail\]: ", r"^  \d+ tests? (?:passed|failed)$"],
    read: read_ava,
    // Where tests failed, the number of those that passed is not printed.
    summary: &[
        r"^  (?<passed>\d+) tests? passed(?<failed>)$",
        r"^  (?<failed>\d+) tests? failed$",
    ],
    headers: &[r"\ \ ✘\ \[fail\]:\ "],
    ..RUNNER
};

/// The lines of a failure of AVA. The place of the assertion is above its source.
const AVA_FAILURE: Below = Below {
    until: r"^  ─$",
    frame: r"^  (?<path>[^\s:]+\.[cm]?[jt]sx?):(?<line>\d+)$|^\s*at (?:.*\()?(?:file://)?(?<path_2>[^\s():]+):(?<line_2>\d+):(?<column_2>\d+)\)?$",
    noise: r"^ +\d+: |^\s*[›─]|^\s*at ",
    ..Below::NOTHING
};

/// The list of the tests is above; below the first rule is one block a failure. The list has the message behind the
/// name, and the block begins with the name alone.
fn read_ava(output: Output<'_>, sink: &mut Sink<'_>) {
    static FAILED: Pattern = Pattern::new(r"^  ✘ \[fail\]: (?<name>.+)$");
    let lines = output.lines;
    let failed: Vec<String> = FAILED
        .in_lines(lines)
        .map(|(_, found)| format!("{} ", &found["name"]))
        .collect();
    let is_header = |at: &usize| {
        let name = lines[*at].strip_prefix("  ").unwrap_or_default();
        let is_listed = || failed.iter().any(|it| it.starts_with(&format!("{name} ")));
        lines[at - 1].trim().is_empty() && name.trim() == name && !name.is_empty() && is_listed()
    };
    let starts: Vec<usize> = (1..lines.len()).filter(is_header).collect();
    for (number, at) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied().unwrap_or(lines.len());
        let block = AVA_FAILURE.block(&lines[..end], at + 1, "", "", sink);
        let (place, message) = (block.place().unwrap_or_default(), block.message.join("\n"));
        sink.failing(*at, place, lines[*at].trim(), &message)
            .lines(*at..block.end);
    }
}
