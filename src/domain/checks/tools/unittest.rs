//! unittest, the test runner of Python's standard library.

use super::python::{EXCEPTION, FRAME, is_syntax_error};
use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally, keyed};
use crate::checks::diagnostic::{Location, Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "unittest",
    kind: ToolKind::Tests,
    signs: &[
        r"^={70}\n(?:FAIL|ERROR): \S",
        r"^Ran \d+ tests? in [\d.]+s$",
    ],
    read,
    counts,
    headers: &[r"(?:FAIL|ERROR): \S+ \("],
    around: Some((
        r"^Found [0-9]+ test\(s\)\.$",
        r"^Ran [0-9]+ tests? in [0-9.]+s$",
    )),
    ..Tool::NOTHING
};

static RULE: Pattern = Pattern::new(r"^={70}$");
static LINE: Pattern = Pattern::new(r"^-{70}$");
static HEADER: Pattern = Pattern::new(r"^(?:FAIL|ERROR): (\S+)(?: \((\S+)\))?(.*)$");

/// The maximum number of lines of a failure below its header.
const REACH: usize = 200;

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let lines = output.lines;
    for (at, pair) in lines.windows(2).enumerate() {
        let [rule, line] = pair else { continue };
        let header = HEADER.captures(line).filter(|_| RULE.is_match(rule));
        let Some(found) = header else { continue };
        let (test, class, sub) = (group(&found, 1), group(&found, 2), group(&found, 3));
        // Since Python 3.11, the name in parentheses is the full one.
        let whole = class.is_empty() || class.rsplit('.').next() == Some(test);
        let name = match (class, whole) {
            ("", _) => test.to_owned(),
            (class, true) => class.to_owned(),
            (class, false) => format!("{class}.{test}"),
        };
        let name = format!("{name}{sub}");
        sink.test(&name);
        failure(lines, at + 1, &name, sink);
    }
}

/// Reads the last frame inside the project, and the exception with the lines of its message.
fn failure(lines: &[&str], header: usize, name: &str, sink: &mut Sink<'_>) {
    let below = lines.iter().enumerate().skip(header + 1).take(REACH);
    let mut rules = 0;
    let mut last: Option<(usize, Location<'_>)> = None;
    let mut message: Vec<&str> = Vec::new();
    let mut end = header + 1;
    for (at, line) in below {
        rules += usize::from(LINE.is_match(line));
        if rules == 2 || RULE.is_match(line) {
            break;
        }
        end = at + 1;
        if let Some(found) = FRAME.captures(line) {
            let place = Location::new(group(&found, 1), group(&found, 2));
            if last.is_none() || sink.relative(place.path).is_some() {
                last = Some((at, place));
            }
            message.clear();
        } else if EXCEPTION.is_match(line) || !message.is_empty() {
            message.push(line);
        }
    }
    if let Some((at, place)) = last.filter(|_| !message.is_empty()) {
        let found = if message.iter().any(|line| is_syntax_error(line)) {
            sink.error(at, place, &message.join("\n")).about(name)
        } else {
            sink.failure(at, place, name, &message.join("\n"))
        };
        found.lines(header..end);
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
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
            tally.add_of_total(total, failed, others);
            tally.break_if((group(&found, 1) == "OK") != (failed == Some(0)));
        }
    }
    tally.break_if(ran.is_some());
    tally.finish()
}
