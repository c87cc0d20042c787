//! The code locations that a check's output names.
//!
//! Each tool has its own small parser of plain text. [`parse_in`] runs the parsers of the tools that printed
//! the output, and keeps the result of the most specific parser for each line.

use super::failing_test::{self, FailingTest, MAX_FAILING_TESTS};
pub(super) use super::failing_test::{bounded, number};
use super::path;
use crate::pattern::{Pattern, group};
use crate::text;
use regex::Captures;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The maximum number of diagnostics kept from one output.
pub const MAX_DIAGNOSTICS: usize = 1_000;

/// The part of a line that patterns examine, in bytes from its start.
const MAX_LINE: usize = 16 << 10;

/// The number of diagnostics that keep their details, and the size limits of the details in characters and
/// lines.
const DETAILED: usize = 200;
const MAX_DETAILS: usize = 4_000;
const MAX_DETAIL_LINES: usize = 60;

/// The severity of a diagnostic.
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

/// One message about a code location.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Relative to the root, with `/` and without `..`. `None` if the tool named no file, or one outside the
    /// root. Go's tests print only the name of a file; its directory is here if the output tells it.
    pub path: Option<String>,
    /// The first line, from 1. `None` whenever `path` is.
    pub line: Option<u32>,
    /// The column in that line, from 1, as the tool counts it.
    pub column: Option<u32>,
    /// The last line, if the tool states it; never before `line`.
    pub end_line: Option<u32>,
    /// The end column in the last line, if the tool states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_column: Option<u32>,
    /// How serious it is.
    pub severity: Severity,
    /// The tool's code for the message: `E0308`, `TS2322`, `clippy::needless_return`.
    pub code: Option<String>,
    /// The message without location and code, at most 20 lines and 2,000 characters.
    pub message: String,
    /// What else the tool prints about it, such as source lines or notes: unchanged lines of the output,
    /// within a size limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// The name of the tool that reported it.
    pub source: Cow<'static, str>,
}

/// The diagnostics and failed tests that an output reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// As [`parse_in`] returns them.
    pub diagnostics: Vec<Diagnostic>,
    /// The failed tests, ordered by id.
    pub failing_tests: Vec<FailingTest>,
}

/// The work tree in which a check ran.
#[derive(Clone, Copy)]
pub(super) struct WorkTree<'a> {
    /// Its path.
    pub(super) root: &'a str,
    /// The only file at the end of this path, whose first directories may have other names there.
    pub(super) meant: &'a dyn Fn(&str) -> Option<String>,
    /// The file at this relative path in the one other directory in which all commands of the check run.
    pub(super) twin: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> WorkTree<'a> {
    /// A work tree of whose files nothing is known.
    pub(super) fn at(root: &'a str) -> Self {
        Self {
            root,
            meant: &|_| None,
            twin: &|_| None,
        }
    }
}

/// The lines of an output.
#[derive(Clone, Copy)]
pub(super) struct Output<'a> {
    /// The lines as they are.
    pub(super) whole: &'a [&'a str],
    /// At most the first 16 KiB of each line, which patterns examine.
    pub(super) lines: &'a [&'a str],
}

/// The lines below line `at` that belong to it, at most `reach` of them.
pub(super) fn below<'a>(
    lines: &[&'a str],
    at: usize,
    reach: usize,
    mut belongs: impl FnMut(&str) -> bool,
) -> Vec<&'a str> {
    let following = lines.iter().copied().skip(at + 1).take(reach);
    following.take_while(|line| belongs(line)).collect()
}

/// A parser's finding, before sorting.
#[derive(Default)]
pub(super) struct Found {
    /// The index of the output line that names the location.
    pub(super) at: usize,
    /// Distinguishes several findings on that line; 0 if there can be only one.
    pub(super) part: usize,
    /// The name of the failed test that it is about, as the output has it there.
    test: Option<String>,
    /// The lines that belong to it.
    lines: Range<usize>,
    diagnostic: Diagnostic,
}

impl Found {
    /// Sets the end. An end before the start is dropped.
    pub(super) fn until(&mut self, line: Option<u32>, column: Option<u32>) -> &mut Self {
        let found = &mut self.diagnostic;
        found.end_line = line.filter(|end| found.line.is_some_and(|line| *end >= line));
        let same = found.end_line == found.line;
        let fits = |end: &u32| *end > 0 && !(same && found.column.is_some_and(|it| *end < it));
        found.end_column = column.filter(|end| found.end_line.is_some() && fits(end));
        self
    }

    /// The file and the line of its location, if it has both.
    pub(super) fn place(&self) -> Option<(String, u32)> {
        Some((self.diagnostic.path.clone()?, self.diagnostic.line?))
    }

    /// Sets the failed test that it is about.
    pub(super) fn about(&mut self, test: &str) -> &mut Self {
        self.test = Some(test.to_owned());
        self
    }

