//! Running other programs: every way a child can end is data, and nothing it starts outlives it.
//!
//! A child gets a process group of its own, a complete environment, and limits. Its output is
//! handed on in chunks as it arrives; this module keeps none of it. Whatever the child does (forks
//! a daemon, holds its pipes open, ignores signals, floods its output, never reads its input),
//! [`run`] returns soon after the child has ended or reached a limit, and all descendants are gone.
//! What [`run_keeping`] leaves running is gone with its [`Service`].

mod cancel;
mod command;
mod descent;
mod dialogue;
pub mod environment;
mod exit;
mod host;
mod lines;
mod live;
mod log;
mod marker;
mod programs;
mod registration;
mod registry;
mod retain;
mod service;
mod spawn;
mod text;
mod tree;

#[cfg(test)]
mod tests;

pub use cancel::{Cancel, listen, survive_file_size_limit, watch_parent};
pub use command::{CommandSpec, Input, Limits, until_one_fails};
pub use dialogue::Dialogue;
pub use exit::{CancelReason, Ended, Exit, Leaked, RawStatus, StreamKind};
pub use lines::{Line, LineSplitter};
pub use live::{run, run_keeping};
pub use log::CappedLog;
pub use marker::{PROCESS_ID, RUN_ID, kill_marked, outlast};
pub use programs::{find_program, is_executable};
pub use registration::kill_descendants;
pub use registry::{
    Quiescence, become_subreaper, hide_from_same_user, quiescence, take_survivors,
    while_nothing_starts,
};
pub use retain::{HeadTail, Tail};
pub use service::Service;
pub use text::clean_text;
