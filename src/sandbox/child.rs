//! Code shared by the processes of a launch: confining themselves and starting the child.

use super::policy::{Launch, Policy};
use super::{landlock, privileges, sockets, system_calls};
use crate::domain::sandbox::Level;
use nix::sys::signal::{SigSet, SigmaskHow};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::time::Duration;

/// The exit code of a launcher that started nothing; its report contains the reason.
pub(super) const FAILED: u8 = 125;

/// A program that is open for writing cannot be executed. Another process's child may hold it open
/// between fork and exec, so the start is retried a few times.
const BUSY_TRIES: u32 = 10;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// Why a child was not started.
pub(super) enum Failure {
    /// It could not be confined.
    NotConfined(String),
    /// Its program could not be executed.
    NotExecuted(io::Error),
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self::NotConfined(why)
    }
}

/// Confines the calling thread and everything that it starts, except for namespaces.
pub(super) fn restrict(policy: &Policy) -> Result<(), Failure> {
    privileges::give_up().map_err(|error| format!("privileges: {error}"))?;
    match policy.level {
        Level::Off | Level::Privileges => {}
        Level::Files | Level::Namespaces => {
            landlock::confine(policy)?;
            system_calls::refuse_reach()?;
        }
    }
    match &policy.network {
        Some(network) => Ok(sockets::limit(network)?),
        None => Ok(()),
    }
}

/// Starts the child and returns its process id.
#[expect(
    clippy::disallowed_methods,
    reason = "the launcher starts the child that it was started for"
)]
pub(super) fn spawn(launch: &Launch) -> Result<i32, Failure> {
    let mut command = Command::new(&launch.program);
    let mut args = launch.args.iter();
    if let Some(name) = args.next() {
        command.arg0(name);
    }
    command.args(args);
    let mut tries = 0;
    let started = loop {
        match with_no_signal_blocked(|| command.spawn()) {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES => {
                tries += 1;
                std::thread::sleep(BUSY_PAUSE);
            }
            done => break done.map_err(Failure::NotExecuted)?,
        }
    };
    i32::try_from(started.id()).map_err(|_| Failure::from("the child has no process id".to_owned()))
}

/// Starts a child from a thread that blocks signals: the child would inherit that it does. Meanwhile the end of the
/// child may go unnoticed, and a signal to the whole group, which is meant for the child, may end the launcher and so
/// the child.
fn with_no_signal_blocked(start: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    let blocked = SigSet::empty().thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
    let started = start();
    blocked.thread_set_mask()?;
    started
}

/// Closes all inherited descriptors except the standard streams and these.
pub(super) fn close_descriptors_but(kept: &[i32]) {
    let listed = fs::read_dir("/proc/self/fd").into_iter().flatten();
    let numbers: Vec<i32> = listed
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for number in numbers {
        if number > 2 && !kept.contains(&number) {
            let _ = nix::unistd::close(number);
        }
    }
}

/// The file that replaces the child's pipes in [`detach_standard_streams`].
pub(super) fn nothing() -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).open("/dev/null")
}

/// Replaces the child's pipes in this process, so that they end when the child closes them.
pub(super) fn detach_standard_streams(nothing: &File) -> io::Result<()> {
    rustix::stdio::dup2_stdin(nothing)?;
    rustix::stdio::dup2_stdout(nothing)?;
    rustix::stdio::dup2_stderr(nothing)?;
    Ok(())
}
