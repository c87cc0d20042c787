//! pytest.

use super::python;
use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally, worded};
use crate::checks::diagnostic::{Found, Location, Output, Sink};
use crate::pattern::{Pattern, group};
use regex::Captures;
use std::collections::BTreeSet;
use std::ops::Range;

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "pytest",
    kind: ToolKind::Tests,
    signs: &[
        r"^_{3,} .+ _{3,}$",
        r"^(?:FAILED|ERROR|SUBFAIL(?:ED)?\S*) [^\s:]+\.py(?:$|:| )",
        r"^\S+\.py::.+? (?:PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)",
        r"^=+ (?:FAILURES|ERRORS|test session starts|short test summary info) =+$",
    ],
    read,
    counts,
    headers: &[r"_{3,} .+ _{3,}$"],
    around: Some((
        r"^=+ test session starts =+$",
        r"^=+ .*\b(?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|rerun|no tests ran|collected)\b.* in [0-9.]+s",
    )),
    ..Tool::NOTHING
};

static SECTION: Pattern =
    Pattern::new(r"^_{3,} (?:ERROR (?:collecting|at \w+ of) )?(?:\[doctest\] )?(.+?) _{3,}$");
static RULE: Pattern = Pattern::new(r"^={3,}(?: .* )?=*$");
static RAISED: Pattern = Pattern::new(r"^(\S[^:]*\.py):(\d+): (.*)$");
static DOCTEST: Pattern =
    Pattern::new(r"^(\S[^:]*\.\w+):(\d+): (DocTestFailure|UnexpectedException)$");
static CAPTURED: Pattern = Pattern::new(r"^-{3,} Captured .+ -{3,}$");
static EXPLAINED: Pattern = Pattern::new(r"^E(?:   ?|\t)(.*)$");
static SHORT: Pattern =
    Pattern::new(r"^(?:FAILED|ERROR|SUBFAIL(?:ED)?((?:\[.*?\])?(?: ?\(.*?\))?)) (\S.*?)\s*$");
static BEGIN: Pattern = Pattern::new(r"^=+ (?:FAILURES|ERRORS) =+$");

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    sections(output.lines, sink);
    if sink.found.is_empty() {
        python::tracebacks(output.lines, sink);
    }
    names(output.lines, sink);
}

/// A pytest failure that is being read.
#[derive(Default)]
struct Failure<'a> {
    name: &'a str,
    explained: Vec<&'a str>,
    place: Option<(usize, Location<'a>)>,
    exception: &'a str,
    lines: Range<usize>,
    /// Whether the output of the test itself has begun.
    is_captured: bool,
    /// Whether subtests have their parameters in their names: in the short summary, or without one.
    has_subtests: bool,
}

impl<'a> Failure<'a> {
    /// A later frame replaces an earlier one, unless it is outside the project.
    fn frame(&mut self, at: usize, place: Location<'a>, exception: &'a str, sink: &Sink<'_>) {
        if self.place.is_none() || sink.relative(place.path).is_some() {
            self.place = Some((at, place));
        }
        if !exception.is_empty() && !exception.starts_with("in ") {
            self.exception = exception;
        }
    }

    fn finish(mut self, end: usize, sink: &mut Sink<'_>) {
        let Some((at, mut place)) = self.place else {
            return;
        };
        self.lines.end = end;
        let mut text = if self.explained.is_empty() {
            self.exception.to_owned()
        } else {
            self.explained.join("\n")
        };
        let last = self.explained.last().copied().unwrap_or(self.exception);
        if python::is_syntax_error(last) {
            let frames = python::FRAME.in_lines(&self.explained);
            let files = frames.map(|(_, found)| Location::new(group(&found, 1), group(&found, 2)));
            let own = files.filter(|file| sink.relative(file.path).is_some());
            place = own.last().unwrap_or(place);
            last.clone_into(&mut text);
        } else if !text.is_empty() {
            text = format!("{}: {text}", self.name);
        }
        if !text.is_empty() {
            sink.error(at, place, &text)
                .about(if self.has_subtests {
                    self.name
                } else {
                    without_subtest(self.name)
                })
                .lines(self.lines);
        }
    }
}

/// The name of a test without the parameters of its subtest, which some short summaries do not print.
fn without_subtest(name: &str) -> &str {
    let at = name.char_indices().find(|(at, c)| {
        let (before, rest) = name.split_at(*at);
        *c == ' ' && is_balanced(before) && (rest.starts_with(" (") || rest.starts_with(" ["))
    });
    at.and_then(|(at, _)| name.get(..at)).unwrap_or(name)
}

