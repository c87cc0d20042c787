//! Problem matchers in the JSON format of GitHub Actions: patterns by which a repository describes where the
//! messages of its own tools name locations.

mod ecma;

use super::diagnostic::{Location, MAX_DIAGNOSTICS, Severity, Sink};
use super::path;
use crate::text;
use ecma::translated;
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
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
    /// The group for each of the [`PARTS`].
    groups: [Option<usize>; PARTS.len()],
    repeats: bool,
}

/// What a pattern can have a group for.
const PARTS: [&str; 7] = [
    "file", "fromPath", "line", "column", "severity", "code", "message",
];

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
    #[serde(default, rename = "loop")]
    repeats: bool,
    #[serde(flatten)]
    groups: BTreeMap<String, Value>,
}

/// Reads a file of problem matchers. An unreadable file gives a warning and no matcher.
pub fn read_matchers(name: &str, bytes: &[u8]) -> Matchers {
    let mut read = Matchers::default();
    let mut warn = |what: String| read.warnings.push(format!("{name}: {what}"));
    let file = match bytes.len() {
        0..=MAX_MATCHER_BYTES => {
            serde_json::from_slice::<FileText>(bytes).map_err(|it| it.to_string())
        }
        size => Err(format!(
            "it has {size} bytes, but at most {MAX_MATCHER_BYTES} are read"
        )),
    };
    let all = match file {
        Ok(file) => file.matchers,
        Err(why) => {
            warn(format!("these problem matchers are ignored: {why}"));
            Vec::new()
        }
    };
    let dropped = all.len().saturating_sub(MAX_MATCHERS);
    if dropped > 0 {
        warn(format!(
            "{dropped} problem matchers beyond the first {MAX_MATCHERS} are ignored"
        ));
    }
    for (number, text) in (1..).zip(all.into_iter().take(MAX_MATCHERS)) {
        let called = match text::one_line(&text.owner, 80) {
            owner if owner.is_empty() => format!("number {number}"),
            owner => format!("`{owner}`"),
        };
        match Matcher::of(text) {
            Ok(matcher) => read.matchers.push(matcher),
            Err(why) => warn(format!("the problem matcher {called} is ignored: {why}")),
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
            Some(word) => {
                Some(severity(word).ok_or("its severity must be error, warning or notice")?)
            }
            None => None,
        };
        let lines = (1..).zip(text.pattern);
        let lines = lines
            .map(|(number, text)| Line::of(text).map_err(|why| format!("pattern {number}: {why}")));
        let lines: Result<Vec<Line>, String> = lines.collect();
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
            .all(|line| line.groups[PARTS.len() - 1].is_none())
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
        let nothing = CapturedParts::default();
        let mut found = 0;
        for (at, line) in lines.iter().enumerate() {
            let before = match begun.last() {
                Some(before) => before.as_ref(),
                None => Some(&nothing),
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
        let before = std::iter::once(Some(CapturedParts::default())).chain(begun.iter().copied());
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
        let mut groups = [None; PARTS.len()];
        for (group, name) in groups.iter_mut().zip(PARTS) {
            let Some(value) = text.groups.get(name).filter(|value| !value.is_null()) else {
                continue;
            };
            let number = value.as_u64().and_then(|it| usize::try_from(it).ok());
            *group = number.filter(|number| *number < known);
            if group.is_none() {
                return Err(format!(
                    "`{name}` is group {value}, which its regexp does not have"
                ));
            }
        }
        Ok(Self {
            regex,
            groups,
            repeats: text.repeats,
        })
    }

    fn take<'t>(&self, line: &'t str, before: &CapturedParts<'t>) -> Option<CapturedParts<'t>> {
        let found = self.regex.captures(line)?;
        let mut parts = before.0;
        for (part, group) in parts.iter_mut().zip(self.groups) {
            let captured = group.and_then(|group| found.get(group));
            *part = captured.map_or(*part, |captured| captured.as_str());
        }
        Some(CapturedParts(parts))
    }
}

/// The captured groups of the lines so far, in the order of [`PARTS`].
#[derive(Debug, Clone, Copy, Default)]
struct CapturedParts<'t>([&'t str; PARTS.len()]);

impl CapturedParts<'_> {
    fn push(&self, at: usize, default: Option<Severity>, sink: &mut Sink<'_>) {
        let [file, from, line, column, word, code, message] = self.0;
        let place = Location {
            path: &beside(from, file),
            line: line.trim(),
            column: column.trim(),
        };
        let severity = severity(word).or(default).unwrap_or(Severity::Error);
        sink.push(at, place, severity, Some(code.trim()), message);
    }
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
