//! `git diff`, with which checks find out whether what they generate or format is up to date.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Severity, Sink};
use crate::pattern::{Pattern, group};

const WITHOUT_REVISION: &str = "Without a revision, `git diff` shows what the check itself has changed. Run its generator or formatter, and keep what it writes.";

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "git diff",
    kind: ToolKind::Lint,
    signs: &[r"^diff --git \S.* \S"],
    read,
    hint: |line| {
        let is_one = line.starts_with("diff --git ");
        is_one.then(|| WITHOUT_REVISION.to_owned())
    },
    ..Tool::NOTHING
};

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static FILE: Pattern = Pattern::new(r"^diff --git (?:a/.* b/|.* )(.+?)$");
    static HUNK: Pattern = Pattern::new(r"^@@ -\S+ \+(\d+)");
    let lines = output.lines;
    let of_file = |at: usize| {
        let end = |line: &&str| line.starts_with("diff --git ");
        let rest = lines.get(at + 1..).unwrap_or_default();
        rest.iter().position(end).unwrap_or(rest.len()) + at + 1
    };
    for (at, line) in lines.iter().enumerate() {
        let Some(found) = FILE.captures(line) else {
            continue;
        };
        let own = lines.get(at..of_file(at)).unwrap_or_default();
        let hunk = own.iter().find_map(|line| HUNK.captures(line));
        let first = hunk.as_ref().map_or("1", |hunk| group(hunk, 1));
        let place = Location::new(group(&found, 1), first);
        let message = "`git diff` shows a change of this file";
        sink.push(at, place, Severity::Error, None, message)
            .lines(at..of_file(at));
    }
}
