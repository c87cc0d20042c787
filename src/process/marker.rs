//! Finds the processes of a dead run on the whole machine by their environment.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::thread;
use std::time::{Duration, Instant};

use super::exit::Leaked;
use super::host::{self, Proc, State};
use super::{descent, tree};
use crate::domain::settings::variables::{PROCESS_ID, RUN_ID};

const OUTLAST_POLL: Duration = Duration::from_millis(5);

/// How many leaked processes are described.
pub(super) const MAX_DESCRIBED: usize = 64;

/// Kills every process that was started with `SPRAG_RUN_ID` or `SPRAG_PROCESS_ID` set to this value, and
/// all of its descendants. Spares this process and its ancestors, and skips processes whose environment
/// cannot be read. Blocks for a fraction of a second. Returns the first 64 killed processes. An empty
/// marker matches nothing.
pub fn kill_marked(marker: &str) -> Vec<Leaked> {
    if marker.is_empty() {
        return Vec::new();
    }
    let entries = [
        format!("{RUN_ID}={marker}"),
        format!("{PROCESS_ID}={marker}"),
    ];
    let entries = entries.each_ref().map(String::as_bytes);
    let mut known: HashSet<(i32, u64)> = HashSet::new();
    let mut find = || -> Vec<Proc> {
        let procs = host::scan();
        let spared = lineage(&procs, host::own_pid());
        let mut found = descent::claim(
            &procs,
            host::own_pid(),
            |proc| known.contains(&proc.identity()),
            |proc| !spared.contains(&proc.pid) && host::environ_contains(proc.pid, &entries),
        );
        known.extend(found.iter().map(Proc::identity));
        found.retain(|proc| proc.state != State::Dead && !spared.contains(&proc.pid));
        found
    };
    let described = describe(&find());
    tree::kill_all(&mut find);
    killed_processes(described)
}

/// Waits up to `patience` until no process is left that was started with this `NAME=value` in its
/// environment, then kills the rest. For short-lived children that should not be interrupted.
pub fn outlast(entry: &OsStr, patience: Duration) {
    let entries = [entry.as_bytes()];
    let mut find = || -> Vec<Proc> {
        let alive = |proc: &Proc| proc.state != State::Dead && proc.pid != host::own_pid();
        let mut found = host::scan();
        found.retain(|proc| alive(proc) && host::environ_contains(proc.pid, &entries));
        found
    };
    let deadline = Instant::now() + patience;
    while !find().is_empty() {
        if Instant::now() >= deadline {
            return tree::kill_all(&mut find);
        }
        thread::sleep(OUTLAST_POLL);
    }
}

/// The processes with their command lines, before they are killed.
pub(super) fn describe(procs: &[Proc]) -> Vec<(Proc, String)> {
    let described = procs.iter().take(MAX_DESCRIBED);
    let described = described.map(|proc| (*proc, host::command_line(proc.pid)));
    described.collect()
}

/// The same processes after they were killed.
pub(super) fn killed_processes(described: Vec<(Proc, String)>) -> Vec<Leaked> {
    let leaked = described.into_iter().map(|(proc, command)| {
        let now = host::find(proc.pid).filter(|now| now.identity() == proc.identity());
        let killed = now.is_none_or(|now| now.state == State::Dead);
        Leaked {
            pid: proc.pid,
            command,
            killed,
        }
    });
    leaked.collect()
}

/// A process and all of its ancestors.
fn lineage(procs: &[Proc], pid: i32) -> HashSet<i32> {
    let mut lineage = HashSet::new();
    let mut next = Some(pid);
    while let Some(pid) = next.filter(|pid| lineage.insert(*pid)) {
        let proc = procs.iter().find(|proc| proc.pid == pid);
        next = proc.map(|proc| proc.parent);
    }
    lineage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lineage_reaches_up_to_the_first_process_even_through_a_loop() {
        let proc = |pid, parent| Proc {
            pid,
            parent,
            group: pid,
            start: 0,
            state: State::Running,
        };
        let procs = [proc(1, 0), proc(5, 1), proc(7, 5), proc(8, 5)];
        assert_eq!(lineage(&procs, 7), HashSet::from([7, 5, 1, 0]));
        assert_eq!(lineage(&[proc(7, 8), proc(8, 7)], 7), HashSet::from([7, 8]));
    }

    #[test]
    fn an_empty_marker_is_nobodys() {
        assert_eq!(kill_marked(""), []);
    }
}
