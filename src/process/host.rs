//! Reads process information from the system, and sends signals without race conditions.
//!
//! On Linux it uses `/proc` and pidfds. Elsewhere nothing is known about other processes, and only the
//! process group of a child can be ended.

use super::text::clean_text;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
#[cfg(target_os = "linux")]
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

const MAX_STAT: usize = 4 << 10;
const MAX_COMMAND_LINE: u64 = 4 << 10;
const MAX_ENVIRON: u64 = 8 << 20;
const MAX_COMMAND: usize = 160;

/// A process as it was when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Proc {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// Its start time in the kernel's ticks since boot. Together with the pid it identifies a process
    /// uniquely.
    pub(super) start: u64,
    pub(super) state: State,
}

/// The state of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Running,
    Stopped,
    /// Ended, and not yet reaped by its parent.
    Dead,
}

impl Proc {
    /// Identifies this process, even if another one gets the same id later.
    pub(super) fn identity(&self) -> (i32, u64) {
        (self.pid, self.start)
    }

    /// Whether the process still exists under this id, reaped or not.
    pub(super) fn still_holds_its_id(&self) -> bool {
        find(self.pid).is_some_and(|now| now.identity() == self.identity())
    }
}

/// The id of Sprag's own process.
pub(super) fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_pid()
}

/// Whether the system lists processes, at least this one.
pub fn can_list() -> bool {
    cfg!(not(target_os = "linux")) || find(own_pid()).is_some()
}

/// Sends a signal to a process group. A missing group is not an error.
pub(super) fn signal_group(leader: i32, signal: Signal) {
    if let Some(leader) = Pid::from_raw(leader) {
        let _ = rustix::process::kill_process_group(leader, signal);
    }
}

/// Whether this process may send signals to another one, or there is none.
pub(super) fn may_be_signalled(proc: &Proc) -> bool {
    let pid = Pid::from_raw(proc.pid);
    pid.map(rustix::process::test_kill_process) != Some(Err(Errno::PERM))
}

/// Every visible process.
pub(super) fn scan() -> Vec<Proc> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| find(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

/// Whether another process has the file open, or is a git that works in the directory, which may hold a lock
/// without having it open.
pub fn is_held(file: &Path, directory: &Path) -> bool {
    let own = own_pid();
    let mut others = scan();
    others.retain(|proc| proc.pid != own && proc.parent != own);
    others.iter().any(|proc| {
        let at = |name: &str| fs::read_link(format!("/proc/{}/{name}", proc.pid));
        let is_git = at("exe").is_ok_and(|exe| exe.ends_with("git"));
        let opened = fs::read_dir(format!("/proc/{}/fd", proc.pid));
        let mut opened = opened.into_iter().flatten().flatten();
        is_git && at("cwd").is_ok_and(|cwd| cwd.starts_with(directory))
            || opened.any(|fd| fs::read_link(fd.path()).is_ok_and(|target| target == file))
    })
}

/// One process, if it exists.
pub(super) fn find(pid: i32) -> Option<Proc> {
    parse_stat(&read_line(&format!("/proc/{pid}/stat")).ok()?)
}

/// The children of this process, including adopted ones.
pub(super) fn children() -> Vec<i32> {
    own_children().unwrap_or_else(|_| {
        let mut children = scan();
        children.retain(|proc| proc.parent == own_pid());
        children.iter().map(|proc| proc.pid).collect()
    })
}

/// Whether this process has no child, neither alive nor unreaped. Unlike a list, which may omit processes
/// while others end, this is exact: the kernel finds all children in one step.
pub(super) fn is_childless() -> bool {
    // `__WALL` includes children that do not send SIGCHLD when they end.
    let all = WaitIdOptions::from_bits_retain(0x4000_0000);
    let unchanged = WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let found = waitid(WaitId::All, WaitIdOptions::EXITED | unchanged | all);
    cfg!(target_os = "linux") && matches!(found, Err(Errno::CHILD))
}

/// Whether the process was started with one of these `NAME=value` entries in its environment.
/// `false` if the environment cannot be read.
pub(super) fn environ_contains(pid: i32, wanted: &[&[u8]]) -> bool {
    let environ = read(&format!("/proc/{pid}/environ"), MAX_ENVIRON).unwrap_or_default();
    environ
        .split(|b| *b == 0)
        .any(|entry| wanted.contains(&entry))
}

/// The command line, for messages.
pub(super) fn command_line(pid: i32) -> String {
    let arguments = read(&format!("/proc/{pid}/cmdline"), MAX_COMMAND_LINE).unwrap_or_default();
    let mut line = arguments.strip_suffix(b"\0").unwrap_or(&arguments).to_vec();
    if line.is_empty() {
        line = read_line(&format!("/proc/{pid}/comm")).unwrap_or_default();
    }
    let line = String::from_utf8_lossy(&line).replace(|c: char| c.is_ascii_control(), " ");
    clean_text(line.as_bytes())
        .trim()
        .chars()
        .take(MAX_COMMAND)
        .collect()
}

/// Sends a signal to exactly this process. Returns whether it was sent.
#[cfg(target_os = "linux")]
pub(super) fn signal(proc: &Proc, signal: Signal) -> bool {
    let Some(pid) = Pid::from_raw(proc.pid) else {
        return false;
    };
    // The handle is opened before the identity is checked, so the signal cannot reach another
    // process that got the same id.
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => proc.still_holds_its_id() && pidfd_send_signal(handle, signal).is_ok(),
        Err(Errno::SRCH) => false,
        Err(_) => proc.still_holds_its_id() && kill_process(pid, signal).is_ok(),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn signal(proc: &Proc, signal: Signal) -> bool {
    Pid::from_raw(proc.pid).is_some_and(|pid| kill_process(pid, signal).is_ok())
}

fn own_children() -> io::Result<Vec<i32>> {
    let mut children = Vec::new();
    for thread in fs::read_dir("/proc/self/task")? {
        let listed = fs::read_to_string(thread?.path().join("children"))?;
        let pids = listed.split_ascii_whitespace();
        children.extend(pids.filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Ok(children)
}

/// The first bytes of a file, up to `MAX_STAT`, which the kernel gives at once for these files.
fn read_line(path: &str) -> io::Result<Vec<u8>> {
    let mut content = vec![0; MAX_STAT];
    let length = File::open(path)?.read(&mut content)?;
    content.truncate(length);
    Ok(content)
}

fn read(path: &str, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(limit).read_to_end(&mut content)?;
    Ok(content)
}

/// `pid (name) state parent group …`. The name may contain any characters, even parentheses.
fn parse_stat(stat: &[u8]) -> Option<Proc> {
    let stat = String::from_utf8_lossy(stat);
    let (before, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().take(20).collect();
    let threads: u32 = fields.get(17)?.parse().ok()?;
    Some(Proc {
        pid: before.split(' ').next()?.parse().ok()?,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
        state: match *fields.first()? {
            "T" | "t" => State::Stopped,
            "X" | "x" => State::Dead,
            // A process whose first thread has ended looks like a zombie although it is still
            // running.
            "Z" if threads <= 1 => State::Dead,
            _ => State::Running,
        },
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
