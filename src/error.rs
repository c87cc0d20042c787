//! Errors that prevent or end a run: their kind, message and remedies.

use std::fmt;
use std::io;

/// The kind of an error, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The command line is invalid.
    Usage,
    /// A plan or configuration file is invalid, or the repository is not in a state to start from.
    Config,
    /// Something that Sprag needs is missing on this machine.
    Environment,
    /// The agent is not installed, or has neither a key nor a login.
    AgentUnavailable,
    /// Sprag itself failed.
    Internal,
}

/// A location in a file, and the problem there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The file, relative to the work tree if it lies there.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The problem, without the location.
    pub what: String,
}

/// An error for a person: what happened, and what to do about it.
#[derive(Debug)]
pub struct Error {
    /// Its kind.
    pub kind: ErrorKind,
    /// What happened, in lower case and without a full stop.
    pub message: String,
    /// The location in a file, if there is one. The message contains it, too.
    pub at: Option<Location>,
    /// Remedies, one per line.
    pub hints: Vec<String>,
    /// The underlying error.
    pub source: Option<anyhow::Error>,
    /// Whether the machine could not store data, so that a run continues once the remedy is applied.
    is_machine_fault: bool,
}

/// The result type of everything that reports errors to a person.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An invalid command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// An invalid file or repository state.
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Config, message)
    }

    /// An error at a location in a file; `whole` is the message including the location.
    pub fn located(whole: impl Into<String>, at: Location) -> Self {
        Self {
            at: Some(at),
            ..Self::new(ErrorKind::Config, whole)
        }
    }

    /// Something is missing on this machine.
    pub fn environment(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Environment, message)
    }

    /// The machine cannot store data.
    pub fn machine(message: impl Into<String>, remedy: &str) -> Self {
        Self {
            is_machine_fault: true,
            ..Self::environment(message).hint(remedy)
        }
    }

    /// An agent cannot work here.
    pub fn agent(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::AgentUnavailable, message)
    }

    /// Adds a remedy.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The process's exit code: 2 for invalid input, 4 for a missing environment, 70 (`EX_SOFTWARE` of
    /// sysexits.h) for a failure of Sprag itself.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            ErrorKind::Usage | ErrorKind::Config => 2,
            ErrorKind::Environment | ErrorKind::AgentUnavailable => 4,
            ErrorKind::Internal => 70,
        }
    }

    /// What happened, with its causes.
    pub fn without_hints(&self) -> String {
        match &self.source {
            Some(source) => format!("{}: {}", self.message, with_causes(source)),
            None => self.message.clone(),
        }
    }

    /// What happened and what to do about it, for a place that has one line.
    pub fn in_one_line(&self) -> String {
        let parts = self.to_string();
        parts.lines().map(str::trim).collect::<Vec<_>>().join("; ")
    }

    /// The same error with every text changed by `change`. Its source becomes a part of the message.
    pub fn with_texts(&self, change: impl Fn(&str) -> String) -> Self {
        Self {
            kind: self.kind,
            message: change(&self.without_hints()),
            at: self.at.as_ref().map(|at| Location {
                what: change(&at.what),
                ..at.clone()
            }),
            hints: self.hints.iter().map(|hint| change(hint)).collect(),
            source: None,
            is_machine_fault: self.is_machine_fault,
        }
    }

    /// The same error for a run that continues once its cause is removed.
    pub fn of_run(mut self) -> Self {
        let hints = self.hints.iter_mut().filter(|_| self.is_machine_fault);
        hints.for_each(|hint| hint.push_str(CONTINUE));
        self
    }

    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            at: None,
            hints: Vec::new(),
            source: None,
            is_machine_fault: false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.without_hints())?;
        for hint in &self.hints {
            write!(f, "\n  {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// The remedy if the machine cannot store data, or has no more files, memory or processes: a full disk, a limit, or
/// a read-only or broken file system. `None` for other errors.
pub fn machine_fault(error: &anyhow::Error) -> Option<&'static str> {
    error.chain().find_map(|cause| {
        // The errors of git, and those of a snapshot that was recorded as unknown, are texts.
        let text = cause.to_string();
        let begins = ["git ", "cannot start ", "the private git directory "];
        let is_of_git = begins.iter().any(|begin| text.starts_with(begin));
        (is_of_git || cause.is::<io::Error>()).then(|| fault_told(&text))?
    })
}

const CONTINUE: &str = ", then continue with sprag run --resume";
const SPACE: &str = "free some space there";
const QUOTA: &str = "free some space or raise the quota";
const LIMIT: &str = "raise the limit on the size of files (ulimit -f)";
const WRITABLE: &str = "make it writable for this user";
const UNWRITTEN: &str = "make sure that there is free space and that it can be written";
const DISK: &str = "check the disk";
const MOUNTED: &str = "mount the directory around it instead, if it is a mount of its own";
const FILES: &str = "raise the limit on open files (ulimit -n)";
const MEMORY: &str = "free some memory, or raise its limit";
const PROCESSES: &str = "raise the limit on processes and threads (ulimit -u, pids.max)";
/// Recognises the system's messages in the C locale, in which Sprag and its git run, in the words of glibc and of musl.
fn fault_told(text: &str) -> Option<&'static str> {
    let words = [
        ("No space left on device", SPACE),
        ("Out of diskspace", SPACE),
        ("Disk quota exceeded", QUOTA),
        ("Quota exceeded", QUOTA),
        ("File too large", LIMIT),
        ("Read-only file system", WRITABLE),
        ("Permission denied", WRITABLE),
        ("Operation not permitted", WRITABLE),
        ("insufficient permission", WRITABLE),
        ("Input/output error", DISK),
        ("I/O error", DISK),
        ("Device or resource busy", MOUNTED),
        ("Resource busy", MOUNTED),
        ("Too many open files", FILES),
        ("No file descriptors available", FILES),
        ("Cannot allocate memory", MEMORY),
        ("Out of memory", MEMORY),
        ("Resource temporarily unavailable", PROCESSES),
        // git often does not say why it failed.
        ("unable to write", UNWRITTEN),
        ("couldn't write", UNWRITTEN),
        ("unable to create", UNWRITTEN),
    ];
    let known = words.iter().find(|(word, _)| text.contains(word));
    known.map(|(_, remedy)| *remedy)
}

