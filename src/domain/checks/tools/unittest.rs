//! unittest, the test runner of Python's standard library.

use super::python::{is_syntax_error, traceback};
use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Output, Sink, below};
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
    needs: r"^Ran \d+ tests? in [\d.]+s$",
    summary: &[
        r"^Ran (?<total>\d+) tests? in [\d.]+s$",
        r"^OK(?<failed>)(?: \((?:skipped=(?<skipped>\d+))?(?:, )?(?:expected failures=(?<skipped_1>\d+))?\))?$",
        r"^FAILED \((?:failures=(?<failed>\d+)|(?<failed_0>))(?:, )?(?:errors=(?<errors>\d+))?(?:, )?(?:skipped=(?<skipped>\d+))?(?:, )?(?:expected failures=(?<skipped_1>\d+))?(?:, )?(?:unexpected successes=(?<failed_1>\d+))?\)$",
    ],
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

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let lines = output.lines;
    for (at, pair) in lines.windows(2).enumerate() {
        let [rule, line] = pair else { continue };
        let header = HEADER.captures(line).filter(|_| RULE.is_match(rule));
        let Some(found) = header else { continue };
        let (test, class, sub) = (group(&found, 1), group(&found, 2), group(&found, 3));
        // Since Python 3.11, the name in parentheses is the full one.
        let name = match class {
            "" => format!("{test}{sub}"),
            whole if whole.rsplit('.').next() == Some(test) => format!("{whole}{sub}"),
            class => format!("{class}.{test}{sub}"),
        };
        sink.test(&name);
        let from = at + 2;
        let mut rules = 0;
        let block = below(lines, at + 1, 200, |line| {
            rules += usize::from(LINE.is_match(line));
            rules < 2 && !RULE.is_match(line)
        });
        let Some((placed, place, said)) = traceback(&block, sink) else {
            continue;
        };
        let (at, message) = (from + placed, said.join("\n"));
        let found = if message.is_empty() {
            continue;
        } else if said.iter().any(|line| is_syntax_error(line)) {
            sink.error(at, place, &message).about(&name)
        } else {
            sink.failure(at, place, &name, &message)
        };
        found.lines(from - 1..from + block.len());
    }
}
