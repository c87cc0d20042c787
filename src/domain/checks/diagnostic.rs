//! Places in the code that a check's output speaks of.
//!
//! Each tool has its own small parser over plain text; [`parse_in`] runs those of the tools whose
//! output it is and keeps, for every line, what the most specific one made of it.

use super::failing_test::{self, FailingTest, MAX_FAILING_TESTS};
use super::matcher::Matcher;
use super::{path, tools};
use crate::pattern::group;
use crate::text;
use regex::Captures;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Most diagnostics that are kept of one output.
pub const MAX_DIAGNOSTICS: usize = 1_000;

/// Longest beginning of a line that a pattern looks at, in bytes.
const MAX_LINE: usize = 16 << 10;

const MAX_MESSAGE: usize = 2_000;
const MAX_MESSAGE_LINES: usize = 20;

/// Diagnostics that keep their details, and how much of them, in characters and lines.
const DETAILED: usize = 200;
const MAX_DETAILS: usize = 4_000;
const MAX_DETAIL_LINES: usize = 60;

/// How serious a diagnostic is.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It made the check fail.
    #[default]
    Error,
    /// It may be a mistake.
    Warning,
    /// Only for information.
    Note,
}

/// One message about a place in the code.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Relative to the root, with `/`, without `..`. `None` when the tool named no file or one
    /// outside the root. Go's tests print a file's bare name, and that is what stands here.
    pub path: Option<String>,
    /// First line, from 1. `None` whenever `path` is.
    pub line: Option<u32>,
    /// Column in that line, from 1, as the tool counts it.
    pub column: Option<u32>,
    /// Last line, where the tool tells it; never before `line`.
    pub end_line: Option<u32>,
    /// Column of the end in the last line, where the tool tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_column: Option<u32>,
    /// How serious it is.
    pub severity: Severity,
    /// The tool's code of the message: `E0308`, `TS2322`, `clippy::needless_return`.
    pub code: Option<String>,
    /// The message without place and code, at most 20 lines and 2,000 characters.
    pub message: String,
    /// What else the tool prints about it, such as the source around it or its notes: lines of the
    /// output as they are, bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// The name of the tool that said it.
    pub source: Cow<'static, str>,
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
    read(&text::plain(output), root, matchers).diagnostics
}

/// What an output says about the code and its tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// As [`parse_in`] has them.
    pub diagnostics: Vec<Diagnostic>,
    /// The tests that failed, in the order of their ids.
    pub failing_tests: Vec<FailingTest>,
}

/// What `plain`, an output without escape sequences, says.
pub(super) fn read(plain: &str, root: &str, matchers: &[Matcher]) -> Reading {
    let whole: Vec<&str> = plain.lines().collect();
    let lines: Vec<&str> = whole.iter().map(|line| beginning(line)).collect();
    let mut sink = Sink::new(root, "matcher");
    for matcher in matchers {
        matcher.parse(&lines, &mut sink);
    }
    let output = Output {
        whole: &whole,
        lines: &lines,
    };
    for tool in tools::seen_in(plain) {
        sink.source = tool.name;
        (tool.read)(output, &mut sink);
    }
    sink.finish(&whole)
}

/// An output, line by line.
#[derive(Clone, Copy)]
pub(super) struct Output<'a> {
    /// The lines as they are.
    pub(super) whole: &'a [&'a str],
    /// At most the first 16 KiB of each, which is what patterns look at.
    pub(super) lines: &'a [&'a str],
}

/// The lines below line `at` that belong to it, at most `reach` of them.
pub(super) fn below<'a>(
    lines: &[&'a str],
    at: usize,
    reach: usize,
    belongs: impl Fn(&str) -> bool,
) -> Vec<&'a str> {
    let following = lines.iter().copied().skip(at + 1).take(reach);
    following.take_while(|line| belongs(line)).collect()
}

/// What a parser found, before it is put in order.
pub(super) struct Found {
    /// Index of the line of output that names the place.
    at: usize,
    /// Tells several findings of that line apart; 0 where there can be but one.
    part: usize,
    /// The failing test that it is about, as it is named there.
    test: Option<String>,
    /// The lines that belong to it.
    lines: Range<usize>,
    diagnostic: Diagnostic,
}

impl Found {
    /// Tells it apart from the others of its line.
    pub(super) fn part(&mut self, part: usize) -> &mut Self {
        self.part = part;
        self
    }

    /// Says where it ends. Ends before the beginning are dropped.
    pub(super) fn until(&mut self, line: Option<u32>, column: Option<u32>) -> &mut Self {
        let found = &mut self.diagnostic;
        found.end_line = line.filter(|end| found.line.is_some_and(|line| *end >= line));
        let same = found.end_line == found.line;
        let fits = |end: &u32| *end > 0 && !(same && found.column.is_some_and(|it| *end < it));
        found.end_column = column.filter(|end| found.end_line.is_some() && fits(end));
        self
    }

