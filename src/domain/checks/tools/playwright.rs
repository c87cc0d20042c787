//! Playwright's `list`, `line` and `dot` reporters.

use super::javascript;
use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Sink};
use crate::pattern::{Pattern, group};
use regex::Captures;
use std::collections::BTreeSet;

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "Playwright",
    kind: ToolKind::Tests,
    signs: &[
        r"^ {2,}\d+\) (?:\[[^\]]+\] › )?\S+:\d+:\d+ › .+$",
        r"^Running \d+ tests? using \d+ workers?(?:, shard \d+ of \d+)?$",
    ],
    read,
    summary: &[
        r"^  (?<passed>\d+) (?:passed|flaky)(?: \([^()]+\))?(?<failed>)$",
        r"^  (?<failed>\d+) (?:failed|interrupted)(?: \([^()]+\))?(?<passed>)$",
        r"^  \d+ (?:skipped|did not run)(?: \([^()]+\))?(?<passed>)(?<failed>)$",
    ],
    headers: &[r"\ \ +\d+\)\ (?:\[[^\]]+\]\ ›\ )?\S+:\d+:\d+\ ›\ "],
    ..Tool::NOTHING
};

/// A test, with the project that runs it, as it stands above its failure and in the list of the summary.
static TEST: Pattern =
    Pattern::new(r"^ {2,}(?:\d+\) )?((?:\[[^\]]+\] › )?)(\S+?):(\d+):(\d+) › (.+?)[ ─]*$");
static HEADER: Pattern = Pattern::new(r"^ {2,}\d+\) ");
static NUMBER: Pattern = Pattern::new(
    r"^  (\d+) (passed|failed|flaky|skipped|interrupted|did not run)(?: \([^()]+\))?$",
);

/// A test that passed in a later try has failures, too: only those that the summary lists have failed.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let lines = output.lines;
    let mut failed: BTreeSet<String> = BTreeSet::new();
    let mut has_failed = false;
    for line in lines {
        if let Some(found) = NUMBER.captures(line) {
            has_failed = matches!(group(&found, 2), "failed" | "interrupted");
        } else if has_failed {
            failed.extend(TEST.captures(line).map(|found| name(&found)));
        }
    }
    for (at, found) in TEST.in_lines(lines) {
        let test = name(&found);
        if HEADER.is_match(lines[at]) && failed.contains(&test) {
            let [path, line, column] = [2, 3, 4].map(|index| group(&found, index));
            sink.test_at(&test, Location { path, line, column });
            javascript::failure(lines, at, &test, path, sink);
        }
    }
}

/// The project, the file and the title of a test, which do not change with its line.
fn name(found: &Captures<'_>) -> String {
    let [project, file, title] = [1, 2, 5].map(|index| group(found, index));
    format!("{project}{file} › {title}")
}