fn sections(lines: &[&str], sink: &mut Sink<'_>) {
    let is_subtest = |line: &&str| line.starts_with("SUBFAILED[") || line.starts_with("SUBFAILED(");
    let has_subtests = summaries(lines).is_empty() || lines.iter().any(is_subtest);
    let mut current: Option<Failure<'_>> = None;
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = SECTION.captures(line) {
            if let Some(done) = current.take() {
                done.finish(at, sink);
            }
            current = Some(Failure {
                name: group(&found, 1),
                lines: at..at,
                has_subtests,
                ..Failure::default()
            });
        } else if RULE.is_match(line) {
            if let Some(done) = current.take() {
                done.finish(at, sink);
            }
        } else if let Some(failure) = current.as_mut().filter(|it| !it.is_captured) {
            if CAPTURED.is_match(line) {
                failure.is_captured = true;
            } else if let Some(found) = EXPLAINED.captures(line) {
                failure.explained.push(group(&found, 1).trim());
            } else if let Some(found) = RAISED.captures(line).or_else(|| DOCTEST.captures(line)) {
                let place = Location::new(group(&found, 1), group(&found, 2));
                failure.frame(at, place, group(&found, 3).trim(), sink);
            } else if let Some(found) = python::FRAME.captures(line) {
                let place = Location::new(group(&found, 1), group(&found, 2));
                failure.frame(at, place, "", sink);
            } else if python::EXCEPTION.is_match(line) {
                failure.exception = line;
            }
        }
    }
    if let Some(done) = current {
        done.finish(lines.len(), sink);
    }
}

/// Adds the tests of the short summary, otherwise those of the `-v` list or of the sections. A test without a
/// location in any section, as with `--tb=no`, has at least its file.
fn names(lines: &[&str], sink: &mut Sink<'_>) {
    let told = sink.test_findings();
    let mut raised = raised(lines, sink);
    let mut listed = summaries(lines);
    let before = sink.tests.len();
    if listed.is_empty() {
        verbose(lines, sink);
        if sink.tests.len() == before {
            section_names(lines, sink);
        }
        if sink.tests.len() > before {
            return;
        }
        // The beginning of the output is cut off.
        let found = SHORT.in_lines(lines).filter_map(|(at, found)| {
            let summary = Summary::of(at, &found)?;
            summary.file.ends_with(".py").then_some(summary)
        });
        listed = found.collect();
    }
    for Summary {
        at,
        name,
        file,
        said,
    } in listed
    {
        sink.test_in(&name, file);
        if !told.mentions(&name) {
            let (shown, line) = earlier_failure(&mut raised, at, file, said);
            said_in_summary(shown, &name, Location::new(file, &line), said, sink);
        }
    }
}

/// A line of the short summary.
struct Summary<'a> {
    at: usize,
    name: String,
    file: &'a str,
    said: &'a str,
}

impl<'a> Summary<'a> {
    fn of(at: usize, found: &Captures<'a>) -> Option<Self> {
        static FILE: Pattern = Pattern::new(r"^(.+?\.\w+)(?:::| - |$)");
        let (subtest, rest) = (found.get(1), found.get(2)?.as_str());
        let file = FILE.captures(rest)?.get(1)?.as_str();
        let (name, said) = split_said(rest);
        let subtest = subtest.map_or("", |it| it.as_str()).trim();
        let name = match subtest {
            "" => name.to_owned(),
            subtest => format!("{name} {subtest}"),
        };
        Some(Self {
            at,
            name,
            file,
            said,
        })
    }
}

/// Splits the message off a test. The parameters of a test may contain the separator.
fn split_said(text: &str) -> (&str, &str) {
    const SEPARATOR: &str = " - ";
    let outside = text
        .match_indices(SEPARATOR)
        .find(|(at, _)| text.get(..*at).is_some_and(is_balanced));
    let split = outside
        .or_else(|| text.match_indices(SEPARATOR).next())
        .and_then(|(at, _)| {
            let said = text.get(at + SEPARATOR.len()..)?;
            Some((text.get(..at)?, said))
        });
    split.unwrap_or((text, ""))
}

/// Whether as many brackets close as open.
fn is_balanced(text: &str) -> bool {
    text.matches('[').count() == text.matches(']').count()
}

/// The lines of every short summary. What tests print has the same form elsewhere.
fn summaries<'a>(lines: &[&'a str]) -> Vec<Summary<'a>> {
    static HEADING: Pattern = Pattern::new(r"^=+ short test summary info =+$");
    let mut all = Vec::new();
    let mut is_inside = false;
    for (at, line) in lines.iter().enumerate() {
        if RULE.is_match(line) {
            is_inside = HEADING.is_match(line);
        } else if is_inside && let Some(found) = SHORT.captures(line) {
            all.extend(Summary::of(at, &found));
        }
    }
    all
}

