//! Every way a child can end, as data.

use crate::sandbox::Status;
use std::fmt;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why a run is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase")]
pub enum CancelReason {
    /// SIGINT.
    #[strum(to_string = "interrupted")]
    Interrupt,
    /// SIGTERM, SIGHUP or SIGQUIT, or the parent process has ended.
    #[strum(to_string = "terminated")]
    Terminate,
    /// The run's deadline has passed.
    Deadline,
}

impl CancelReason {
    /// The number of the corresponding signal.
    pub fn signal(self) -> Option<i32> {
        match self {
            Self::Interrupt => Some(2),
            Self::Terminate => Some(15),
            Self::Deadline => None,
        }
    }

    /// The exit code if the process must end at once.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
            Self::Deadline => 5,
        }
    }
}

/// Why a child ended. What Sprag did to it takes precedence over the wait status: an agent that gets
/// SIGTERM may exit with 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It ended by itself with this code.
    Code(i32),
    /// A signal that Sprag did not send ended it.
    Signal(i32),
    /// Sprag ended it because it ran longer than its timeout.
    TimedOut {
        /// The timeout.
        after: Duration,
    },
    /// Sprag ended it because it wrote nothing for too long.
    Stalled {
        /// The allowed time without output.
        after: Duration,
    },
    /// Sprag ended it because its dialogue was over and it did not end by itself.
    Dismissed,
    /// Sprag ended it, or never started it, because the run was cancelled.
    Cancelled(CancelReason),
    /// There is no such program.
    NotFound,
    /// The program exists and cannot be run.
    NotExecutable {
        /// A message in lower case, without a full stop.
        why: String,
    },
    /// It could not be started for a reason other than the program itself.
    SpawnFailed {
        /// A message in lower case, without a full stop.
        why: String,
    },
}

impl Exit {
    /// Whether the child ended by itself with code 0.
    pub fn is_success(&self) -> bool {
        *self == Self::Code(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::TimedOut { after } => {
                write!(f, "timed out after {}", humantime::format_duration(*after))
            }
            Self::Stalled { after } => {
                write!(f, "no output for {}", humantime::format_duration(*after))
            }
            Self::Dismissed => f.write_str("ended after its last answer"),
            Self::Cancelled(reason) => write!(f, "cancelled ({reason})"),
            Self::NotFound => f.write_str("not found"),
            Self::NotExecutable { why } => write!(f, "not executable: {why}"),
            Self::SpawnFailed { why } => write!(f, "could not be started: {why}"),
        }
    }
}

impl From<ExitStatus> for Status {
    fn from(status: ExitStatus) -> Self {
        let by_signal = || Self::Signal(status.signal().unwrap_or_default());
        status.code().map_or_else(by_signal, Self::Code)
    }
}

impl From<Status> for Exit {
    fn from(status: Status) -> Self {
        match status {
            Status::Code(code) => Self::Code(code),
            Status::Signal(signal) => Self::Signal(signal),
        }
    }
}

/// A process that outlived the child it descends from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaked {
    /// Its process id.
    pub pid: i32,
    /// Its command line, cleaned and at most 160 characters long.
    pub command: String,
    /// Whether it has ended. `false` means that Sprag may not end it, because it is another user's.
    pub killed: bool,
}

/// How a child ended, and what it left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Why it ended.
    pub exit: Exit,
    /// The wait status of the child itself. `None` if it was never started, or could not be ended.
    pub raw: Option<Status>,
    /// The time from the start until the child and its descendants ended, on a monotonic clock.
    pub elapsed: Duration,
    /// The first 64 descendants that were alive after the child had ended by itself. If Sprag ended the
    /// child, its descendants are ended, too, and not listed.
    pub leaked: Vec<Leaked>,
}

/// The output stream of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamKind {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}
