//! Test runners that need no code of their own: a line for each failure, the lines below it, and a summary.

use super::shape::Below;
use super::{Tool, ToolKind, shape};

/// A test runner.
const RUNNER: Tool = Tool {
    kind: ToolKind::Tests,
    ..Tool::NOTHING
};

/// The location of a failed test, as bats prints it.
pub(super) const BATS_PLACE: &str =
    r"^(?:# +| +)\(?(?:from function .+ )?in (?:test )?file (?<path>.+?), line (?<line>\d+)[,)]";

/// bats in its human-readable format; its other format is TAP.
pub(super) const BATS: Tool = Tool {
    name: "bats",
    signs: &[r"^\s+\((?:in test file|from function) .+, line \d+[,)]"],
    lines: &[r"^(?:   .*\d+/\d+)? ✗ (?<test>.+?)(?: in \d+m?s)?$"],
    below: Some(Below {
        // The next line, or the next test, whose progress line was printed above its name.
        until: r"^ {0,2}(?:[^ ]|$)|\d+/\d+ (?:✓|✗|-) ",
        frame: BATS_PLACE,
        ..Below::NOTHING
    }),
    needs: BATS_PLACE,
    summary: &[
        r"^(?<total>\d+) tests?, (?<failed>\d+) failures?(?:, (?<skipped>\d+) skipped)?(?: in .*)?$",
    ],
    ..RUNNER
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
        ..Below::NOTHING
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
        ..Below::NOTHING
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
        ..Below::NOTHING
    }),
    summary: &[
        r"^(?:Passed|Failed|Skipped)!\s+- Failed:\s*(?<failed>\d+), Passed:\s*(?<passed>\d+), Skipped:\s*(?<skipped>\d+), Total:\s*(?<total>\d+),?",
    ],
    ..RUNNER
};

/// ExUnit, the test framework of Elixir.
pub(super) const EXUNIT: Tool = Tool {
    name: "ExUnit",
    signs: &[
        r"^ +\d+\) (?:test|doctest|property) .+ \([A-Z][\w.]*\)$",
        r"^\d+ tests?, \d+ failures?(?:, \d+ \w+)*\n\n(?:Randomized|Running ExUnit) ",
    ],
    lines: &[
        r"^ +\d+\) (?:test|doctest|property) (?<test>.+) \((?<suite>[A-Z][\w.]*)\)$",
        r"^ +\d+\) (?<suite>[A-Z][\w.]*): (?<test>failure on \w+ callback), .+ invalidated$",
    ],
    between: ": ",
    below: Some(Below {
        until: r"^ {0,4}\S",
        // A frame of the stack trace.
        frame: r"^       (?:\([^)]+\) )?(?<path>\S+\.exs?):(?<line>\d+): ",
        // The start of the test.
        noise: r"^     (?:\S+\.exs?:\d+|stacktrace:)$",
        ..Below::NOTHING
    }),
    needs: r"^Finished in [\d.]+ seconds \(",
    // What keeps the tests of a module from running makes them invalid.
    summary: &[
        r"^(?:\d+ doctests?, )?(?:\d+ propert(?:y|ies), )?(?<total>\d+) tests?, (?<failed>\d+) failures?(?:, \d+ excluded)?(?:, (?<errors>\d+) invalid)?(?:, (?<skipped>\d+) skipped)?$",
    ],
    headers: &[r"\ +\d+\)\ (?:test|doctest|property)\ .+\ \([A-Z][\w.]*\)$"],
    around: Some((
        r"^Running ExUnit with seed: ",
        r"^(?:Result: .*|.*[0-9]+ (?:tests?|doctests?|properties|property)\b.*|There are no tests to run|All tests have been excluded.*)$",
    )),
    ..RUNNER
};

/// GoogleTest.
pub(super) const GOOGLETEST: Tool = Tool {
    name: "GoogleTest",
    signs: &[r"^(?:\d+: )?\[(?: RUN      |       OK |  FAILED  |  PASSED  |==========)\] "],
    above: r"^\[ RUN      \] (?<begun>\S+)$|^\[ *(?:OK|FAILED|SKIPPED) *\] ",
    lines: &[
        r"^(?:(?<path>.+?):(?<line>\d+)|unknown file): Failure$",
        r"^(?<path>.+)\((?<line>\d+)\): error: ?(?<text>.*)$",
        r"^\[  FAILED  \] (?<listed>[^\s\d,][^\s,]*)(?<begun>)",
    ],
    below: Some(Below {
        until: r"^\[|: Failure$|\(\d+\): error:",
        framing: "",
        ..Below::NOTHING
    }),
    summary: &[
        r"^\[  PASSED  \] (?<passed>\d+) tests?[.,](?<failed>)",
        r"^\[  FAILED  \] (?<failed>\d+) tests?[.,](?<passed>)",
    ],
    headers: &[r".+:\d+:\ Failure$", r"unknown\ file:\ Failure$"],
    around: Some((
        r"^\[==========\] Running [0-9]+ tests? from ",
        r"^\[==========\] [0-9]+ tests? from .* ran\.",
    )),
    ..RUNNER
};

/// A frame of the Java virtual machine in the class of the test, and the short form in which Gradle prints it.
const JVM_FRAME: &str = r"^\s+at (?:[^\s(]*/)?(?<package>(?:[\w$]+\.)*)(?<class>\w+)[\w$]*\.[\w$<>]+\((?<path>[\w$]+\.(?:java|kt|scala|groovy)):(?<line>\d+)\)$|^    (?<text>\S+) at (?<path_2>[\w$]+\.(?:java|kt|scala|groovy)):(?<line_2>\d+)$";

