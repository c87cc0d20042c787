//! JUnit XML, as the test tools of many languages write it.
//!
//! The reader makes one pass over the text, keeps no tree, and resolves only the five entities of XML itself.
//! Neither nesting nor declared entities can make it use more resources than the length of the text warrants.

use super::counts::Counts;
use super::diagnostic::{self, Diagnostic, Location, MAX_DIAGNOSTICS, Severity, Sink, WorkTree};
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
    let mut report = Report::default();
    let whole = xml.len() <= MAX_REPORT_BYTES;
    let kept = xml.get(..MAX_REPORT_BYTES).unwrap_or(xml);
    let kept = String::from_utf8_lossy(kept);
    let mut reader = Reader::from_str(kept.trim_start_matches('\u{feff}'));
    let config = reader.config_mut();
    config.expand_empty_elements = true;
    config.allow_dangling_amp = true;
    config.allow_unmatched_ends = true;
    config.check_end_names = false;
    let mut state = State::new(root);
    loop {
        match reader.read_event() {
            Ok(Event::Eof) => break,
            Ok(event) => state.event(&event),
            Err(error) if whole => {
                let why = text::one_line(&error.to_string(), 200);
                report.problem = Some(format!("it is damaged: {why}"));
                break;
            }
            Err(_) => break,
        }
    }
    if !whole {
        let why = format!(
            "it has {} bytes, of which {MAX_REPORT_BYTES} were read",
            xml.len()
        );
        report.problem = Some(why);
    }
    if report.problem.is_none() && !state.suites {
        report.problem = Some("it is not JUnit XML: it has no testsuite".to_owned());
    }
    state.into(report)
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
    skipped: bool,
    failure: Option<Failure>,
}

#[derive(Default)]
struct Failure {
    message: String,
    body: String,
}

struct State<'a> {
    sink: Sink<'a>,
    tests: Vec<FailingTest>,
    numbers: [u64; 3],
    suites: bool,
    case: Option<Case>,
    /// Whether the current text belongs to a failure.
    in_failure: bool,
}

impl<'a> State<'a> {
    fn new(root: &'a str) -> Self {
        Self {
            sink: Sink::new(WorkTree::at(root), "junit"),
            tests: Vec::new(),
            numbers: [0; 3],
            suites: false,
            case: None,
            in_failure: false,
        }
    }

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
        match tag.local_name().as_ref() {
            "testsuites" | "testsuite" => self.suites = true,
            "testcase" => {
                self.end_case();
                self.case = Some(Case::of(tag));
            }
            "skipped" => {
                if let Some(case) = &mut self.case {
                    case.skipped = true;
                }
            }
            "failure" | "error" => {
                if let Some(case) = self.case.as_mut().filter(|case| case.failure.is_none()) {
                    let kind = attribute(tag, "type", 200);
                    let said = attribute(tag, "message", MAX_BODY);
                    let message = if said.is_empty() { kind } else { said };
                    let body = String::new();
                    case.failure = Some(Failure { message, body });
                    self.in_failure = true;
                }
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
        if let Some(failure) = failure.filter(|_| self.in_failure) {
            let room = MAX_BODY.saturating_sub(failure.body.len());
            failure.body.push_str(start(part, room));
        }
    }

    fn end_case(&mut self) {
        self.in_failure = false;
        let Some(case) = self.case.take() else { return };
        let [passed, failed, skipped] = &mut self.numbers;
        match &case.failure {
            Some(failure) => {
                *failed += 1;
                if self.sink.found.len() < MAX_DIAGNOSTICS {
                    case.push(failure, &mut self.sink);
                }
                if self.tests.len() < MAX_FAILING_TESTS {
                    self.tests
                        .extend(case.failing_test(failure, self.sink.tree.root));
                }
            }
            None if case.skipped => *skipped += 1,
            None => *passed += 1,
        }
    }

    fn into(mut self, report: Report) -> Report {
        self.end_case();
        let [passed, failed, skipped] = self.numbers;
        Report {
            diagnostics: self.sink.finish(&[]).diagnostics,
            failing_tests: failing_test::distinct(self.tests),
            passed,
            failed,
            skipped,
            ..report
        }
    }
}

impl Failure {
    fn said(&self) -> String {
        let said = [self.message.trim(), self.body.trim(), "failed"];
        let said = said.into_iter().find(|said| !said.is_empty());
        text::plain(said.unwrap_or_default()).into_owned()
    }
}

impl Case {
    fn of(tag: &BytesStart<'_>) -> Self {
        let class = attribute(tag, "classname", MAX_NAME);
        let name = attribute(tag, "name", MAX_NAME);
        Self {
            name: full_name(&class, &name),
            file: attribute(tag, "file", MAX_NAME),
            line: attribute(tag, "line", 20),
            skipped: false,
            failure: None,
        }
    }

    fn push(&self, failure: &Failure, sink: &mut Sink<'_>) {
        let body = text::plain(&failure.body);
        let place = self.place(&body, sink.tree.root).unwrap_or_default();
        let message = format!("{}: {}", self.name, failure.said());
        let at = sink.found.len();
        sink.push(at, place, Severity::Error, None, &message);
    }

    fn failing_test(&self, failure: &Failure, root: &str) -> Option<FailingTest> {
        let body = text::plain(&failure.body);
        let place = self.place(&body, root).unwrap_or_default();
        let test = FailingTest::named(&self.name)?;
        let file = path::relative(place.path, root);
        Some(test.at(file, place.line).saying(&failure.said()))
    }

    /// The location of the failure according to its text, otherwise the start of the test according to the
    /// report.
    fn place<'a>(&'a self, body: &'a str, root: &str) -> Option<Location<'a>> {
        let own = Location {
            path: &self.file,
            line: &self.line,
            column: "",
        };
        placed(body, root).or_else(|| path::relative(own.path, root).map(|_| own))
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
    let (class, name) = (class.trim(), name.trim());
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
