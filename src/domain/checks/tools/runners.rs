//! Test runners that need no code of their own: a line for each failure, the lines below it, and a summary.

use super::shape::Below;
use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally, optional_number, sum};
use crate::pattern::{Pattern, group};

/// A test runner.
const RUNNER: Tool = Tool {
    kind: ToolKind::Tests,
    ..Tool::NOTHING
};

/// CTest. It names no locations: the programs that it runs do.
pub(super) const CTEST: Tool = Tool {
    name: "CTest",
    signs: &[
        r"^\s*\d+/\d+ Test +#\d+: ",
        r"^\d+% tests passed(?:, \d+ tests? failed)? out of \d+$",
    ],
    lines: &[
        r"^\s*\d+/\d+ Test +#\d+: (?<test>\S.*?) \.*\s*\*\*\*(?<text>[A-Z][a-z]+(?: [A-Z][a-z]+)*)",
        r"^\t\s*\d+ - (?<listed>\S.*) \([A-Z][^()]*\)(?:\s.*)?$",
    ],
    summary: &[
        r"^\d+% tests passed, (?<failed>\d+) tests? failed out of (?<total>\d+)$",
        r"^100% tests passed(?<failed>) out of (?<total>\d+)$",
    ],
    headers: &[r"\s*\d+/\d+\ Test\ +\#\d+:\ .*\*\*\*"],
    ..RUNNER
};

/// cucumber-js. A scenario that is tried again fails in its last attempt.
pub(super) const CUCUMBER: Tool = Tool {
    name: "cucumber-js",
    signs: &[
        r"^\d+\) Scenario: .+ # \S+:\d+$",
        r"^\d+ scenarios?(?: \(.*\))?$",
    ],
    lines: &[
        r"^\d+\) (?:Scenario|Example): .+ \(attempt \d+(?<ignored>, retried)\) # ",
        r"^\d+\) (?:Scenario|Example): (?<test>.+?)(?: \(attempt \d+\))? # (?<suite>(?<path>\S+)):(?<line>\d+)$",
    ],
    below: Some(Below {
        until: r"^\d+\) (?:Scenario|Example): |^\d+ scenarios?(?: \(.*\))?$",
        frame: r"^\s*at (?:.*\()?(?:file://)?(?<path>[^\s():]+):(?<line>\d+):(?<column>\d+)\)?$",
        noise: r"^\s*(?:[✔?-] |at )",
    }),
    summary: &[
        r"^\d+ scenarios? \((?:(?<failed>\d+) failed|(?<failed_0>))(?:(?:, )?(?<failed_1>\d+) ambiguous)?(?:(?:, )?(?<failed_2>\d+) undefined)?(?:(?:, )?\d+ (?:pending|skipped|unknown))*(?:(?:, )?(?<passed>\d+) passed|(?<passed_0>))\)$",
        r"^(?<passed>0) scenarios(?<failed>)$",
    ],
    headers: &[r"\d+\)\ Scenario:\ "],
    ..RUNNER
};

/// `deno test`. The list of failures at the end adds nothing.
pub(super) const DENO_TEST: Tool = Tool {
    name: "deno test",
    signs: &[
        r"^running \d+ tests? from \S+$",
        r"^(?:ok|FAILED) \| \d+ passed ",
    ],
    lines: &[r"^(?<test>\S.*) => (?<path>\S+?):(?<line>\d+):(?<column>\d+)$"],
    below: Some(Below {
        until: r"^\S.* => \S+?:\d+:\d+$|^\s*FAILURES\s*$|^(?:ok|FAILED) \| ",
        frame: r"^\s+at (?:.+ \()?(?<path>file://\S+?):(?<line>\d+):(?<column>\d+)\)?$",
        noise: r"^\s+at ",
    }),
    summary: &[r"^(?:ok|FAILED) \| (?<passed>\d+) passed (?:\([^)]*\) )?\| (?<failed>\d+) failed"],
    headers: &[r"\S.* => \S+:\d+:\d+$"],
    ..RUNNER
};

/// `dotnet test`.
pub(super) const DOTNET_TEST: Tool = Tool {
    name: "dotnet test",
    signs: &[
        r"^  Failed \S.* \[[^\]]+\]$",
        r"^(?:Passed|Failed|Skipped)!\s+- Failed:",
    ],
    lines: &[r"^  Failed (?<test>\S.*?) \[[^\]]+\]$"],
    below: Some(Below {
        until: r"^(?:  (?:Failed|Passed|Skipped) \S|(?:Failed|Passed)! )",
        frame: r"^\s+at .+ in (?<path>.+\.(?:cs|fs|vb)):line (?<line>\d+)$",
        noise: r"^\s*(?:Error Message|Stack Trace):|^\s+at ",
    }),
    summary: &[
        r"^(?:Passed|Failed|Skipped)!\s+- Failed:\s*(?<failed>\d+), Passed:\s*(?<passed>\d+), Skipped:\s*(?<skipped>\d+), Total:\s*(?<total>\d+),?",
    ],
    ..RUNNER
};

