//! pytest.

use super::python;
use super::{Tool, ToolKind};
use crate::checks::counts::Counts;
use crate::checks::diagnostic::{Location, Output, Sink, below};
use crate::pattern::{Pattern, group};
use regex::Captures;
use std::collections::BTreeSet;

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
    summary: &[
        r"^(?:=+ )?(?<passed_0>)(?<failed_0>)(?:(?:(?<passed>\d+) passed|(?<failed>\d+) failed|(?<errors>\d+) errors?|\d+ (?:skipped|deselected|xfailed|xpassed|warnings?|rerun|subtests passed))(?:, )?)+ in [\d.]+s(?: \([\d:]+\))?(?: =+)?$",
        r"^(?:=+ )?no tests ran in [\d.]+s(?: =+)?(?<passed>)(?<failed>)$",
    ],
    counts: progress,
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
static BEGIN: Pattern = Pattern::new(r"^=+ (?:FAILURES|ERRORS) =+$");
/// A line of the short summary.
static SHORT: Pattern =
    Pattern::new(r"^(?:FAILED|ERROR|SUBFAIL(?:ED)?((?:\[.*?\])?(?: ?\(.*?\))?)) (\S.*?)\s*$");

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let lines = output.lines;
    let listed = summaries(lines);
    // Subtests have their parameters in their names: in the short summary, or without one.
    let is_subtest = |line: &&str| line.starts_with("SUBFAILED[") || line.starts_with("SUBFAILED(");
    let has_subtests = listed.is_empty() || lines.iter().any(is_subtest);
    for (at, found) in SECTION.in_lines(lines) {
        let name = group(&found, 1);
        let about = if has_subtests {
            name
        } else {
            without_subtest(name)
        };
        section(lines, at, name, about, sink);
    }
    if sink.found.is_empty() {
        python::tracebacks(lines, sink);
    }
    names(lines, listed, sink);
}

/// Adds the failure of a section at its last frame in the project.
fn section(lines: &[&str], at: usize, name: &str, about: &str, sink: &mut Sink<'_>) {
    static CAPTURED: Pattern = Pattern::new(r"^-{3,} Captured .+ -{3,}$");
    static DOCTEST: Pattern =
        Pattern::new(r"^(\S[^:]*\.\w+):(\d+): (DocTestFailure|UnexpectedException)$");
    static FRAMES: [&Pattern; 3] = [&RAISED, &DOCTEST, &python::FRAME];
    static EXPLAINED: Pattern = Pattern::new(r"^E(?:   ?|\t)(.*)$");
    let is_end = |line: &str| SECTION.is_match(line) || RULE.is_match(line);
    let all = below(lines, at, usize::MAX, |line| !is_end(line));
    let printed = all.iter().position(|line| CAPTURED.is_match(line));
    let block = &all[..printed.unwrap_or(all.len())];
    let mut exception = "";
    let mut places = Vec::new();
    for (index, line) in block.iter().enumerate() {
        if EXPLAINED.is_match(line) {
            continue;
        } else if let Some(found) = FRAMES.iter().find_map(|frame| frame.captures(line)) {
            let said = group(&found, 3).trim();
            places.push((
                at + 1 + index,
                Location::new(group(&found, 1), group(&found, 2)),
            ));
            exception = match said {
                "" => exception,
                _ if said.starts_with("in ") => exception,
                _ => said,
            };
        } else if python::EXCEPTION.is_match(line) {
            exception = line;
        }
    }
    let explained: Vec<&str> = EXPLAINED
        .in_lines(block)
        .map(|(_, found)| group(&found, 1).trim())
        .collect();
    let own = places
        .iter()
        .rfind(|(_, place)| sink.relative(place.path).is_some());
    let Some((placed, place)) = own.or(places.first()).copied() else {
        return;
    };
    let last = explained.last().copied().unwrap_or(exception);
    let text = match &explained[..] {
        [] => exception.to_owned(),
        explained => explained.join("\n"),
    };
    let found = if text.is_empty() {
        return;
    } else if python::is_syntax_error(last) {
        let file = python::traceback(&explained, sink).map(|(_, place, _)| place);
        let file = file.filter(|file| sink.relative(file.path).is_some());
        sink.error(placed, file.unwrap_or(place), last)
    } else {
        sink.error(placed, place, &format!("{name}: {text}"))
    };
    found.about(about).lines(at..at + 1 + all.len());
}

/// The name of a test without the parameters of its subtest, which some short summaries do not print.
fn without_subtest(name: &str) -> &str {
    let mut starts = name.match_indices(" (").chain(name.match_indices(" ["));
    let at = starts.find(|(at, _)| is_balanced(&name[..*at]));
    at.map_or(name, |(at, _)| &name[..at])
}

