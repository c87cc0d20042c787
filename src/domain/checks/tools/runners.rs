//! Test runners that need no code of their own: a line for each failure, the lines below it, and a summary.

use super::shape::Below;
use super::{Tool, ToolKind};

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
        r"^\d+% tests passed, \d+ tests? failed out of \d+$",
    ],
    lines: &[
        r"^\s*\d+/\d+ Test +#\d+: (?<test>\S.*?) \.*\s*\*\*\*(?<text>[A-Z][a-z]+(?: [A-Z][a-z]+)*)",
        r"^\t\s*\d+ - (?<listed>\S.*) \([A-Z][^()]*\)(?:\s.*)?$",
    ],
    summary: &[r"^\d+% tests passed, (?<failed>\d+) tests? failed out of (?<total>\d+)$"],
    headers: &[r"\s*\d+/\d+\ Test\ +\#\d+:\ .*\*\*\*"],
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
