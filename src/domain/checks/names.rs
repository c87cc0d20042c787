//! The names of the tests that failed.

use super::failing_test::{self, FailingTest, MAX_FAILING_TESTS};
use crate::pattern::{Pattern, group};
use crate::text;
use std::collections::BTreeSet;

/// The tests (and files of tests that could not even start) that `output` reports as failed, each
/// named as its tool names it. Empty when the output has no form that is known.
pub fn failing_tests(output: &str) -> Vec<FailingTest> {
    let plain = text::plain(output);
    let lines: Vec<&str> = plain.lines().collect();
    tests_of(&lines)
}

/// The names of the tests that `lines` report as failed.
pub(super) fn of_lines(lines: &[&str]) -> BTreeSet<String> {
    failing_test::names(&tests_of(lines))
}

fn tests_of(lines: &[&str]) -> Vec<FailingTest> {
    let mut names = Names::default();
    rust(lines, &mut names);
    pytest(lines, &mut names);
    unittest(lines, &mut names);
    jest(lines, &mut names);
    mocha(lines, &mut names);
    single_lines(lines, &mut names);
    failing_test::distinct(names.0)
}

#[derive(Default)]
struct Names(Vec<FailingTest>);

impl Names {
    fn add(&mut self, name: &str) {
        if self.0.len() < MAX_FAILING_TESTS {
            self.0.extend(FailingTest::named(name));
        }
    }
}

fn rust(lines: &[&str], names: &mut Names) {
    static NEXTEST: Pattern = Pattern::new(
        r"^\s+(?:FAIL|SIGABRT|SIGSEGV|SIGKILL|ABORT|TIMEOUT|LEAK-FAIL)(?: \S+)? \[\s*[\d.]+s\] (?:\(\s*\d+/\d+\) )?(\S+ .+)$",
    );
    static CARGO: Pattern = Pattern::new(r"^test (.+?)(?: - should panic)? \.\.\. FAILED$");
    static LISTED: Pattern = Pattern::new(r"^    (\S.*)$");
    let before = names.0.len();
    for line in lines {
        if let Some(found) = NEXTEST.captures(line) {
            names.add(group(&found, 1));
        }
    }
    if names.0.len() > before {
        return;
    }
    let mut listed = false;
    for line in lines {
        if let Some(found) = CARGO.captures(line) {
            names.add(group(&found, 1));
        }
        if *line == "failures:" {
            listed = true;
        } else if let Some(found) = LISTED.captures(line).filter(|_| listed) {
            names.add(group(&found, 1));
        } else {
            listed = false;
        }
    }
}

fn pytest(lines: &[&str], names: &mut Names) {
    static SHORT: Pattern =
        Pattern::new(r"^(?:FAILED|ERROR|SUBFAIL(?:ED)?\S*) ([^\s:]+\.py(?:::.+?)?)(?: - .*)?$");
    static VERBOSE: Pattern = Pattern::new(r"^(\S+\.py::.+?) (?:FAILED|ERROR)(?:\s+\[\s*\d+%\])?$");
    static BEGIN: Pattern = Pattern::new(r"^=+ (?:FAILURES|ERRORS) =+$");
    static SECTION: Pattern =
        Pattern::new(r"^_{3,} (?:ERROR (?:collecting|at \w+ of) )?(.+?) _{3,}$");
    let before = names.0.len();
    for line in lines {
        if let Some(found) = SHORT.captures(line).or_else(|| VERBOSE.captures(line)) {
            names.add(group(&found, 1));
        }
    }
    if names.0.len() > before {
        return;
    }
    let mut begun = false;
    for line in lines {
        begun |= BEGIN.is_match(line);
        if let Some(found) = SECTION.captures(line).filter(|_| begun) {
            names.add(group(&found, 1));
        }
    }
}

