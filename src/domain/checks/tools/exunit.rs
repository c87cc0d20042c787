//! ExUnit, the test framework of Elixir.

use super::shape::Below;
use super::{Tool, ToolKind};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "ExUnit",
    kind: ToolKind::Tests,
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
    ..Tool::NOTHING
};
