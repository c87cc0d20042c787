//! Running other programs: every way a child can end is data, and nothing it starts outlives it.
//!
//! A child gets a process group of its own, a complete environment, and limits. Its output is
//! handed on in chunks as it arrives; this module keeps none of it. Whatever the child does (forks
//! a daemon, holds its pipes open, ignores signals, floods its output, never reads its input),
//! [`run`] returns soon after the child has ended or reached a limit, and all descendants are gone.
//! What [`run_keeping`] leaves running is gone with its [`Service`].

mod cancel;
pub mod environment;
mod exit;
mod host;
mod lines;
mod live;
mod log;
mod marker;
mod programs;
mod registry;
mod retain;
mod service;
mod spawn;
mod text;
mod tree;

#[cfg(test)]
mod tests;

use crate::sandbox::Policy;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub use cancel::{Cancel, CancelReason, listen, survive_file_size_limit, watch_parent};
pub use exit::{Ended, Exit, Leaked, RawStatus, StreamKind};
pub use lines::{Line, LineSplitter};
pub use live::{run, run_keeping};
pub use log::CappedLog;
pub use marker::{PROCESS_ID, RUN_ID, kill_marked, outlast};
pub use programs::{find_program, is_executable};
pub use registry::{
    Quiescence, become_subreaper, hide_from_same_user, kill_descendants, quiescence,
    take_survivors, while_nothing_starts,
};
pub use retain::{HeadTail, Tail};
pub use service::Service;
pub use text::clean_text;

/// A program to run. Nothing is inherited but what stands here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSpec {
    /// A path, or a name to look for in the `PATH` of `env`. A relative path with a slash is
    /// relative to `cwd`.
    pub program: OsString,
    /// Its arguments, without the program's name.
    pub args: Vec<OsString>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its complete environment; `SPRAG_PROCESS_ID` is added.
    pub env: Vec<(OsString, OsString)>,
    /// Its standard input.
    pub stdin: Input,
    /// When it is ended.
    pub limits: Limits,
    /// How it is confined; `None` for programs that the machine's owner trusts.
    pub sandbox: Option<Policy>,
}

/// What a child reads on its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Nothing.
    Null,
    /// These bytes, then the end. Written while the output is read.
    Bytes(Vec<u8>),
    /// A regular file.
    File(PathBuf),
}

/// When a child is ended. All times are monotonic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest time that it may run.
    pub timeout: Option<Duration>,
    /// The longest time without output on either pipe.
    pub stall: Option<Duration>,
    /// The time between SIGTERM and SIGKILL.
    pub grace: Duration,
}

impl Default for Limits {
    /// No limits, and 2 s of grace.
    fn default() -> Self {
        Self {
            timeout: None,
            stall: None,
            grace: Duration::from_secs(2),
        }
    }
}
