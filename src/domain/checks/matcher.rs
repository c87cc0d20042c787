//! Problem matchers in the JSON format of GitHub Actions: patterns by which a repository describes where the
//! messages of its own tools name locations.

mod ecma;

use super::diagnostic::{Location, MAX_DIAGNOSTICS, Severity, Sink};
use super::path;
use crate::text;
use ecma::translated;
use regex::{Captures, Regex, RegexBuilder};
use serde::Deserialize;
use std::fmt;

/// The maximum size of a file of problem matchers, in bytes: 256 KiB.
pub const MAX_MATCHER_BYTES: usize = 256 << 10;

/// The maximum number of matchers in a file, and of patterns in a matcher.
const MAX_MATCHERS: usize = 50;
const MAX_PATTERNS: usize = 16;
/// The maximum length of a regular expression, and its maximum compiled size, in bytes.
const MAX_REGEXP: usize = 4_000;
const MAX_COMPILED: usize = 1 << 20;

/// One problem matcher.
#[derive(Debug, Clone)]
pub struct Matcher {
    severity: Option<Severity>,
    first: Vec<Line>,
    last: Line,
}

/// The usable matchers of a file, and a warning for each unusable one.
#[derive(Debug, Clone, Default)]
pub struct Matchers {
    /// In the file's order.
    pub matchers: Vec<Matcher>,
    /// Each warning names the file and the matcher.
    pub warnings: Vec<String>,
}

/// The pattern for one line.
#[derive(Debug, Clone)]
struct Line {
    regex: Regex,
    groups: Groups,
    repeats: bool,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct Groups {
    file: Option<usize>,
    #[serde(rename = "fromPath")]
    from_path: Option<usize>,
    line: Option<usize>,
    column: Option<usize>,
    severity: Option<usize>,
    code: Option<usize>,
    message: Option<usize>,
}

#[derive(Deserialize)]
struct FileText {
    #[serde(rename = "problemMatcher")]
    matchers: Vec<MatcherText>,
}

#[derive(Deserialize)]
struct MatcherText {
    #[serde(default)]
    owner: String,
    severity: Option<String>,
    pattern: Vec<PatternText>,
}

#[derive(Deserialize)]
struct PatternText {
    regexp: String,
    #[serde(flatten)]
    groups: Groups,
    #[serde(default, rename = "loop")]
    repeats: bool,
}

/// Reads a file of problem matchers. An unreadable file gives a warning and no matcher.
pub fn read_matchers(name: &str, bytes: &[u8]) -> Matchers {
    let mut read = Matchers::default();
    let file = if bytes.len() > MAX_MATCHER_BYTES {
        Err(format!(
            "it has {} bytes, but at most {MAX_MATCHER_BYTES} are read",
            bytes.len()
        ))
    } else {
        serde_json::from_slice::<FileText>(bytes).map_err(|error| error.to_string())
    };
    let file = match file {
        Ok(file) => file,
        Err(why) => {
            let warning = format!("{name}: these problem matchers are ignored: {why}");
            read.warnings.push(warning);
            return read;
        }
    };
    let dropped = file.matchers.len().saturating_sub(MAX_MATCHERS);
    if dropped > 0 {
        let warning = format!(
            "{name}: {dropped} problem matchers beyond the first {MAX_MATCHERS} are ignored"
        );
        read.warnings.push(warning);
    }
    for (index, text) in file.matchers.into_iter().take(MAX_MATCHERS).enumerate() {
        let called = match text::one_line(&text.owner, 80) {
            owner if owner.is_empty() => format!("number {}", index + 1),
            owner => format!("`{owner}`"),
        };
        match Matcher::of(text) {
            Ok(matcher) => read.matchers.push(matcher),
            Err(why) => read.warnings.push(format!(
                "{name}: the problem matcher {called} is ignored: {why}"
            )),
        }
    }
    read
}

impl Matcher {
    fn of(text: MatcherText) -> Result<Self, String> {
        if text.pattern.len() > MAX_PATTERNS {
            return Err(format!("it has more than {MAX_PATTERNS} patterns"));
        }
        let severity = match &text.severity {
            Some(word) => Some(
                severity(word).ok_or("its severity must be error, warning or notice".to_owned())?,
            ),
            None => None,
        };
        let lines: Result<Vec<Line>, String> = text
            .pattern
            .into_iter()
            .enumerate()
            .map(|(index, text)| {
                Line::of(text).map_err(|why| format!("pattern {}: {why}", index + 1))
            })
            .collect();
        let mut first = lines?;
        let Some(last) = first.pop() else {
            return Err("it has no pattern".to_owned());
        };
        if first.iter().any(|line| line.repeats) || (first.is_empty() && last.repeats) {
            return Err("only the last of several patterns may have `loop`".to_owned());
        }
        if first
            .iter()
            .chain([&last])
            .all(|line| line.groups.message.is_none())
        {
            return Err("no pattern has a group for `message`".to_owned());
        }
        Ok(Self {
            severity,
            first,
            last,
        })
    }

