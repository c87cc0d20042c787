//! A program to run, and its limits.

use super::dialogue::Dialogue;
use crate::sandbox::Policy;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A program to run. It inherits only what is listed here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSpec {
    /// A path, or a name to look up in the `PATH` of `env`. A relative path with a slash is relative to
    /// `cwd`.
    pub program: OsString,
    /// Its arguments, without the program's name.
    pub args: Vec<OsString>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its complete environment, to which `SPRAG_PROCESS_ID` is added.
    pub env: Vec<(OsString, OsString)>,
    /// Its standard input.
    pub stdin: Input,
    /// The limits after which it is ended.
    pub limits: Limits,
    /// How it is confined; `None` for programs that the machine's owner trusts.
    pub sandbox: Option<Policy>,
}

/// The arguments for `sh` to run checks and setup commands: as in a workflow, the first failing command
/// ends the script.
pub fn until_one_fails(commands: &str) -> Vec<OsString> {
    ["-e", "-c", commands].map(OsString::from).into()
}

/// The standard input of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// No input.
    Null,
    /// These bytes, then the end. They are written while the output is read.
    Bytes(Vec<u8>),
    /// Answers to its output, until the dialogue is over.
    Dialogue(Dialogue),
}

/// When a child is ended. All times are monotonic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest run time.
    pub timeout: Option<Duration>,
    /// The longest time without output on either pipe.
    pub stall: Option<Duration>,
    /// The same before the first output, if it is less.
    pub start: Option<Duration>,
    /// The time between SIGTERM and SIGKILL.
    pub grace: Duration,
}

impl Limits {
    /// Only a longest run time.
    pub fn within(timeout: Duration) -> Self {
        Self {
            timeout: Some(timeout),
            ..Self::default()
        }
    }
}

impl Default for Limits {
    /// No limits, and 2 s of grace.
    fn default() -> Self {
        Self {
            timeout: None,
            stall: None,
            start: None,
            grace: Duration::from_secs(2),
        }
    }
}
