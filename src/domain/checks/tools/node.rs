//! Node.js: its own test runner in the format `spec`, and missing modules.

use super::javascript::{self, START};
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
    hint,
    ..Tool::NOTHING
};

/// Reads the tree of tests, and the list of failures below it: only the tree has the names of the tests around a
/// test, and newer versions describe the failures only in the list.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let lines = output.lines;
    let is_heading = |line: &&str| matches!(*line, "✖ failing tests:" | "Failed tests:");
    let list = lines.iter().position(is_heading);
    let (tree, listed) = lines.split_at(list.unwrap_or(lines.len()));
    let mut failed = failed_in_tree(tree);
    let mut places: Vec<(String, Location<'_>)> = Vec::new();
    for (at, found) in FAILED.in_lines(listed) {
        let at = tree.len() + at;
        let own = group(&found, 2);
        let of_tree = failed.iter().position(|it| it.own == own);
        let name = of_tree.map_or_else(|| own.to_owned(), |index| failed.remove(index).name);
        let start = at
            .checked_sub(1)
            .and_then(|above| lines.get(above).copied())
            .and_then(|line| START.captures(line))
            .map_or_else(Location::default, |found| Location::of(&found));
        places.push((name.clone(), listed_failure(lines, at, &name, start, sink)));
    }
    for test in failed {
        let inside = format!("{}{INSIDE}", test.name);
        // A test around others fails where the first of them does.
        let first = places.iter().find(|(name, _)| name.starts_with(&inside));
        sink.test_at(
            &shown(&test.name, sink),
            first.map_or_else(Location::default, |it| it.1),
        );
        if list.is_none() {
            let name = shown(&test.name, sink);
            javascript::failure(lines, test.at, &name, "", sink);
        }
    }
}

/// Between the name of a test and that of one inside of it.
const INSIDE: &str = " › ";

static FAILED: Pattern = Pattern::new(r"^(\s*)✖ (.+?) \([\d.]+m?s\)$");

/// A failed test of the tree.
struct InTree {
    at: usize,
    /// Its name with those of the tests around it.
    name: String,
    own: String,
}

/// The failed tests in the tree. The line of a test around others comes again below them.
fn failed_in_tree(tree: &[&str]) -> Vec<InTree> {
    static AROUND: Pattern = Pattern::new(r"^(\s*)▶ (.+?)( \([\d.]+m?s\))?$");
    let mut around: Vec<(usize, &str)> = Vec::new();
    let mut failed = Vec::new();
    for (at, line) in tree.iter().enumerate() {
        let begins = AROUND.captures(line);
        let fails = FAILED.captures(line);
        let Some(found) = begins.as_ref().or(fails.as_ref()) else {
            continue;
        };
        let (depth, own) = (
            group(found, 1).len(),
            found.get(2).map_or("", |it| it.as_str()),
        );
        let is_end = around.last() == Some(&(depth, own));
        around.retain(|(outer, _)| *outer < depth);
        if fails.is_some() {
            let names = around.iter().map(|(_, name)| *name).chain([own]);
            let name = names.collect::<Vec<_>>().join(INSIDE);
            let own = own.to_owned();
            failed.push(InTree { at, name, own });
        } else if !is_end && group(found, 3).is_empty() {
            around.push((depth, own));
        }
    }
    failed
}

/// Adds a failure of the list at its first frame in the project, otherwise at the start of its test. Returns the
/// place.
fn listed_failure<'a>(
    lines: &[&'a str],
    at: usize,
    name: &str,
    start: Location<'a>,
    sink: &mut Sink<'_>,
) -> Location<'a> {
    let name = shown(name, sink);
    let read = javascript::below(lines, at, sink);
    let (line, place) = read.frame.unwrap_or((at, start));
    sink.failing(line, place, &name, &read.message.join("\n"))
        .lines(at..read.end);
    place
}

/// The name of a test. A file that fails as a whole has its absolute path as its name.
fn shown(name: &str, sink: &Sink<'_>) -> String {
    let path = sink.relative(name).filter(|_| name.starts_with('/'));
    path.unwrap_or_else(|| name.to_owned())
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

fn hint(line: &str) -> Option<String> {
    static MISSING: Pattern = Pattern::new(
        r#"(?:Cannot find (?:module|package)|Module not found: (?:Error: )?Can't resolve|Failed to resolve import|Could not resolve) ['"]([^'"\s]+)['"]"#,
    );
    let found = MISSING.captures(line)?;
    let module = group(&found, 1);
    let is_file = module.starts_with(['.', '/', '~', '#'])
        || module.starts_with("@/")
        || module.contains(":\\");
    if is_file {
        return Some(format!(
            "The module `{module}` is a file of the project that does not exist. Create it or correct the import."
        ));
    }
    if module.starts_with("node:") {
        return None;
    }
    let depth = if module.starts_with('@') { 2 } else { 1 };
    let package = module.split('/').take(depth).collect::<Vec<_>>().join("/");
    Some(format!(
        "The package `{package}` is missing. Run `npm install {package}` (or the project's own package manager) so that package.json names it, or do without it."
    ))
}