fn unittest(lines: &[&str], names: &mut Names) {
    static RULE: Pattern = Pattern::new(r"^={70}$");
    static HEADER: Pattern = Pattern::new(r"^(?:FAIL|ERROR): (\S+)(?: \((\S+)\))?(.*)$");
    for pair in lines.windows(2) {
        let [rule, line] = pair else { continue };
        if !RULE.is_match(rule) {
            continue;
        }
        if let Some(found) = HEADER.captures(line) {
            let (test, class, sub) = (group(&found, 1), group(&found, 2), group(&found, 3));
            // Since Python 3.11 the name in parentheses is the whole one.
            let whole = class.is_empty() || class.rsplit('.').next() == Some(test);
            let name = match (class, whole) {
                ("", _) => test.to_owned(),
                (class, true) => class.to_owned(),
                (class, false) => format!("{class}.{test}"),
            };
            names.add(&format!("{name}{sub}"));
        }
    }
}

fn jest(lines: &[&str], names: &mut Names) {
    static FILE: Pattern = Pattern::new(r"^FAIL (\S.*?)(?: \([\d.]+ m?s\))?$");
    static TEST: Pattern = Pattern::new(r"^  ● (.+)$");
    let mut file = String::new();
    for line in lines {
        if let Some(found) = FILE.captures(line) {
            file = group(&found, 1).to_owned();
        } else if line.starts_with("PASS ") {
            file.clear();
        } else if let Some(found) = TEST.captures(line).filter(|_| !file.is_empty()) {
            match group(&found, 1) {
                "Console" => {}
                "Test suite failed to run" => names.add(&file),
                name => names.add(&format!("{file} › {name}")),
            }
        }
    }
}

fn mocha(lines: &[&str], names: &mut Names) {
    static FAILING: Pattern = Pattern::new(r"^  \d+ failing$");
    static HEADER: Pattern = Pattern::new(r"^  \d+\) (.+)$");
    let Some(at) = lines.iter().position(|line| FAILING.is_match(line)) else {
        return;
    };
    let mut rest = lines.iter().skip(at + 1).peekable();
    while let Some(line) = rest.next() {
        let Some(found) = HEADER.captures(line) else {
            continue;
        };
        let mut name = group(&found, 1).to_owned();
        while !name.ends_with(':') {
            let Some(more) = rest.next_if(|more| more.starts_with("     ")) else {
                break;
            };
            name.push_str(" › ");
            name.push_str(more.trim());
        }
        names.add(name.trim_end_matches(':'));
    }
}

/// Tools that name a failed test on a line of its own.
fn single_lines(lines: &[&str], names: &mut Names) {
    static PATTERNS: [Pattern; 9] = [
        // vitest
        Pattern::new(r"^ FAIL  (?:\|[^|]+\| )?(.+?)(?: \[ .+ \])?$"),
        // go
        Pattern::new(r"^\s*--- FAIL: (\S+) \("),
        Pattern::new(r"^FAIL\t(\S+ \[(?:build|setup) failed\])$"),
        // TAP
        Pattern::new(r"^\s*not ok \d+ - ([^#]+?)(?:\s+# time=.*)?$"),
        // node's runner
        Pattern::new(r"^\s*✖ (.+?) \([\d.]+m?s\)$"),
        // rspec
        Pattern::new(r"^rspec (\S+:\d+|\S+\[[\d:]+\]) # .+$"),
        // minitest
        Pattern::new(r"^([A-Z]\S*#test_\S+?)(?: \[\S+\])?:$"),
        // gradle
        Pattern::new(r"^(\S+ > .+?) FAILED$"),
        // Maven, dotnet
        Pattern::new(
            r"^(?:\[ERROR\] (\S+?\.\S+) .*<<< (?:FAILURE|ERROR)!|  Failed (\S.*?) \[[^\]]+\])$",
        ),
    ];
    for line in lines {
        let found = PATTERNS.iter().find_map(|pattern| pattern.captures(line));
        if let Some(found) = found {
            let first = group(&found, 1);
            names.add(if first.is_empty() {
                group(&found, 2)
            } else {
                first
            });
        }
    }
}
