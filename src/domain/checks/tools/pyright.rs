//! pyright and basedpyright.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Severity, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "pyright",
    kind: ToolKind::Lint,
    signs: &[
        r"^\s+\S.*\.pyi?:\d+:\d+ - (?:error|warning|information): ",
        r"^\d+ errors?, \d+ warnings?, \d+ (?:informations?|notes?)\s*$",
    ],
    read,
    ..Tool::NOTHING
};

const MORE: usize = 20;

/// A message continues on lines with deeper indentation, and ends with its rule in parentheses.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static MESSAGE: Pattern =
        Pattern::new(r"^\s+(\S.*?\.pyi?):(\d+):(\d+) - (error|warning|information): (.+)$");
    static RULE: Pattern = Pattern::new(r"(?s)^(.*\S)\s+\((report\w+)\)$");
    let lines = output.lines;
    for (at, line) in lines.iter().enumerate() {
        let Some(found) = MESSAGE.captures(line) else {
            continue;
        };
        let severity = match group(&found, 4) {
            "error" => Severity::Error,
            "warning" => Severity::Warning,
            _ => Severity::Note,
        };
        let more = lines.iter().skip(at + 1).take(MORE);
        let more = more.take_while(|more| is_deeper(more) && !MESSAGE.is_match(more));
        let mut message = group(&found, 5).to_owned();
        for line in more {
            message.push('\n');
            message.push_str(line.trim());
        }
        let ruled = RULE.captures(&message);
        let (text, rule) = match &ruled {
            Some(found) => (group(found, 1), Some(group(found, 2))),
            None => (message.as_str(), None),
        };
        sink.push(at, Location::of(&found), severity, rule, text);
    }
}

/// The indentation consists of non-breaking spaces.
fn is_deeper(line: &str) -> bool {
    line.chars().take_while(|c| c.is_whitespace()).count() >= 4
}
