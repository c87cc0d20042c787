//! Runs other programs. Every way a child can end is data, and nothing it starts outlives it.
//!
//! A child gets its own process group, a complete environment, and limits. Its output is passed on in
//! chunks as it arrives and is not kept here. Whatever the child does (fork a daemon, hold its pipes
//! open, ignore signals, flood its output, never read its input), [`run`] returns soon after the child
//! has ended or reached a limit, and all descendants are gone. Processes that [`run_keeping`] leaves
//! running end with their [`Service`].

mod cancel;
mod command;
mod descent;
mod dialogue;
pub mod environment;
mod exit;
mod host;
mod launcher;
mod lines;
mod live;
mod log;
mod marker;
mod output;
mod programs;
mod registry;
mod retain;
mod service;
mod spawn;
mod text;
mod tree;

#[cfg(test)]
mod tests;

pub use crate::sandbox::Status;
pub use cancel::restore_signals;
pub use cancel::{Cancel, listen, survive_file_size_limit, watch_parent};
pub use command::{CommandSpec, Input, Limits, until_one_fails};
pub use dialogue::Dialogue;
pub use exit::{CancelReason, Ended, Exit, Leaked, StreamKind};
pub use host::{can_list, is_held};
pub use lines::{Line, LineSplitter};
pub use live::{run, run_keeping};
pub use log::CappedLog;
pub use marker::{kill_marked, outlast};
pub use programs::{find_program, is_executable};
pub use registry::{
    Quiescence, become_subreaper, hide_from_same_user, quiescence, take_survivors,
    while_nothing_starts,
};
pub use retain::{HeadTail, Tail};
pub use service::Service;
pub use service::kill_descendants;
pub use text::{CleanLines, clean_text};
