//! What the outputs of most tools share: a line that reports a finding, the lines below it that belong to it, and a
//! line with numbers of tests. A tool with such an output is a row of regular expressions.

use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, sum};
use crate::checks::diagnostic::{Location, Output, Severity, Sink, below, number};
use crate::checks::path::is_relative;
use regex::{Captures, Regex};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The lines below the line of a finding, by regular expressions.
pub(in crate::checks) struct Below {
    /// The first line that no longer belongs to it.
    pub(super) until: &'static str,
    /// The line at which the message ends, although others belong to the finding.
    pub(super) stop: &'static str,
    /// A stack frame, with groups as those of [`Tool::lines`]. The first one in the project is the place. One without a
    /// path is in the file of the finding. A frame with a `class` counts if the test is of this class, and its `package`
    /// is the directory. Its `text` is the first line of the message, and `last` the last one.
    pub(super) frame: &'static str,
    /// Lines that say nothing about the failure.
    pub(super) noise: &'static str,
    /// Characters in front of every line of the message, which are left out.
    pub(super) framing: &'static str,
}

impl Below {
    /// No line.
    pub(super) const NOTHING: Self = Self {
        until: "",
        stop: "",
        frame: "",
        noise: "",
        framing: " \t\u{a0}",
    };
}

/// Matches every line.
pub(super) const ALL: &str = "^";

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

/// Whether there is such an expression, and it matches the line.
fn is_of(expression: Option<&Regex>, line: &str) -> bool {
    expression.is_some_and(|it| it.is_match(line))
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
    let lines = output.lines;
    let (expressions, above) = (compiled(tool.lines), one(tool.above));
    let from = one(tool.from).and_then(|from| lines.iter().position(|line| from.is_match(line)));
    let mut over: Option<(usize, Captures<'_>)> = None;
    for (at, line) in lines.iter().enumerate().skip(from.unwrap_or(0)) {
        if let Some((_, found)) = first(&expressions, line) {
            let groups = Groups {
                at,
                found,
                over: over.as_ref(),
            };
            groups.add(tool, lines, sink);
        }
        if let Some(found) = above.and_then(|it| it.captures(line)) {
            over = Some((at, found));
        }
    }
    if let Some((at, found)) = over.filter(|(_, found)| !part(found, "begun").is_empty()) {
        let test = part(&found, "begun");
        sink.failing(at, Location::default(), test, "it began and never ended");
    }
}

/// The groups of the line of a finding.
struct Groups<'a, 't> {
    at: usize,
    found: Captures<'t>,
    /// The line above that holds for it.
    over: Option<&'a (usize, Captures<'t>)>,
}

impl<'t> Groups<'_, 't> {
    /// A group of the line, otherwise that of the line above. One that is empty in the line hides the other.
    fn named(&self, name: &str) -> &'t str {
        match (part(&self.found, name), self.over) {
            ("", Some((_, over))) if self.found.name(name).is_none() => part(over, name),
            (own, _) => own,
        }
    }

    /// The name of a test in this group, with its suite.
    fn test(&self, group: &str, between: &str) -> Cow<'t, str> {
        match (self.named("suite"), self.named(group)) {
            ("", test) | (_, test @ "") => Cow::Borrowed(test),
            (suite, test) => Cow::Owned(format!("{suite}{between}{test}")),
        }
    }

    /// Adds what the line reports.
    fn add(&self, tool: &Tool, lines: &[&'t str], sink: &mut Sink<'_>) {
        let named = |name: &str| self.named(name);
        let [about, listed] = ["about", "listed"].map(|group| self.test(group, tool.between));
        let about = match named("begun") {
            "" => about,
            begun => Cow::Borrowed(begun),
        };
        let mark = self.found.name("mark");
        let column = mark.map(|mark| (mark.start() + 1).to_string());
        let mut place = Location {
            path: named("path").trim_end(),
            line: named("line"),
            column: column.as_deref().unwrap_or(named("column")),
        };
        let is_ignored = !named("ignored").is_empty();
        if is_ignored || !listed.is_empty() {
            // What a test prints may have the form of a list.
            if !is_ignored && about.is_empty() {
                sink.test_at(&listed, place);
            }
            return;
        }
        let (title, mut end) = tool.title(self.test("test", tool.between), lines, self.at);
        let test = if about.is_empty() { &title } else { &about };
        let whole: Cow<'_, str> = Cow::Borrowed(named("within"));
        let registered = match (&*whole, self.found.name("whole")) {
            ("", _) => test.clone(),
            (_, Some(_)) => whole.clone(),
            (within, None) => Cow::Owned(format!("{within}{}{test}", tool.between)),
        };
        let told = if registered == whole {
            &registered
        } else {
            test
        };
        let (mut said, mut word) = (vec![named("text").trim()], named("word"));
        let mut path = Cow::Borrowed(place.path);
        if let Some(of) = &tool.below {
            let block = of.block(lines, end, test, place.path, sink);
            // The list of failures at the end repeats the names of the tests.
            if block.is_empty && said == [""] && !test.is_empty() {
                sink.test_at(&registered, place);
                return sink.claim(self.at);
            }
            let or = |name: &str, known| match block.part(name) {
                "" => known,
                part => part,
            };
            word = or("word", word);
            place.line = or("line", place.line);
            place.column = or("column", place.column);
            said.push(or("text", ""));
            said.extend(&block.message);
            said.push(or("last", ""));
            (path, end) = (block.path, block.end);
        }
        // Every linter names a file, and every test runner a file or a test.
        if path.is_empty() && test.is_empty() && tool.kind != ToolKind::Code {
            return;
        }
        said.retain(|line| !line.is_empty());
        let (message, code) = tool.message(&said, test);
        let code = code.as_deref().unwrap_or(named("code"));
        place.path = &path;
        if about.is_empty() && !test.is_empty() {
            sink.test_at(&registered, place);
        }
        let (end_line, end_column) = match mark {
            Some(mark) => (number(place.line), u32::try_from(mark.end()).ok()),
            None => (number(named("end")), number(named("end_column"))),
        };
        let over = self.over.filter(|_| mark.is_some());
        let added = match &**test {
            "" => sink.push(self.at, place, severity(word), Some(code), &message),
            test => {
                let added = sink.failure(self.at, place, test, &message);
                added.about(told)
            }
        };
        added
            .until(end_line, end_column)
            .lines(over.map_or(self.at, |over| over.0)..end);
    }
}

