//! pytest.

use super::python;
use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally, worded};
use crate::checks::diagnostic::{Found, Location, Output, Sink};
use crate::pattern::{Pattern, group};
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

static SECTION: Pattern = Pattern::new(r"^_{3,} (?:ERROR (?:collecting|at \w+ of) )?(.+?) _{3,}$");
static RULE: Pattern = Pattern::new(r"^={3,}(?: .* )?=*$");
static RAISED: Pattern = Pattern::new(r"^(\S[^:]*\.py):(\d+): (.*)$");
static EXPLAINED: Pattern = Pattern::new(r"^E(?:   ?|\t)(.*)$");
static SHORT: Pattern =
    Pattern::new(r"^(?:FAILED|ERROR|SUBFAIL(?:ED)?\S*) (([^\s:]+\.py)(?:::.+?)?)(?: - (.*))?$");
static VERBOSE: Pattern = Pattern::new(r"^((\S+\.py)::.+?) (?:FAILED|ERROR)(?:\s+\[\s*\d+%\])?$");
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
        let Some((at, place)) = self.place else {
            return;
        };
        self.lines.end = end;
        let text = if self.explained.is_empty() {
            self.exception.to_owned()
        } else {
            self.explained.join("\n")
        };
        if !text.is_empty() {
            sink.error(at, place, &format!("{}: {text}", self.name))
                .about(without_subtest(self.name))
                .lines(self.lines);
        }
    }
}

/// The name of a test without the parameters of its subtest, which the short summary prints elsewhere.
fn without_subtest(name: &str) -> &str {
    let cut = name.find(" (").or_else(|| name.find(" ["));
    cut.and_then(|cut| name.get(..cut)).unwrap_or(name)
}

fn sections(lines: &[&str], sink: &mut Sink<'_>) {
    let mut current: Option<Failure<'_>> = None;
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = SECTION.captures(line) {
            if let Some(done) = current.take() {
                done.finish(at, sink);
            }
            current = Some(Failure {
                name: group(&found, 1),
                lines: at..at,
                ..Failure::default()
            });
        } else if RULE.is_match(line) {
            if let Some(done) = current.take() {
                done.finish(at, sink);
            }
        } else if let Some(failure) = &mut current {
            if let Some(found) = EXPLAINED.captures(line) {
                failure.explained.push(group(&found, 1).trim());
            } else if let Some(found) = RAISED.captures(line) {
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

/// Adds the tests of the short summary or of the `-v` list, otherwise those of the sections. A test without a
/// location in any section, as with `--tb=no`, has at least its file.
fn names(lines: &[&str], sink: &mut Sink<'_>) {
    let before = sink.tests.len();
    let told = sink.test_findings();
    let mut raised = raised(lines, sink);
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = SHORT.captures(line) {
            let (name, file) = (group(&found, 1), group(&found, 2));
            sink.test_in(name, file);
            if !told.mentions(name) {
                let (shown, line) = earlier_failure(&mut raised, at, file, group(&found, 3));
                let place = Location::new(file, &line);
                said_in_summary(shown, name, place, group(&found, 3), sink);
            }
        } else if let Some(found) = VERBOSE.captures(line) {
            sink.test_in(group(&found, 1), group(&found, 2));
        }
    }
    if sink.tests.len() > before {
        return;
    }
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
