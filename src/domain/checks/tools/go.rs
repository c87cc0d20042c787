//! go build, go vet and go test.

use super::{Tool, ToolKind};
use crate::checks::counts::Counts;
use crate::checks::diagnostic::{Location, Output, Sink};
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
    hint,
    ..Tool::NOTHING
};

static COMPILED: Pattern =
    Pattern::new(r"^(?:vet: )?((?:[A-Za-z]:)?[^\s:]+\.go):(\d+):(\d+): (.+)$");
static LOGGED: Pattern = Pattern::new(r"^\s+([^\s:]+\.go):(\d+): (.*)$");
static FAILED: Pattern = Pattern::new(r"^\s*--- FAIL: (\S+)");
static SUCCEEDED: Pattern = Pattern::new(r"^\s*--- (?:PASS|SKIP): (\S+)");
static RUN: Pattern = Pattern::new(r"^=== (?:RUN|CONT|NAME)\s+(\S+)");
static PANIC: Pattern = Pattern::new(r"^panic: (.+)$");
static FRAME: Pattern = Pattern::new(r"^\t(\S+\.go):(\d+)(?: \+0x[0-9a-f]+)?$");
static FAIL: Pattern = Pattern::new(r"^(?:FAIL\b|\s*--- FAIL: )");

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let lines = output.lines;
    names(lines, sink);
    let packages = packages(lines);
    let tests = lines.iter().any(|line| FAIL.is_match(line));
    let succeeded = succeeded(lines);
    let mut test = String::new();
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = COMPILED.captures(line) {
            sink.error(at, Location::of(&found), group(&found, 4));
        } else if !tests {
            continue;
        } else if let Some(found) = [&FAILED, &SUCCEEDED, &RUN]
            .into_iter()
            .find_map(|pattern| pattern.captures(line))
        {
            test = group(&found, 1).to_owned();
        } else if let Some(found) = LOGGED.captures(line) {
            if !succeeded.contains(test.as_str()) {
                let package = packages.get(at).copied().unwrap_or_default();
                logged(lines, at, &found, package, &test, sink);
            }
        } else if let Some(found) = PANIC.captures(line) {
            panicked(lines, at, group(&found, 1), &test, sink);
        }
    }
}

/// The tests that passed or were skipped and did not fail in another package or run: with `-v`, what they log
/// has the form of a failure.
fn succeeded<'a>(lines: &[&'a str]) -> BTreeSet<&'a str> {
    let named = |pattern: &Pattern| -> BTreeSet<&'a str> {
        let found = lines.iter().filter_map(|line| pattern.captures(line));
        found
            .filter_map(|found| found.get(1).map(|name| name.as_str()))
            .collect()
    };
    &named(&SUCCEEDED) - &named(&FAILED)
}

/// The package to which each line belongs: the result of a package is below its tests.
fn packages<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    static RESULT: Pattern = Pattern::new(r"^(?:FAIL|ok  |\?   )\t(\S+)");
    let mut package = "";
    let mut all: Vec<&str> = lines
        .iter()
        .rev()
        .map(|line| {
            if let Some(found) = RESULT.captures(line) {
                package = found.get(1).map_or("", |name| name.as_str());
            }
            package
        })
        .collect();
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
    if test.is_empty() {
        return;
    }
    let file = group(found, 1);
    let path = match package {
        "" => None,
        package => (sink.tree.meant)(&format!("{package}/{file}")),
    };
    let place = Location::new(path.as_deref().unwrap_or(file), group(found, 2));
    let mut message = group(found, 3).to_owned();
    let deeper = lines
        .iter()
        .skip(at + 1)
        .take_while(|line| line.starts_with("        "))
        .take(8);
    for more in deeper.filter(|more| !LOGGED.is_match(more)) {
        message.push('\n');
        message.push_str(more.trim());
    }
    sink.failure(at, place, test, &message);
}

fn panicked(lines: &[&str], at: usize, message: &str, test: &str, sink: &mut Sink<'_>) {
    let frames = lines.iter().enumerate().skip(at + 1).take(60);
    let own = frames
        .filter_map(|(at, line)| FRAME.captures(line).map(|found| (at, found)))
        .find(|(_, found)| sink.relative(group(found, 1)).is_some());
    let Some((at, found)) = own else { return };
    let place = Location::new(group(&found, 1), group(&found, 2));
    let message = format!("panic: {message}");
    match test {
        "" => sink.error(at, place, &message),
        test => sink.failure(at, place, test, &message),
    };
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

fn hint(line: &str) -> Option<String> {
    static MISSING: Pattern = Pattern::new(
        r"no required module provides package ([^\s;:]+)|cannot find module providing package ([^\s;:]+)",
    );
    let found = MISSING.captures(line)?;
    let package = [group(&found, 1), group(&found, 2)].concat();
    Some(format!(
        "The Go package `{package}` is not in go.mod. Run `go get {package}` or correct the import."
    ))
}

/// go test prints no summary. With `-v`, the top-level tests are counted; without it, passed tests are not
/// shown, but packages of which no test ran are.
fn counts(lines: &[&str]) -> Option<Counts> {
    static PACKAGE: Pattern = Pattern::new(r"^(ok  |FAIL)\t\S+");
    static PLAIN_END: Pattern = Pattern::new(r"^(?:PASS|FAIL)$");
    let (mut passed, mut failed, mut runs) = (0u64, 0u64, 0u64);
    let (mut packages, mut failed_packages, mut ends) = (0u64, 0u64, 0u64);
    let mut empty_packages = 0u64;
    for line in lines {
        if let Some(found) = PACKAGE.captures(line) {
            packages += 1;
            failed_packages += u64::from(group(&found, 1) == "FAIL");
            empty_packages += u64::from(line.ends_with("[no tests to run]"));
        }
        passed += u64::from(line.starts_with("--- PASS: "));
        failed += u64::from(line.starts_with("--- FAIL: "));
        runs += u64::from(line.starts_with("=== RUN "));
        ends += u64::from(PLAIN_END.is_match(line));
    }
    if packages == 0 && (ends == 0 || runs + passed + failed == 0) {
        return None;
    }
    // A package that failed to build, or panicked, failed without a failed test.
    let uncounted = failed_packages > 0 && failed == 0;
    Some(Counts {
        passed: (runs > 0 || packages > 0 && empty_packages == packages).then_some(passed),
        failed: (!uncounted).then_some(failed),
    })
}

#[cfg(test)]
mod tests {
    use crate::checks::verdict::{Check, CheckKind, CheckOutcome, CheckResult};

    #[test]
    fn what_a_passed_test_logs_is_no_error() {
        let output = "=== RUN   TestGood\n    a_test.go:3: only a note\n--- PASS: TestGood (0.00s)\n\
            === RUN   TestBad\n    a_test.go:9: got 1, want 2\n--- FAIL: TestBad (0.00s)\n\
            === RUN   TestLast\n--- SKIP: TestLast (0.00s)\n    a_test.go:20: not here\n\
            FAIL\nFAIL\texample.org/a\t0.1s\nFAIL\n";
        let check = Check {
            name: "test".to_owned(),
            run: "go test -v ./...".to_owned(),
            kind: CheckKind::Test,
            timeout_ms: 1_000,
            junit: None,
            problem_matcher: None,
        };
        let result =
            CheckResult::read(&check, CheckOutcome::Failed { exit: 1 }, output, 1, "/work");
        let places: Vec<_> = result.diagnostics.iter().map(|it| it.line).collect();
        assert_eq!(places, [Some(9)], "{:?}", result.diagnostics);
        assert_eq!(result.errors.len(), 1, "{:?}", result.errors);
    }
}
