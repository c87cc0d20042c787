//! JUnit XML, as the test tools of many languages write it.
//!
//! The reader makes one pass over the text, keeps no tree, and resolves only the five entities of XML itself.
//! Neither nesting nor declared entities can make it use more resources than the length of the text warrants.

use super::counts::Counts;
use super::diagnostic::{self, Diagnostic, Location, MAX_DIAGNOSTICS, Sink, WorkTree};
use super::failing_test::{self, FailingTest, MAX_FAILING_TESTS};
use super::path;
use super::tools::is_file;
use crate::pattern::Pattern;
use crate::text;
use quick_xml::Reader;
use quick_xml::events::{BytesRef, BytesStart, Event};

/// The maximum size of a report that is read in full, in bytes: 8 MiB.
pub const MAX_REPORT_BYTES: usize = 8 << 20;

/// The maximum lengths of a failure's text and of a name, in bytes.
const MAX_BODY: usize = 16 << 10;
const MAX_NAME: usize = 500;

static PLACED: Pattern = Pattern::new(
    r#"(?:^|[\s("'`])((?:file://)?(?:[A-Za-z]:)?[^\s:()<>"'`]+\.[A-Za-z]\w{0,9}):(\d{1,7})(?::(\d{1,6}))?(?:[:)\s,"'`]|$)"#,
);

/// The content of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// One for each failing test, at most [`MAX_DIAGNOSTICS`].
    pub diagnostics: Vec<Diagnostic>,
    /// The tests that failed.
    pub failing_tests: Vec<FailingTest>,
    /// Tests that passed, not counting those that were skipped.
    pub passed: u64,
    /// Tests that failed or ended with an error.
    pub failed: u64,
    /// Tests that were skipped.
    pub skipped: u64,
    /// Why the report could not be read completely.
    pub problem: Option<String>,
}

/// Reads a report as far as possible. Of a report larger than [`MAX_REPORT_BYTES`], only the beginning is
/// read; invalid UTF-8 is replaced. Paths below `root` are made relative.
pub fn read(xml: &[u8], root: &str) -> Report {
    let whole = xml.len() <= MAX_REPORT_BYTES;
    let kept = xml.get(..MAX_REPORT_BYTES).unwrap_or(xml);
    let kept = String::from_utf8_lossy(kept);
    let mut reader = Reader::from_str(kept.trim_start_matches('\u{feff}'));
    let config = reader.config_mut();
    config.expand_empty_elements = true;
    config.allow_dangling_amp = true;
    config.allow_unmatched_ends = true;
    config.check_end_names = false;
    let mut state = State {
        sink: Sink::new(WorkTree::at(root), "junit"),
        report: Report::default(),
        has_suite: false,
        case: None,
        in_failure: false,
    };
    let problem = loop {
        match reader.read_event() {
            Ok(Event::Eof) => break None,
            Ok(event) => state.event(&event),
            Err(error) => break Some(error),
        }
    };
    state.end_case();
    let problem = match problem {
        _ if !whole => Some(format!(
            "it has {} bytes, of which {MAX_REPORT_BYTES} were read",
            xml.len()
        )),
        Some(error) => {
            let why = text::one_line(&error.to_string(), 200);
            Some(format!("it is damaged: {why}"))
        }
        None if state.has_suite => None,
        None => Some("it is not JUnit XML: it has no testsuite".to_owned()),
    };
    Report {
        diagnostics: state.sink.finish(&[]).diagnostics,
        failing_tests: failing_test::distinct(state.report.failing_tests),
        problem,
        ..state.report
    }
}

impl Report {
    /// The numbers of tests; unknown if the report contains no test.
    pub fn counts(&self) -> Counts {
        if self.passed + self.failed + self.skipped == 0 {
            Counts::UNKNOWN
        } else {
            Counts::of(self.passed, self.failed)
        }
    }

    /// Adds the content of another report of the same check.
    pub fn join(&mut self, other: Self) {
        self.passed = self.passed.saturating_add(other.passed);
        self.failed = self.failed.saturating_add(other.failed);
        self.skipped = self.skipped.saturating_add(other.skipped);
        self.diagnostics.extend(other.diagnostics);
        self.diagnostics.truncate(MAX_DIAGNOSTICS);
        self.failing_tests.extend(other.failing_tests);
        self.failing_tests = failing_test::distinct(std::mem::take(&mut self.failing_tests));
        self.problem = self.problem.take().or(other.problem);
    }
}

/// A test that is being read.
#[derive(Default)]
struct Case {
    name: String,
    file: String,
    line: String,
    is_skipped: bool,
    /// The message and the text of its failure.
    failure: Option<(String, String)>,
}

struct State<'a> {
    sink: Sink<'a>,
    report: Report,
    has_suite: bool,
    case: Option<Case>,
    /// Whether the current text belongs to a failure.
    in_failure: bool,
}

