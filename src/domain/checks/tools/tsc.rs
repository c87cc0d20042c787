//! The TypeScript compiler in its plain and pretty formats; C# and F# compilers print the plain one too.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Severity, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "tsc",
    kind: ToolKind::Code,
    signs: &[r"(?:error|warning|message) (?:TS|CS|FS)\d+: "],
    read,
    headers: &[r"\S.*(?::\d+:\d+\ -|\(\d+,\d+\):)\ error\ "],
    ..Tool::NOTHING
};

static PLAIN: Pattern = Pattern::new(
    r"^(\S[^()]*(?:\([^()]*\)[^()]*)*)\((\d+),(\d+)\): (error|warning|message) ((?:TS|CS|FS)\d+): (.*)$",
);
static PRETTY: Pattern =
    Pattern::new(r"^(\S.*?):(\d+):(\d+) - (error|warning|message) (TS\d+): (.*)$");
static UNPLACED: Pattern = Pattern::new(r"^()()()(error) (TS\d+): (.*)$");

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let lines = output.lines;
    for (at, line) in lines.iter().enumerate() {
        let found = [&PLAIN, &PRETTY, &UNPLACED]
            .into_iter()
            .find_map(|it| it.captures(line));
        let Some(found) = found else { continue };
        let severity = match group(&found, 4) {
            "error" => Severity::Error,
            "warning" => Severity::Warning,
            _ => Severity::Note,
        };
        let mut message = group(&found, 6).to_owned();
        for more in lines
            .iter()
            .skip(at + 1)
            .take_while(|more| is_continued(more))
            .take(5)
        {
            message.push('\n');
            message.push_str(more.trim_end());
        }
        let code = group(&found, 5);
        sink.source = if code.starts_with("TS") {
            TOOL.name
        } else {
            "dotnet"
        };
        sink.push(at, Location::of(&found), severity, Some(code), &message);
    }
}

/// The compiler indents the continuation lines of a message by two spaces.
fn is_continued(line: &str) -> bool {
    line.starts_with("  ") && !line.trim().is_empty() && !line.trim_start().starts_with('~')
}
