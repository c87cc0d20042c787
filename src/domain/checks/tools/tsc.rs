//! The TypeScript compiler, plain and pretty; C# and F# print the plain form too.

use crate::checks::diagnostic::{Place, Severity, Sink, Tool};
use crate::pattern::{Pattern, group};

static PLAIN: Pattern = Pattern::new(
    r"^(\S[^()]*(?:\([^()]*\)[^()]*)*)\((\d+),(\d+)\): (error|warning|message) ((?:TS|CS|FS)\d+): (.*)$",
);
static PRETTY: Pattern =
    Pattern::new(r"^(\S.*?):(\d+):(\d+) - (error|warning|message) (TS\d+): (.*)$");
static UNPLACED: Pattern = Pattern::new(r"^()()()(error) (TS\d+): (.*)$");

pub(in crate::checks) fn parse(lines: &[&str], sink: &mut Sink<'_>) {
    for (at, line) in lines.iter().enumerate() {
        let found = [&PLAIN, &PRETTY, &UNPLACED]
            .into_iter()
            .find_map(|it| it.captures(line));
        let Some(found) = found else { continue };
        let place = Place {
            path: group(&found, 1),
            line: group(&found, 2),
            column: group(&found, 3),
        };
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
        let source = if code.starts_with("TS") {
            Tool::Tsc
        } else {
            Tool::Other
        };
        sink.push(at, place, severity, Some(code), &message, source);
    }
}

/// The compiler indents the further lines of a message by two spaces.
fn is_continued(line: &str) -> bool {
    line.starts_with("  ") && !line.trim().is_empty() && !line.trim_start().starts_with('~')
}
