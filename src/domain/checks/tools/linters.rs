//! Linters whose findings are lines, with source code below them.

use super::shape::{ALL, Below};
use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, MAX_DIAGNOSTICS, Severity, Sink};
use serde_json::Value;

/// A linter.
const LINTER: Tool = Tool {
    kind: ToolKind::Lint,
    ..Tool::NOTHING
};

/// Source code, which is indented and no part of the message.
const SOURCE: Below = Below {
    until: r"^\S|^$",
    noise: ALL,
    ..Below::NOTHING
};

/// Biome: `check`, `ci`, `lint` and `format`. The message is below the header of a finding.
pub(super) const BIOME: Tool = Tool {
    name: "biome",
    signs: &[
        r"^\S.* (?:lint/\S+|assist/\S+|suppressions/\S+|organizeImports|format|parse) .*━{3,}$",
    ],
    lines: &[
        r"^(?<path>\S.*?)(?::(?<line>\d+):(?<column>\d+))? (?<code>lint/\S+|assist/\S+|suppressions/\S+|organizeImports|format|parse) .*━{3,}$",
    ],
    below: Some(Below {
        until: "━━━",
        frame: r"^\s+(?<word>[✖×⚠!ℹxi]) (?<text>\S.*)$",
        noise: ALL,
        ..Below::NOTHING
    }),
    ..LINTER
};

/// black: `--check`.
pub(super) const BLACK: Tool = Tool {
    name: "black",
    signs: &[
        r"^would reformat \S",
        r"^error: cannot (?:format|parse)[ :]",
    ],
    lines: &[
        r"^would reformat (?<path>\S.*)$",
        // Until 2026.
        r"^error: cannot format (?<path>\S.*?): (?<text>Cannot parse.*?: (?<line>\d+):(?<column>\d+): .*)$",
        r"^error: (?<text>cannot parse): (?<path>\S.*?):(?<line>\d+):(?<column>\d+)$",
    ],
    ..LINTER
};

/// Checkstyle in its plain format.
pub(super) const CHECKSTYLE: Tool = Tool {
    name: "Checkstyle",
    signs: &[
        r"^\[(?:ERROR|WARN|INFO)\] \S[^\n]*:\d+(?::\d+)?: .+ \[\w+\]$",
        r"^Starting audit\.\.\.$",
    ],
    lines: &[
        r"^\[(?<word>ERROR|WARN|INFO)\] (?<path>\S.*?):(?<line>\d+)(?::(?<column>\d+))?: (?<text>.+) \[(?<code>\w+)\]$",
    ],
    ..LINTER
};

/// clang-tidy. Its messages have the format of a compiler's, with the check's name at the end.
pub(super) const CLANG_TIDY: Tool = Tool {
    name: "clang-tidy",
    signs: &[
        r"^\S[^:\n]*:\d+:\d+: (?:warning|error): .+ \[[a-z][a-z0-9]*(?:-[A-Za-z0-9.]+)+(?:,-warnings-as-errors)?\]$",
    ],
    lines: &[
        r"^(?<path>\S[^:]*):(?<line>\d+):(?<column>\d+): (?<word>warning|error): (?<text>.+) \[(?<code>[a-z][a-z0-9]*(?:-[A-Za-z0-9.]+)+)(?:,-warnings-as-errors)?\]$",
    ],
    below: Some(SOURCE),
    ..LINTER
};

/// ESLint: its formats `stylish`, `unix`, `compact` and `json`. stylelint prints some of them too.
pub(super) const ESLINT: Tool = Tool {
    name: "eslint",
    signs: &[
        r"^\s{2,}\d{1,7}:\d{1,6}\s+(?:error|warning)\s+\S",
        r"^\S.*:\d{1,7}:\d{1,6}: .+ \[(?:Error|Warning)(?:/[^\]\s]+)?\]$",
        r"^\S.*: line \d{1,7}, col \d{1,6}, (?:Error|Warning) - ",
        r#"^\[\{"filePath":"#,
    ],
    // The path above the rows about a file.
    above: r"^(?:(?<path>\S.{0,998})|\s*)$",
    lines: &[
        r"^\s{2,}(?<line>\d{1,7}):(?<column>\d{1,6})\s+(?<word>error|warning)\s+(?<text>\S.*?)(?:\s{2,}(?<code>@?[\w-]+(?:/[\w-]+)*))?$",
        r"^(?<path>\S[^:]*|[A-Za-z]:[\\/][^:]+):(?<line>\d{1,7}):(?<column>\d{1,6}): (?<text>.+) \[(?<word>Error|Warning)(?:/(?<code>[^\]\s]+))?\]$",
        r"^(?<path>\S.*?): line (?<line>\d{1,7}), col (?<column>\d{1,6}), (?<word>Error|Warning) - (?<text>.+?)(?: \((?<code>[\w@][^()\s]*)\))?$",
    ],
    // The format `json` is a single line as long as the output; patterns never match it.
    read: |output, sink| eslint_json(output.whole, sink),
    ..LINTER
};

