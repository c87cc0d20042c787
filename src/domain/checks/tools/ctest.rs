//! CTest. It names no locations: the programs that it runs do.

use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally};
use crate::checks::diagnostic::{Location, Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "CTest",
    kind: ToolKind::Tests,
    signs: &[
        r"^\s*\d+/\d+ Test +#\d+: ",
        r"^\d+% tests passed, \d+ tests? failed out of \d+$",
    ],
    read,
    counts,
    headers: &[r"\s*\d+/\d+\ Test\ +\#\d+:\ .*\*\*\*"],
    ..Tool::NOTHING
};

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static FAILED: Pattern =
        Pattern::new(r"^\s*\d+/\d+ Test +#\d+: (\S.*?) \.*\s*\*\*\*([A-Z][a-z]+(?: [A-Z][a-z]+)*)");
    static LISTED: Pattern = Pattern::new(r"^\t\s*\d+ - (\S.*) \([A-Z][^()]*\)(?:\s.*)?$");
    for (at, line) in output.lines.iter().enumerate() {
        if let Some(found) = FAILED.captures(line) {
            sink.failing(at, Location::default(), group(&found, 1), group(&found, 2));
        } else if let Some(found) = LISTED.captures(line) {
            sink.test(group(&found, 1));
        }
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
    static SUMMARY: Pattern =
        Pattern::new(r"^\d+% tests passed, (\d+) tests? failed out of (\d+)$");
    let mut tally = Tally::default();
    for (_, found) in SUMMARY.in_lines(lines) {
        let [failed, total] = [1, 2].map(|index| group(&found, index).parse::<u64>().ok());
        tally.add_of_total(total, failed, Some(0));
    }
    tally.finish()
}
