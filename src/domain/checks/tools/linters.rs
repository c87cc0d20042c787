//! Linters whose findings are lines, with source code below them.

use super::shape::{Below, NEVER};
use super::{Tool, ToolKind};

/// A linter.
const LINTER: Tool = Tool {
    kind: ToolKind::Lint,
    ..Tool::NOTHING
};

/// Source code, which is indented and no part of the message.
const SOURCE: Below = Below {
    until: r"^\S|^$",
    frame: NEVER,
    noise: "",
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
        frame: NEVER,
        noise: "",
    }),
    ..LINTER
};
