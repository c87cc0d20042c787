//! Gradle.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "Gradle",
    kind: ToolKind::Tests,
    signs: &[r"^\S+ > .+ FAILED$"],
    read,
    ..Tool::NOTHING
};

static FAILED: Pattern = Pattern::new(r"^(\S+ > .+?) FAILED$");

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    for line in output.lines {
        if let Some(found) = FAILED.captures(line) {
            sink.test(group(&found, 1));
        }
    }
}