/// The JUnit console launcher.
pub(super) const JUNIT_CONSOLE: Tool = Tool {
    name: "JUnit console",
    signs: &[r"^\[\s*\d+ tests (?:successful|failed)\s*\]$"],
    summary: &[
        r"^\[\s*(?<passed>\d+) tests successful(?<failed>)\s*\]$",
        r"^\[\s*(?<failed>\d+) tests failed(?<passed>)\s*\]$",
    ],
    ..RUNNER
};

/// sbt, with ScalaTest, which prints the bare file name, and with munit, which prints its path.
pub(super) const SBT: Tool = Tool {
    name: "sbt",
    signs: &[
        r"^\[info\] .+ \*\*\* FAILED \*\*\*",
        r"^\[info\] Tests: succeeded \d+, failed \d+, ",
        r"^\[error\] ==> X ",
        r"^\[\w+\] (?:Passed|Failed): Total \d+, Failed \d+, ",
    ],
    above: r"^\[info\] (?<suite>[A-Z]\w*):$",
    between: ": ",
    lines: &[
        r"^\[info\] +(?:- )?(?<test>\S.*?) \*\*\* FAILED \*\*\*",
        r"^\[error\] ==> X (?<test>.+?) +[\d.]+m?s \S+?: (?<path>\S+\.scala):(?<line>\d+) ?(?<text>.*)$",
        r"^\[error\] ==> X (?<test>.+?) +[\d.]+m?s (?<text>\S+?: .*)$",
    ],
    below: Some(Below {
        until: r"^\[info\] (?:- |[A-Z])|^\[error\]|\*\*\* FAILED",
        frame: r"^\[info\] +(?<text>\S.*) \((?<path>\S+\.scala):(?<line>\d+)\)$",
        noise: "",
    }),
    counts: counts_of_sbt,
    headers: &[
        r"\[info\]\ .+\ \*\*\*\ FAILED\ \*\*\*",
        r"\[error\]\ ==>\ X\ ",
    ],
    ..RUNNER
};

/// ScalaTest tells more than sbt does of all frameworks.
fn counts_of_sbt(lines: &[&str]) -> Option<Counts> {
    static SCALATEST: Pattern = Pattern::new(r"^\[info\] Tests: succeeded (\d+), failed (\d+)(), ");
    static OTHER: Pattern = Pattern::new(
        r"^\[\w+\] (?:Passed|Failed): Total \d+, Failed (\d+), Errors (\d+), Passed (\d+)",
    );
    let mut tally = Tally::default();
    let is_scalatest = lines.iter().any(|line| SCALATEST.is_match(line));
    let pattern = if is_scalatest { &SCALATEST } else { &OTHER };
    for (_, found) in pattern.in_lines(lines) {
        let [first, second, third] = [1, 2, 3].map(|at| optional_number(group(&found, at)));
        if is_scalatest {
            tally.add(first, second);
        } else {
            tally.add(third, sum(&[first, second]));
        }
    }
    tally.finish()
}

/// Unity, the test framework for C. The verbose fixture runner prints the test before the place.
pub(super) const UNITY: Tool = Tool {
    name: "Unity",
    signs: &[
        r"^(?:TEST\(.+\))?(?:[A-Za-z]:)?[^:\n]+:\d+:[^:\n]*:(?:PASS|FAIL|IGNORE)(?:$|: )",
        r"^\d+ Tests \d+ Failures \d+ Ignored\s*$",
    ],
    lines: &[
        r"^(?<test>TEST\(.+?\))(?<path>(?:[A-Za-z]:)?[^:]+):(?<line>\d+):[^:]*:FAIL(?:: (?<text>.*))?$",
        r"^(?<path>(?:[A-Za-z]:)?[^:]+):(?<line>\d+):(?<test>[^:]*):FAIL(?:: (?<text>.*))?$",
    ],
    summary: &[r"^(?<total>\d+) Tests (?<failed>\d+) Failures (?<skipped>\d+) Ignored\s*$"],
    headers: &[r"(?:[A-Za-z]:)?[^:\n]+:\d+:[^:\n]*:FAIL(?:$|:\ )"],
    ..RUNNER
};