/// The lines below the line of a finding.
pub(super) struct Block<'t> {
    is_empty: bool,
    /// The frame that is the place.
    own: Option<Captures<'t>>,
    /// The file of the finding, as that frame names it.
    path: Cow<'t, str>,
    pub(super) message: Vec<&'t str>,
    /// The index of the line after the block.
    pub(super) end: usize,
}

impl<'t> Block<'t> {
    /// The frame that is the place.
    pub(super) fn place(&self) -> Option<Location<'t>> {
        self.own.as_ref().map(|own| {
            let [path, line, column] = ["path", "line", "column"].map(|name| part(own, name));
            Location { path, line, column }
        })
    }

    /// A group of the frame that is the place.
    fn part(&self, name: &str) -> &'t str {
        self.own.as_ref().map_or("", |own| part(own, name))
    }
}

impl Below {
    /// The block that begins with the line `from` and belongs to a finding about this test, or in this file.
    pub(super) fn block<'t>(
        &self,
        lines: &[&'t str],
        from: usize,
        test: &str,
        file: &'t str,
        sink: &Sink<'_>,
    ) -> Block<'t> {
        let [until, stop, frame, noise] = [self.until, self.stop, self.frame, self.noise].map(one);
        let block = below(lines, from - 1, REACH, |line| !is_of(until, line));
        let frames = block.iter().filter_map(|line| frame?.captures(line));
        let mut frames: Vec<Captures<'_>> = frames.collect();
        let own = frames.iter().position(|found| {
            let (path, class) = (part(found, "path"), part(found, "class"));
            let mut words = test.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            let is_of_class = class.is_empty() || words.any(|word| word == class);
            is_of_class && (path.is_empty() || sink.is_own(path))
        });
        let path = match own.and_then(|own| frames.get(own)) {
            Some(own) => in_directory(file, own, &frames),
            None => Cow::Borrowed(file),
        };
        // Some tools print the frames first.
        let is_other = |line: &&&str| line.is_empty() || is_of(frame, line);
        let before = block.iter().take_while(|line| !is_of(frame, line)).count();
        let after = block.iter().take_while(is_other).count();
        let told = block.get(if after < before {
            0..before
        } else {
            after..block.len()
        });
        let framing = |c: char| self.framing.contains(c);
        let told = told.unwrap_or_default().iter();
        let told = told.take_while(|line| !is_of(stop, line));
        let told = told.filter(|line| !is_of(noise, line));
        let told = told.map(|line| line.trim_start_matches(framing).trim_end());
        Block {
            is_empty: block.iter().all(|line| line.is_empty()),
            own: own.map(|own| frames.swap_remove(own)),
            path,
            message: told.filter(|line| !line.is_empty()).collect(),
            end: from + block.len(),
        }
    }
}

