//! One function a test tool: `None` when its summary is not in the output.

use super::{Counts, Tally};
use crate::pattern::{Pattern, group};

type Framework = fn(&[&str]) -> Option<Counts>;

pub(super) const ALL: [Framework; 14] = [
    cargo, nextest, pytest, unittest, jest, vitest, mocha, go, tap, node, rspec, minitest, java,
    dotnet,
];

/// A number of words such as `3 failed`, wherever they stand in a summary line.
fn worded(line: &str, words: &[&str]) -> Option<u64> {
    let mut sum = 0u64;
    let tokens: Vec<&str> = line
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '|' | '(' | ')' | '=' | ';'))
        .filter(|token| !token.is_empty())
        .collect();
    for pair in tokens.windows(2) {
        if let [number, word] = pair
            && words.contains(word)
        {
            sum = sum.checked_add(number.parse().ok()?)?;
        }
    }
    Some(sum)
}

/// The sum of the numbers that stand after these keys in `failures=1, expected failures=2`.
fn keyed(detail: &str, keys: &[&str]) -> Option<u64> {
    let pairs = detail.split(", ").filter_map(|pair| pair.split_once('='));
    pairs
        .filter(|(key, _)| keys.contains(key))
        .try_fold(0u64, |sum, (_, number)| {
            sum.checked_add(number.parse().ok()?)
        })
}

fn cargo(lines: &[&str]) -> Option<Counts> {
    static RESULT: Pattern =
        Pattern::new(r"^test result: (ok|FAILED)\. (\d+) passed; (\d+) failed; ");
    static RUNNING: Pattern = Pattern::new(r"^running \d+ tests?$");
    let mut tally = Tally::default();
    let (mut begun, mut ended) = (0usize, 0usize);
    for line in lines {
        if let Some(found) = RESULT.captures(line) {
            ended += 1;
            let failed = group(&found, 3).parse().ok();
            tally.add(group(&found, 2).parse().ok(), failed);
            tally.break_if((group(&found, 1) == "ok") != (failed == Some(0)));
        } else if RUNNING.is_match(line) {
            begun += 1;
        }
    }
    // A test binary that died has begun and never told its result.
    tally.break_if(begun > ended);
    tally.finish()
}

fn nextest(lines: &[&str]) -> Option<Counts> {
    static SUMMARY: Pattern =
        Pattern::new(r"^\s+Summary \[[^\]]*\]\s+(\d+)(?:/(\d+))? tests? run: (\d+) passed(.*)$");
    let mut tally = Tally::default();
    for line in lines {
        let Some(found) = SUMMARY.captures(line) else {
            continue;
        };
        let rest = group(&found, 4);
        let passed: Option<u64> = group(&found, 3).parse().ok();
        let failed = failed_in_nextest(rest);
        let run: Option<u64> = group(&found, 1).parse().ok();
        let sum = passed.zip(failed).and_then(|(p, f)| p.checked_add(f));
        tally.add(passed, failed);
        tally.break_if(run.is_none() || run != sum);
    }
    tally.finish()
}

fn failed_in_nextest(rest: &str) -> Option<u64> {
    // The parenthesis after the passed ones says how many of them were slow or flaky.
    let rest = rest
        .strip_prefix(" (")
        .and_then(|it| it.split_once(')'))
        .map_or(rest, |it| it.1);
    worded(rest, &["failed", "timed"])
        .zip(worded(rest, &["exec"]))
        .map(|(f, e)| f.saturating_add(e))
}

fn pytest(lines: &[&str]) -> Option<Counts> {
    static SUMMARY: Pattern = Pattern::new(
        r"^(?:=+ )?(?:\d+ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|rerun|subtests passed)(?:, )?)+ in [\d.]+s(?: \([\d:]+\))?(?: =+)?$",
    );
    static NONE: Pattern = Pattern::new(r"^(?:=+ )?no tests ran in [\d.]+s(?: =+)?$");
    let mut tally = Tally::default();
    for line in lines {
        if SUMMARY.is_match(line) {
            tally.add(
                worded(line, &["passed"]),
                worded(line, &["failed", "error", "errors"]),
            );
        } else if NONE.is_match(line) {
            tally.add(Some(0), Some(0));
        }
    }
    tally.finish()
}

fn unittest(lines: &[&str]) -> Option<Counts> {
    static RAN: Pattern = Pattern::new(r"^Ran (\d+) tests? in [\d.]+s$");
    static END: Pattern = Pattern::new(r"^(OK|FAILED)(?: \((.*)\))?$");
    let mut tally = Tally::default();
    let mut ran = None;
    for line in lines {
        if let Some(found) = RAN.captures(line) {
            tally.break_if(ran.is_some());
            ran = Some(group(&found, 1).parse::<u64>().ok());
        } else if let Some(found) = END.captures(line)
            && let Some(total) = ran.take()
        {
            let detail = group(&found, 2);
            let failed = keyed(detail, &["failures", "errors", "unexpected successes"]);
            let others = keyed(detail, &["skipped", "expected failures"]);
            let passed = total
                .zip(failed)
                .zip(others)
                .and_then(|((total, failed), others)| {
                    total.checked_sub(failed)?.checked_sub(others)
                });
            tally.add(passed, failed);
            tally.break_if((group(&found, 1) == "OK") != (failed == Some(0)));
        }
    }
    tally.break_if(ran.is_some());
    tally.finish()
}

