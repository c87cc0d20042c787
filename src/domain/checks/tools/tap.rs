//! The Test Anything Protocol: `prove`, tap for Node.js, `node --test` in that form.

use super::{Tool, ToolKind};
use crate::checks::counts::Counts;
use crate::checks::diagnostic::{Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "TAP",
    kind: ToolKind::Tests,
    signs: &[r"^TAP version \d+$", r"^1\.\.\d+", r"^\s*not ok \d+"],
    read,
    counts,
    headers: &[r"\s*not\ ok\ "],
    ..Tool::NOTHING
};

static FAILED: Pattern = Pattern::new(r"^\s*not ok \d+ - ([^#]+?)(?:\s+# time=.*)?$");

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    for line in output.lines {
        if let Some(found) = FAILED.captures(line) {
            sink.test(group(&found, 1));
        }
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
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