fn eslint_json(lines: &[&str], sink: &mut Sink<'_>) {
    let is_report = |(_, line): &(usize, &&str)| line.starts_with("[{\"filePath\":");
    for (at, line) in lines.iter().enumerate().filter(is_report) {
        let Ok(Value::Array(files)) = serde_json::from_str(line) else {
            continue;
        };
        let messages = files.iter().flat_map(|file| {
            let messages = file["messages"].as_array().into_iter().flatten();
            messages.map(|message| (file["filePath"].as_str().unwrap_or_default(), message))
        });
        for (part, (path, message)) in messages.take(MAX_DIAGNOSTICS).enumerate() {
            let number = |key: &str| u32::try_from(message[key].as_u64()?).ok();
            let text = |key: &str| message[key].as_str();
            let [line, column] = ["line", "column"].map(|key| message[key].to_string());
            let place = Location {
                path,
                line: &line,
                column: &column,
            };
            let severity = match number("severity") {
                Some(2) => Severity::Error,
                _ => Severity::Warning,
            };
            let message = text("message").unwrap_or_default();
            sink.push(at, place, severity, text("ruleId"), message)
                .until(number("endLine"), number("endColumn"))
                .part = part;
        }
    }
}

/// golangci-lint in its text format. The linter's name is the code.
pub(super) const GOLANGCI_LINT: Tool = Tool {
    name: "golangci-lint",
    signs: &[r"^(?:[A-Za-z]:)?[^\s:]+\.go:\d+(?::\d+)?: .+ \([a-z][a-z0-9]*\)$"],
    lines: &[
        r"^(?<path>(?:[A-Za-z]:)?[^\s:]+\.go):(?<line>\d+)(?::(?<column>\d+))?: (?<text>.+) \((?<code>[a-z][a-z0-9]*)\)$",
    ],
    below: Some(SOURCE),
    ..LINTER
};

/// mypy. With `--pretty`, a message continues on the next lines.
pub(super) const MYPY: Tool = Tool {
    name: "mypy",
    signs: &[
        r"^\S[^:\n]*\.pyi?:\d+(?::\d+){0,3}: (?:error|note): ",
        r"^Found \d+ errors? in \d+ files? \(checked ",
    ],
    lines: &[
        r"^(?<path>\S[^:]*\.pyi?):(?<line>\d+)(?::(?<column>\d+))?(?::(?<end>\d+):(?<end_column>\d+))?: (?<word>error|warning|note): (?<text>.+)$",
    ],
    below: Some(Below {
        until: r"^\S[^:]*\.pyi?:\d+|^Found \d+ error|^$",
        ..Below::NOTHING
    }),
    ending: r"(?s)^(?<text>.*\S)\s+\[(?<code>[a-z][a-z0-9-]*)\]$",
    ..LINTER
};

/// Prettier: `--check`.
pub(super) const PRETTIER: Tool = Tool {
    name: "prettier",
    signs: &[
        r"^Checking formatting\.\.\.$",
        r"^\[warn\] Code style issues (?:found|fixed) in ",
        r"^\[error\] .+: \w*Error: .+ \(\d+:\d+\)$",
    ],
    lines: &[
        r"^\[error\] (?<path>.+?): (?<text>\w*Error: .+) \((?<line>\d+):(?<column>\d+)\)$",
        r"^\[warn\] (?<path>\S.*\.[A-Za-z]\w{0,9})$",
    ],
    ..LINTER
};

