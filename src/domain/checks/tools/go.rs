//! go build, go vet and go test.

use super::{Tool, ToolKind};
use crate::checks::counts::Counts;
use crate::checks::diagnostic::{Location, Output, Sink, below};
use crate::pattern::{Pattern, group};
use regex::Captures;
use std::collections::BTreeSet;

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "go",
    kind: ToolKind::Tests,
    signs: &[
        // A line that ends with the name of a linter belongs to golangci-lint.
        r"^(?:vet: )?(?:[A-Za-z]:)?[^\s:]+\.go:\d+:\d+: (?:.*[^)\n]|.*[^ \n]\([^()\n]*\)|.*\([^()\n]*[^a-z0-9()\n][^()\n]*\)|.*\)\))$",
        r"^\s*--- (?:FAIL|PASS|SKIP): ",
        r"^(?:FAIL|ok  )\t",
        r"^panic: ",
    ],
    read,
    counts,
    headers: &[r"\s*--- FAIL: ", r"FAIL\t", r"panic: "],
    advice: &[(
        r"(?:no required module provides|cannot find module providing) package (?<package>[^\s;:]+)",
        "The Go package `$package` is not in go.mod. Run `go get $package` or correct the import.",
    )],
    ..Tool::NOTHING
};

static COMPILED: Pattern =
    Pattern::new(r"^(?:vet: )?((?:[A-Za-z]:)?[^\s:]+\.go):(\d+):(\d+): (.+)$");
static LOGGED: Pattern = Pattern::new(r"^\s+([^\s:]+\.go):(\d+): (.*)$");
/// The result of a test, or its beginning.
static TEST: Pattern =
    Pattern::new(r"^(?:\s*--- (FAIL|PASS|SKIP): |=== (?:RUN|CONT|NAME)\s+)(\S+)");
static PANIC: Pattern = Pattern::new(r"^panic: (.+)$");
static FRAME: Pattern = Pattern::new(r"^\t(\S+\.go):(\d+)(?: \+0x[0-9a-f]+)?$");

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let lines = output.lines;
    names(lines, sink);
    let packages = packages(lines);
    let is_failure =
        |line: &&str| line.starts_with("FAIL") || line.trim_start().starts_with("--- FAIL: ");
    let has_failed = lines.iter().any(is_failure);
    // With `-v`, what tests log that pass or are skipped has the form of a failure. They may fail in another package.
    let ended = |is: fn(&str) -> bool| -> BTreeSet<&str> {
        let all = TEST
            .in_lines(lines)
            .filter(|(_, found)| is(group(found, 1)));
        all.map(|(_, found)| group(&found, 2)).collect()
    };
    let succeeded = &ended(|end| matches!(end, "PASS" | "SKIP")) - &ended(|end| end == "FAIL");
    let mut test = "";
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = COMPILED.captures(line) {
            sink.error(at, Location::of(&found), group(&found, 4));
        } else if !has_failed {
            continue;
        } else if let Some(found) = TEST.captures(line) {
            test = group(&found, 2);
        } else if let Some(found) = LOGGED.captures(line) {
            if !test.is_empty() && !succeeded.contains(test) {
                logged(lines, at, &found, packages[at], test, sink);
            }
        } else if let Some(found) = PANIC.captures(line) {
            let frames = FRAME.in_lines(lines.get(at + 1..).unwrap_or_default());
            let mut places = frames.map(|(below, found)| (below, Location::of(&found)));
            let own = places
                .by_ref()
                .take_while(|(below, _)| *below < 60)
                .find(|(_, place)| sink.relative(place.path).is_some());
            let Some((below, place)) = own else { continue };
            let message = format!("panic: {}", group(&found, 1));
            match test {
                "" => sink.error(at + 1 + below, place, &message),
                test => sink.failure(at + 1 + below, place, test, &message),
            };
        }
    }
}

/// The package to which each line belongs: the result of a package is below its tests.
fn packages<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    static RESULT: Pattern = Pattern::new(r"^(?:FAIL|ok  |\?   )\t(\S+)");
    let mut package = "";
    let above = lines.iter().rev().map(|line| {
        package = RESULT
            .captures(line)
            .map_or(package, |found| group(&found, 1));
        package
    });
    let mut all: Vec<&str> = above.collect();
    all.reverse();
    all
}

/// Adds what a test logs. Go prints only the name of the file, which is in the directory of the package.
fn logged(
    lines: &[&str],
    at: usize,
    found: &Captures<'_>,
    package: &str,
    test: &str,
    sink: &mut Sink<'_>,
) {
    let [file, line, said] = [1, 2, 3].map(|index| group(found, index));
    let path = (sink.tree.meant)(&format!("{package}/{file}")).filter(|_| !package.is_empty());
    let place = Location::new(path.as_deref().unwrap_or(file), line);
    let mut message = vec![said];
    let deeper = below(lines, at, 8, |line| line.starts_with("        "));
    let deeper = deeper.iter().filter(|more| !LOGGED.is_match(more));
    message.extend(deeper.map(|more| more.trim()));
    sink.failure(at, place, test, &message.join("\n"));
}

/// Adds the failed tests, those that ran when the time was over, and the packages that failed without a test.
fn names(lines: &[&str], sink: &mut Sink<'_>) {
    static TEST: Pattern = Pattern::new(r"^\s*--- FAIL: (\S+) \(");
    static RUNNING: Pattern = Pattern::new(r"^\t+(\S+) \([\dhm.]+s\)$");
    static PACKAGE: Pattern = Pattern::new(r"^(FAIL|ok  )\t(\S+( \[(?:build|setup) failed\])?)");
    let mut has_test = false;
    let mut is_running = false;
    for line in lines {
        is_running = match line.trim() {
            "running tests:" => true,
            _ => is_running && RUNNING.is_match(line),
        };
        let test = TEST
            .captures(line)
            .or_else(|| RUNNING.captures(line).filter(|_| is_running));
        if let Some(found) = test {
            has_test = true;
            sink.test(group(&found, 1));
        } else if let Some(found) = PACKAGE.captures(line) {
            let is_broken = !group(&found, 3).is_empty();
            if group(&found, 1) == "FAIL" && (is_broken || !has_test) {
                sink.test(group(&found, 2));
            }
            has_test = false;
        }
    }
}

/// go test prints no summary. With `-v`, the top-level tests are counted; without it, passed tests are not
/// shown, but packages of which no test ran are.
fn counts(lines: &[&str]) -> Option<Counts> {
    let number = |is: &dyn Fn(&str) -> bool| lines.iter().filter(|line| is(line)).count() as u64;
    let begins = |start: &'static str| number(&|line| line.starts_with(start));
    let [passed, failed] = ["--- PASS: ", "--- FAIL: "].map(begins);
    let [passing, failing, runs] = ["ok  \t", "FAIL\t", "=== RUN "].map(begins);
    let ends = number(&|line| matches!(line, "PASS" | "FAIL"));
    let packages = passing + failing;
    if packages == 0 && (ends == 0 || runs + passed + failed == 0) {
        return None;
    }
    let empty = number(&|line| line.starts_with("ok  \t") && line.ends_with("[no tests to run]"));
    // A package that failed to build, or panicked, failed without a failed test.
    let is_uncounted = failing > 0 && failed == 0;
    Some(Counts {
        passed: (runs > 0 || packages > 0 && empty == packages).then_some(passed),
        failed: (!is_uncounted).then_some(failed),
    })
}
