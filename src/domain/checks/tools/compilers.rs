//! Compilers whose findings are lines, with indented lines below them that continue the message.

use super::shape::Below;
use super::{Tool, ToolKind};

/// A compiler that indents the lines of a message by two spaces.
const COMPILER: Tool = Tool {
    kind: ToolKind::Code,
    below: Some(Below {
        until: r"^ ?\S|^\s*(?:~|$)",
        ..Below::NOTHING
    }),
    headers: &[r"\S.*(?::\d+:\d+\ -|\(\d+,\d+\):)\ error\ "],
    ..Tool::NOTHING
};

/// The TypeScript compiler in its plain and pretty formats.
pub(super) const TSC: Tool = Tool {
    name: "tsc",
    signs: &[r"(?:error|warning|message) TS\d+: "],
    lines: &[
        r"^(?<path>\S[^()]*(?:\([^()]*\)[^()]*)*)\((?<line>\d+),(?<column>\d+)\): (?<word>error|warning|message) (?<code>TS\d+): (?<text>.*)$",
        r"^(?<path>\S.*?):(?<line>\d+):(?<column>\d+) - (?<word>error|warning|message) (?<code>TS\d+): (?<text>.*)$",
        r"^(?<word>error) (?<code>TS\d+): (?<text>.*)$",
    ],
    ..COMPILER
};

/// The compilers of C# and F#.
pub(super) const CSC: Tool = Tool {
    name: "dotnet",
    signs: &[r"(?:error|warning|message) (?:CS|FS)\d+: "],
    lines: &[
        r"^(?<path>\S[^()]*(?:\([^()]*\)[^()]*)*)\((?<line>\d+),(?<column>\d+)\): (?<word>error|warning|message) (?<code>(?:CS|FS)\d+): (?<text>.*)$",
    ],
    ..COMPILER
};
