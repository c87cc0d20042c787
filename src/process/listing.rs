//! Lists the processes that started at a time or later, without reading all others again.
//!
//! To read a process takes longer than anything else that is done after a child has ended, and most processes of a
//! machine started before the child. The id of a process is not given to another one before it has ended, and a
//! handle of a process (a pidfd) says whether it has. So of a process that is held by a handle the start time is
//! known as long as the handle says that it has not ended.

use super::host::{self, Proc};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

/// The most handles that are held open.
const MAX_HANDLES: usize = 4096;

/// The part of the files that this process may open that may be handles.
const PART_OF_LIMIT: usize = 4;

/// Processes whose start time is known, by id.
#[derive(Debug)]
pub(super) struct Listing {
    known: BTreeMap<i32, Known>,
}

#[derive(Debug)]
struct Known {
    handle: OwnedFd,
    /// In the kernel's ticks since boot.
    start: u64,
}

impl Listing {
    pub(super) const fn new() -> Self {
        Self {
            known: BTreeMap::new(),
        }
    }

    /// Every visible process that started at `since`, in the kernel's ticks since boot, or later.
    pub(super) fn started_since(&mut self, since: u64) -> Vec<Proc> {
        self.of(since, &host::ids(), max_handles(), host::find)
    }

    /// Those of these ids. The handles are asked after the ids were listed: a process that has not ended by then had
    /// its id at the time of the list.
    fn of(
        &mut self,
        since: u64,
        ids: &[i32],
        max_handles: usize,
        mut find: impl FnMut(i32) -> Option<Proc>,
    ) -> Vec<Proc> {
        self.forget_ended();
        let mut listed = Vec::new();
        for &pid in ids {
            if self.known.get(&pid).is_some_and(|it| it.start < since) {
                continue;
            }
            // The handle is opened before the process is read: if the id is given to another process in between,
            // the handle says that its own has ended.
            let may_hold = self.known.len() < max_handles || self.known.contains_key(&pid);
            let handle = may_hold.then(|| host::open_handle(pid)).flatten();
            let Some(proc) = find(pid) else { continue };
            if proc.start >= since {
                listed.push(proc);
            } else if let Some(handle) = handle {
                let start = proc.start;
                self.known.insert(pid, Known { handle, start });
            }
        }
        listed
    }

    /// Forgets the processes that have ended, or all if that is not known.
    fn forget_ended(&mut self) {
        let handles: Vec<&OwnedFd> = self.known.values().map(|it| &it.handle).collect();
        match host::have_ended(&handles) {
            Some(ended) => {
                let mut ended = ended.into_iter();
                self.known.retain(|_, _| ended.next() == Some(false));
            }
            None => self.known.clear(),
        }
    }
}

/// Many processes may be left to be read every time, but this process must be able to open files.
fn max_handles() -> usize {
    let limit = host::max_open_files();
    MAX_HANDLES.min(limit / PART_OF_LIMIT)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::super::host::State;
    use super::*;
    use std::process::{Child, Command};

    const SINCE: u64 = 1_000;

    #[expect(clippy::disallowed_methods, reason = "a process to be listed")]
    fn process() -> (Child, i32) {
        let child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        (child, pid)
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Lists these ids, whose processes started at this time. Returns the ids that are listed, and those that were
    /// read.
    fn list(listing: &mut Listing, ids: &[i32], start: u64, max_handles: usize) -> [Vec<i32>; 2] {
        let mut read = Vec::new();
        let listed = listing.of(SINCE, ids, max_handles, |pid| {
            read.push(pid);
            Some(Proc {
                pid,
                parent: 1,
                group: pid,
                start,
                state: State::Running,
            })
        });
        [listed.iter().map(|proc| proc.pid).collect(), read]
    }

    #[test]
    fn an_older_process_is_read_once_and_a_younger_one_every_time() {
        let ((child, pid), mut listing) = (process(), Listing::new());
        for read in [vec![pid], vec![], vec![]] {
            assert_eq!(list(&mut listing, &[pid], SINCE - 1, 9), [vec![], read]);
        }
        end(child);
        let ((child, pid), mut listing) = (process(), Listing::new());
        for _ in 0..3 {
            let both = [vec![pid], vec![pid]];
            assert_eq!(list(&mut listing, &[pid], SINCE, 9), both);
        }
        end(child);
    }

    #[test]
    fn who_gets_the_id_of_an_older_process_is_listed() {
        let ((child, pid), mut listing) = (process(), Listing::new());
        assert_eq!(list(&mut listing, &[pid], 1, 9), [vec![], vec![pid]]);
        end(child);
        let both = [vec![pid], vec![pid]];
        assert_eq!(list(&mut listing, &[pid], SINCE, 9), both);
    }

    #[test]
    fn an_earlier_time_lists_what_was_too_old_before() {
        let (own, mut listing) = (host::find(host::own_pid()).unwrap(), Listing::new());
        let is_listed = |procs: &[Proc]| procs.iter().any(|proc| proc.pid == own.pid);
        assert!(!is_listed(&listing.started_since(own.start + 1)));
        assert!(listing.known.contains_key(&own.pid));
        assert!(!is_listed(&listing.started_since(own.start + 1)));
        assert!(is_listed(&listing.started_since(own.start)));
    }

    #[test]
    fn without_a_handle_every_process_is_read_every_time() {
        let ((child, pid), mut listing) = (process(), Listing::new());
        for _ in 0..2 {
            assert_eq!(list(&mut listing, &[pid], 1, 0), [vec![], vec![pid]]);
        }
        end(child);
    }
}
