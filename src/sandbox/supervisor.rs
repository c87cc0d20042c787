//! The launcher at levels 1 and 2: it starts the child, becomes the parent of all orphans among the
//! child's descendants, ends with the child's exit status, and kills all descendants if the run is gone.
//!
//! Only the run has the reading end of the pipe to which the launcher reports. However the run ends, also
//! by SIGKILL, the kernel closes that end, and the launcher sees it. All descendants of the child are
//! descendants of the launcher too, even if their own parents have ended, so it finds all of them.

use super::child::{FAILED, Failure, detach_standard_streams, nothing, restrict, spawn};
use super::policy::Launch;
use super::report::{Reporter, Status};
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{DumpableBehavior, set_child_subreaper, set_dumpable_behavior};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::thread;

/// The list of the children of the thread that opens it.
const CHILDREN: &str = "/proc/thread-self/children";

/// Starts the child, waits for the end of all of its descendants, and ends with its exit status.
pub(super) fn supervise(
    launch: &Launch,
    reporter: &mut Reporter<File>,
) -> Result<ExitCode, Failure> {
    let told = |error: io::Error| Failure::from(format!("the supervision of the child: {error}"));
    let mut listed = File::open(CHILDREN).ok();
    let events = Events::new().map_err(told)?;
    adopt_orphans().map_err(told)?;
    let nothing = nothing().map_err(told)?;
    let child = start(launch)?;
    detach_standard_streams(&nothing).map_err(told)?;
    let mut status = None;
    loop {
        // The child may have ended before its end was watched for.
        let reaped = reap(child);
        status = status.or(reaped.status);
        if let Some(status) = status
            && (!reaped.is_something_left || launch.policy.ends_all)
        {
            end_descendants(listed.as_mut());
            if let Status::Signal(signal) = status {
                reporter.write("signal", signal);
            }
            return Ok(status.exit_code());
        }
        if let Some(status) = reaped.status {
            reporter.write("leaves", status);
        }
        if !events.wait(&reporter.0) {
            end_descendants(listed.as_mut());
            return Ok(ExitCode::from(FAILED));
        }
    }
}

/// Starts the child from a thread that confines itself and then ends. The launcher itself is not confined,
/// so a child that cannot signal processes outside of its sandbox cannot signal its launcher either.
fn start(launch: &Launch) -> Result<i32, Failure> {
    let confined = || {
        restrict(&launch.policy)?;
        spawn(launch)
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, confined);
        let thread = thread.map_err(|error| format!("a thread: {error}"))?;
        let stopped = |_| Err(Failure::from("the thread of the child stopped".to_owned()));
        thread.join().unwrap_or_else(stopped)
    })
}

/// Makes this process the parent of all orphans among its descendants. If the child has stopped this
/// process, the end of the run continues it.
fn adopt_orphans() -> io::Result<()> {
    set_child_subreaper(Some(rustix::process::getpid()))?;
    let goes_on = Some(rustix::process::Signal::CONT);
    Ok(rustix::process::set_parent_process_death_signal(goes_on)?)
}

/// Waits for the end of children and for the end of the run.
pub(super) struct Events {
    ended: SignalFd,
}

impl Events {
    /// Blocks all signals of this process, and denies other processes of the same user access to its memory
    /// and its descriptors: a process that opened the reading end of the report would hide the end of the
    /// run.
    pub(super) fn new() -> io::Result<Self> {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        SigSet::all().thread_block()?;
        let mut ended = SigSet::empty();
        ended.add(Signal::SIGCHLD);
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self {
            ended: SignalFd::with_flags(&ended, flags)?,
        })
    }

    /// Waits until a child may have ended or the run is gone. Returns whether the run is still there, which
    /// it is as long as the reading end of `report` is open. An error counts as the end of the run.
    pub(super) fn wait(&self, report: &impl AsFd) -> bool {
        loop {
            let mut watched = [
                PollFd::new(&self.ended, PollFlags::IN),
                PollFd::new(report, PollFlags::empty()),
            ];
            match poll(&mut watched, None) {
                Ok(_) => {
                    let _ = self.ended.read_signal();
                    return !watched[1].revents().contains(PollFlags::ERR);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
}

/// The result of [`reap`].
pub(super) struct Reaped {
    /// The exit status of the child, if it was reaped now.
    pub(super) status: Option<Status>,
    /// Whether this process still has children.
    pub(super) is_something_left: bool,
}

/// Reaps every child of this process that has ended.
pub(super) fn reap(child: i32) -> Reaped {
    let mut status = None;
    let is_something_left = loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) if pid.as_raw() == child => {
                status = Some(Status::Code(code));
            }
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid.as_raw() == child => {
                status = Some(Status::Signal(signal as i32));
            }
            Ok(WaitStatus::StillAlive) => break true,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => break false,
        }
    };
    Reaped {
        status,
        is_something_left,
    }
}

/// Kills the children of this process until it has none: the children of a killed process become children
/// of this one. Only this thread reaps them, so their ids cannot belong to other processes.
fn end_descendants(mut listed: Option<&mut File>) {
    loop {
        for pid in children(listed.as_deref_mut()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        match waitpid(None, None) {
            Err(Errno::EINTR) => {}
            Err(_) => return,
            Ok(_) if !reap(0).is_something_left => return,
            Ok(_) => {}
        }
    }
}

/// The ids of the children of this process. The list was opened before the child started, because the
/// child can lower the number of files that this process may open.
fn children(listed: Option<&mut File>) -> Vec<i32> {
    let read = |file: &mut File| {
        let mut text = String::new();
        file.rewind()?;
        file.read_to_string(&mut text)?;
        io::Result::Ok(text)
    };
    match listed.map(read) {
        Some(Ok(text)) => text.split_ascii_whitespace().flat_map(str::parse).collect(),
        // The kernel was built without these lists.
        _ => scanned(),
    }
}

/// The same, found by reading the parent of every process.
fn scanned() -> Vec<i32> {
    let own = rustix::process::getpid().as_raw_pid();
    let own = own.to_string();
    let is_child = |pid: &i32| {
        let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat);
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        fields.split_ascii_whitespace().nth(1) == Some(&own)
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(is_child).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lists_of_children_are_equal() {
        #[expect(clippy::disallowed_methods, reason = "a child of the test")]
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let mut listed = File::open(CHILDREN).unwrap();
        for _ in 0..2 {
            assert!(children(Some(&mut listed)).contains(&pid));
        }
        assert!(scanned().contains(&pid) && children(None).contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!children(Some(&mut listed)).contains(&pid));
        assert!(!scanned().contains(&pid));
    }
}
