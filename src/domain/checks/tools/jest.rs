//! jest.

use super::javascript::{self, FILE};
use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, suites, worded};
use crate::checks::diagnostic::{Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "jest",
    kind: ToolKind::Tests,
    signs: &[r"^  ● ", r"^Test Suites:\s+\d"],
    read,
    counts,
    headers: &[r"  ● ", r"\ ?FAIL \ ?\S"],
    ..Tool::NOTHING
};

static TEST: Pattern = Pattern::new(r"^  ● (.+)$");
static FAILED_FILE: Pattern = Pattern::new(r"^ ?FAIL  ?(\S.*?)(?: \([\d.]+ m?s\))?$");

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let lines = output.lines;
    let (mut shown, mut file) = (String::new(), String::new());
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = FAILED_FILE.captures(line) {
            shown = group(&found, 1).to_owned();
            let path = FILE.captures(line);
            file = path.map_or_else(String::new, |found| group(&found, 1).to_owned());
        } else if line.trim_start().starts_with("PASS ") {
            shown.clear();
        } else if let Some(found) = TEST.captures(line) {
            match group(&found, 1).trim() {
                "Console" => {}
                name => {
                    failed(name, &shown, &file, sink);
                    javascript::failure(lines, at, name, &file, sink);
                }
            }
        }
    }
}

fn failed(name: &str, shown: &str, file: &str, sink: &mut Sink<'_>) {
    match name {
        _ if shown.is_empty() => {}
        "Test suite failed to run" => sink.test_in(shown, file),
        name => sink.test_in(&format!("{shown} › {name}"), file),
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
    suites(lines, "Test Suites: ", "Tests: ", |line| {
        let total = worded(line, &["total"]);
        let parts = worded(line, &["passed", "failed", "skipped", "todo", "pending"]);
        total != parts
    })
}
