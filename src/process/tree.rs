//! A child with all its descendants, also those that left its process group or lost their parent.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::descent::claim;
use super::host::{self, Proc, State};
use super::registry::{self, Custody, Origin};

/// Rounds of plain killing before everything is stopped first.
const FREEZE_AFTER: u32 = 3;
/// Rounds of stopping until nothing new turns up.
const FREEZE_ROUNDS: u32 = 64;
/// Rounds of killing orphans as they come.
const HUNT_ROUNDS: u32 = 256;
/// Rounds of a kill that blocks, and the time between them.
const BLOCKING_ROUNDS: u32 = 60;
const BLOCKING_PAUSE: Duration = Duration::from_millis(5);
/// How long killing is tried.
const KILL_LIMIT: Duration = Duration::from_secs(1);
/// How long it is waited for the end of processes that can do nothing but end: the kernel removes them, which
/// takes its time on a machine that has too much to do.
const REMOVAL_LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Tree {
    origin: Origin,
    /// Everything that was ever seen to be part of the tree, so that it still is when its parent
    /// has gone.
    known: HashSet<(i32, u64)>,
    /// Everything that was asked to terminate.
    asked: HashSet<(i32, u64)>,
    /// Of these, those that were asked together with their group and not by themselves.
    asked_in_group: HashSet<(i32, u64)>,
}

impl Tree {
    pub(super) fn new(origin: Origin) -> Self {
        let known = HashSet::from([origin.main.identity()]);
        Self {
            origin,
            known,
            asked: HashSet::new(),
            asked_in_group: HashSet::new(),
        }
    }

    /// The members that are alive now. Members that are dead and were adopted are reaped.
    pub(super) fn members(&mut self) -> Vec<Proc> {
        let procs = host::scan();
        let custody = registry::custody(&procs, &self.origin.marker);
        let members = claim(
            &procs,
            host::own_pid(),
            |proc| self.is_seed(proc, &custody),
            |proc| {
                proc.start >= self.origin.main.start
                    && host::environ_contains(proc.pid, &[self.origin.marker.as_bytes()])
            },
        );
        self.known.extend(members.iter().map(Proc::identity));
        let (dead, alive): (Vec<Proc>, Vec<Proc>) = members
            .into_iter()
            .partition(|proc| proc.state == State::Dead);
        dead.iter()
            .filter(|proc| proc.parent == host::own_pid())
            .filter(|proc| !custody.waited_for.contains(&proc.pid))
            .for_each(|proc| registry::reap(proc.pid));
        alive
    }

    /// Asks every member that was not asked before to terminate. Returns how many are alive: call
    /// it again until none is, since a member may have been about to start another when it was
    /// asked.
    pub(super) fn terminate(&mut self) -> usize {
        let members = self.members();
        let first = self.asked.is_empty();
        let leader = self.origin.main.pid;
        let by_group = first && self.group_is_certain();
        // Who left the group between the look and the signal has not heard it.
        let has_left =
            |proc: &Proc| proc.group != leader && self.asked_in_group.contains(&proc.identity());
        let strangers: Vec<&Proc> = members
            .iter()
            .filter(|proc| !self.asked.contains(&proc.identity()) || has_left(proc))
            .filter(|proc| !(by_group && proc.group == leader))
            .collect();
        // A stopped process only takes the signal when it is continued.
        for signal in [Signal::TERM, Signal::CONT] {
            if by_group {
                host::signal_group(leader, signal);
            }
            for member in &strangers {
                host::signal(member, signal);
            }
        }
        for member in &strangers {
            self.asked_in_group.remove(&member.identity());
        }
        if by_group {
            let in_group = members.iter().filter(|proc| proc.group == leader);
            self.asked_in_group.extend(in_group.map(Proc::identity));
        }
        self.asked.extend(members.iter().map(Proc::identity));
        members.len()
    }

    /// Kills every member that can be seen. Returns how many were still alive: call it again
    /// until none is. From the fourth round on everything is stopped first, so that a fork bomb
    /// cannot outrun it.
    pub(super) fn kill_round(&mut self, round: u32) -> usize {
        if self.group_is_certain() {
            host::signal_group(self.origin.main.pid, Signal::KILL);
        }
        if round >= FREEZE_AFTER {
            self.hunt();
        }
        kill_round(round, || self.members())
    }