fn jest(lines: &[&str]) -> Option<Counts> {
    suites(lines, "Test Suites: ", "Tests: ", |line| {
        let total = worded(line, &["total"]);
        let parts = worded(line, &["passed", "failed", "skipped", "todo", "pending"]);
        total != parts
    })
}

fn vitest(lines: &[&str]) -> Option<Counts> {
    suites(lines, "Test Files ", "Tests ", |_| false)
}

/// Tools that count files and the tests in them. A file that failed without a failed test was not
/// counted at all, so the number of failures is then unknown.
fn suites(
    lines: &[&str],
    files: &str,
    tests: &str,
    contradicts: fn(&str) -> bool,
) -> Option<Counts> {
    let mut tally = Tally::default();
    let mut failed_files = 0u64;
    let mut seen_files = false;
    for line in lines {
        let line = line.trim_start();
        if let Some(rest) = line.strip_prefix(files).filter(|it| begins_with_count(it)) {
            seen_files = true;
            failed_files = failed_files.saturating_add(worded(rest, &["failed"]).unwrap_or(1));
        } else if seen_files
            && let Some(rest) = line.strip_prefix(tests).filter(|it| begins_with_count(it))
        {
            tally.add(worded(rest, &["passed"]), worded(rest, &["failed"]));
            tally.break_if(contradicts(rest));
        }
    }
    let said = tally.finish()?;
    let uncounted = failed_files > 0 && said.failed == Some(0);
    Some(Counts {
        failed: said.failed.filter(|_| !uncounted),
        ..said
    })
}

fn begins_with_count(text: &str) -> bool {
    text.trim_start().starts_with(|c: char| c.is_ascii_digit())
}

fn mocha(lines: &[&str]) -> Option<Counts> {
    static PASSING: Pattern = Pattern::new(r"^\s{2,}(\d+) passing \([^)]*\)$");
    static FAILING: Pattern = Pattern::new(r"^\s{2,}(\d+) failing$");
    let mut tally = Tally::default();
    for line in lines {
        if let Some(found) = PASSING.captures(line) {
            tally.add(group(&found, 1).parse().ok(), Some(0));
        } else if let Some(found) = FAILING.captures(line) {
            tally.break_if(!tally.seen);
            tally.add(Some(0), group(&found, 1).parse().ok());
        }
    }
    tally.finish()
}

/// go test has no summary: with `-v` the top-level tests are counted, without it the passed ones
/// are not shown.
fn go(lines: &[&str]) -> Option<Counts> {
    static PACKAGE: Pattern = Pattern::new(r"^(ok  |FAIL)\t\S+");
    static PLAIN_END: Pattern = Pattern::new(r"^(?:PASS|FAIL)$");
    let (mut passed, mut failed, mut runs) = (0u64, 0u64, 0u64);
    let (mut packages, mut failed_packages, mut ends) = (0u64, 0u64, 0u64);
    for line in lines {
        if let Some(found) = PACKAGE.captures(line) {
            packages += 1;
            failed_packages += u64::from(group(&found, 1) == "FAIL");
        }
        passed += u64::from(line.starts_with("--- PASS: "));
        failed += u64::from(line.starts_with("--- FAIL: "));
        runs += u64::from(line.starts_with("=== RUN "));
        ends += u64::from(PLAIN_END.is_match(line));
    }
    if packages == 0 && (ends == 0 || runs + passed + failed == 0) {
        return None;
    }
    // A package that failed to build or panicked has failed without a failed test.
    let uncounted = failed_packages > 0 && failed == 0;
    Some(Counts {
        passed: (runs > 0).then_some(passed),
        failed: (!uncounted).then_some(failed),
    })
}

fn tap(lines: &[&str]) -> Option<Counts> {
    static VERSION: Pattern = Pattern::new(r"^TAP version \d+$");
    static PLAN: Pattern = Pattern::new(r"^1\.\.(\d+)(?:\s+#.*)?$");
    static POINT: Pattern = Pattern::new(r"^(not )?ok\b(?: \d+)?(.*)$");
    static DIRECTIVE: Pattern = Pattern::new(r"(?i)\s#\s*(?:skip|todo)\b");
    let mut version = false;
    let (mut passed, mut failed, mut points) = (0u64, 0u64, 0u64);
    let mut plan = None;
    let mut plans = 0u32;
    for line in lines {
        version |= VERSION.is_match(line);
        if let Some(found) = PLAN.captures(line) {
            plan = group(&found, 1).parse::<u64>().ok();
            plans += 1;
        } else if let Some(found) = POINT.captures(line) {
            points += 1;
            if !DIRECTIVE.is_match(group(&found, 2)) {
                let is_failed = !group(&found, 1).is_empty();
                failed += u64::from(is_failed);
                passed += u64::from(!is_failed);
            }
        }
    }
    // node's runner counts its nested tests in a summary of its own.
    let summarised = lines.iter().any(|line| line.starts_with("# pass "));
    if summarised || (plans == 0 && !(version && points > 0)) {
        return None;
    }
    let complete = plans == 1 && plan == Some(points);
    Some(if complete {
        Counts::of(passed, failed)
    } else {
        Counts::UNKNOWN
    })
}

