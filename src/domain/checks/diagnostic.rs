//! Places in the code that a check's output speaks of.
//!
//! Each tool has its own small parser over plain text; [`parse_in`] runs them all and keeps, for
//! every line, what the most specific one made of it.

use super::matcher::Matcher;
use super::path;
use super::tools::{eslint, gcc, go, javascript, panic, plain, python, rustc, tsc};
use crate::text;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Most diagnostics that are kept of one output.
pub const MAX_DIAGNOSTICS: usize = 1_000;

/// Longest beginning of a line that a pattern looks at, in bytes.
const MAX_LINE: usize = 16 << 10;

const MAX_MESSAGE: usize = 2_000;
const MAX_MESSAGE_LINES: usize = 20;

/// How serious a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It made the check fail.
    Error,
    /// It may be a mistake.
    Warning,
    /// Only for information.
    Note,
}

/// The tool that a diagnostic's form belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// rustc, clippy and cargo.
    Rustc,
    /// A panic of a Rust test or program.
    RustPanic,
    /// The TypeScript compiler.
    Tsc,
    /// pytest, unittest and Python tracebacks.
    Python,
    /// go build, go vet and go test.
    Go,
    /// jest, vitest, mocha and node's test runner.
    JavaScript,
    /// gcc, clang and linkers.
    Gcc,
    /// ESLint.
    Eslint,
    /// A JUnit XML report.
    Junit,
    /// A problem matcher of the repository.
    Matcher,
    /// Any tool that prints `file:line:column: message`.
    Other,
}

/// One message about a place in the code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Relative to the root, with `/`, without `..`. `None` when the tool named no file or one
    /// outside the root. Go's tests print a file's bare name, and that is what stands here.
    pub path: Option<String>,
    /// First line, from 1. `None` whenever `path` is.
    pub line: Option<u32>,
    /// Column in that line, from 1, as the tool counts it.
    pub column: Option<u32>,
    /// Last line, where the tool tells it.
    pub end_line: Option<u32>,
    /// How serious it is.
    pub severity: Severity,
    /// The tool's code of the message: `E0308`, `TS2322`, `clippy::needless_return`.
    pub code: Option<String>,
    /// The message without place and code, at most 20 lines and 2,000 characters.
    pub message: String,
    /// What kind of tool said it.
    pub source: Tool,
}

/// The diagnostics in `output`, every path in it taken as relative or dropped.
/// See [`parse_in`].
pub fn parse(output: &str) -> Vec<Diagnostic> {
    parse_in(output, "")
}

/// The diagnostics in `output`, errors first and otherwise in its order, without repetitions, at
/// most [`MAX_DIAGNOSTICS`]. A path under the directory `root` is made relative to it; a path that
/// leads elsewhere is dropped together with its line.
pub fn parse_in(output: &str, root: &str) -> Vec<Diagnostic> {
    parse_with(output, root, &[])
}

/// As [`parse_in`]; what `matchers` say of a line counts more than what Sprag makes of it.
pub fn parse_with(output: &str, root: &str, matchers: &[Matcher]) -> Vec<Diagnostic> {
    let plain = text::plain(output);
    let whole: Vec<&str> = plain.lines().collect();
    let lines: Vec<&str> = whole.iter().map(|line| beginning(line)).collect();
    let mut sink = Sink::new(root);
    for matcher in matchers {
        matcher.parse(&lines, &mut sink);
    }
    eslint::parse_json(&whole, &mut sink);
    eslint::parse(&lines, &mut sink);
    rustc::parse(&lines, &mut sink);
    gcc::parse(&lines, &mut sink);
    panic::parse(&lines, &mut sink);
    tsc::parse(&lines, &mut sink);
    python::parse(&lines, &mut sink);
    go::parse(&lines, &mut sink);
    javascript::parse(&lines, &mut sink);
    plain::parse(&lines, &mut sink);
    sink.finish()
}

/// What a parser found, before it is put in order.
pub(super) struct Found {
    /// Index of the line of output that names the place.
    pub(super) at: usize,
    /// Tells several findings of that line apart; 0 where there can be but one.
    pub(super) part: usize,
    pub(super) diagnostic: Diagnostic,
}

/// A place as a tool prints it.
#[derive(Clone, Copy, Default)]
pub(super) struct Place<'a> {
    pub(super) path: &'a str,
    pub(super) line: &'a str,
    pub(super) column: &'a str,
}

pub(super) struct Sink<'a> {
    pub(super) root: &'a str,
    pub(super) found: Vec<Found>,
    /// Lines that belong to a finding above or below them.
    claimed: BTreeSet<usize>,
}

impl<'a> Sink<'a> {
    pub(super) fn new(root: &'a str) -> Self {
        Self {
            root,
            found: Vec::new(),
            claimed: BTreeSet::new(),
        }
    }
}

impl Sink<'_> {
    pub(super) fn relative(&self, path: &str) -> Option<String> {
        path::relative(path, self.root)
    }

    /// Keeps parsers that come later from taking a line for a message of its own.
    pub(super) fn claim(&mut self, at: usize) {
        self.claimed.insert(at);
    }

    /// Adds an error; [`Sink::push`] takes the other fields.
    pub(super) fn error(&mut self, at: usize, place: Place<'_>, message: &str, source: Tool) {
        self.push(at, place, Severity::Error, None, message, source);
    }

    pub(super) fn push(
        &mut self,
        at: usize,
        place: Place<'_>,
        severity: Severity,
        code: Option<&str>,
        message: &str,
        source: Tool,
    ) {
        let message = bounded(message);
        if message.is_empty() || self.claimed.contains(&at) {
            return;
        }
        let path = self.relative(place.path);
        let line = number(place.line).filter(|_| path.is_some());
        let column = number(place.column).filter(|_| line.is_some());
        let code = code.filter(|code| !code.is_empty()).map(str::to_owned);
        self.found.push(Found {
            at,
            part: 0,
            diagnostic: Diagnostic {
                path,
                line,
                column,
                end_line: None,
                severity,
                code,
                message,
                source,
            },
        });
    }

    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        // The sort is stable, so of two findings on one line the earlier parser's comes first.
        self.found.sort_by_key(|found| (found.at, found.part));
        self.found.dedup_by_key(|found| (found.at, found.part));
        self.found.sort_by_key(|found| found.diagnostic.severity);
        let mut seen = BTreeSet::new();
        let mut kept = Vec::new();
        for Found { diagnostic, .. } in self.found {
            if kept.len() == MAX_DIAGNOSTICS {
                break;
            }
            if seen.insert(diagnostic.clone()) {
                kept.push(diagnostic);
            }
        }
        kept
    }
}

pub(super) fn beginning(line: &str) -> &str {
    line.get(..line.floor_char_boundary(MAX_LINE))
        .unwrap_or(line)
}

pub(super) fn bounded(message: &str) -> String {
    let mut lines = message.trim().lines();
    let mut text = lines
        .by_ref()
        .take(MAX_MESSAGE_LINES)
        .collect::<Vec<_>>()
        .join("\n");
    if lines.next().is_some() {
        text.push_str("\n…");
    }
    text::cap_chars(&text, MAX_MESSAGE).into_owned()
}

pub(super) fn number(digits: &str) -> Option<u32> {
    digits.parse().ok().filter(|n| *n > 0)
}