impl State<'_> {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Start(tag) => self.open(tag),
            Event::End(tag) => self.close(tag.local_name().as_ref()),
            Event::Text(part) => self.text(part),
            Event::CData(part) => self.text(part),
            Event::GeneralRef(part) => {
                let mut buffer = [0; 4];
                if let Some(c) = character(part) {
                    self.text(c.encode_utf8(&mut buffer));
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, tag: &BytesStart<'_>) {
        let name = tag.local_name();
        match (name.as_ref(), &mut self.case) {
            ("testsuites" | "testsuite", _) => self.has_suite = true,
            ("testcase", _) => {
                self.end_case();
                self.case = Some(Case::of(tag));
            }
            ("skipped", Some(case)) => case.is_skipped = true,
            ("failure" | "error", Some(case)) if case.failure.is_none() => {
                let said = attribute(tag, "message", MAX_BODY);
                let kind = || attribute(tag, "type", 200);
                let message = if said.is_empty() { kind() } else { said };
                case.failure = Some((message, String::new()));
                self.in_failure = true;
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "failure" | "error" => self.in_failure = false,
            "testcase" | "testsuite" | "testsuites" => self.end_case(),
            _ => {}
        }
    }

    fn text(&mut self, part: &str) {
        let failure = self.case.as_mut().and_then(|case| case.failure.as_mut());
        if let Some((_, body)) = failure.filter(|_| self.in_failure) {
            let room = MAX_BODY.saturating_sub(body.len());
            body.push_str(start(part, room));
        }
    }

    fn end_case(&mut self) {
        self.in_failure = false;
        let Some(case) = self.case.take() else { return };
        let report = &mut self.report;
        let Some((message, body)) = &case.failure else {
            report.skipped += u64::from(case.is_skipped);
            report.passed += u64::from(!case.is_skipped);
            return;
        };
        report.failed += 1;
        let said = [message.trim(), body.trim(), "failed"];
        let said = said.into_iter().find(|said| !said.is_empty());
        let said = text::plain(said.unwrap_or_default());
        let (body, root) = (text::plain(body), self.sink.tree.root);
        // The location of the failure according to its text, otherwise the start of the test according to the report.
        let start = Location::new(&case.file, &case.line);
        let start = path::relative(start.path, root).map(|_| start);
        let place = placed(&body, root).or(start).unwrap_or_default();
        let number = self.sink.found.len();
        if number < MAX_DIAGNOSTICS {
            let message = format!("{}: {said}", case.name);
            self.sink.error(number, place, &message);
        }
        if report.failing_tests.len() < MAX_FAILING_TESTS {
            let file = path::relative(place.path, root);
            let test = FailingTest::named(&case.name);
            let test = test.map(|test| test.at(file, place.line).saying(&said));
            report.failing_tests.extend(test);
        }
    }
}

impl Case {
    fn of(tag: &BytesStart<'_>) -> Self {
        let [class, name] = ["classname", "name"].map(|name| attribute(tag, name, MAX_NAME));
        Self {
            name: full_name(class.trim(), name.trim()),
            file: attribute(tag, "file", MAX_NAME),
            line: attribute(tag, "line", 20),
            ..Self::default()
        }
    }
}

/// The first location in a failure's text that is inside the project.
fn placed<'b>(body: &'b str, root: &str) -> Option<Location<'b>> {
    body.lines()
        .map(diagnostic::beginning)
        .filter_map(|line| PLACED.captures(line))
        .map(|found| Location::of(&found))
        .find(|place| {
            let path = path::relative(place.path, root);
            path.is_some_and(|path| !path.contains("node_modules/") && is_file(&path))
        })
}

fn full_name(class: &str, name: &str) -> String {
    let between = if class.contains('/') { " > " } else { "::" };
    if class.is_empty() || name.starts_with(class) {
        name.to_owned()
    } else if name.is_empty() {
        class.to_owned()
    } else {
        format!("{class}{between}{name}")
    }
}

fn attribute(tag: &BytesStart<'_>, name: &str, limit: usize) -> String {
    let mut attributes = tag.attributes();
    let mut found = attributes
        .with_checks(false)
        .filter_map(Result::ok)
        .filter(|found| found.key.as_ref() == name);
    let Some(found) = found.next() else {
        return String::new();
    };
    let raw = start(&found.value, limit);
    let plain = quick_xml::escape::unescape(raw);
    plain.map_or_else(|_| raw.to_owned(), |text| text.into_owned())
}

/// The character of a reference that XML itself defines.
fn character(reference: &BytesRef<'_>) -> Option<char> {
    match &**reference {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => reference.resolve_char_ref().ok().flatten(),
    }
}

/// At most the first `limit` bytes of `text`.
fn start(text: &str, limit: usize) -> &str {
    text.get(..text.floor_char_boundary(limit)).unwrap_or(text)
}
