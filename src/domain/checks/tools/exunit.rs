//! ExUnit, the test framework of Elixir.

use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally, optional_number, sum};
use crate::checks::diagnostic::{Location, Output, Sink, below, joined};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "ExUnit",
    kind: ToolKind::Tests,
    signs: &[
        r"^ +\d+\) (?:test|doctest|property) .+ \([A-Z][\w.]*\)$",
        r"^\d+ tests?, \d+ failures?(?:, \d+ \w+)*\n\n(?:Randomized|Running ExUnit) ",
    ],
    read,
    counts,
    headers: &[r"\ +\d+\)\ (?:test|doctest|property)\ .+\ \([A-Z][\w.]*\)$"],
    around: Some((
        r"^Running ExUnit with seed: ",
        r"^(?:Result: .*|.*[0-9]+ (?:tests?|doctests?|properties|property)\b.*|There are no tests to run|All tests have been excluded.*)$",
    )),
    ..Tool::NOTHING
};

static FAILED: Pattern = Pattern::new(
    r"^ +\d+\) (?:(?:test|doctest|property) (.+) \(([A-Z][\w.]*)\)|([A-Z][\w.]*): (failure on \w+ callback), .+ invalidated)$",
);

const REACH: usize = 60;

/// The location is the deepest frame of the project in the stack trace, otherwise the start of the test.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static BEGIN: Pattern = Pattern::new(r"^     (\S+\.exs?):(\d+)$");
    static FRAME: Pattern = Pattern::new(r"^       (?:\([^)]+\) )?(\S+\.exs?):(\d+): ");
    let lines = output.lines;
    for (at, found) in FAILED.in_lines(lines) {
        let below = below(lines, at, REACH, |line| {
            line.is_empty() || line.starts_with("     ")
        });
        let matching = |pattern: &'static Pattern| {
            let found = below.iter().find_map(|line| pattern.captures(line));
            found.map(|found| Location::of(&found))
        };
        let own = |place: &Location<'_>| sink.relative(place.path).is_some();
        let place = matching(&FRAME).filter(own).or_else(|| matching(&BEGIN));
        let said = below
            .iter()
            .take_while(|line| line.trim() != "stacktrace:")
            .filter(|line| !BEGIN.is_match(line) && !line.trim().is_empty());
        let [class, test] =
            [(2, 3), (1, 4)].map(|(a, b)| [group(&found, a), group(&found, b)].concat());
        let name = format!("{class}: {test}");
        sink.failing(at, place.unwrap_or_default(), &name, &joined(said))
            .lines(at..at + 1 + below.len());
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
    static SUMMARY: Pattern = Pattern::new(
        r"^(?:\d+ doctests?, )?(?:\d+ propert(?:y|ies), )?(\d+) tests?, (\d+) failures?(?:, \d+ excluded)?(?:, (\d+) invalid)?(?:, (\d+) skipped)?$",
    );
    static FINISHED: Pattern = Pattern::new(r"^Finished in [\d.]+ seconds \(");
    lines.iter().find(|line| FINISHED.is_match(line))?;
    let mut tally = Tally::default();
    for (_, found) in SUMMARY.in_lines(lines) {
        let [total, failed, invalid, skipped] =
            [1, 2, 3, 4].map(|it| optional_number(group(&found, it)));
        // What keeps the tests of a module from running makes them invalid.
        tally.add_of_total(total, sum(&[failed, invalid]), skipped);
    }
    tally.finish()
}
