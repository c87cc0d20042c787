//! The launcher's report about a child, in addition to its exit code.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

/// The exit status of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
pub enum Status {
    /// The exit code.
    #[strum(to_string = "code {0}")]
    Code(i32),
    /// The signal that ended it.
    #[strum(to_string = "signal {0}")]
    Signal(i32),
}

impl Status {
    /// Parses the displayed form. `None` for any other text.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (kind, number) = text.split_once(' ')?;
        let number = number.parse().ok()?;
        match kind {
            "code" => Some(Self::Code(number)),
            "signal" => Some(Self::Signal(number)),
            _ => None,
        }
    }

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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    /// Reads the report so far.
    pub fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut report = Self::default();
        for line in text.lines() {
            match line.split_once(' ') {
                Some(("not-executed", number)) => report.not_executed = number.parse().ok(),
                Some(("not-confined", why)) => report.not_confined = Some(why.to_owned()),
                Some(("signal", number)) => report.signal = number.parse().ok(),
                Some(("first-process", pid)) => report.first_process = pid.parse().ok(),
                Some(("leaves", status)) => report.leaves = Status::read(status),
                _ => {}
            }
        }
        report
    }
}

/// The launcher's end. Failures are ignored, because nobody is left to report them to.
pub(super) struct Reporter<W: Write>(pub(super) W);

impl<W: Write> Reporter<W> {
    pub(super) fn write(&mut self, what: &str, value: impl fmt::Display) {
        let line = format!("{what} {value}").replace('\n', " ");
        let _ = self.0.write_all(format!("{line}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read() {
        let mut told = Vec::new();
        let mut reporter = Reporter(&mut told);
        reporter.write("first-process", 12);
        reporter.write("signal", 9);
        reporter.write("not-executed", 2);
        reporter.write("not-confined", "no\nway");
        reporter.write("leaves", Status::Code(3));
        reporter.write("something", "new");
        let expected = Report {
            not_executed: Some(2),
            not_confined: Some("no way".into()),
            signal: Some(9),
            first_process: Some(12),
            leaves: Some(Status::Code(3)),
        };
        assert_eq!(Report::read(&told), expected);
        assert_eq!(Report::read(b""), Report::default());
        for status in [Status::Code(255), Status::Signal(9)] {
            assert_eq!(Status::read(&status.to_string()), Some(status));
        }
        assert_eq!(Status::read("code"), None);
    }
}
