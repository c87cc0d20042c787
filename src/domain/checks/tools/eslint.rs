//! ESLint: its formats `stylish`, `unix`, `compact` and `json`. stylelint prints some of them too.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{self, Location, Output, Severity, Sink};
use crate::pattern::{Pattern, group};
use serde::Deserialize;

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "eslint",
    kind: ToolKind::Lint,
    signs: &[
        r"^\s{2,}\d{1,7}:\d{1,6}\s+(?:error|warning)\s+\S",
        r"^\S.*:\d{1,7}:\d{1,6}: .+ \[(?:Error|Warning)(?:/[^\]\s]+)?\]$",
        r"^\S.*: line \d{1,7}, col \d{1,6}, (?:Error|Warning) - ",
        r#"^\[\{"filePath":"#,
    ],
    lines: &[
        r"^(?<path>\S[^:]*|[A-Za-z]:[\\/][^:]+):(?<line>\d{1,7}):(?<column>\d{1,6}): (?<text>.+) \[(?<word>Error|Warning)(?:/(?<code>[^\]\s]+))?\]$",
        r"^(?<path>\S.*?): line (?<line>\d{1,7}), col (?<column>\d{1,6}), (?<word>Error|Warning) - (?<text>.+?)(?: \((?<code>[\w@][^()\s]*)\))?$",
    ],
    read,
    ..Tool::NOTHING
};

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    // The format `json` is a single line as long as the output; patterns never match it.
    parse_json(output.whole, sink);
    parse(output.lines, sink);
}

static ROW: Pattern = Pattern::new(
    r"^\s{2,}(\d{1,7}):(\d{1,6})\s+(error|warning)\s+(\S.*?)(?:\s{2,}(@?[\w-]+(?:/[\w-]+)*))?$",
);
fn parse(lines: &[&str], sink: &mut Sink<'_>) {
    let mut file = "";
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = ROW.captures(line).filter(|_| !file.is_empty()) {
            let place = Location {
                path: file,
                line: group(&found, 1),
                column: group(&found, 2),
            };
            let (word, rule) = (group(&found, 3), group(&found, 5));
            push(at, place, word, rule, group(&found, 4), sink);
        } else {
            file = if is_heading(line) {
                line.trim_end()
            } else {
                ""
            };
        }
    }
}

fn push(at: usize, place: Location<'_>, word: &str, rule: &str, text: &str, sink: &mut Sink<'_>) {
    let severity = match word {
        "error" | "Error" => Severity::Error,
        _ => Severity::Warning,
    };
    sink.push(at, place, severity, Some(rule), text);
}

/// Whether a line may be the path above the rows about a file.
fn is_heading(line: &str) -> bool {
    !line.is_empty() && line.len() < 1_000 && !line.starts_with(char::is_whitespace)
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "filePath")]
    path: String,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(rename = "ruleId")]
    rule: Option<String>,
    severity: u8,
    message: String,
    line: Option<u32>,
    column: Option<u32>,
    #[serde(rename = "endLine")]
    end_line: Option<u32>,
    #[serde(rename = "endColumn")]
    end_column: Option<u32>,
}

fn parse_json(lines: &[&str], sink: &mut Sink<'_>) {
    for (at, line) in lines.iter().enumerate() {
        if !line.starts_with("[{\"filePath\":") {
            continue;
        }
        let Ok(files) = serde_json::from_str::<Vec<File>>(line) else {
            continue;
        };
        let messages = files
            .iter()
            .flat_map(|file| file.messages.iter().map(|message| (&file.path, message)));
        for (part, (path, message)) in messages.take(diagnostic::MAX_DIAGNOSTICS).enumerate() {
            one_of_json(at, part, path, message, sink);
        }
    }
}

fn one_of_json(at: usize, part: usize, path: &str, message: &Message, sink: &mut Sink<'_>) {
    let text = |number: Option<u32>| number.map(|it| it.to_string()).unwrap_or_default();
    let (line, column) = (text(message.line), text(message.column));
    let place = Location {
        path,
        line: &line,
        column: &column,
    };
    let severity = match message.severity {
        2 => Severity::Error,
        _ => Severity::Warning,
    };
    let rule = message.rule.as_deref();
    sink.push(at, place, severity, rule, &message.message)
        .part(part)
        .until(message.end_line, message.end_column);
}