    /// The line of output that names its place.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Says which failing test it is about.
    pub(super) fn about(&mut self, test: &str) -> &mut Self {
        self.test = Some(test.to_owned());
        self
    }

    /// Says which lines of the output belong to it.
    pub(super) fn lines(&mut self, lines: Range<usize>) -> &mut Self {
        self.lines = lines;
        self
    }
}

/// A place as a tool prints it.
#[derive(Clone, Copy, Default)]
pub(super) struct Place<'a> {
    pub(super) path: &'a str,
    pub(super) line: &'a str,
    pub(super) column: &'a str,
}

impl<'a> Place<'a> {
    /// A line of a file.
    pub(super) fn new(path: &'a str, line: &'a str) -> Self {
        let column = "";
        Self { path, line, column }
    }

    /// The groups 1 to 3 of a match: path, line and column.
    pub(super) fn of(found: &Captures<'a>) -> Self {
        Self {
            path: group(found, 1),
            line: group(found, 2),
            column: group(found, 3),
        }
    }
}

/// Where the readers of the tools put what they find.
pub(super) struct Sink<'a> {
    pub(super) root: &'a str,
    /// The tool that reads.
    pub(super) source: &'static str,
    pub(super) found: Vec<Found>,
    pub(super) tests: Vec<FailingTest>,
    /// Lines that belong to a finding above or below them.
    claimed: BTreeSet<usize>,
    /// Takes what is refused, so that a caller need not ask.
    refused: Found,
}

impl<'a> Sink<'a> {
    pub(super) fn new(root: &'a str, source: &'static str) -> Self {
        Self {
            root,
            source,
            found: Vec::new(),
            tests: Vec::new(),
            claimed: BTreeSet::new(),
            refused: Found {
                at: 0,
                part: 0,
                test: None,
                lines: 0..0,
                diagnostic: Diagnostic::default(),
            },
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
    pub(super) fn error(&mut self, at: usize, place: Place<'_>, message: &str) -> &mut Found {
        self.push(at, place, Severity::Error, None, message)
    }

    /// Adds what is said about a failing test. [`Sink::test`] says that it failed: a place alone
    /// need not be one of a test.
    pub(super) fn failure(
        &mut self,
        at: usize,
        place: Place<'_>,
        test: &str,
        message: &str,
    ) -> &mut Found {
        let message = match message.trim() {
            "" => "failed",
            message => message,
        };
        self.error(at, place, &format!("{test}: {message}"))
            .about(test)
    }

    /// Adds a failing test together with what is said about it.
    pub(super) fn failing(
        &mut self,
        at: usize,
        place: Place<'_>,
        test: &str,
        message: &str,
    ) -> &mut Found {
        self.test(test);
        self.failure(at, place, test, message)
    }

    /// Adds a failing test of which the output has said or will say more, or nothing.
    pub(super) fn test(&mut self, name: &str) {
        self.test_in(name, "");
    }

    /// As [`Sink::test`], for a tool that names its tests by places, which move: `title` says which
    /// test it is in every run.
    pub(super) fn titled_test(&mut self, name: &str, title: &str) {
        let before = self.tests.len();
        self.test(name);
        let id = FailingTest::named(title).map(|test| test.id);
        if let Some((test, id)) = self.tests.get_mut(before).zip(id) {
            test.id = id;
        }
    }

    /// As [`Sink::test`], with the file that it is in.
    pub(super) fn test_in(&mut self, name: &str, file: &str) {
        if self.tests.len() < MAX_FAILING_TESTS {
            let test = FailingTest::named(name);
            let place = Place::new(file, "");
            self.tests
                .extend(test.map(|test| test.at(place, self.root)));
        }
    }

    /// What was said so far about failing tests.
    pub(super) fn told(&self) -> Told {
        Told::of(&self.found)
    }

    pub(super) fn push(
        &mut self,
        at: usize,
        place: Place<'_>,
        severity: Severity,
        code: Option<&str>,
        message: &str,
    ) -> &mut Found {
        let message = bounded(message);
        if message.is_empty() || self.claimed.contains(&at) {
            return &mut self.refused;
        }
        let path = self.relative(place.path);
        let line = number(place.line).filter(|_| path.is_some());
        let column = number(place.column).filter(|_| line.is_some());
        let code = code.filter(|code| !code.is_empty()).map(str::to_owned);
        let diagnostic = Diagnostic {
            path,
            line,
            column,
            severity,
            code,
            message,
            source: Cow::Borrowed(self.source),
            ..Diagnostic::default()
        };
        self.found.push(Found {
            at,
            part: 0,
            test: None,
            lines: at..at,
            diagnostic,
        });
        self.found.last_mut().unwrap_or(&mut self.refused)
    }

    /// What was found, in order. `lines` are those of the output.
    pub(super) fn finish(mut self, lines: &[&str]) -> Reading {
        // The sort is stable, so of two findings on one line the earlier parser's comes first.
        self.found.sort_by_key(|found| (found.at, found.part));
        self.found.dedup_by_key(|found| (found.at, found.part));
        let failing_tests = placed(self.tests, &self.found);
        self.found.sort_by_key(|found| found.diagnostic.severity);
        let mut seen = BTreeSet::new();
        let mut diagnostics = Vec::new();
        for found in self.found {
            if diagnostics.len() == MAX_DIAGNOSTICS {
                break;
            }
            let mut diagnostic = found.diagnostic;
            if seen.insert(diagnostic.clone()) {
                if diagnostics.len() < DETAILED {
                    diagnostic.details = details(lines, found.lines);
                }
                diagnostics.push(diagnostic);
            }
        }
        Reading {
            diagnostics,
            failing_tests,
        }
    }
}

/// Findings about failing tests, by the last part of the name that each has there.
pub(super) struct Told(BTreeMap<String, Vec<(String, usize)>>);

impl Told {
    fn of(found: &[Found]) -> Self {
        let mut told = Self(BTreeMap::new());
        for (index, found) in found.iter().enumerate() {
            if let Some(test) = &found.test {
                let shown = plain_name(test);
                let key = last_part(&shown).to_owned();
                told.0.entry(key).or_default().push((shown, index));
            }
        }
        told
    }

    /// Whether something was said about a test of this name.
    pub(super) fn tells_of(&self, test: &str) -> bool {
        let name = plain_name(test);
        let same = self.0.get(last_part(&name)).into_iter().flatten();
        same.into_iter()
            .any(|(shown, _)| is_same_test(&name, shown))
    }

    /// Takes what was said about a test: in its own file before anything else. Each finding is of
    /// one test.
    fn take<'a>(&mut self, test: &FailingTest, found: &'a [Found]) -> Option<&'a Found> {
        let name = plain_name(&test.name);
        let of_key = self.0.get_mut(last_part(&name))?;
        let path = |index: usize| found.get(index).and_then(|it| it.diagnostic.path.as_ref());
        let fits = |shown: &str| is_same_test(&name, shown);
        let in_file = |(shown, index): &(String, usize)| {
            test.file.is_some() && path(*index) == test.file.as_ref() && fits(shown)
        };
        let best = of_key.iter().position(in_file);
        let best = best.or_else(|| of_key.iter().position(|(shown, _)| fits(shown)))?;
        found.get(of_key.remove(best).1)
    }
}

