//! What the outputs of most tools share: a line that reports a finding, the lines below it that belong to it, and a
//! line with numbers of tests. A tool with such an output is a row of regular expressions.

use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, optional_number, sum};
use crate::checks::diagnostic::{Location, Output, Severity, Sink, below, number};
use regex::{Captures, Regex};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The lines below the line of a finding, by regular expressions.
pub(in crate::checks) struct Below {
    /// The first line that no longer belongs to it.
    pub(super) until: &'static str,
    /// A stack frame, with groups as those of [`Tool::lines`]. The first one in the project is the place. One without a
    /// path is in the file of the finding.
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

/// One expression. An empty one matches nothing.
fn one(source: &'static str) -> Option<&'static Regex> {
    compiled(&[source]).pop().filter(|_| !source.is_empty())
}

fn first<'t>(
    expressions: &[&'static Regex],
    line: &'t str,
) -> Option<(&'static Regex, Captures<'t>)> {
    expressions
        .iter()
        .find_map(|expression| Some((*expression, expression.captures(line)?)))
}

/// Adds the findings that the expressions of a tool match.
pub(super) fn read(tool: &Tool, output: Output<'_>, sink: &mut Sink<'_>) {
    if tool.lines.is_empty() {
        return;
    }
    let (expressions, before) = (compiled(tool.lines), one(tool.above));
    let mut above = None;
    for (at, line) in output.lines.iter().enumerate() {
        if let Some((_, found)) = first(&expressions, line) {
            finding(tool, output.lines, at, [Some(&found), above.as_ref()], sink);
        } else if let Some(found) = before.and_then(|it| it.captures(line)) {
            above = Some(found);
        }
    }
}

/// Adds the finding of a line. `groups` are those of the line, and of the line above that holds for it.
fn finding(
    tool: &Tool,
    lines: &[&str],
    at: usize,
    groups: [Option<&Captures<'_>>; 2],
    sink: &mut Sink<'_>,
) {
    let named = |name: &str| {
        let mut parts = groups.iter().flatten().map(|found| part(found, name));
        parts.find(|part| !part.is_empty()).unwrap_or_default()
    };
    if !named("ignored").is_empty() {
        return;
    }
    let named_test = |group: &str| match (named("suite"), named(group)) {
        ("", test) | (_, test @ "") => Cow::Borrowed(test),
        (suite, test) => Cow::Owned(format!("{suite}{}{test}", tool.between)),
    };
    let (test, listed) = (named_test("test"), named_test("listed"));
    if !listed.is_empty() {
        return sink.test(&listed);
    }
    let mut said = vec![named("text").trim()];
    let mut place = Location {
        path: named("path").trim_end(),
        line: named("line"),
        column: named("column"),
    };
    let mut word = named("word");
    let mut end = at + 1;
    let below_it = tool.below.as_ref();
    let below_it = below_it.map(|of| compiled(&[of.until, of.frame, of.noise]));
    if let Some([until, frame, noise]) = below_it.as_deref() {
        let block = below(lines, at, REACH, |line| !until.is_match(line));
        // The list of failures at the end repeats the names of the tests.
        if block.iter().all(|line| line.is_empty()) && said == [""] && !test.is_empty() {
            sink.test(&test);
            return sink.claim(at);
        }
        end += block.len();
        let mut frames = block.iter().filter_map(|line| frame.captures(line));
        let own = frames.find(|found| {
            let path = part(found, "path");
            path.is_empty() || sink.is_own(path)
        });
        if let Some(own) = &own {
            let or = |name: &str, known| match part(own, name) {
                "" => known,
                part => part,
            };
            word = or("word", word);
            place = Location {
                path: or("path", place.path),
                line: or("line", place.line),
                column: or("column", place.column),
            };
            said.push(part(own, "text"));
        }
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
    // Every linter names a file.
    if place.path.is_empty() && test.is_empty() && tool.kind == ToolKind::Lint {
        return;
    }
    said.retain(|line| !line.is_empty());
    let message = said.join("\n");
    let message = match message.strip_prefix("error: ").unwrap_or(&message) {
        "" if test.is_empty() => tool.says,
        message => message,
    };
    let ended = one(tool.ending).and_then(|it| it.captures(message));
    let (message, code) = match &ended {
        Some(found) => (part(found, "text"), part(found, "code")),
        None => (message, named("code")),
    };
    let added = if test.is_empty() {
        sink.push(at, place, severity(word), Some(code), message)
    } else {
        sink.failing(at, place, &test, message)
    };
    added
        .until(number(named("end")), number(named("end_column")))
        .lines(at..end);
}

fn part<'t>(found: &Captures<'t>, name: &str) -> &'t str {
    found.name(name).map_or("", |part| part.as_str())
}

/// The severity by its word. An unknown word is an error, which fails a check.
pub(super) fn severity(word: &str) -> Severity {
    match word {
        "warning" | "Warning" | "WARN" | "⚠" | "!" => Severity::Warning,
        "note" | "notice" | "info" | "INFO" | "information" | "message" | "style" | "I" | "i"
        | "ℹ" => Severity::Note,
        _ => Severity::Error,
    }
}

/// The sum of the summaries of a tool, with the groups `total`, `passed`, `failed`, `errors`, `skipped` and
/// `outside` (failures that the total leaves out). Several groups of one kind have numbers behind their names, as in
/// `failed_2`. A number that no summary states is unknown, and an empty group is zero. A run that began and has no
/// end has crashed.
pub(super) fn counts(tool: &Tool, lines: &[&str]) -> Option<Counts> {
    if let Some(needed) = one(tool.needs) {
        lines.iter().find(|line| needed.is_match(line))?;
    }
    let summaries = compiled(tool.summary);
    let (mut passed, mut failed) = (None, None);
    let (mut is_seen, mut is_broken) = (false, false);
    for (summary, found) in lines.iter().filter_map(|line| first(&summaries, line)) {
        is_seen = true;
        let told = |kind: &str| {
            let names = summary.capture_names().flatten();
            let names = names.filter(|name| name.split('_').next() == Some(kind));
            let numbers: Vec<Option<u64>> = names
                .filter_map(|name| Some(optional_number(found.name(name)?.as_str())))
                .collect();
            (!numbers.is_empty()).then(|| sum(&numbers))
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
        let failures = failures.map(|failures| sum(&[failures, or_none("outside")]));
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
