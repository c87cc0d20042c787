//! Reads a trajectory: strict about what it does not understand, and lenient about what a crash or a size
//! limit leaves behind.

use super::{Ending, Entry, Header, Line, Recorded, Recording, Request, VERSION};
use crate::builtin::session::{Observation, Record, Step};
use serde_json::Value;
use std::fmt;

/// Why a trajectory is unreadable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The number of the line, from 1.
    pub line: usize,
    /// The content of the line, as a lowercase fragment.
    pub found: String,
    /// The expected content.
    pub expected: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            found,
            expected,
        } = self;
        write!(f, "line {line}: {found}; expected {expected}")
    }
}

impl std::error::Error for Unreadable {}

const HEADER: &str = "the header of a session, {\"record\":\"session\",\"v\":1,...}";

/// The notice that a log writes where it left out its middle.
const NOTICE: (&str, &str) = ("[sprag: ", " bytes left out here]");

/// Reads a trajectory.
///
/// An unreadable last line without a line end was cut off by a crash: the lines before it count. Where a log
/// left out its middle, the session stops.
///
/// # Errors
/// The first line that is not as expected.
pub fn read(bytes: &[u8]) -> Result<Recording, Unreadable> {
    let mut reader = Reader::default();
    let mut rest = bytes;
    let mut number = 0;
    while !rest.is_empty() {
        number += 1;
        let end = rest.iter().position(|byte| *byte == b'\n');
        let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
        let after = after.get(1..).unwrap_or_default();
        reader.line(number, line, end.is_none(), after)?;
        rest = after;
    }
    reader.finish(number)
}

#[derive(Default)]
struct Reader {
    sessions: Vec<Recorded>,
    /// The session that is being read, and the session on a single file nested in it.
    open: Vec<Recorded>,
    /// The log left out its middle: lines are ignored until a session starts.
    skips: bool,
}

impl Reader {
    fn line(
        &mut self,
        number: usize,
        line: &[u8],
        is_unfinished: bool,
        after: &[u8],
    ) -> Result<(), Unreadable> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        if let Some(bytes) = notice(line) {
            self.stop(Ending::LeftOut {
                line: number,
                bytes,
            });
            self.skips = true;
            return Ok(());
        }
        let value: Value = match serde_json::from_slice(line) {
            Ok(value) => value,
            Err(_) if is_unfinished && !(self.open.is_empty() && self.sessions.is_empty()) => {
                self.stop(Ending::Torn { line: number });
                return Ok(());
            }
            // A log's size limit may cut within a line.
            Err(_) if notice(first_line(after)).is_some() => return Ok(()),
            Err(_) => return Err(wrong(number, "this is not a line of JSON", self.expected())),
        };
        if self.skips && !is_outer_header(&value) {
            return Ok(());
        }
        check_version(number, &value)?;
        if self.open.is_empty() && value.get("record").is_none_or(|it| it != "session") {
            return Err(no_header(number, &value));
        }
        let line: Line = serde_json::from_value(value).map_err(|error| {
            let what = format!("this is not a record of version {VERSION} ({error})");
            wrong(number, &what, self.expected())
        })?;
        self.take(number, line)
    }

    fn take(&mut self, number: usize, line: Line) -> Result<(), Unreadable> {
        match line {
            Line::Session(header) => self.begin(number, *header),
            Line::Intent { intent, request } => self.intent(number, intent, request),
            Line::Observed { observation } => self.observed(number, observation),
        }
    }

    fn begin(&mut self, line: usize, header: Header) -> Result<(), Unreadable> {
        match &header.slice {
            None => {
                self.stop(Ending::Open);
                self.skips = false;
            }
            Some(file) => {
                let due = self.due();
                if !matches!(due, Some(Step::FixSlice(slice)) if slice.file == *file) {
                    let found = format!("a session on {file} alone begins");
                    return Err(wrong(line, &found, self.expected()));
                }
            }
        }
        self.open.push(Recorded {
            line,
            header,
            entries: Vec::new(),
            ending: Ending::Open,
        });
        Ok(())
    }

    fn intent(
        &mut self,
        line: usize,
        intent: Step,
        request: Option<Request>,
    ) -> Result<(), Unreadable> {
        if self.due().is_some() || self.ended() {
            let found = format!("the step `{}`", <&str>::from(&intent));
            return Err(wrong(line, &found, self.expected()));
        }
        let ends = matches!(intent, Step::End { .. });
        self.push(line, Record::Intent { intent }, request);
        if ends && let Some(open) = self.open.last_mut() {
            open.ending = Ending::Ended;
        }
        // The outer session continues when an inner one ends.
        if ends && self.open.len() > 1 {
            self.close_inner();
        }
        Ok(())
    }

    fn observed(&mut self, line: usize, observation: Observation) -> Result<(), Unreadable> {
        let fits = self.due().is_some_and(|step| fits(step, &observation));
        if !fits {
            let found = format!("the observation `{}`", <&str>::from(&observation));
            return Err(wrong(line, &found, self.expected()));
        }
        self.push(line, Record::Observed { observation }, None);
        Ok(())
    }

    fn push(&mut self, line: usize, record: Record, request: Option<Request>) {
        if let Some(open) = self.open.last_mut() {
            open.entries.push(Entry {
                line,
                record,
                request,
                inner: None,
            });
        }
    }

    /// The step that has no result yet.
    fn due(&self) -> Option<&Step> {
        match &self.open.last()?.entries.last()?.record {
            Record::Intent { intent } => Some(intent).filter(|it| !matches!(it, Step::End { .. })),
            Record::Observed { .. } => None,
        }
    }

    fn ended(&self) -> bool {
        self.open
            .last()
            .is_some_and(|open| open.ending == Ending::Ended)
    }

    /// A description of the record that should come next.
    fn expected(&self) -> String {
        match (self.due(), self.open.is_empty() || self.ended()) {
            (_, true) => HEADER.into(),
            (Some(Step::FixSlice(slice)), _) => format!(
                "the header of the session on {}, or what came of the step `fix_slice`",
                slice.file
            ),
            (Some(step), _) => format!("what came of the step `{}`", <&str>::from(step)),
            (None, _) => "the next step, {\"record\":\"intent\",...}".into(),
        }
    }

    fn close_inner(&mut self) {
        let inner = self.open.pop().map(Box::new);
        let outer = self.open.last_mut().and_then(|it| it.entries.last_mut());
        if let Some(entry) = outer {
            entry.inner = inner;
        }
    }

    /// Closes the open sessions. Those that have not ended get this ending.
    fn stop(&mut self, ending: Ending) {
        for open in &mut self.open {
            if open.ending == Ending::Open {
                open.ending = ending;
            }
        }
        while self.open.len() > 1 {
            self.close_inner();
        }
        self.sessions.append(&mut self.open);
    }

    fn finish(mut self, lines: usize) -> Result<Recording, Unreadable> {
        self.stop(Ending::Open);
        if self.sessions.is_empty() {
            return Err(wrong(lines.max(1), "nothing was recorded", HEADER.into()));
        }
        Ok(Recording {
            sessions: self.sessions,
        })
    }
}

