//! A child with all of its descendants, including those that left its process group or lost their
//! parent.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::descent::claim;
use super::host::{self, Proc, State};
use super::registry::{self, Origin, OrphanPolicy};

/// Rounds of killing before all members are stopped first.
const FREEZE_AFTER: u32 = 3;
/// The most rounds of stopping until no new member is found.
const FREEZE_ROUNDS: u32 = 64;
/// The most rounds of killing orphans.
const ORPHAN_ROUNDS: u32 = 256;
/// The most rounds of a blocking kill, and the pause between them.
const BLOCKING_ROUNDS: u32 = 60;
const BLOCKING_PAUSE: Duration = Duration::from_millis(5);
/// How long to try killing, and how many rounds at least: on an overloaded machine one round may take longer.
const KILL_LIMIT: Duration = Duration::from_secs(1);
const LEAST_ROUNDS: u32 = 10;
/// How long to wait for processes that can only end. The kernel removes them, which takes time on an
/// overloaded machine.
const REMOVAL_LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Tree {
    origin: Origin,
    /// Every process that was ever found to be part of the tree, so that it stays one after its parent
    /// has ended.
    known: HashSet<(i32, u64)>,
    /// Every process that was asked to terminate.
    asked: HashSet<(i32, u64)>,
    /// Those of them that were asked as members of their group.
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

    /// The living members. Dead members that were adopted are reaped.
    pub(super) fn members(&mut self) -> Vec<Proc> {
        // No process of the tree started before the child: descendants are younger than their ancestors.
        let (procs, orphan_policy) = registry::survey(&self.origin);
        let members = claim(
            &procs,
            host::own_pid(),
            |proc| self.is_seed(proc, &orphan_policy),
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
            .filter(|proc| !orphan_policy.waited_for.contains(&proc.pid))
            .for_each(|proc| registry::reap(proc.pid));
        alive
    }

    /// Asks every member to terminate that was not asked before. Returns how many are alive. Call it
    /// until none is, because a member may start another process while it is asked.
    pub(super) fn terminate(&mut self) -> usize {
        let members = self.members();
        let first = self.asked.is_empty();
        let leader = self.origin.main.pid;
        let by_group = first && self.group_is_certain();
        // A process that left the group between the scan and the signal has not received it.
        let has_left =
            |proc: &Proc| proc.group != leader && self.asked_in_group.contains(&proc.identity());
        let strangers: Vec<&Proc> = members
            .iter()
            .filter(|proc| !self.asked.contains(&proc.identity()) || has_left(proc))
            .filter(|proc| !(by_group && proc.group == leader))
            .collect();
        // A stopped process handles the signal only after it is continued.
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

    /// Kills every visible member. Returns how many were still alive. Call it until none is. From the
    /// fourth round on, all members are stopped first, so that a fork bomb cannot outrun it. Before that,
    /// a launcher is spared: it ends by itself when its descendants have ended, and until then it kills
    /// them if this process is killed.
    pub(super) fn kill_round(&mut self, round: u32) -> usize {
        if self.origin.is_launcher && round < FREEZE_AFTER {
            return self.kill_all_but_launcher();
        }
        if self.group_is_certain() {
            host::signal_group(self.origin.main.pid, Signal::KILL);
        }
        if round >= FREEZE_AFTER {
            self.kill_orphans();
        }
        kill_round(round, || self.members())
    }

    fn kill_all_but_launcher(&mut self) -> usize {
        let launcher = self.origin.main.pid;
        let members = self.members();
        for member in members.iter().filter(|proc| proc.pid != launcher) {
            host::signal(member, Signal::KILL);
        }
        members.len()
    }

    /// Orphans that can only come from this tree.
    pub(super) fn orphans(&self) -> Vec<Proc> {
        registry::orphans(self.origin.main.start)
    }

    /// Kills orphans as they appear. This is so fast that a process cannot escape for long by starting a
    /// successor and ending.
    pub(super) fn kill_orphans(&self) {
        for _ in 0..ORPHAN_ROUNDS {
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

    /// Kills every member, and blocks until they are gone or cannot be killed.
    pub(super) fn kill_now(&mut self) {
        kill_until_gone(|round| self.kill_round(round));
    }

    fn is_seed(&self, proc: &Proc, orphan_policy: &OrphanPolicy) -> bool {
        let main = &self.origin.main;
        let began_with_it = proc.start >= main.start;
        let in_its_group = proc.group == main.pid;
        let orphan = orphan_policy.adopts
            && proc.parent == host::own_pid()
            && !orphan_policy.waited_for.contains(&proc.pid)
            && began_with_it
            && !orphan_policy.kept.contains(&proc.identity());
        self.known.contains(&proc.identity()) || (began_with_it && in_its_group) || orphan
    }

    /// Whether the group's id still belongs to the child. On Linux, members of a group whose leader was
    /// reaped are found individually.
    fn group_is_certain(&self) -> bool {
        !self.origin.is_reaped() || cfg!(not(target_os = "linux"))
    }
}

/// Kills the processes that `find` returns, once. Returns how many there were.
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

/// Kills the processes that `find` returns, and blocks until there are none or nothing more can be done.
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

/// Whether the processes that are left after this time and so many rounds count as impossible to end.
pub(super) fn gives_up(waited: Duration, rounds: u32, left: impl FnOnce() -> Vec<Proc>) -> bool {
    let has_tried = waited >= KILL_LIMIT && rounds >= LEAST_ROUNDS;
    has_tried && waited >= patience(left().iter().all(host::is_ending))
}

fn patience(all_are_ending: bool) -> Duration {
    if all_are_ending {
        REMOVAL_LIMIT
    } else {
        KILL_LIMIT
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn gives_up_on(procs: &[Proc], waited: Duration) -> bool {
        gives_up(waited, LEAST_ROUNDS, || procs.to_vec())
    }

    #[test]
    fn what_can_only_end_is_waited_for_and_what_cannot_be_killed_is_given_up() {
        let own = host::find(host::own_pid()).unwrap();
        let gone = Proc {
            start: own.start + 1,
            ..own
        };
        let (before, after) = (KILL_LIMIT / 2, KILL_LIMIT * 2);
        assert!(!gives_up_on(&[own], before));
        assert!(gives_up_on(&[own], after) && gives_up_on(&[gone, own], after));
        assert!(!gives_up_on(&[gone], after) && !gives_up_on(&[], after));
        assert!(gives_up_on(&[gone], REMOVAL_LIMIT));
        // What was started while a slow machine listed the others has not been killed yet.
        assert!(!gives_up(after, LEAST_ROUNDS - 1, || vec![own]));
    }
}