/// RuboCop. Every offense fails it, whatever its severity.
pub(super) const RUBOCOP: Tool = Tool {
    name: "RuboCop",
    signs: &[
        r"^\S[^:\n]*:\d+:\d+: [CWEFRI]: (?:\[\w+\] )?[A-Z]\w*/",
        r"^\d+ files? inspected, (?:\d+|no) offenses? detected",
    ],
    lines: &[
        r"^(?<path>\S[^:]*):(?<line>\d+):(?<column>\d+): (?<word>[CWEFRI]): (?:\[\w+\] )?(?<code>[A-Z]\w*(?:/\w+)+): (?<text>.+)$",
    ],
    below: Some(Below {
        until: r"^\S[^:]*:\d+:\d+: |^$",
        noise: ALL,
        ..Below::NOTHING
    }),
    ..LINTER
};

/// ruff: `check` in its full and concise formats, and `format --check`.
pub(super) const RUFF: Tool = Tool {
    name: "ruff",
    signs: &[
        r"^(?:[A-Z]{1,5}\d{2,4}|invalid-syntax|unformatted):? (?:\[\*\] )?\S.*\n\s+--> ",
        r"^Found \d+ errors?(?: \(\d+ fixed, \d+ remaining\))?\.$",
        r"^Would reformat: ",
    ],
    lines: &[
        r"^(?<path>\S[^:]*):(?<line>\d+):(?<column>\d+): (?<code>[A-Z]{1,5}\d{2,4}|invalid-syntax|unformatted):? (?:\[\*\] )?(?<text>.+)$",
        r"^Would reformat: (?<path>.+)$",
        // The place is below the message.
        r"^(?<code>[A-Z]{1,5}\d{2,4}|invalid-syntax|unformatted):? (?:\[\*\] )?(?<text>\S.*)$",
    ],
    below: Some(Below {
        until: r"^\s*$|^\S+:\d+:\d+: |^Would reformat: |^Found \d+ error",
        frame: r"^\s+--> (?<path>.+?):(?<line>\d+):(?<column>\d+)$",
        noise: ALL,
        ..Below::NOTHING
    }),
    ..LINTER
};

/// pyright and basedpyright. A message continues on lines with deeper indentation, which consists of non-breaking spaces,
/// and ends with its rule.
pub(super) const PYRIGHT: Tool = Tool {
    name: "pyright",
    signs: &[
        r"^\s+\S.*\.pyi?:\d+:\d+ - (?:error|warning|information): ",
        r"^\d+ errors?, \d+ warnings?, \d+ (?:informations?|notes?)\s*$",
    ],
    lines: &[
        r"^\s+(?<path>\S.*?\.pyi?):(?<line>\d+):(?<column>\d+) - (?<word>error|warning|information): (?<text>.+)$",
    ],
    below: Some(Below {
        until: r"^\s{0,3}(?:\S|$)|^\s+\S.*?\.pyi?:\d+:\d+ - (?:error|warning|information): ",
        ..Below::NOTHING
    }),
    ending: r"(?s)^(?<text>.*\S)\s+\((?<code>report\w+)\)$",
    ..LINTER
};

/// ShellCheck: its formats `tty` and `gcc`.
pub(super) const SHELLCHECK: Tool = Tool {
    name: "ShellCheck",
    signs: &[
        r"^\s*\^-*\^? SC\d{4} \((?:error|warning|info|style)\): ",
        r"^\S[^:\n]*:\d+:\d+: (?:error|warning|note): .+ \[SC\d{4}\]$",
    ],
    above: r"^In (?<path>.+) line (?<line>\d+):$",
    lines: &[
        r"^(?<path>\S[^:]*):(?<line>\d+):(?<column>\d+): (?<word>error|warning|note): (?<text>.+) \[(?<code>SC\d{4})\]$",
        r"^\s*(?<mark>\^-*\^?) (?<code>SC\d{4}) \((?<word>error|warning|info|style)\): (?<text>.+)$",
    ],
    ..LINTER
};

/// `git diff`, with which checks find out whether what they generate or format is up to date.
pub(super) const GIT_DIFF: Tool = Tool {
    name: "git diff",
    signs: &[r"^diff --git \S.* \S"],
    lines: &[r"^diff --git (?:a/.* b/|.* )(?<path>.+?)$"],
    below: Some(Below {
        until: r"^diff --git ",
        frame: r"^@@ -\S+ \+(?<line>\d+)",
        noise: ALL,
        ..Below::NOTHING
    }),
    says: "`git diff` shows a change of this file",
    advice: &[("^diff --git ", WITHOUT_REVISION)],
    ..LINTER
};

const WITHOUT_REVISION: &str = "Without a revision, `git diff` shows what the check itself has changed. Run its generator or formatter, and keep what it writes.";
