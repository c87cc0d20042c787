//! Annotations as GitHub Actions reads them from a log, which many linters and test runners print there.

use super::shape::severity;
use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Sink};
use crate::pattern::{Pattern, group};
use std::collections::{BTreeMap, BTreeSet};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "Actions annotation",
    kind: ToolKind::Lint,
    signs: &[r"^::(?:error|warning|notice) (?:.*,)?file="],
    read,
    ..Tool::NOTHING
};

/// A tool that also prints its findings in its own form has told more about these lines there.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static COMMAND: Pattern = Pattern::new(r"^::(error|warning|notice) (.*?)::(.*)$");
    let known: BTreeSet<_> = sink.found.iter().filter_map(|it| it.place()).collect();
    for (at, found) in COMMAND.in_lines(output.lines) {
        let pairs = group(&found, 2).split(',');
        let values: BTreeMap<&str, String> = pairs
            .filter_map(|pair| pair.trim().split_once('='))
            .map(|(key, value)| (key, plain(value)))
            .collect();
        let value = |key: &str| values.get(key).map_or("", String::as_str);
        let place = Location {
            path: value("file"),
            line: value("line"),
            column: value("col"),
        };
        let severity = severity(group(&found, 1));
        let told = sink.relative(place.path).zip(place.line.parse().ok());
        if told.is_some_and(|told| !known.contains(&told)) {
            let said = plain(group(&found, 3));
            let end = |key: &str| value(key).parse().ok();
            sink.push(at, place, severity, None, &said)
                .until(end("endLine"), end("endColumn"));
        }
    }
}

/// A value without its escapes.
fn plain(value: &str) -> String {
    let escapes = [
        ("%0A", "\n"),
        ("%0D", ""),
        ("%3A", ":"),
        ("%2C", ","),
        ("%25", "%"),
    ];
    let mut text = value.to_owned();
    for (escape, plain) in escapes {
        text = text.replace(escape, plain);
    }
    text
}
