//! Reads process information from the system, and sends signals without race conditions.
//!
//! On Linux it uses `/proc` and pidfds. Elsewhere nothing is known about other processes, and only the
//! process group of a child can be ended.

use rustix::process::{Pid, Signal};

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
    find(own_pid()).is_some()
}

/// Sends a signal to a process group. A missing group is not an error.
pub(super) fn signal_group(leader: i32, signal: Signal) {
    if let Some(leader) = Pid::from_raw(leader) {
        let _ = rustix::process::kill_process_group(leader, signal);
    }
}

#[cfg(target_os = "linux")]
pub use linux::is_held;
#[cfg(target_os = "linux")]
pub(super) use linux::{
    children, command_line, environ_contains, find, is_childless, is_ending, scan, signal,
};
#[cfg(not(target_os = "linux"))]
pub use portable::is_held;
#[cfg(not(target_os = "linux"))]
pub(super) use portable::{
    children, command_line, environ_contains, find, is_childless, is_ending, scan, signal,
};

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{self, File};
    use std::io::{self, Read as _};
    use std::path::Path;

    use rustix::io::Errno;
    use rustix::process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open,
        pidfd_send_signal, waitid,
    };

    use super::{Proc, State, own_pid};
    use crate::process::text::clean_text;

    const MAX_STAT: usize = 4 << 10;
    const MAX_COMMAND_LINE: u64 = 4 << 10;
    const MAX_STATUS: u64 = 16 << 10;
    const MAX_ENVIRON: u64 = 8 << 20;
    const MAX_COMMAND: usize = 160;

    /// Every visible process.
    pub(crate) fn scan() -> Vec<Proc> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .filter_map(|entry| find(entry.file_name().to_str()?.parse().ok()?))
            .collect()
    }

    /// Whether another process has the file open, or is a git that works in the directory, which may hold a lock
    /// without having it open.
    pub fn is_held(file: &Path, directory: &Path) -> bool {
        let own = own_pid();
        let others = scan().into_iter();
        let mut others = others.filter(|proc| proc.pid != own && proc.parent != own);
        others.any(|proc| {
            let at = |name: &str| fs::read_link(format!("/proc/{}/{name}", proc.pid));
            let is_git = at("exe").is_ok_and(|exe| exe.ends_with("git"));
            let mut opened = fs::read_dir(format!("/proc/{}/fd", proc.pid))
                .into_iter()
                .flatten()
                .flatten();
            is_git && at("cwd").is_ok_and(|cwd| cwd.starts_with(directory))
                || opened.any(|fd| fs::read_link(fd.path()).is_ok_and(|target| target == file))
        })
    }

    /// One process, if it exists.
    pub(crate) fn find(pid: i32) -> Option<Proc> {
        parse_stat(&read_line(&format!("/proc/{pid}/stat")).ok()?)
    }

    /// The children of this process, including adopted ones.
    pub(crate) fn children() -> Vec<i32> {
        own_children().unwrap_or_else(|_| {
            let own = own_pid();
            scan()
                .into_iter()
                .filter(|proc| proc.parent == own)
                .map(|proc| proc.pid)
                .collect()
        })
    }

    /// Whether this process has no child, neither alive nor unreaped. Unlike a list, which may omit processes
    /// while others end, this is exact: the kernel finds all children in one step.
    pub(crate) fn is_childless() -> bool {
        // `__WALL` includes children that do not send SIGCHLD when they end.
        let all = WaitIdOptions::from_bits_retain(0x4000_0000);
        let unchanged = WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let found = waitid(WaitId::All, WaitIdOptions::EXITED | unchanged | all);
        matches!(found, Err(Errno::CHILD))
    }

    /// Whether the process was started with one of these `NAME=value` entries in its environment.
    /// `false` if the environment cannot be read.
    pub(crate) fn environ_contains(pid: i32, wanted: &[&[u8]]) -> bool {
        read(&format!("/proc/{pid}/environ"), MAX_ENVIRON).is_ok_and(|environ| {
            environ
                .split(|b| *b == 0)
                .any(|entry| wanted.contains(&entry))
        })
    }

    /// The command line, for messages.
    pub(crate) fn command_line(pid: i32) -> String {
        let arguments = read(&format!("/proc/{pid}/cmdline"), MAX_COMMAND_LINE).unwrap_or_default();
        let mut line = arguments.strip_suffix(b"\0").unwrap_or(&arguments).to_vec();
        if line.is_empty() {
            line = read_line(&format!("/proc/{pid}/comm")).unwrap_or_default();
        }
        line.iter_mut()
            .filter(|b| b.is_ascii_control())
            .for_each(|b| *b = b' ');
        clean_text(&line).trim().chars().take(MAX_COMMAND).collect()
    }

    /// Sends a signal to exactly this process. Returns whether it was sent.
    pub(crate) fn signal(proc: &Proc, signal: Signal) -> bool {
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

    /// Whether the process can only end: it has ended, is exiting, or has a pending SIGKILL, on which
    /// the kernel acts as soon as the process is scheduled.
    pub(crate) fn is_ending(proc: &Proc) -> bool {
        let stat = read_line(&format!("/proc/{}/stat", proc.pid));
        let status = read(&format!("/proc/{}/status", proc.pid), MAX_STATUS);
        let (Ok(stat), Ok(status)) = (stat, status) else {
            return true;
        };
        let now = parse_stat(&stat);
        let is_same = now.is_some_and(|now| now.identity() == proc.identity());
        !is_same || is_exiting(&stat) || has_been_killed(&status)
    }

    /// Whether the flags of a process, the seventh field after its name, say that it is exiting.
    pub(super) fn is_exiting(stat: &[u8]) -> bool {
        const PF_EXITING: u64 = 0x4;
        let after_name = stat.rsplit(|byte| *byte == b')').next();
        let fields = after_name.and_then(|rest| std::str::from_utf8(rest).ok());
        let flags = fields.and_then(|rest| rest.split_ascii_whitespace().nth(6));
        let flags: Option<u64> = flags.and_then(|flags| flags.parse().ok());
        flags.is_some_and(|flags| flags & PF_EXITING != 0)
    }

    /// Whether SIGKILL is pending for a process or its first thread.
    pub(super) fn has_been_killed(status: &[u8]) -> bool {
        const KILL: u64 = 1 << 8;
        let status = String::from_utf8_lossy(status);
        let pending = status.lines().filter_map(|line| {
            let (name, mask) = line.split_once(':')?;
            let is_pending = matches!(name, "SigPnd" | "ShdPnd");
            is_pending.then(|| u64::from_str_radix(mask.trim(), 16).ok())?
        });
        pending.fold(0, |all, mask| all | mask) & KILL != 0
    }

    fn own_children() -> io::Result<Vec<i32>> {
        let mut children = Vec::new();
        for thread in fs::read_dir("/proc/self/task")? {
            let listed = fs::read_to_string(thread?.path().join("children"))?;
            children.extend(
                listed
                    .split_ascii_whitespace()
                    .filter_map(|pid| pid.parse::<i32>().ok()),
            );
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
    pub(super) fn parse_stat(stat: &[u8]) -> Option<Proc> {
        let pid = stat.split(|b| *b == b' ').next()?;
        let name_end = stat.iter().rposition(|b| *b == b')')?;
        let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().take(20).collect();
        let threads: u32 = fields.get(17)?.parse().ok()?;
        Some(Proc {
            pid: std::str::from_utf8(pid).ok()?.parse().ok()?,
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
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::path::Path;

    use rustix::process::{Pid, Signal, kill_process, test_kill_process};

    use super::{Proc, State, own_pid};

    pub(crate) fn scan() -> Vec<Proc> {
        Vec::new()
    }

    pub fn is_held(_file: &Path, _directory: &Path) -> bool {
        false
    }

    pub(crate) fn find(pid: i32) -> Option<Proc> {
        test_kill_process(Pid::from_raw(pid)?).ok()?;
        Some(Proc {
            pid,
            parent: own_pid(),
            group: pid,
            start: 0,
            state: State::Running,
        })
    }

    pub(crate) fn children() -> Vec<i32> {
        Vec::new()
    }

    pub(crate) fn is_childless() -> bool {
        false
    }

    pub(crate) fn environ_contains(_pid: i32, _wanted: &[&[u8]]) -> bool {
        false
    }

    pub(crate) fn command_line(_pid: i32) -> String {
        String::new()
    }

    pub(crate) fn is_ending(_proc: &Proc) -> bool {
        false
    }

    pub(crate) fn signal(proc: &Proc, signal: Signal) -> bool {
        Pid::from_raw(proc.pid).is_some_and(|pid| kill_process(pid, signal).is_ok())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::linux::{has_been_killed, is_exiting, parse_stat};
    use super::*;

    #[test]
    fn a_name_may_hold_spaces_and_parentheses() {
        let stat = b"42 (a) R 1 ) (b) T 7 41 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2";
        let expected = Proc {
            pid: 42,
            parent: 7,
            group: 41,
            start: 98765,
            state: State::Stopped,
        };
        assert_eq!(parse_stat(stat), Some(expected));
    }

    #[test]
    fn only_a_zombie_without_threads_is_dead() {
        let stat = |state: &str, threads: u32| {
            format!("42 (x) {state} 7 41 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 {threads} 0 9 1 2")
        };
        let cases = [
            ("R", 1, State::Running),
            ("S", 1, State::Running),
            ("D", 1, State::Running),
            ("t", 1, State::Stopped),
            ("X", 1, State::Dead),
            ("Z", 1, State::Dead),
            ("Z", 3, State::Running),
        ];
        for (state, threads, expected) in cases {
            let proc = parse_stat(stat(state, threads).as_bytes()).unwrap();
            assert_eq!(proc.state, expected, "{state} with {threads} threads");
        }
    }

    #[test]
    fn a_process_that_was_killed_is_told_from_one_that_was_asked() {
        let status = |thread: u64, shared: u64| {
            format!(
                "Name:\tx\nSigQ:\t1/2\nSigPnd:\t{thread:016x}\nShdPnd:\t{shared:016x}\nSigCgt:\t0000000000000100\n"
            )
        };
        let killed = |thread, shared| has_been_killed(status(thread, shared).as_bytes());
        assert!(killed(0x100, 0) && killed(0, 0x100) && killed(0x4000, 0x4100));
        assert!(!killed(0, 0) && !killed(0x4000, 0x80));
        assert!(!has_been_killed(b"") && !has_been_killed(b"SigPnd:\tx"));
    }

    #[test]
    fn a_process_on_its_way_out_is_told_by_its_flags() {
        let stat = |flags: u64| format!("42 (x) 4) R 7 41 41 0 -1 {flags} 1 2 3 4 5 6 7 8 20 0 1");
        assert!(is_exiting(stat(4_194_564).as_bytes()));
        assert!(!is_exiting(stat(4_194_560).as_bytes()) && !is_exiting(b"42 (x"));
    }

    #[test]
    fn garbage_is_no_process() {
        for stat in ["", "1", "1 (x", "1 (x)", "1 (x) R 2 3", "x (x) R 1 2 3"] {
            assert_eq!(parse_stat(stat.as_bytes()), None, "{stat}");
        }
    }

    #[test]
    fn this_process_is_seen() {
        let own = find(own_pid()).unwrap();
        assert_eq!(own.pid, own_pid());
        assert!(scan().iter().any(|proc| proc.identity() == own.identity()));
        assert!(own.still_holds_its_id());
        assert!(
            !Proc {
                start: own.start + 1,
                ..own
            }
            .still_holds_its_id()
        );
        assert!(!command_line(own.pid).is_empty());
    }

    #[test]
    fn a_signal_misses_a_process_that_took_over_the_id() {
        let own = find(own_pid()).unwrap();
        assert!(!signal(
            &Proc {
                start: own.start + 1,
                ..own
            },
            Signal::KILL
        ));
    }
}