/// `tests` with the places and messages of what was found about them.
fn placed(tests: Vec<FailingTest>, found: &[Found]) -> Vec<FailingTest> {
    let mut told = Told::of(found);
    let placed = tests.into_iter().map(|test| {
        let Some(best) = told.take(&test, found) else {
            return test;
        };
        let said = &best.diagnostic;
        let name = best.test.as_deref().unwrap_or_default();
        let message = said.message.strip_prefix(name).unwrap_or(&said.message);
        FailingTest {
            file: said.path.clone().or(test.file),
            line: said.line,
            message: message.trim_start_matches(": ").to_owned(),
            ..test
        }
    });
    failing_test::distinct(placed.collect())
}

/// What the parts of a test's name may be separated by.
const SEPARATORS: [char; 5] = [' ', '.', ':', '#', '/'];

fn plain_name(name: &str) -> String {
    let name = name.replace("::", ".");
    name.replace(" › ", ".").replace(" > ", ".")
}

fn last_part(name: &str) -> &str {
    name.rsplit(SEPARATORS).next().unwrap_or(name)
}

/// Whether `shown`, the name in what is said about a failure, is that of the test `name`, which may
/// begin with its file or suite. Both are plain.
fn is_same_test(name: &str, shown: &str) -> bool {
    let before = name.strip_suffix(shown);
    !shown.is_empty()
        && before.is_some_and(|before| before.is_empty() || before.ends_with(SEPARATORS))
}

fn details(lines: &[&str], of: Range<usize>) -> Option<String> {
    let lines = lines.get(of).filter(|lines| lines.len() > 1)?;
    let shown: Vec<&str> = lines
        .iter()
        .take(MAX_DETAIL_LINES)
        .map(|line| line.trim_end())
        .collect();
    let text = shown.join("\n");
    let text = text.trim_matches('\n');
    (!text.is_empty()).then(|| text::cap_chars(text, MAX_DETAILS).into_owned())
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
