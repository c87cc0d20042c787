//! Errors that end a run before it begins, or at its edge: what kind, what to say, what to do.

use std::fmt;

/// What kind of error, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The command line is wrong.
    Usage,
    /// A plan or configuration file is wrong, or the repository is not in a state to start from.
    Config,
    /// Something that Sprag needs is missing on this machine.
    Environment,
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
            ErrorKind::Environment => 4,
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
            write!(f, ": {source:#}")?;
        }
        for hint in &self.hints {
            write!(f, "\n  {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl From<anyhow::Error> for Error {
    fn from(source: anyhow::Error) -> Self {
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
