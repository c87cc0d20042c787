//! sbt, with ScalaTest and with munit.

use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally, optional_number, sum};
use crate::checks::diagnostic::{Location, Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "sbt",
    kind: ToolKind::Tests,
    signs: &[
        r"^\[info\] .+ \*\*\* FAILED \*\*\*",
        r"^\[info\] Tests: succeeded \d+, failed \d+, ",
        r"^\[error\] ==> X ",
        r"^\[\w+\] (?:Passed|Failed): Total \d+, Failed \d+, ",
    ],
    read,
    counts,
    headers: &[
        r"\[info\]\ .+\ \*\*\*\ FAILED\ \*\*\*",
        r"\[error\]\ ==>\ X\ ",
    ],
    ..Tool::NOTHING
};

/// ScalaTest prints the bare file name, munit its path.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static SUITE: Pattern = Pattern::new(r"^\[info\] ([A-Z]\w*):$");
    static FAILED: Pattern = Pattern::new(r"^\[info\] +(?:- )?(\S.*?) \*\*\* FAILED \*\*\*");
    static SAID: Pattern = Pattern::new(r"^\[info\] +(\S.*) \((\S+\.scala):(\d+)\)$");
    static MUNIT: Pattern =
        Pattern::new(r"^\[error\] ==> X (.+?) +[\d.]+m?s (\S+?): (?:(\S+\.scala):(\d+) ?)?(.*)$");
    let lines = output.lines;
    let mut suite = "";
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = SUITE.captures(line) {
            suite = found.get(1).map_or("", |it| it.as_str());
        } else if let Some(found) = FAILED.captures(line) {
            let name = match suite {
                "" => group(&found, 1).to_owned(),
                suite => format!("{suite}: {}", group(&found, 1)),
            };
            let said = lines.get(at + 1).and_then(|line| SAID.captures(line));
            let place = said
                .as_ref()
                .map(|it| Location::new(group(it, 2), group(it, 3)));
            let message = said.as_ref().map_or("", |it| group(it, 1));
            sink.failing(at, place.unwrap_or_default(), &name, message)
                .lines(at..at + 2);
        } else if let Some(found) = MUNIT.captures(line) {
            let place = Location::new(group(&found, 3), group(&found, 4));
            let message = format!("{} {}", group(&found, 2), group(&found, 5));
            sink.failing(at, place, group(&found, 1), &message);
        }
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
    static SCALATEST: Pattern = Pattern::new(r"^\[info\] Tests: succeeded (\d+), failed (\d+), ");
    static OTHER: Pattern = Pattern::new(
        r"^\[\w+\] (?:Passed|Failed): Total (\d+), Failed (\d+), Errors (\d+), Passed (\d+)",
    );
    let mut tally = Tally::default();
    let scalatest: Vec<_> = lines
        .iter()
        .filter_map(|line| SCALATEST.captures(line))
        .collect();
    for found in &scalatest {
        let [passed, failed] = [1, 2].map(|it| optional_number(group(found, it)));
        tally.add(passed, failed);
    }
    let other = lines.iter().filter_map(|line| OTHER.captures(line));
    for found in other.filter(|_| scalatest.is_empty()) {
        let [failed, errors, passed] = [2, 3, 4].map(|it| optional_number(group(&found, it)));
        tally.add(passed, sum(&[failed, errors]));
    }
    tally.finish()
}