    /// Orphans that nobody but this tree can have left.
    pub(super) fn orphans(&self) -> Vec<Proc> {
        registry::orphans(self.origin.main.start)
    }

    /// Kills orphans as they come, which takes so little time that no process can start its successor and end in
    /// between for long.
    pub(super) fn hunt(&self) {
        for _ in 0..HUNT_ROUNDS {
            let orphans = self.orphans();
            let (dead, alive): (Vec<Proc>, Vec<Proc>) = orphans
                .into_iter()
                .partition(|proc| proc.state == State::Dead);
            dead.iter().for_each(|proc| registry::reap(proc.pid));
            if alive.is_empty() {
                return;
            }
            for proc in &alive {
                host::signal(proc, Signal::KILL);
            }
        }
    }

    /// Kills every member, blocking until they are gone or cannot be killed.
    pub(super) fn kill_now(&mut self) {
        kill_until_gone(|round| self.kill_round(round));
    }

    fn is_seed(&self, proc: &Proc, custody: &Custody) -> bool {
        let main = &self.origin.main;
        let began_with_it = proc.start >= main.start;
        let in_its_group = proc.group == main.pid;
        let orphan = custody.adopts
            && proc.parent == host::own_pid()
            && !custody.waited_for.contains(&proc.pid)
            && began_with_it
            && !custody.kept.contains(&proc.identity());
        self.known.contains(&proc.identity()) || (began_with_it && in_its_group) || orphan
    }

    /// Whether the group's id is still that of the child. On Linux, members of a group whose
    /// leader was reaped are found one by one.
    fn group_is_certain(&self) -> bool {
        !self.origin.is_reaped() || cfg!(not(target_os = "linux"))
    }
}

/// Kills whatever `find` finds, once. Returns how many it found.
pub(super) fn kill_round(round: u32, mut find: impl FnMut() -> Vec<Proc>) -> usize {
    if round >= FREEZE_AFTER {
        for _ in 0..FREEZE_ROUNDS {
            let members = find();
            let moving: Vec<&Proc> = members
                .iter()
                .filter(|proc| proc.state == State::Running)
                .collect();
            if moving.is_empty() {
                break;
            }
            for proc in moving {
                host::signal(proc, Signal::STOP);
            }
        }
    }
    let members = find();
    for member in &members {
        host::signal(member, Signal::KILL);
    }
    members.len()
}

/// Kills whatever `find` finds, blocking until it finds nothing or nothing can be done.
pub(super) fn kill_all(mut find: impl FnMut() -> Vec<Proc>) {
    kill_until_gone(|round| kill_round(round, &mut find));
}

fn kill_until_gone(mut kill: impl FnMut(u32) -> usize) {
    for round in 0..BLOCKING_ROUNDS {
        if kill(round) == 0 {
            return;
        }
        thread::sleep(BLOCKING_PAUSE);
    }
}

/// Whether what is left after so long is taken for processes that cannot be ended.
pub(super) fn gives_up(waited: Duration, left: impl FnOnce() -> Vec<Proc>) -> bool {
    waited >= KILL_LIMIT && waited >= patience(left().iter().all(host::is_ending))
}

fn patience(all_are_ending: bool) -> Duration {
    match all_are_ending {
        true => REMOVAL_LIMIT,
        false => KILL_LIMIT,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn gives_up_on(procs: &[Proc], waited: Duration) -> bool {
        gives_up(waited, || procs.to_vec())
    }

    #[test]
    fn what_can_only_end_is_waited_for_and_what_cannot_be_killed_is_given_up() {
        let own = host::look(host::own_pid()).unwrap();
        let gone = Proc {
            start: own.start + 1,
            ..own
        };
        let (before, after) = (KILL_LIMIT / 2, KILL_LIMIT * 2);
        assert!(!gives_up_on(&[own], before));
        assert!(gives_up_on(&[own], after) && gives_up_on(&[gone, own], after));
        assert!(!gives_up_on(&[gone], after) && !gives_up_on(&[], after));
        assert!(gives_up_on(&[gone], REMOVAL_LIMIT));
    }
}
