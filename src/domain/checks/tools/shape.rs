//! What the outputs of most tools share: a line that reports a finding, the lines below it that belong to it, and a
//! line with numbers of tests. A tool with such an output is a row of regular expressions.

use super::Tool;
use crate::checks::counts::{Counts, optional_number, sum};
use crate::checks::diagnostic::{Location, Output, Severity, Sink, below, number};
use regex::{Captures, Regex};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The lines below the line of a finding, by regular expressions.
pub(in crate::checks) struct Below {
    /// The first line that no longer belongs to it.
    pub(super) until: &'static str,
    /// A stack frame, with groups as those of [`Tool::lines`]. The first one in the project is the place.
    pub(super) frame: &'static str,
    /// Lines that say nothing about the failure.
    pub(super) noise: &'static str,
}

/// Matches no line.
pub(super) const NEVER: &str = r"[^\s\S]";

/// The maximum number of lines below a finding that belong to it.
const REACH: usize = 60;

/// The expressions, each of which is compiled once. An invalid one is left out.
fn compiled(sources: &[&'static str]) -> Vec<&'static Regex> {
    static ALL: Mutex<BTreeMap<&str, Option<&Regex>>> = Mutex::new(BTreeMap::new());
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let compile = |source| Some(&*Box::leak(Box::new(Regex::new(source).ok()?)));
    let known = sources
        .iter()
        .filter_map(|&source| *all.entry(source).or_insert_with(|| compile(source)));
    known.collect()
}

fn first<'t>(expressions: &[&Regex], line: &'t str) -> Option<Captures<'t>> {
    expressions
        .iter()
        .find_map(|expression| expression.captures(line))
}

/// Adds the findings that the expressions of a tool match.
pub(super) fn read(tool: &Tool, output: Output<'_>, sink: &mut Sink<'_>) {
    if tool.lines.is_empty() {
        return;
    }
    let expressions = compiled(tool.lines);
    let below = tool.below.as_ref();
    let below = below.map(|of| compiled(&[of.until, of.frame, of.noise]));
    for (at, line) in output.lines.iter().enumerate() {
        if let Some(found) = first(&expressions, line) {
            finding(below.as_deref(), output.lines, at, &found, sink);
        }
    }
}

fn finding(
    expressions: Option<&[&Regex]>,
    lines: &[&str],
    at: usize,
    found: &Captures<'_>,
    sink: &mut Sink<'_>,
) {
    let named = |name: &str| part(found, name);
    let (test, listed) = (named("test"), named("listed"));
    if !listed.is_empty() {
        return sink.test(listed);
    }
    let mut said = vec![named("text").trim()];
    let mut place = location(found);
    let mut end = at + 1;
    if let Some([until, frame, noise]) = expressions {
        let block = below(lines, at, REACH, |line| !until.is_match(line));
        // The list of failures at the end repeats the names of the tests.
        if block.iter().all(|line| line.is_empty()) && !test.is_empty() {
            sink.test(test);
            return sink.claim(at);
        }
        end += block.len();
        let mut frames = block.iter().filter_map(|line| frame.captures(line));
        let own = frames.find(|found| sink.relative(part(found, "path")).is_some());
        place = own.map_or(place, |found| location(&found));
        let before = block.iter().take_while(|line| !frame.is_match(line));
        // Some tools print the frames first.
        let after = block.iter().skip_while(|line| frame.is_match(line));
        let told: Vec<&&str> = before
            .clone()
            .chain(after.filter(|_| before.clone().next().is_none()))
            .collect();
        let told = told.into_iter().filter(|line| !noise.is_match(line));
        said.extend(told.map(|line| line.trim()));
    }
    said.retain(|line| !line.is_empty());
    let message = said.join("\n");
    let message = match message.strip_prefix("error: ").unwrap_or(&message) {
        // Formatters name files and nothing more.
        "" if test.is_empty() => "it is not formatted",
        message => message,
    };
    let added = if test.is_empty() {
        sink.push(
            at,
            place,
            severity(named("word")),
            Some(named("code")),
            message,
        )
    } else {
        sink.failing(at, place, test, message)
    };
    added
        .until(number(named("end")), number(named("end_column")))
        .lines(at..end);
}

fn part<'t>(found: &Captures<'t>, name: &str) -> &'t str {
    found.name(name).map_or("", |part| part.as_str())
}

fn location<'t>(found: &Captures<'t>) -> Location<'t> {
    Location {
        path: part(found, "path"),
        line: part(found, "line"),
        column: part(found, "column"),
    }
}

/// The severity by its word. An unknown word is an error, which fails a check.
fn severity(word: &str) -> Severity {
    match word {
        "warning" | "Warning" | "WARN" => Severity::Warning,
        "note" | "info" | "INFO" | "I" | "information" | "style" => Severity::Note,
        _ => Severity::Error,
    }
}

/// The sum of the summaries of a tool, with the groups `total`, `passed`, `failed`, `errors` and `skipped`. A number
/// that no summary states is unknown, and an empty group is zero. A run that began and has no end has crashed.
pub(super) fn counts(tool: &Tool, lines: &[&str]) -> Option<Counts> {
    let summary = compiled(tool.summary);
    let (mut passed, mut failed) = (None, None);
    let (mut is_seen, mut is_broken) = (false, false);
    for found in lines.iter().filter_map(|line| first(&summary, line)) {
        is_seen = true;
        let told = |name: &str| {
            let digits = found.name(name)?.as_str();
            Some(optional_number(digits))
        };
        let or_none = |name: &str| told(name).unwrap_or(Some(0));
        let failures = told("failed").map(|failed| sum(&[failed, or_none("errors")]));
        let passes = told("passed").or_else(|| {
            let rest = sum(&[failures?, or_none("skipped")]);
            let (total, rest) = told("total")?.zip(rest)?;
            Some(total.checked_sub(rest))
        });
        if let (Some(total), Some(passes), Some(failures)) = (told("total"), passes, failures) {
            is_broken |= total != sum(&[passes, failures, or_none("skipped")]);
        }
        for (all, said) in [(&mut passed, passes), (&mut failed, failures)] {
            if let Some(said) = said {
                *all = Some(sum(&[all.unwrap_or(Some(0)), said]));
            }
        }
    }
    let number = |of: &Regex| lines.iter().filter(|line| of.is_match(line)).count();
    let is_open = || {
        let around = tool.around.map(|(start, end)| compiled(&[start, end]));
        matches!(around.as_deref(), Some([start, end]) if number(start) > number(end))
    };
    is_seen.then(|| {
        if is_broken || is_open() || [passed, failed].contains(&Some(None)) {
            return Counts::UNKNOWN;
        }
        Counts {
            passed: passed.flatten(),
            failed: failed.flatten(),
        }
    })
}
