//! The Test Anything Protocol: `prove`, tap for Node.js, and `node --test` in that format.

use super::shape::Below;
use super::{Tool, ToolKind, shape};
use crate::checks::counts::{Counts, sum};
use crate::checks::diagnostic::{Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "TAP",
    kind: ToolKind::Tests,
    signs: &[
        r"^TAP version \d+$",
        r"^1\.\.\d+",
        r"^(?: {4})*not ok \d+",
        r"^#   Failed test ",
    ],
    read,
    counts,
    result,
    headers: &[r"\s*not\ ok\ ", r"\#\ \ \ Failed\ test\ "],
    around: Some((r"^TAP version [0-9]+$", r"^1\.\.[0-9]+")),
    ..Tool::NOTHING
};

/// The lines of a failed test of Perl's modules, which are on standard error: they may appear anywhere, and without those
/// on standard output when `prove` hides them.
const OF_PERL: Tool = Tool {
    name: "TAP",
    kind: ToolKind::Tests,
    lines: &[r"^\s*#   Failed test '(?<test>.*)'$"],
    below: Some(Below {
        until: r"^\s*(?:$|[^#\s]|#(?:[^ ]|$)|# [^ ]|#   Failed test '.*'$)",
        frame: r"^\s*#\s+(?:Failed test '.*' )?at (?<path>\S.*?) line (?<line>\d+)\.$",
        framing: "# \t",
        ..Below::NOTHING
    }),
    ..Tool::NOTHING
};

/// The comments and the block below a failed test, as bats and Node.js print them.
const POINT: Below = Below {
    until: r"^(?:[^# ]|$)|^\s*(?:not )?ok ",
    stop: r"^\s*stack: ",
    frame: r"^(?:# +| +)\(?(?:from function .+ )?in (?:test )?file (?<path>.+?), line (?<line>\d+)[,)]",
    noise: r"^[# ]*(?:---|\.\.\.|duration_ms: .*|location: .*|failureType: .*|error: \|-|code: .*|name: .*|operator: .*|Subtest: .*)?$",
    framing: "# \t",
};

/// The mark of a test whose result does not count.
static DIRECTIVE: Pattern = Pattern::new(r"(?i)(?:^|\s)#\s*(?:skip|todo)\b");

/// Lines on standard output report failed tests.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    shape::read(&OF_PERL, output, sink);
    for (at, line) in output.lines.iter().enumerate() {
        if let Some((name, true)) = result(line) {
            point(output.lines, at, name, sink);
        }
    }
}

fn result(line: &str) -> Option<(&str, bool)> {
    static POINT: Pattern = Pattern::new(
        r"^(?: {4})*(not )?ok \d+(?: -)? (\S.*?)(?:\s+# (?:time=.*|[\d.]+ ?m?s)| in \d+(?:ms|sec))?\s*$",
    );
    let found = POINT.captures(line)?;
    let name = group(&found, 2);
    (!DIRECTIVE.is_match(name)).then(|| (name, !group(&found, 1).is_empty()))
}

/// Adds a failed test, at the place that the lines below it name. Node.js names the start of the test and the frames.
fn point(lines: &[&str], at: usize, name: &str, sink: &mut Sink<'_>) {
    static LOCATION: Pattern =
        Pattern::new(r"^\s+(?:location: |at .*\()'?(?:file://)?([^'()]+?):(\d+):(\d+)'?\)?$");
    sink.test(name);
    let block = POINT.block(lines, at + 1, name, "", sink);
    let below = lines.get(at + 1..block.end).unwrap_or_default();
    let place = block.place().or_else(|| sink.own_frame(below, &LOCATION));
    if let Some(place) = place {
        let said: Vec<&str> = block
            .message
            .iter()
            .map(|line| quoted_error(line))
            .collect();
        sink.failure(at, place, name, &said.join("\n"))
            .lines(at..block.end);
    }
}

/// The message of an error that Node prints in quotes, on one line.
fn quoted_error(line: &str) -> &str {
    let text = line.strip_prefix("error: '");
    text.and_then(|text| text.strip_suffix('\''))
        .unwrap_or(line)
}

fn counts(lines: &[&str]) -> Option<Counts> {
    static PLAN: Pattern = Pattern::new(r"^1\.\.(\d+)(?:\s+#.*)?$");
    static POINT: Pattern = Pattern::new(r"^(not )?ok\b(?: \d+)?(.*)$");
    let plans: Vec<Option<u64>> = PLAN
        .in_lines(lines)
        .map(|(_, found)| group(&found, 1).parse().ok())
        .collect();
    let points: Vec<_> = POINT.in_lines(lines).map(|(_, found)| found).collect();
    let has_version = lines.iter().any(|line| line.starts_with("TAP version "));
    // Node's runner counts its nested tests in a summary of its own.
    let is_summarised = lines.iter().any(|line| line.starts_with("# pass "));
    let is_tap = !plans.is_empty() || has_version && !points.is_empty();
    if is_summarised || !is_tap {
        return None;
    }
    if plans.is_empty() || sum(&plans) != Some(points.len() as u64) {
        return Some(Counts::UNKNOWN);
    }
    let counted = points
        .iter()
        .filter(|found| !DIRECTIVE.is_match(group(found, 2)));
    let (failed, passed): (Vec<_>, Vec<_>) = counted.partition(|found| found.get(1).is_some());
    Some(Counts::of(passed.len() as u64, failed.len() as u64))
}
