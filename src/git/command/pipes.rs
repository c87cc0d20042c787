//! Reads the output of a git process until it ends or something cuts it off.

use crate::git::command::launched::exited;
use crate::git::command::limits::Stop;
use crate::git::special_files::special_files_in;
use crate::process::Cancel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout};
use std::time::{Duration, Instant};

/// After this time, and again after ten times as long, a command that still runs is checked for special files
/// that block it.
const BLOCKED_AFTER: Duration = Duration::from_secs(2);
/// How often a command checks whether it was cancelled.
const CANCEL_POLL: Duration = Duration::from_millis(100);
const CHUNK: usize = 64 * 1024;

/// What ends the reading of a command's output before its end.
pub(super) struct Bounds<'a> {
    pub(super) deadline: Instant,
    /// The directories in which special files may block the command.
    pub(super) watched: &'a [PathBuf],
    pub(super) cancel: Option<&'a Cancel>,
    pub(super) stop: &'a Stop,
    /// How much of its standard error is kept: the end, in bytes.
    pub(super) stderr_kept: usize,
}

/// How reading a command's output ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Drained {
    Whole,
    TooLate,
    /// The caller cancelled the command, or the run is to stop.
    Cancelled,
    /// The command wrote more than its caller takes.
    Flooded,
    /// The command is blocked by special files that never reach an end of file.
    HeldBySpecialFiles(Vec<PathBuf>),
}

impl Bounds<'_> {
    /// Whether the command must end, after it has worked for this time.
    fn is_cancelled(&self, time: Duration) -> bool {
        self.cancel.is_some_and(|cancel| cancel.reason().is_some()) || self.stop.passed(time)
    }

    /// Waits for the exit of a child whose output has ended.
    pub(super) fn until_exit(&self, child: &mut Child) -> Drained {
        loop {
            let until = self.deadline.min(Instant::now() + CANCEL_POLL);
            if exited(child, until) {
                return Drained::Whole;
            }
            if Instant::now() >= self.deadline {
                return Drained::TooLate;
            }
            if self.is_cancelled(CANCEL_POLL) {
                return Drained::Cancelled;
            }
        }
    }
}

/// Standard output and standard error of a child, each `Some` until it is closed.
pub(super) struct Pipes {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    buffer: Vec<u8>,
}

impl Pipes {
    pub(super) fn of(child: &mut Child) -> Self {
        Self {
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            buffer: vec![0; CHUNK],
        }
    }

    pub(super) fn drain(
        &mut self,
        bounds: &Bounds<'_>,
        on_stdout: &mut dyn FnMut(&[u8]) -> bool,
        stderr: &mut Vec<u8>,
    ) -> Drained {
        let mut patience = BLOCKED_AFTER;
        let mut look = Instant::now() + patience;
        let mut on_stderr = |chunk: &[u8]| {
            stderr.extend_from_slice(chunk);
            stderr.drain(..stderr.len().saturating_sub(bounds.stderr_kept));
            true
        };
        let mut seen = Instant::now();
        while self.stdout.is_some() || self.stderr.is_some() {
            let now = Instant::now();
            if bounds.is_cancelled(now - seen) {
                return Drained::Cancelled;
            }
            if now >= bounds.deadline {
                return Drained::TooLate;
            }
            seen = now;
            let mut until = bounds.deadline.min(now + CANCEL_POLL);
            if !bounds.watched.is_empty() {
                until = until.min(look);
            }
            let Some((stdout, stderr)) = self.ready(until) else {
                if bounds.watched.is_empty() || Instant::now() < look {
                    continue;
                }
                let special = special_files_in(bounds.watched);
                if !special.is_empty() {
                    return Drained::HeldBySpecialFiles(special);
                }
                patience *= 10;
                look = Instant::now() + patience;
                continue;
            };
            if stdout && !read_once(&mut self.stdout, &mut self.buffer, on_stdout) {
                return Drained::Flooded;
            }
            if stderr {
                read_once(&mut self.stderr, &mut self.buffer, &mut on_stderr);
            }
        }
        Drained::Whole
    }

    /// Which of the two pipes can be read, or `None` if neither is ready before the deadline.
    fn ready(&self, deadline: Instant) -> Option<(bool, bool)> {
        let stdout = self
            .stdout
            .as_ref()
            .map(|pipe| PollFd::new(pipe, PollFlags::IN));
        let stderr = self
            .stderr
            .as_ref()
            .map(|pipe| PollFd::new(pipe, PollFlags::IN));
        let is_stdout = stdout.is_some();
        let mut fds: Vec<PollFd<'_>> = stdout.into_iter().chain(stderr).collect();
        loop {
            let left =
                Timespec::try_from(deadline.saturating_duration_since(Instant::now())).ok()?;
            match poll(&mut fds, Some(&left)) {
                Ok(1..) => break,
                Err(Errno::INTR) => {}
                Ok(0) | Err(_) => return None,
            }
        }
        let mut found = fds.iter().map(|fd| !fd.revents().is_empty());
        let stdout = is_stdout && found.next().unwrap_or(false);
        Some((stdout, found.next().unwrap_or(false)))
    }
}

/// Reads what is in the pipe now, or drops the pipe at its end of file. `false` if the sink takes no more.
fn read_once<P: Read>(
    pipe: &mut Option<P>,
    buffer: &mut [u8],
    sink: &mut dyn FnMut(&[u8]) -> bool,
) -> bool {
    match pipe.as_mut().map(|pipe| pipe.read(buffer)) {
        Some(Ok(read @ 1..)) => return sink(&buffer[..read]),
        Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
        _ => *pipe = None,
    }
    true
}
