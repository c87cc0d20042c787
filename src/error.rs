//! Errors that end a run before it begins, or at its edge: what kind, what to say, what to do.

use std::fmt;
use std::io::{self, ErrorKind as Io};

/// What kind of error, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The command line is wrong.
    Usage,
    /// A plan or configuration file is wrong, or the repository is not in a state to start from.
    Config,
    /// Something that Sprag needs is missing on this machine.
    Environment,
    /// The agent is not there, or has neither a key nor a login.
    AgentUnavailable,
    /// Sprag itself failed.
    Internal,
}

/// A place in a file, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, relative to the work tree where it lies in it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, without the place.
    pub what: String,
}

/// An error for a person: what happened, and what to do about it.
#[derive(Debug)]
pub struct Error {
    /// Its kind.
    pub kind: ErrorKind,
    /// What happened: a lowercase fragment without a final period.
    pub message: String,
    /// The place in a file that it is about, where it is about one; the message names it too.
    pub at: Option<Place>,
    /// What to do about it, one line each.
    pub hints: Vec<String>,
    /// Where it comes from.
    pub source: Option<anyhow::Error>,
}

/// The result of everything at the edge.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A wrong command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// A wrong file or repository state.
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Config, message)
    }

    /// Something wrong at a place in a file; `whole` is the message that names the place too.
    pub fn located(whole: impl Into<String>, at: Place) -> Self {
        Self {
            at: Some(at),
            ..Self::new(ErrorKind::Config, whole)
        }
    }

    /// Something missing on this machine.
    pub fn environment(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Environment, message)
    }

    /// An agent that cannot work here.
    pub fn agent(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::AgentUnavailable, message)
    }

    /// The same with one more thing to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The process's exit code: 2 for bad input, 4 for a missing environment, 70 (`EX_SOFTWARE` of
    /// sysexits.h) for a failure of Sprag itself.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            ErrorKind::Usage | ErrorKind::Config => 2,
            ErrorKind::Environment | ErrorKind::AgentUnavailable => 4,
            ErrorKind::Internal => 70,
        }
    }

    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            at: None,
            hints: Vec::new(),
            source: None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        if let Some(source) = &self.source {
            write!(f, ": {}", told(source))?;
        }
        for hint in &self.hints {
            write!(f, "\n  {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// What a person can do about a machine that does not take what is written: a full disk, a limit, a
/// file system that may not be written or is broken. `None` for every other error.
pub fn machine_fault(error: &anyhow::Error) -> Option<&'static str> {
    error
        .chain()
        .find_map(|cause| match cause.downcast_ref::<io::Error>() {
            Some(error) => fault_of(error),
            None => {
                // git is heard in its own words; its errors begin with its name.
                let text = cause.to_string();
                text.starts_with("git ").then(|| fault_told(&text))?
            }
        })
}

const SPACE: &str = "make room there, then go on with sprag run --resume";
const QUOTA: &str = "make room or raise the quota, then go on with sprag run --resume";
const LIMIT: &str =
    "raise the limit on the size of files (ulimit -f), then go on with sprag run --resume";
const WRITABLE: &str = "make it writable for this user, then go on with sprag run --resume";
const UNWRITTEN: &str =
    "see that there is room and that it may be written, then go on with sprag run --resume";
const DISK: &str = "check the disk, then go on with sprag run --resume";

fn fault_of(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        Io::StorageFull => Some(SPACE),
        Io::QuotaExceeded => Some(QUOTA),
        Io::FileTooLarge => Some(LIMIT),
        Io::ReadOnlyFilesystem | Io::PermissionDenied => Some(WRITABLE),
        _ => fault_told(&error.to_string()),
    }
}

/// By the system's own words in the C locale, which is what git passes on.
fn fault_told(text: &str) -> Option<&'static str> {
    let words = [
        ("No space left on device", SPACE),
        ("Out of diskspace", SPACE),
        ("Disk quota exceeded", QUOTA),
        ("File too large", LIMIT),
        ("Read-only file system", WRITABLE),
        ("Permission denied", WRITABLE),
        ("insufficient permission", WRITABLE),
        ("Input/output error", DISK),
        // git often does not say why it could not.
        ("unable to write", UNWRITTEN),
        ("couldn't write", UNWRITTEN),
        ("unable to create", UNWRITTEN),
    ];
    let told = words.iter().find(|(word, _)| text.contains(word));
    told.map(|(_, remedy)| *remedy)
}

/// An error and where it comes from, without what one of them already says of the next.
pub fn told(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

impl From<anyhow::Error> for Error {
    fn from(source: anyhow::Error) -> Self {
        if let Some(remedy) = machine_fault(&source) {
            return Self::environment(told(&source)).hint(remedy);
        }
        let message = "sprag failed".into();
        Self {
            kind: ErrorKind::Internal,
            message,
            at: None,
            hints: Vec::new(),
            source: Some(source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn a_machine_that_takes_no_more_is_no_failure_of_sprag() {
        let told = |kind: Io| {
            let error = Err::<(), _>(io::Error::from(kind)).context("/x cannot be written");
            Error::from(error.unwrap_err())
        };
        let full = told(Io::StorageFull);
        assert_eq!((full.kind, full.exit_code()), (ErrorKind::Environment, 4));
        assert_eq!(
            full.to_string(),
            "/x cannot be written: no storage space\n  make room there, then go on with sprag run --resume"
        );
        assert_eq!(told(Io::ReadOnlyFilesystem).hints, [WRITABLE]);
        assert_eq!(told(Io::FileTooLarge).hints, [LIMIT]);
        assert_eq!(told(Io::InvalidData).kind, ErrorKind::Internal);
    }

    #[test]
    fn a_cause_is_said_once() {
        let cause = anyhow::anyhow!("disk full");
        let error = cause.context("cannot write /x: disk full").context("no");
        assert_eq!(told(&error), "no: cannot write /x: disk full");
    }

    #[test]
    fn what_git_says_of_the_disk_is_heard() {
        let failed = |stderr: &str| anyhow::anyhow!("git write-tree failed (code 128): {stderr}");
        let full = "error: unable to write loose object file: No space left on device";
        assert_eq!(machine_fault(&failed(full)), Some(SPACE));
        let error = failed("fatal: Read-only file system").context("nothing was committed");
        assert_eq!(machine_fault(&error), Some(WRITABLE));
        let path = anyhow::anyhow!("unresolved conflicts in No space left on device");
        assert_eq!(machine_fault(&path), None);
        assert_eq!(machine_fault(&failed("fatal: bad object")), None);
    }
}