/// Adds the failed tests of the list that `-v` prints while the tests run.
fn verbose(lines: &[&str], sink: &mut Sink<'_>) {
    static ENDED: Pattern = Pattern::new(
        r"(?x)^(?:
            ((.+?\.\w+)::.+?)\ (?:FAILED|ERROR|SUBFAILED\S*)(?:\ \(.*\))?(?:\s+\[\s*\d+%\])?
          | \[gw\d+\]\ \[\s*\d+%\]\ (?:FAILED|ERROR|SUBFAILED\S*(?:\ \(.*?\))?)\ ((.+?\.\w+)(?:::.+?)?)
        )\s*$",
    );
    let mut is_list = true;
    for line in lines {
        if RULE.is_match(line) {
            is_list = !BEGIN.is_match(line);
        } else if is_list && let Some(found) = ENDED.captures(line) {
            let [name, file] =
                [(1, 3), (2, 4)].map(|(a, b)| [group(&found, a), group(&found, b)].concat());
            sink.test_in(&name, &file);
        }
    }
}

/// Adds the tests of the sections.
fn section_names(lines: &[&str], sink: &mut Sink<'_>) {
    let mut begun = false;
    for line in lines {
        begun |= BEGIN.is_match(line);
        if let Some(found) = SECTION.captures(line).filter(|_| begun) {
            sink.test(group(&found, 1));
        }
    }
}

/// A failure that `--tb=line` prints on a single line, with the index of that line.
struct ShortFailure {
    at: usize,
    file: String,
    line: String,
    message: String,
}

/// The failures that are printed on a single line and belong to no section.
fn raised(lines: &[&str], sink: &Sink<'_>) -> Vec<ShortFailure> {
    let known: BTreeSet<usize> = sink.found.iter().map(Found::at).collect();
    let begin = lines.iter().position(|line| BEGIN.is_match(line));
    let below = lines.iter().enumerate().skip(begin.unwrap_or(lines.len()));
    below
        .filter(|(at, _)| !known.contains(at))
        .filter_map(|(at, line)| {
            let found = RAISED.captures(line)?;
            Some(ShortFailure {
                at,
                file: sink.relative(group(&found, 1))?,
                line: group(&found, 2).to_owned(),
                message: group(&found, 3).to_owned(),
            })
        })
        .collect()
}

/// The output line and the line of `file` of an earlier failure, otherwise the line `at` of the summary and
/// no line of the file.
fn earlier_failure(
    raised: &mut Vec<ShortFailure>,
    at: usize,
    file: &str,
    said: &str,
) -> (usize, String) {
    let start = said.trim_end_matches("...");
    let fits =
        |it: &ShortFailure| !start.is_empty() && it.file == file && it.message.starts_with(start);
    match raised.iter().position(fits) {
        Some(index) => {
            let found = raised.remove(index);
            (found.at, found.line)
        }
        None => (at, String::new()),
    }
}

fn said_in_summary(at: usize, name: &str, place: Location<'_>, said: &str, sink: &mut Sink<'_>) {
    let said = if said.is_empty() { "failed" } else { said };
    let test = name.strip_prefix(place.path);
    match test.map(|test| test.trim_start_matches("::")) {
        None | Some("") => sink.error(at, place, said).about(name),
        Some(test) => sink.failure(at, place, test, said),
    };
}

fn counts(lines: &[&str]) -> Option<Counts> {
    static SUMMARY: Pattern = Pattern::new(
        r"^(?:=+ )?(?:\d+ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|rerun|subtests passed)(?:, )?)+ in [\d.]+s(?: \([\d:]+\))?(?: =+)?$",
    );
    static NONE: Pattern = Pattern::new(r"^(?:=+ )?no tests ran in [\d.]+s(?: =+)?$");
    let mut tally = Tally::default();
    for line in lines {
        if SUMMARY.is_match(line) {
            tally.add(
                worded(line, &["passed"]),
                worded(line, &["failed", "error", "errors"]),
            );
        } else if NONE.is_match(line) {
            tally.add(Some(0), Some(0));
        }
    }
    tally.finish().or_else(|| progress(lines))
}

/// The numbers of a run without a summary (`-qq`), by the letters of its tests: those of a whole run end at 100 %.
fn progress(lines: &[&str]) -> Option<Counts> {
    static LETTERS: Pattern = Pattern::new(r"^([.FEsxX]+) +\[ *([0-9]+)%\]$");
    let mut tally = Tally::default();
    let mut is_whole = false;
    for (_, found) in LETTERS.in_lines(lines) {
        let number = |of: &[char]| Some(found[1].matches(of).count() as u64);
        tally.add(number(&['.', 'X']), number(&['F', 'E']));
        is_whole = &found[2] == "100";
    }
    tally.finish().filter(|_| is_whole)
}
