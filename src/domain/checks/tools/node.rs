//! Node.js: its own test runner in the format `spec`, and missing modules.

use super::javascript::FAILURE;
use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Sink};
use crate::pattern::{Pattern, group};
use std::collections::BTreeSet;

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "node --test",
    kind: ToolKind::Tests,
    signs: &[r"^\s*[✖✔] .+ \([\d.]+m?s\)$", r"^[#ℹ] (?:pass|fail) \d+$"],
    read,
    summary: &[
        r"^[#ℹ] pass\s+(?<passed>\d+)$",
        r"^[#ℹ] (?:fail|cancelled)\s+(?<failed>\d+)$",
    ],
    headers: &[r"\s*(?:✖|✗|✘|×)\ "],
    advice: &[
        (
            r#"(?:Cannot find (?:module|package)|Module not found: (?:Error: )?Can't resolve|Failed to resolve import|Could not resolve) ['"](?<file>(?:[./~#]|@/|[^'"\s]*:\\)[^'"\s]*)['"]"#,
            "The module `$file` is a file of the project that does not exist. Create it or correct the import.",
        ),
        (
            r#"(?:Cannot find (?:module|package)|Module not found: (?:Error: )?Can't resolve|Failed to resolve import|Could not resolve) ['"](?<package>(?:@[^/'"\s]*/)?[^/'"\s:]+)(?:/[^'"\s]*)?['"]"#,
            "The package `$package` is missing. Run `npm install $package` (or the project's own package manager) so that package.json names it, or do without it.",
        ),
    ],
    ..Tool::NOTHING
};

/// The line of a failed test.
static FAILED: Pattern = Pattern::new(r"^(\s*)✖ (.+?) \([\d.]+m?s\)$");

/// Reads the tree of tests, and the list of failures below it: only the tree has the names of the tests around a
/// test, and newer versions describe the failures only in the list.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    /// The start of a test, above its failure in the list.
    static START: Pattern = Pattern::new(r"^test at (.+?):(\d+):(\d+)$");
    let lines = output.lines;
    let is_heading = |line: &&str| matches!(*line, "✖ failing tests:" | "Failed tests:");
    let list = lines.iter().position(is_heading);
    let (tree, listed) = lines.split_at(list.unwrap_or(lines.len()));
    let mut failed = failed_in_tree(tree, sink);
    let mut places: Vec<(String, Location<'_>)> = Vec::new();
    for (at, found) in FAILED.in_lines(listed) {
        let own = group(&found, 2);
        let of_tree = failed.iter().position(|it| it.own == own);
        let name = of_tree.map_or_else(|| own.to_owned(), |index| failed.remove(index).name);
        let at = tree.len() + at;
        let start = START.captures(lines[at - 1]);
        let start = start.map_or_else(Location::default, |found| Location::of(&found));
        let block = FAILURE.block(lines, at + 1, "", "", sink);
        let place = block.place().unwrap_or(start);
        sink.failing(at, place, &name, &block.message.join("\n"))
            .lines(at..block.end);
        places.push((name, place));
    }
    for InTree { at, name, .. } in failed {
        let inside = format!("{name}{INSIDE}");
        // A test around others fails where the first of them does.
        let first = places.iter().find(|(name, _)| name.starts_with(&inside));
        sink.test_at(&name, first.map_or_else(Location::default, |it| it.1));
        let block = FAILURE.block(lines, at + 1, "", "", sink);
        if let Some(place) = block.place().filter(|_| list.is_none()) {
            sink.failure(at, place, &name, &block.message.join("\n"))
                .lines(at..block.end);
        }
    }
}

/// Between the name of a test and that of one inside of it.
const INSIDE: &str = " › ";

/// A failed test of the tree.
struct InTree {
    at: usize,
    /// Its name with those of the tests around it.
    name: String,
    own: String,
}

/// The failed tests in the tree. The line of a test around others comes again below them.
fn failed_in_tree(tree: &[&str], sink: &Sink<'_>) -> Vec<InTree> {
    static AROUND: Pattern = Pattern::new(r"^(\s*)▶ (.+?)( \([\d.]+m?s\))?$");
    let mut around: Vec<(usize, &str)> = Vec::new();
    let mut failed = Vec::new();
    for (at, line) in tree.iter().enumerate() {
        let (begins, fails) = (AROUND.captures(line), FAILED.captures(line));
        let Some(found) = begins.as_ref().or(fails.as_ref()) else {
            continue;
        };
        let (depth, own) = (group(found, 1).len(), group(found, 2));
        let is_end = around.last() == Some(&(depth, own));
        around.retain(|(outer, _)| *outer < depth);
        if fails.is_some() {
            let names = around.iter().map(|(_, name)| *name).chain([own]);
            let name = names.collect::<Vec<_>>().join(INSIDE);
            // A file that fails as a whole has its absolute path as its name.
            let path = sink.relative(&name).filter(|_| name.starts_with('/'));
            let (name, own) = (path.unwrap_or(name), own.to_owned());
            failed.push(InTree { at, name, own });
        } else if !is_end && group(found, 3).is_empty() {
            around.push((depth, own));
        }
    }
    failed
}

/// The number of results that stand for a file in which no test ran: they have the path of the file as their
/// name. A file with tests is reported under the names of its tests.
pub(in crate::checks) fn hollow_results(lines: &[&str]) -> u64 {
    static FILE: Pattern = Pattern::new(
        r"^(?:(?:not )?ok \d+ - ((?:/|[A-Za-z]:\\)\S.*\.[cm]?[jt]sx?)|[✔✖] (\S.*\.[cm]?[jt]sx?) \([\d.]+m?s\))$",
    );
    let files = lines.iter().filter_map(|line| {
        let found = FILE.captures(line)?;
        let name = found.get(1).or_else(|| found.get(2))?;
        Some(name.as_str().to_owned())
    });
    // Failures are repeated at the end.
    let files: BTreeSet<String> = files.collect();
    u64::try_from(files.len()).unwrap_or(u64::MAX)
}