/// Gradle.
pub(super) const GRADLE: Tool = Tool {
    name: "Gradle",
    signs: &[r"^\S+ > .+ FAILED$"],
    lines: &[r"^(?<test>\S+ > .+?) FAILED$"],
    below: Some(Below {
        until: r"^ {0,3}(?:\S|$)",
        frame: JVM_FRAME,
        noise: r"^\s+at ",
        ..Below::NOTHING
    }),
    ..RUNNER
};

/// Maven Surefire.
pub(super) const MAVEN: Tool = Tool {
    name: "Maven",
    signs: &[
        r"<<< (?:FAILURE|ERROR)!",
        r"^(?:\[\w+\] )?Tests run: \d+, Failures: ",
    ],
    lines: &[r"^\[ERROR\] (?<test>\S+?\.\S+) .*<<< (?:FAILURE|ERROR)!"],
    below: Some(Below {
        until: r"^\s*$|^\[",
        frame: JVM_FRAME,
        noise: r"^\s+at ",
        ..Below::NOTHING
    }),
    summary: &[
        r"^(?:\[\w+\] )?Tests run: (?<total>\d+), Failures: (?<failed>\d+), Errors: (?<errors>\d+), Skipped: (?<skipped>\d+)\s*$",
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

/// PHPUnit. Frames of libraries are in `vendor/`. Tests that were skipped or are risky are listed in the same form below
/// other headings, and with `--testdox` a test may print such a line.
pub(super) const PHPUNIT: Tool = Tool {
    name: "PHPUnit",
    signs: &[
        r"^PHPUnit \d+\.\d+",
        r"^Tests: \d+, Assertions: \d+",
        r"^OK \(\d+ tests?, \d+ assertions?\)$",
    ],
    above: r"^There (?:was|were) \d+ (?:(?:failures?|errors?)|(?<ignored>.+)):$|^(?<ignored_2> ✘) ",
    lines: &[r"^\d+\) (?<test>\S+::\S+(?: with data set .+)?)$"],
    below: Some(Below {
        until: r"^\d+\) \S+::\S+(?: with data set .+)?$|^--$|^(?:ERRORS|FAILURES)!$",
        frame: r"^(?<path>\S+\.php):(?<line>\d+)$",
        ..Below::NOTHING
    }),
    read: |output, sink| {
        if sink.tests.is_empty() {
            shape::read(&TESTDOX, output, sink);
        }
    },
    summary: &[
        r"^OK \((?<total>\d+) tests?, \d+ assertions?\)(?<failed>)$",
        r"^Tests: (?<total>\d+), Assertions: \d+(?:, Errors: (?<failed>\d+)|(?<failed_0>))(?:, Failures: (?<failed_1>\d+))?(?:, (?:PHPUnit )?(?:Warnings|Deprecations|Notices): \d+)*(?:, Skipped: (?<skipped>\d+))?(?:, Incomplete: (?<skipped_1>\d+))?(?:, Risky: (?<skipped_2>\d+))?\.$",
    ],
    headers: &[r"\d+\)\ \S+::\S+"],
    around: Some((
        r"^PHPUnit [0-9]+\.[0-9]+\S* by ",
        r"^(?:Time: |Available |No tests executed)",
    )),
    ..RUNNER
};

/// PHPUnit with `--testdox`: a class, and below it a sentence about each test.
const TESTDOX: Tool = Tool {
    name: "PHPUnit",
    above: r"^(?<suite>[[:alpha:]].*)$",
    between: ": ",
    lines: &[r"^ ✘ (?<test>\S.*?)(?: \[[\d.]+ m?s\])?$"],
    below: Some(Below {
        until: r"^ {0,2}(?:\S|$)",
        frame: r"^   [│╵] (?<path>\S+\.php):(?<line>\d+)$",
        framing: " ┐├│╵┴",
        ..Below::NOTHING
    }),
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
        noise: shape::ALL,
        ..Below::NOTHING
    }),
    // Where there are several frameworks, sbt counts those of ScalaTest again.
    summary: &[
        r"^\[info\] Tests: succeeded (?<passed>\d+), failed (?<failed>\d+), ",
        r"^\[\w+\] (?:Passed|Failed): Total (?<total>\d+), Failed (?<failed>\d+), Errors (?<errors>\d+), Passed (?<passed>\d+)",
    ],
    headers: &[
        r"\[info\]\ .+\ \*\*\*\ FAILED\ \*\*\*",
        r"\[error\]\ ==>\ X\ ",
    ],
    ..RUNNER
};

/// `swift test`: XCTest and Swift Testing.
pub(super) const SWIFT_TEST: Tool = Tool {
    name: "swift test",
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
    summary: &[
        r"^\s*Executed \d+ tests?, with (?<passed>)(?<failed>)",
        r"^Test Case '.+' (?:(?<passed_one>passed)|(?<failed_one>failed)) \(",
        r"^. Test run with \d+ tests? (?<passed>)(?<failed>)",
        r"^(?:✔ Test .+ (?<passed_one>passed) after|✘ Test .+ (?<failed_one>failed) after) [\d.]+ seconds",
    ],
    headers: &[
        r"\S+\.swift:\d+:\ error:\ ",
        r"✘\ Test\ .+\ recorded\ an\ issue\ ",
    ],
    around: Some((
        r"^Test Suite '[^']+' started at ",
        r"^Test Suite '[^']+' (?:passed|failed) at ",
    )),
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
