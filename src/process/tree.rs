//! A child with all of its descendants, including those that left its process group or lost their
//! parent.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::descent::claim;
use super::host::{self, Proc, State};
use super::registry::{self, Origin};

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
/// How long to wait for processes that may be killed. The kernel removes them, which takes time on an
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
}

impl Tree {
    pub(super) fn new(origin: Origin) -> Self {
        Self {
            known: HashSet::from([origin.main.identity()]),
            asked: HashSet::new(),
            origin,
        }
    }

    /// The living members. Dead members that were adopted are reaped.
    pub(super) fn members(&mut self) -> Vec<Proc> {
        let (procs, orphans) = registry::survey(&self.origin);
        let main = &self.origin.main;
        // No process of the tree started before the child: descendants are younger than their ancestors.
        let is_seed = |proc: &Proc| {
            let is_in_group = proc.start >= main.start && proc.group == main.pid;
            is_in_group || orphans.contains(&proc.pid) || self.known.contains(&proc.identity())
        };
        let is_marked = |proc: &Proc| {
            let marker = self.origin.marker.as_bytes();
            proc.start >= main.start && host::environ_contains(proc.pid, &[marker])
        };
        let mut members = claim(&procs, host::own_pid(), is_seed, is_marked);
        self.known.extend(members.iter().map(Proc::identity));
        if members.iter().any(|proc| proc.state == State::Dead) {
            registry::reap_orphans();
            members.retain(|proc| proc.state != State::Dead);
        }
        members
    }

    /// Asks every member to terminate that was not asked before. Returns how many are alive. Call it
    /// until none is, because a member may start another process while it is asked.
    pub(super) fn terminate(&mut self) -> usize {
        let members = self.members();
        // A stopped process handles the signal only after it is continued.
        for signal in [Signal::TERM, Signal::CONT] {
            if cfg!(not(target_os = "linux")) {
                host::signal_group(self.origin.main.pid, signal);
            }
            for member in &members {
                if !self.asked.contains(&member.identity()) {
                    host::signal(member, signal);
                }
            }
        }
        self.asked.extend(members.iter().map(Proc::identity));
        members.len()
    }

    /// Kills every visible member. Returns how many were still alive. Call it until none is. From the
    /// fourth round on, all members are stopped first, so that a fork bomb cannot outrun it. Before that,
    /// a launcher is spared: it ends by itself when its descendants have ended, and until then it kills
    /// them if this process is killed.
    pub(super) fn kill_round(&mut self, round: u32) -> usize {
        let main = self.origin.main.pid;
        let spared = (self.origin.is_launcher && round < FREEZE_AFTER).then_some(main);
        if spared.is_none() && self.group_is_certain() {
            host::signal_group(main, Signal::KILL);
        }
        if round >= FREEZE_AFTER {
            self.kill_orphans();
        }
        kill_round(round, spared, || self.members())
    }

    /// Orphans that can only come from this tree.
    pub(super) fn orphans(&self) -> Vec<Proc> {
        registry::orphans(&self.origin)
    }

    /// Kills orphans as they appear. This is so fast that a process cannot escape for long by starting a
    /// successor and ending.
    pub(super) fn kill_orphans(&self) {
        for _ in 0..ORPHAN_ROUNDS {
            let orphans = self.orphans();
            for proc in &orphans {
                if proc.state == State::Dead {
                    registry::reap(proc.pid);
                } else {
                    host::signal(proc, Signal::KILL);
                }
            }
            if orphans.iter().all(|proc| proc.state == State::Dead) {
                return;
            }
        }
    }

    /// Kills every member, and blocks until they are gone or cannot be killed.
    pub(super) fn kill_now(&mut self) {
        kill_until_gone(|round| self.kill_round(round));
    }

    /// Whether the group's id still belongs to the child. On Linux, members of a group whose leader was
    /// reaped are found individually.
    fn group_is_certain(&self) -> bool {
        !self.origin.is_reaped() || cfg!(not(target_os = "linux"))
    }
}

/// Kills the processes that `find` returns, once, apart from one. Returns how many there were.
fn kill_round(round: u32, spared: Option<i32>, mut find: impl FnMut() -> Vec<Proc>) -> usize {
    if round >= FREEZE_AFTER {
        for _ in 0..FREEZE_ROUNDS {
            let mut moving = find();
            moving.retain(|proc| proc.state == State::Running);
            if moving.is_empty() {
                break;
            }
            for proc in moving {
                host::signal(&proc, Signal::STOP);
            }
        }
    }
    let members = find();
    for member in members.iter().filter(|proc| Some(proc.pid) != spared) {
        host::signal(member, Signal::KILL);
    }
    members.len()
}

/// Kills the processes that `find` returns, and blocks until there are none or nothing more can be done.
pub(super) fn kill_all(mut find: impl FnMut() -> Vec<Proc>) {
    kill_until_gone(|round| kill_round(round, None, &mut find));
}

fn kill_until_gone(mut kill: impl FnMut(u32) -> usize) {
    for round in 0..BLOCKING_ROUNDS {
        if kill(round) == 0 {
            return;
        }
        thread::sleep(BLOCKING_PAUSE);
    }
}

/// Whether the processes that are left after this time and so many rounds count as impossible to end. Those that may
/// be killed are gone as soon as the kernel has removed them.
pub(super) fn gives_up(waited: Duration, rounds: u32, left: impl FnOnce() -> Vec<Proc>) -> bool {
    let has_tried = waited >= KILL_LIMIT && rounds >= LEAST_ROUNDS;
    has_tried && (waited >= REMOVAL_LIMIT || !left().iter().all(host::may_be_signalled))
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