    /// Adds the findings of the matcher, each at its last line.
    pub(super) fn parse(&self, lines: &[&str], sink: &mut Sink<'_>) {
        // For each of the first patterns, the captures of a match that ends on the line just above with that
        // pattern.
        let mut begun: Vec<Option<CapturedParts<'_>>> = vec![None; self.first.len()];
        let mut found = 0;
        for (at, line) in lines.iter().enumerate() {
            let before = match begun.last() {
                Some(before) => before.as_ref(),
                None => Some(&CapturedParts::NOTHING),
            };
            let issue = before.and_then(|before| self.last.take(line, before));
            if let Some(taken) = issue {
                taken.push(at, self.severity, sink);
                found += 1;
                if found == MAX_DIAGNOSTICS {
                    return;
                }
                if !self.last.repeats {
                    begun.fill(None);
                }
                continue;
            }
            begun = self.advanced(line, &begun);
        }
    }

    fn advanced<'t>(
        &self,
        line: &'t str,
        begun: &[Option<CapturedParts<'t>>],
    ) -> Vec<Option<CapturedParts<'t>>> {
        let before = std::iter::once(Some(CapturedParts::NOTHING)).chain(begun.iter().copied());
        self.first
            .iter()
            .zip(before)
            .map(|(pattern, before)| pattern.take(line, before.as_ref()?))
            .collect()
    }
}

impl Line {
    fn of(text: PatternText) -> Result<Self, String> {
        if text.regexp.len() > MAX_REGEXP {
            return Err(format!("its regexp is longer than {MAX_REGEXP} bytes"));
        }
        let regex = RegexBuilder::new(&translated(&text.regexp))
            .size_limit(MAX_COMPILED)
            .dfa_size_limit(MAX_COMPILED)
            .build()
            .map_err(|error| unusable(&text.regexp, &error))?;
        let known = regex.captures_len();
        match text.groups.all().find(|(_, group)| *group >= known) {
            Some((name, group)) => Err(format!(
                "`{name}` is group {group}, which its regexp does not have"
            )),
            None => Ok(Self {
                regex,
                groups: text.groups,
                repeats: text.repeats,
            }),
        }
    }

    fn take<'t>(&self, line: &'t str, before: &CapturedParts<'t>) -> Option<CapturedParts<'t>> {
        let found = self.regex.captures(line)?;
        let part =
            |group: Option<usize>, before: &'t str| of_group(&found, group).unwrap_or(before);
        let groups = &self.groups;
        Some(CapturedParts {
            file: part(groups.file, before.file),
            from_path: part(groups.from_path, before.from_path),
            line: part(groups.line, before.line),
            column: part(groups.column, before.column),
            severity: part(groups.severity, before.severity),
            code: part(groups.code, before.code),
            message: part(groups.message, before.message),
        })
    }
}

impl Groups {
    fn all(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let named = [
            ("file", self.file),
            ("fromPath", self.from_path),
            ("line", self.line),
            ("column", self.column),
            ("severity", self.severity),
            ("code", self.code),
            ("message", self.message),
        ];
        named
            .into_iter()
            .filter_map(|(name, group)| Some((name, group?)))
    }
}

/// The captured groups of the lines so far.
#[derive(Debug, Clone, Copy)]
struct CapturedParts<'t> {
    file: &'t str,
    from_path: &'t str,
    line: &'t str,
    column: &'t str,
    severity: &'t str,
    code: &'t str,
    message: &'t str,
}

impl CapturedParts<'_> {
    const NOTHING: Self = CapturedParts {
        file: "",
        from_path: "",
        line: "",
        column: "",
        severity: "",
        code: "",
        message: "",
    };

    fn push(&self, at: usize, default: Option<Severity>, sink: &mut Sink<'_>) {
        let file = beside(self.from_path, self.file);
        let place = Location {
            path: &file,
            line: self.line.trim(),
            column: self.column.trim(),
        };
        let severity = severity(self.severity)
            .or(default)
            .unwrap_or(Severity::Error);
        let code = Some(self.code.trim());
        sink.push(at, place, severity, code, self.message);
    }
}

fn of_group<'t>(found: &Captures<'t>, group: Option<usize>) -> Option<&'t str> {
    found.get(group?).map(|part| part.as_str())
}

/// `file` relative to the directory of the file `from`, such as a project file.
fn beside(from: &str, file: &str) -> String {
    let (from, file) = (from.replace('\\', "/"), file.replace('\\', "/"));
    let Some((directory, _)) = from.rsplit_once('/').filter(|_| path::is_relative(&file)) else {
        return file;
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(file.split('/')) {
        match (part, parts.last()) {
            (".", _) => {}
            ("..", Some(last)) if !last.is_empty() && *last != ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

fn severity(word: &str) -> Option<Severity> {
    match word.trim().to_ascii_lowercase().as_str() {
        "error" | "fatal" | "fatal error" => Some(Severity::Error),
        "warning" | "warn" => Some(Severity::Warning),
        "notice" | "note" | "info" => Some(Severity::Note),
        _ => None,
    }
}

/// Why a regular expression is unusable, on one line.
fn unusable(regexp: &str, error: &impl fmt::Display) -> String {
    let said = error.to_string();
    let why = said
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("it cannot be compiled");
    let why = why.strip_prefix("error: ").unwrap_or(why);
    let regexp = text::one_line(regexp, 120);
    format!("the regexp `{regexp}` cannot be used: {why}")
}