fn wrong(line: usize, found: &str, expected: String) -> Unreadable {
    Unreadable {
        line,
        found: found.to_owned(),
        expected,
    }
}

fn no_header(line: usize, value: &Value) -> Unreadable {
    let found = match value {
        Value::Array(_) => "a list, as transcripts of versions before the header begin",
        _ => "this is not a header",
    };
    wrong(line, found, HEADER.into())
}

fn check_version(line: usize, value: &Value) -> Result<(), Unreadable> {
    if value.get("record").is_none_or(|it| it != "session") {
        return Ok(());
    }
    let expected = format!("version {VERSION}");
    match value.get("v").and_then(Value::as_u64) {
        Some(v) if v == u64::from(VERSION) => Ok(()),
        Some(v) => Err(wrong(line, &format!("version {v} of the format"), expected)),
        None => Err(wrong(line, "a header without a version", expected)),
    }
}

fn is_outer_header(value: &Value) -> bool {
    value.get("record").is_some_and(|it| it == "session") && value.get("slice").is_none()
}

fn first_line(bytes: &[u8]) -> &[u8] {
    bytes
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default()
}

/// The number of bytes that a log left out, if this line says so.
fn notice(line: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line).ok()?;
    text.strip_prefix(NOTICE.0)?
        .strip_suffix(NOTICE.1)?
        .parse()
        .ok()
}

/// Whether the observation is a possible result of the step. A cancellation ends any step, and time can pass
/// during a request to the model.
fn fits(step: &Step, observation: &Observation) -> bool {
    use Observation as O;
    match (step, observation) {
        (_, O::Cancelled) => true,
        (Step::AskModel(_), O::ModelResponded(_) | O::ModelFailed { .. } | O::Waited { .. })
        | (Step::FixSlice(_), O::SliceEnded(_))
        | (Step::Wait { .. }, O::Waited { .. }) => true,
        (Step::ApplyTools { calls }, O::ToolsApplied { results, .. }) => {
            results.len() <= calls.len()
        }
        _ => false,
    }
}