    /// Sets the output lines that belong to it.
    pub(super) fn lines(&mut self, lines: Range<usize>) -> &mut Self {
        self.lines = lines;
        self
    }
}

/// A location as a tool prints it.
#[derive(Clone, Copy, Default)]
pub(super) struct Location<'a> {
    pub(super) path: &'a str,
    pub(super) line: &'a str,
    pub(super) column: &'a str,
}

impl<'a> Location<'a> {
    /// A line of a file.
    pub(super) fn new(path: &'a str, line: &'a str) -> Self {
        let column = "";
        Self { path, line, column }
    }

    /// Groups 1 to 3 of a match: path, line and column.
    pub(super) fn of(found: &Captures<'a>) -> Self {
        Self::at(found, 1)
    }

    /// Three groups of a match, of which this is the first.
    pub(super) fn at(found: &Captures<'a>, first: usize) -> Self {
        let [path, line, column] = [0, 1, 2].map(|offset| group(found, first + offset));
        Self { path, line, column }
    }
}

/// Collects the findings of the tools' parsers.
pub(super) struct Sink<'a> {
    pub(super) tree: WorkTree<'a>,
    /// The tool whose parser runs.
    pub(super) source: &'static str,
    pub(super) found: Vec<Found>,
    pub(super) tests: Vec<FailingTest>,
    /// Lines that belong to a finding above or below them.
    claimed: BTreeSet<usize>,
    /// Receives rejected findings, so that callers need not check.
    refused: Found,
}

impl<'a> Sink<'a> {
    pub(super) fn new(tree: WorkTree<'a>, source: &'static str) -> Self {
        Self {
            tree,
            source,
            found: Vec::new(),
            tests: Vec::new(),
            claimed: BTreeSet::new(),
            refused: Found::default(),
        }
    }
}

impl Sink<'_> {
    pub(super) fn relative(&self, path: &str) -> Option<String> {
        path::relative(path, self.tree.root)
    }

    /// Like [`Sink::relative`]; a relative path is that of the file in the directory in which the check runs, if there
    /// is one.
    fn placed(&self, path: &str) -> Option<String> {
        let found = self.relative(path)?;
        let twin = || (self.tree.twin)(&found);
        let is_relative = path::is_relative(&path.trim().replace('\\', "/"));
        is_relative.then(twin).flatten().or(Some(found))
    }

    /// Whether this is the path of one file of the work tree, from the root or from another directory.
    pub(super) fn exists(&self, path: &str) -> bool {
        let Some(path) = self.relative(path) else {
            return false;
        };
        let found = (self.tree.meant)(&path);
        found.is_some_and(|found| found == path || found.ends_with(&format!("/{path}")))
    }

    /// The first of these lines' stack frames, as `frame` finds them, whose file is in the project.
    pub(super) fn own_frame<'l>(&self, lines: &[&'l str], frame: &Pattern) -> Option<Location<'l>> {
        let mut places = frame.in_lines(lines).map(|(_, found)| Location::of(&found));
        places.find(|place| self.is_own(place.path))
    }

    /// Whether a file is in the project, and not among the dependencies that are installed there.
    pub(super) fn is_own(&self, path: &str) -> bool {
        let is_foreign = |path: &String| path.contains("node_modules/") || path.contains("vendor/");
        !path.starts_with("node:") && self.relative(path).is_some_and(|path| !is_foreign(&path))
    }

    /// Prevents later parsers from reading this line as a separate message.
    pub(super) fn claim(&mut self, at: usize) {
        self.claimed.insert(at);
    }

    /// Adds an error; use [`Sink::push`] to set the other fields.
    pub(super) fn error(&mut self, at: usize, place: Location<'_>, message: &str) -> &mut Found {
        self.push(at, place, Severity::Error, None, message)
    }

    /// Adds a message about a failed test. Only [`Sink::test`] records that the test failed, because a
    /// location alone need not belong to a test.
    pub(super) fn failure(
        &mut self,
        at: usize,
        place: Location<'_>,
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

    /// Adds a failed test together with a message about it.
    pub(super) fn failing(
        &mut self,
        at: usize,
        place: Location<'_>,
        test: &str,
        message: &str,
    ) -> &mut Found {
        self.test(test);
        self.failure(at, place, test, message)
    }

    /// Adds a failed test. Its message may come before, later or not at all.
    pub(super) fn test(&mut self, name: &str) {
        self.test_at(name, Location::default());
    }

    /// Like [`Sink::test`], with the place of the test. A finding about it has precedence.
    pub(super) fn test_at(&mut self, name: &str, place: Location<'_>) {
        if self.tests.len() < MAX_FAILING_TESTS {
            let file = self.placed(place.path);
            let test = FailingTest::named(name);
            self.tests
                .extend(test.map(|test| test.at(file, place.line)));
        }
    }

    /// Drops what the tool said about tests that have not failed in the end.
    pub(super) fn keep_failed(&mut self) {
        let failed: BTreeSet<&String> = self.tests.iter().map(|test| &test.name).collect();
        self.found.retain(|found| {
            let is_failed = found.test.as_ref().is_none_or(|test| failed.contains(test));
            is_failed || found.diagnostic.source != self.source
        });
    }

    /// The messages about failed tests so far.
    pub(super) fn test_findings(&self) -> TestFindings {
        TestFindings::of(&self.found)
    }

    pub(super) fn push(
        &mut self,
        at: usize,
        place: Location<'_>,
        severity: Severity,
        code: Option<&str>,
        message: &str,
    ) -> &mut Found {
        let message = bounded(message);
        if message.is_empty() || self.claimed.contains(&at) {
            return &mut self.refused;
        }
        let path = self.placed(place.path);
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
            lines: at..at,
            diagnostic,
            ..Found::default()
        });
        self.found.last_mut().unwrap_or(&mut self.refused)
    }

    /// The sorted findings. `lines` are those of the output.
    pub(super) fn finish(mut self, lines: &[&str]) -> Reading {
        // The sort is stable, so of two findings on one line the earlier parser's comes first.
        self.found.sort_by_key(|found| (found.at, found.part));
        self.found.dedup_by_key(|found| (found.at, found.part));
        let failing_tests = placed(self.tests, &self.found);
        self.found.sort_by_key(|found| found.diagnostic.severity);
        let mut seen = BTreeSet::new();
        let found = self.found.into_iter();
        let found = found.filter(|found| seen.insert(found.diagnostic.clone()));
        let diagnostics = found.take(MAX_DIAGNOSTICS).enumerate();
        let diagnostics = diagnostics.map(|(number, found)| Diagnostic {
            details: details(lines, found.lines).filter(|_| number < DETAILED),
            ..found.diagnostic
        });
        Reading {
            diagnostics: diagnostics.collect(),
            failing_tests,
        }
    }
}