impl Tool {
    /// The name of a test with the lines that continue it, and the index of the line below.
    fn title<'t>(&self, name: Cow<'t, str>, lines: &[&str], at: usize) -> (Cow<'t, str>, usize) {
        let Some(more) = one(self.more) else {
            return (name, at + 1);
        };
        let (mut name, mut end) = (name.into_owned(), at + 1);
        while !name.ends_with(':')
            && let Some(line) = lines.get(end).filter(|line| more.is_match(line))
        {
            name.push_str(self.between);
            name.push_str(line.trim());
            end += 1;
        }
        (Cow::Owned(name.trim_end_matches(':').to_owned()), end)
    }

    /// The message in these lines, and its code. One with a code behind it goes on up to there.
    fn message(&self, said: &[&str], test: &str) -> (String, Option<String>) {
        let first = |number: usize| {
            let message = said.get(..number).unwrap_or_default().join("\n");
            let inner = message.strip_prefix("error: ").map(str::to_owned);
            inner.unwrap_or(message)
        };
        let Some(ending) = one(self.ending) else {
            let message = first(said.len());
            let message = match message.len() + test.len() {
                0 => self.says.to_owned(),
                _ => message,
            };
            return (message, None);
        };
        let coded = (1..=said.len()).map(first).find_map(|message| {
            let found = ending.captures(&message)?;
            let [text, code] = ["text", "code"].map(|name| part(&found, name).to_owned());
            Some((text, Some(code)))
        });
        coded.unwrap_or_else(|| (first(1), None))
    }
}

/// The path of a frame. Java names the package; and a project of jest names its files from its own directory in the
/// frames, and from the one in which jest runs in front of them, as `file`.
fn in_directory<'t>(file: &'t str, own: &Captures<'t>, frames: &[Captures<'t>]) -> Cow<'t, str> {
    let path = part(own, "path");
    let package = part(own, "package").replace('.', "/");
    let mut above = frames
        .iter()
        .filter_map(|it| file.strip_suffix(part(it, "path")));
    match above.find(|above| above.ends_with('/')).unwrap_or(&package) {
        _ if path.is_empty() => Cow::Borrowed(file),
        directory if is_relative(path) => Cow::Owned(format!("{directory}{path}")),
        _ => Cow::Borrowed(path),
    }
}

/// A group with this name, or this name and a number.
fn part<'t>(found: &Captures<'t>, name: &str) -> &'t str {
    let mut names = ["", "_2", "_3"].iter().map(|end| format!("{name}{end}"));
    let part = names.find_map(|name| found.name(&name));
    part.map_or("", |part| part.as_str())
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

/// The sums of what the summaries of a tool state, by the groups `total`, `passed`, `failed`, `errors`, `skipped`,
/// `outside` (failures that the total leaves out) and `files` (of tests that failed: if no test did, theirs were not
/// counted). Several groups of one kind have more behind their names, as in `failed_2`; one that ends in `_one` counts as
/// one. A number that no summary states is unknown, and an empty group is zero. A run that began and has no end has
/// crashed.
pub(super) fn counts(tool: &Tool, lines: &[&str]) -> Option<Counts> {
    if let Some(needed) = one(tool.needs) {
        lines.iter().find(|line| needed.is_match(line))?;
    }
    let summaries = compiled(tool.summary);
    let mut stated: BTreeMap<&str, Option<u64>> = BTreeMap::new();
    for (summary, found) in lines.iter().filter_map(|line| first(&summaries, line)) {
        for name in summary.capture_names().flatten() {
            let number = match found.name(name).map(|digits| digits.as_str()) {
                None => continue,
                Some("") => Some(0),
                Some(_) if name.ends_with("_one") => Some(1),
                Some(digits) => digits.parse().ok(),
            };
            let kind = name.split('_').next().unwrap_or_default();
            let all = stated.entry(kind).or_insert(Some(0));
            *all = sum(&[*all, number]);
        }
    }
    let of = |kind: &str| stated.get(kind).copied();
    let or_none = |kind: &str| of(kind).unwrap_or(Some(0));
    let failures = sum(&[or_none("failed"), or_none("errors")]);
    let rest = sum(&[failures, or_none("skipped")]);
    let failed = of("failed").map(|_| sum(&[failures, or_none("outside")]));
    let passed = of("passed").or_else(|| {
        let (total, rest) = of("total").filter(|_| failed.is_some())?.zip(rest)?;
        Some(total.checked_sub(rest))
    });
    passed.or(failed)?;
    let contradicts = || {
        let all = of("passed").map(|passed| sum(&[passed, rest]));
        of("total")
            .zip(all)
            .is_some_and(|(total, all)| total != all)
    };
    let number = |of: &Regex| lines.iter().filter(|line| of.is_match(line)).count();
    let is_open = || {
        let around = tool.around.map(|(start, end)| compiled(&[start, end]));
        matches!(around.as_deref(), Some([start, end]) if number(start) > number(end))
    };
    if contradicts() || is_open() || [passed, failed].contains(&Some(None)) {
        return Some(Counts::UNKNOWN);
    }
    let is_uncounted = or_none("files") != Some(0) && failed == Some(Some(0));
    Some(Counts {
        passed: passed.flatten(),
        failed: failed.flatten().filter(|_| !is_uncounted),
    })
}

impl Tool {
    /// The advice about the failure that a line reports. Its groups stand in the text.
    pub(in crate::checks) fn advice(&self, line: &str) -> Option<String> {
        let (found, text) = self
            .advice
            .iter()
            .find_map(|(reason, text)| Some((one(reason)?.captures(line)?, text)))?;
        let mut advice = String::new();
        found.expand(text, &mut advice);
        (!advice.is_empty()).then_some(advice)
    }
}
