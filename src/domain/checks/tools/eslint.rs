//! ESLint: its formats `stylish`, `unix`, `compact` and `json`. stylelint prints some of them too.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{self, Location, Severity, Sink};
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
    // The path above the rows about a file.
    above: r"^(?:(?<path>\S.{0,998})|\s.*)?$",
    lines: &[
        r"^\s{2,}(?<line>\d{1,7}):(?<column>\d{1,6})\s+(?<word>error|warning)\s+(?<text>\S.*?)(?:\s{2,}(?<code>@?[\w-]+(?:/[\w-]+)*))?$",
        r"^(?<path>\S[^:]*|[A-Za-z]:[\\/][^:]+):(?<line>\d{1,7}):(?<column>\d{1,6}): (?<text>.+) \[(?<word>Error|Warning)(?:/(?<code>[^\]\s]+))?\]$",
        r"^(?<path>\S.*?): line (?<line>\d{1,7}), col (?<column>\d{1,6}), (?<word>Error|Warning) - (?<text>.+?)(?: \((?<code>[\w@][^()\s]*)\))?$",
    ],
    // The format `json` is a single line as long as the output; patterns never match it.
    read: |output, sink| parse_json(output.whole, sink),
    ..Tool::NOTHING
};

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
