//! The launcher's report about a child, in addition to its exit code.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::process::ExitCode;

/// The exit status of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
pub enum Status {
    /// The exit code.
    #[strum(to_string = "code {0}")]
    Code(i32),
    /// The signal that ended it.
    #[strum(to_string = "signal {0}")]
    Signal(i32),
}

impl Status {
    /// The exit code with which a shell reports it.
    pub(super) fn exit_code(self) -> ExitCode {
        let code = match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        };
        ExitCode::from(u8::try_from(code & 0xff).unwrap_or(u8::MAX))
    }
}

/// The report of a launcher.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Report {
    /// The system's error number if the program could not be executed.
    pub not_executed: Option<i32>,
    /// Why the child could not be confined and was not started.
    pub not_confined: Option<String>,
    /// The signal that ended the child, if the launcher itself ended in another way.
    pub signal: Option<i32>,
    /// The first process of the child's namespace, which does not belong to the child.
    pub first_process: Option<i32>,
    /// The exit status of the child, if it has left processes running and the launcher waits for them.
    pub leaves: Option<Status>,
}

impl Report {
    /// Reads the report so far: a JSON object for each fact.
    pub fn read(bytes: &[u8]) -> Self {
        let facts = serde_json::Deserializer::from_slice(bytes).into_iter();
        let facts = facts.map_while(Result::<Map<String, Value>, _>::ok);
        let facts: Map<String, Value> = facts.flatten().collect();
        serde_json::from_value(facts.into()).unwrap_or_default()
    }
}

/// The launcher's end. Failures are ignored, because nobody is left to report them to.
pub(super) struct Reporter<W: Write>(pub(super) W);

impl<W: Write> Reporter<W> {
    pub(super) fn write(&mut self, what: &str, value: impl Serialize) {
        let _ = self
            .0
            .write_all(json!({ what: value }).to_string().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read() {
        let mut told = Vec::new();
        let mut reporter = Reporter(&mut told);
        reporter.write("first_process", 12);
        reporter.write("signal", 9);
        reporter.write("not_executed", 2);
        reporter.write("not_confined", "no\nway");
        reporter.write("leaves", Status::Code(3));
        reporter.write("something", "new");
        let expected = Report {
            not_executed: Some(2),
            not_confined: Some("no\nway".into()),
            signal: Some(9),
            first_process: Some(12),
            leaves: Some(Status::Code(3)),
        };
        assert_eq!(Report::read(&told), expected);
        assert_eq!(Report::read(b""), Report::default());
    }
}