fn node(lines: &[&str]) -> Option<Counts> {
    static COUNT: Pattern = Pattern::new(r"^[#ℹ] (pass|fail|cancelled)\s+(\d+)$");
    let mut tally = Tally::default();
    let mut kinds = (false, false);
    for line in lines {
        let Some(found) = COUNT.captures(line) else {
            continue;
        };
        let number = group(&found, 2).parse().ok();
        if group(&found, 1) == "pass" {
            kinds.0 = true;
            tally.add(number, Some(0));
        } else {
            kinds.1 |= group(&found, 1) == "fail";
            tally.add(Some(0), number);
        }
    }
    tally.finish().filter(|_| kinds.0).map(|said| Counts {
        failed: said.failed.filter(|_| kinds.1),
        ..said
    })
}

fn rspec(lines: &[&str]) -> Option<Counts> {
    static SUMMARY: Pattern = Pattern::new(
        r"^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?(?:, (\d+) errors? occurred outside of examples)?$",
    );
    let mut tally = Tally::default();
    for line in lines {
        let Some(found) = SUMMARY.captures(line) else {
            continue;
        };
        let [total, failed, pending, errors] =
            [1, 2, 3, 4].map(|index| optional_number(group(&found, index)));
        let passed = total
            .zip(failed)
            .zip(pending)
            .and_then(|((total, failed), pending)| total.checked_sub(failed)?.checked_sub(pending));
        tally.add(
            passed,
            failed.zip(errors).and_then(|(f, e)| f.checked_add(e)),
        );
    }
    tally.finish()
}

fn optional_number(digits: &str) -> Option<u64> {
    if digits.is_empty() {
        Some(0)
    } else {
        digits.parse().ok()
    }
}

fn minitest(lines: &[&str]) -> Option<Counts> {
    static SUMMARY: Pattern = Pattern::new(
        r"^(\d+) (?:runs|tests), \d+ assertions, (\d+) failures, (\d+) errors(?:, (\d+) (?:skips|pendings))?",
    );
    let mut tally = Tally::default();
    for line in lines {
        let Some(found) = SUMMARY.captures(line) else {
            continue;
        };
        let [total, failures, errors, skips] =
            [1, 2, 3, 4].map(|index| optional_number(group(&found, index)));
        let failed = failures.zip(errors).and_then(|(f, e)| f.checked_add(e));
        let passed = total
            .zip(failed)
            .zip(skips)
            .and_then(|((total, failed), skips)| total.checked_sub(failed)?.checked_sub(skips));
        tally.add(passed, failed);
    }
    tally.finish()
}

/// Maven and the console launcher of JUnit.
fn java(lines: &[&str]) -> Option<Counts> {
    static MAVEN: Pattern = Pattern::new(
        r"^(?:\[\w+\] )?Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)\s*$",
    );
    static LAUNCHER: Pattern = Pattern::new(r"^\[\s*(\d+) tests (successful|failed)\s*\]$");
    let mut maven = Tally::default();
    let mut launcher = Tally::default();
    for line in lines {
        if let Some(found) = MAVEN.captures(line) {
            let [total, failures, errors, skips] =
                [1, 2, 3, 4].map(|index| optional_number(group(&found, index)));
            let failed = failures.zip(errors).and_then(|(f, e)| f.checked_add(e));
            let passed = total
                .zip(failed)
                .zip(skips)
                .and_then(|((total, failed), skips)| total.checked_sub(failed)?.checked_sub(skips));
            maven.add(passed, failed);
        } else if let Some(found) = LAUNCHER.captures(line) {
            let number = group(&found, 1).parse().ok();
            match group(&found, 2) {
                "successful" => launcher.add(number, Some(0)),
                _ => launcher.add(Some(0), number),
            }
        }
    }
    match (maven.finish(), launcher.finish()) {
        (Some(a), Some(b)) if a != b => Some(Counts::UNKNOWN),
        (a, b) => a.or(b),
    }
}

fn dotnet(lines: &[&str]) -> Option<Counts> {
    static SUMMARY: Pattern = Pattern::new(
        r"^(?:Passed|Failed|Skipped)!\s+- Failed:\s*(\d+), Passed:\s*(\d+), Skipped:\s*(\d+), Total:\s*(\d+),?",
    );
    let mut tally = Tally::default();
    for line in lines {
        let Some(found) = SUMMARY.captures(line) else {
            continue;
        };
        let [failed, passed, skipped, total] =
            [1, 2, 3, 4].map(|index| group(&found, index).parse::<u64>().ok());
        let sum = failed
            .zip(passed)
            .zip(skipped)
            .and_then(|((failed, passed), skipped)| {
                failed.checked_add(passed)?.checked_add(skipped)
            });
        tally.add(passed, failed);
        tally.break_if(sum != total);
    }
    tally.finish()
}