/// An error with its causes, without text that the previous one already contains.
pub fn with_causes(error: &anyhow::Error) -> String {
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
            return Self::machine(with_causes(&source), remedy);
        }
        let source = match source.downcast::<Self>() {
            Ok(error) => return error,
            Err(source) => source,
        };
        Self {
            source: Some(source),
            ..Self::new(ErrorKind::Internal, "sprag failed")
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        anyhow::Error::from(error).into()
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        anyhow::Error::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn a_machine_that_takes_no_more_is_no_failure_of_sprag() {
        use rustix::io::Errno;
        let of_system = |errno: Errno| {
            let error = Err::<(), _>(io::Error::from(errno)).context("/x cannot be written");
            Error::from(error.unwrap_err())
        };
        let full = of_system(Errno::NOSPC);
        assert_eq!((full.kind, full.exit_code()), (ErrorKind::Environment, 4));
        assert_eq!(
            full.to_string(),
            "/x cannot be written: No space left on device (os error 28)\n  free some space there"
        );
        assert_eq!(full.of_run().hints, [format!("{SPACE}{CONTINUE}")]);
        assert_eq!(Error::usage("no").hint("yes").of_run().hints, ["yes"]);
        for (errno, remedy) in [
            (Errno::ROFS, WRITABLE),
            (Errno::ACCESS, WRITABLE),
            (Errno::PERM, WRITABLE),
            (Errno::DQUOT, QUOTA),
            (Errno::FBIG, LIMIT),
            (Errno::IO, DISK),
            (Errno::BUSY, MOUNTED),
            (Errno::MFILE, FILES),
            (Errno::NFILE, FILES),
            (Errno::NOMEM, MEMORY),
            (Errno::AGAIN, PROCESSES),
        ] {
            assert_eq!(of_system(errno).hints, [remedy], "{errno}");
        }
        let kind = of_system(Errno::INVAL).kind;
        assert_eq!(kind, ErrorKind::Internal);
    }

    #[test]
    fn a_cause_is_said_once() {
        let cause = anyhow::anyhow!("disk full");
        let error = cause.context("cannot write /x: disk full").context("no");
        assert_eq!(with_causes(&error), "no: cannot write /x: disk full");
    }

    #[test]
    fn what_git_says_of_the_machine_is_heard() {
        let failed = |stderr: &str| anyhow::anyhow!("git write-tree failed (code 128): {stderr}");
        // In the words of glibc, and of musl where they differ.
        for (said, remedy) in [
            ("Disk quota exceeded", QUOTA),
            ("Quota exceeded", QUOTA),
            ("Input/output error", DISK),
            ("I/O error", DISK),
            ("Device or resource busy", MOUNTED),
            ("Resource busy", MOUNTED),
            ("Too many open files", FILES),
            ("No file descriptors available", FILES),
            ("Cannot allocate memory", MEMORY),
            ("Resource temporarily unavailable", PROCESSES),
        ] {
            let told = failed(&format!("fatal: cannot fork: {said}"));
            assert_eq!(machine_fault(&told), Some(remedy), "{said}");
        }
        let full = "error: unable to write loose object file: No space left on device";
        assert_eq!(machine_fault(&failed(full)), Some(SPACE));
        let error = failed("fatal: Read-only file system").context("nothing was committed");
        assert_eq!(machine_fault(&error), Some(WRITABLE));
        let path = anyhow::anyhow!("unresolved conflicts in No space left on device");
        assert_eq!(machine_fault(&path), None);
        assert_eq!(machine_fault(&failed("fatal: bad object")), None);
    }
}