/// The findings about failed tests, keyed by the last part of the test's name.
pub(super) struct TestFindings(BTreeMap<String, Vec<(String, usize)>>);

impl TestFindings {
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

    /// Whether there is a finding about a test with this name.
    pub(super) fn mentions(&self, test: &str) -> bool {
        let name = plain_name(test);
        let mut same = self.0.get(last_part(&name)).into_iter().flatten();
        same.any(|(shown, _)| is_same_test(&name, shown))
    }

    /// Removes and returns the finding about a test, preferring one in the test's own file. Each finding
    /// belongs to one test.
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

/// `tests`, with the locations and messages of the findings about them.
fn placed(tests: Vec<FailingTest>, found: &[Found]) -> Vec<FailingTest> {
    let mut told = TestFindings::of(found);
    let placed = tests.into_iter().map(|test| {
        let Some(best) = told.take(&test, found) else {
            return test;
        };
        let said = &best.diagnostic;
        let name = best.test.as_deref().unwrap_or_default();
        let message = said.message.strip_prefix(name).unwrap_or(&said.message);
        FailingTest {
            line: match &said.path {
                Some(_) => said.line,
                None => test.line,
            },
            file: said.path.clone().or(test.file),
            message: message.trim_start_matches(": ").to_owned(),
            ..test
        }
    });
    failing_test::distinct(placed.collect())
}

/// The separators between the parts of a test's name.
const SEPARATORS: [char; 5] = [' ', '.', ':', '#', '/'];

fn plain_name(name: &str) -> String {
    let name = name.replace("::", ".");
    name.replace(" › ", ".").replace(" > ", ".")
}

fn last_part(name: &str) -> &str {
    name.rsplit(SEPARATORS).next().unwrap_or(name)
}

/// Whether `shown`, the name in a message about a failure, is the test `name`, which may start with its file
/// or suite. Both are normalised.
fn is_same_test(name: &str, shown: &str) -> bool {
    let before = name.strip_suffix(shown);
    !shown.is_empty()
        && before.is_some_and(|before| before.is_empty() || before.ends_with(SEPARATORS))
}

fn details(lines: &[&str], of: Range<usize>) -> Option<String> {
    let lines = lines.get(of).filter(|lines| lines.len() > 1)?;
    let shown = lines.iter().take(MAX_DETAIL_LINES);
    let shown: Vec<&str> = shown.map(|line| line.trim_end()).collect();
    let text = shown.join("\n");
    let text = text.trim_matches('\n');
    (!text.is_empty()).then(|| text::cap_chars(text, MAX_DETAILS).into_owned())
}

pub(super) fn beginning(line: &str) -> &str {
    line.get(..line.floor_char_boundary(MAX_LINE))
        .unwrap_or(line)
}