/// Adds the tests of the short summary, otherwise those of the `-v` list or of the sections. A test without a
/// location in any section, as with `--tb=no`, has at least its file.
fn names<'a>(lines: &[&'a str], mut listed: Vec<Summary<'a>>, sink: &mut Sink<'_>) {
    let told = sink.test_findings();
    let mut raised = raised(lines, sink);
    if listed.is_empty() {
        let before = sink.tests.len();
        verbose(lines, sink);
        if sink.tests.len() == before {
            let begin = lines.iter().position(|line| BEGIN.is_match(line));
            let sections = lines
                .get(begin.unwrap_or(lines.len())..)
                .unwrap_or_default();
            for (_, found) in SECTION.in_lines(sections) {
                sink.test(group(&found, 1));
            }
        }
        if sink.tests.len() > before {
            return;
        }
        // The beginning of the output is cut off.
        let found = SHORT.in_lines(lines);
        let found = found.filter_map(|(at, found)| Summary::of(at, &found));
        listed = found.filter(|it| it.file.ends_with(".py")).collect();
    }
    for Summary {
        mut at,
        name,
        file,
        said,
    } in listed
    {
        let mut place = Location::new(file, "");
        sink.test_at(&name, place);
        if told.mentions(&name) {
            continue;
        }
        let start = said.trim_end_matches("...");
        let fits = |it: &(usize, String, &str, &str)| it.1 == file && it.3.starts_with(start);
        let earlier = raised.iter().position(|it| !start.is_empty() && fits(it));
        if let Some((shown, _, line, _)) = earlier.map(|index| raised.remove(index)) {
            (at, place.line) = (shown, line);
        }
        let test = name
            .strip_prefix(file)
            .map(|test| test.trim_start_matches("::"));
        match test.filter(|test| !test.is_empty()) {
            Some(test) => sink.failure(at, place, test, said),
            None if said.is_empty() => sink.error(at, place, "failed").about(&name),
            None => sink.error(at, place, said).about(&name),
        };
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
        const SEPARATOR: &str = " - ";
        static FILE: Pattern = Pattern::new(r"^(.+?\.\w+)(?:::| - |$)");
        let (subtest, rest) = (group(found, 1).trim(), group(found, 2));
        let file = FILE.captures(rest)?.get(1)?.as_str();
        // The parameters of a test may contain the separator.
        let mut separators = rest.match_indices(SEPARATOR);
        let outside = separators.clone().find(|(at, _)| is_balanced(&rest[..*at]));
        let (test, said) = match outside.or_else(|| separators.next()) {
            Some((at, _)) => (&rest[..at], &rest[at + SEPARATOR.len()..]),
            None => (rest, ""),
        };
        let name = match subtest {
            "" => test.to_owned(),
            subtest => format!("{test} {subtest}"),
        };
        Some(Self {
            at,
            name,
            file,
            said,
        })
    }
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
            sink.test_at(&name, Location::new(&file, ""));
        }
    }
}

/// The failures that `--tb=line` prints on a single line and that belong to no section: the index of that line, the file,
/// its line, and the message.
fn raised<'a>(lines: &[&'a str], sink: &Sink<'_>) -> Vec<(usize, String, &'a str, &'a str)> {
    let known: BTreeSet<usize> = sink.found.iter().map(|found| found.at).collect();
    let begin = lines.iter().position(|line| BEGIN.is_match(line));
    let below = RAISED.in_lines(lines);
    let below = below.skip_while(|(at, _)| begin.is_none_or(|begin| *at < begin));
    below
        .filter(|(at, _)| !known.contains(at))
        .filter_map(|(at, found)| {
            let file = sink.relative(group(&found, 1))?;
            Some((at, file, group(&found, 2), group(&found, 3)))
        })
        .collect()
}

/// The numbers of a run without a summary (`-qq`), by the letters of its tests: those of a whole run end at 100 %.
fn progress(lines: &[&str]) -> Option<Counts> {
    static LETTERS: Pattern = Pattern::new(r"^([.FEsxX]+) +\[ *([0-9]+)%\]$");
    let all: Vec<_> = LETTERS.in_lines(lines).map(|(_, found)| found).collect();
    all.last().filter(|last| group(last, 2) == "100")?;
    let number = |of: [char; 2]| {
        let each = all.iter().map(|found| group(found, 1).matches(of).count());
        each.sum::<usize>() as u64
    };
    Some(Counts::of(number(['.', 'X']), number(['F', 'E'])))
}
