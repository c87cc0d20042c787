//! The children that this process has started and still manages.
//!
//! The lock is held while a child is started and while orphans are reaped, so that a new child is never
//! mistaken for an orphan.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::descent::claim;
use super::exit::Leaked;
use super::host::{self, Proc};
use std::collections::HashSet;

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    owns_every_child: false,
    started: 0,
    active: Vec::new(),
    kept: Vec::new(),
    survivors: Vec::new(),
});

struct Registry {
    owns_every_child: bool,
    /// The number of children started so far.
    started: u64,
    active: Vec<Origin>,
    /// Ended children whose descendants may continue.
    kept: Vec<EndedChild>,
    /// Processes that could not be ended since the last [`take_survivors`].
    survivors: Vec<Leaked>,
}

/// An ended child whose descendants may continue.
struct EndedChild {
    origin: Origin,
    /// Its processes, by id and start time. This identifies them whatever their environment says.
    members: HashSet<(i32, u64)>,
}

impl EndedChild {
    /// Adds the processes that they have started since.
    fn add_descendants(&mut self, procs: &[Proc]) {
        let members = &self.members;
        let is_member = |proc: &Proc| members.contains(&proc.identity());
        let found = claim(procs, host::own_pid(), is_member, |_| false);
        self.members = found.iter().map(Proc::identity).collect();
    }
}

/// The origin of a process tree.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    /// The child itself, leader of its process group.
    pub(super) main: Proc,
    /// A `NAME=value` in the environment of this child and of no other.
    pub(super) marker: String,
    /// Whether the child is a launcher, which stays the ancestor of the processes that it was started for
    /// until they have ended.
    pub(super) is_launcher: bool,
    reaped: Arc<AtomicBool>,
}

impl Origin {
    pub(super) fn new(main: Proc, marker: String, is_launcher: bool) -> Self {
        Self {
            main,
            marker,
            is_launcher,
            reaped: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Records that the child's id may be reused now.
    pub(super) fn set_reaped(&self) {
        self.reaped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_reaped(&self) -> bool {
        self.reaped.load(Ordering::Relaxed)
    }
}

/// Makes this process the parent of every descendant that loses its own parent (a daemon), and the owner
/// of all of its children: orphans are reaped, and end with the run that they belong to. Call this once,
/// in a program that starts children only through [`super::run`]: other children lose their exit status
/// afterwards.
///
/// # Errors
/// When the system refuses. Daemons are then still found by their environment.
pub fn become_subreaper() -> io::Result<()> {
    let mut registry = lock();
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    registry.owns_every_child = true;
    Ok(())
}

/// Hides the environment and memory of this process from other processes of the same user, if the system
/// supports it. Root can still read them, and nothing is hidden that was read before.
///
/// # Errors
/// When the system refuses.
pub fn hide_from_same_user() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// A moment without any running child of [`super::run`] or process that such a child left behind.
/// Between two equal values nothing has been running either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quiescence {
    pub(super) started: u64,
}

/// The current moment, if nothing is running. `None` if that is not known: only a process that adopts
/// orphans sees what a child leaves behind, which needs [`become_subreaper`] and Linux.
pub fn quiescence() -> Option<Quiescence> {
    let registry = lock();
    registry.is_quiescent_with(host::is_childless())
}

/// Whether no descendant of this process is left. It adopts every descendant that loses its parent, so the
/// ancestors of any other include a child. `false` if that is not known.
pub(super) fn has_no_descendants() -> bool {
    lock().owns_every_child && host::is_childless()
}

/// The origins of all managed process trees: children of unfinished runs, and services.
pub(super) fn origins() -> Vec<Origin> {
    let registry = lock();
    let kept = registry.kept.iter().map(|child| &child.origin);
    registry.active.iter().chain(kept).cloned().collect()
}

/// Starts a child and registers it in one step.
pub(super) fn start<T, E>(
    launch: impl FnOnce() -> Result<(T, Origin), E>,
) -> Result<(T, Origin), E> {
    let mut registry = lock();
    registry.started += 1;
    let (child, origin) = launch()?;
    registry.active.push(origin.clone());
    Ok((child, origin))
}

/// Lets these descendants of an ended child continue while other children run.
pub(super) fn keep(origin: &Origin, members: &[Proc]) {
    let mut registry = lock();
    registry.forget(origin);
    registry.kept.push(EndedChild {
        origin: origin.clone(),
        members: members.iter().map(Proc::identity).collect(),
    });
}

/// Removes a child from the registry.
pub(super) fn forget(origin: &Origin) {
    lock().forget(origin);
}

/// Calls a function while no child can be started, so that none inherits file descriptors opened in it.
pub fn while_nothing_starts<T>(something: impl FnOnce() -> T) -> T {
    let _held = lock();
    something()
}

/// The processes among which those of a child are, and the ids of its orphans. All of them started with it or later,
/// except for those of services.
pub(super) fn survey(child: &Origin) -> (Vec<Proc>, HashSet<i32>) {
    let mut registry = lock();
    let services = registry.kept.iter().map(|ended| ended.origin.main.start);
    let since = services.fold(child.main.start, u64::min);
    let mut procs = host::scan();
    procs.retain(|proc| proc.start >= since);
    registry.update_kept(&procs);
    let orphans = registry.orphans_of(child, &procs).map(|proc| proc.pid);
    let orphans = orphans.collect();
    (procs, orphans)
}

/// The orphans that this process has adopted from a child.
pub(super) fn orphans(child: &Origin) -> Vec<Proc> {
    let registry = lock();
    let children: Vec<Proc> = host::children()
        .into_iter()
        .filter_map(host::find)
        .collect();
    registry.orphans_of(child, &children).copied().collect()
}

/// Updates the processes of services before these lose their parents.
pub(super) fn update_kept() {
    if !lock().kept.is_empty() {
        let procs = host::scan();
        lock().update_kept(&procs);
    }
}

/// Records processes that could not be ended.
pub(super) fn note_survivors(survivors: Vec<Leaked>) {
    lock().survivors.extend(survivors);
}

/// The processes that could not be ended since the last call. They may still be running.
pub fn take_survivors() -> Vec<Leaked> {
    std::mem::take(&mut lock().survivors)
}

/// Reaps adopted orphans that have ended, if this process owns all of its children.
pub(super) fn reap_orphans() {
    let registry = lock();
    if registry.owns_every_child {
        let waited_for = registry.waited_for();
        host::children()
            .iter()
            .filter(|pid| !waited_for.contains(pid))
            .for_each(|pid| reap(*pid));
    }
}

/// Reaps an ended child. Any other process is left alone.
pub(super) fn reap(pid: i32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG);
    }
}

impl Registry {
    fn is_quiescent_with(&self, is_childless: bool) -> Option<Quiescence> {
        let started = self.started;
        let is_quiet = self.owns_every_child && self.active.is_empty() && is_childless;
        (started == 0 || is_quiet).then_some(Quiescence { started })
    }

    fn forget(&mut self, origin: &Origin) {
        let main = origin.main.identity();
        self.active.retain(|known| known.main.identity() != main);
        self.kept
            .retain(|known| known.origin.main.identity() != main);
    }

    fn update_kept(&mut self, procs: &[Proc]) {
        let kept = self.kept.iter_mut();
        kept.for_each(|ended| ended.add_descendants(procs));
    }

    /// The processes that only this child can have left behind: those that this process has adopted, that no run waits
    /// for and that belong to no other service. None if more than one child is running.
    fn orphans_of<'p>(&self, child: &Origin, procs: &'p [Proc]) -> impl Iterator<Item = &'p Proc> {
        let adopts = self.owns_every_child && self.active.len() <= 1;
        let (own, since) = (host::own_pid(), child.main.start);
        let waited_for = self.waited_for();
        let others = self.kept.iter();
        let others = others.filter(|other| other.origin.marker != child.marker);
        let kept: HashSet<_> = others.flat_map(|other| other.members.clone()).collect();
        procs.iter().filter(move |proc| {
            let is_adopted = adopts && proc.parent == own && !waited_for.contains(&proc.pid);
            is_adopted && proc.start >= since && !kept.contains(&proc.identity())
        })
    }

    /// Children that are waited for, including the launchers of processes that may continue.
    fn waited_for(&self) -> Vec<i32> {
        let kept = self.kept.iter().map(|child| &child.origin);
        let unreaped = self
            .active
            .iter()
            .chain(kept)
            .filter(|origin| !origin.is_reaped());
        unreaped.map(|origin| origin.main.pid).collect()
    }
}

fn lock() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry(active: Vec<Origin>) -> Registry {
        Registry {
            owns_every_child: true,
            started: 3,
            active,
            kept: Vec::new(),
            survivors: Vec::new(),
        }
    }

    fn origin() -> Origin {
        let main = Proc {
            pid: 7,
            parent: 1,
            group: 7,
            start: 1,
            state: host::State::Running,
        };
        Origin::new(main, "MARK=1".into(), false)
    }

    #[test]
    fn a_moment_is_quiescent_without_children_and_without_what_they_left_behind() {
        let quiescence = |active, childless| registry(active).is_quiescent_with(childless);
        assert_eq!(quiescence(vec![], true), Some(Quiescence { started: 3 }));
        assert_eq!(quiescence(vec![], false), None);
        assert_eq!(quiescence(vec![origin()], true), None);
        assert_eq!(quiescence(vec![origin()], false), None);
    }

    #[test]
    fn who_adopts_nothing_knows_of_calm_only_before_the_first_child() {
        let mut registry = registry(vec![]);
        registry.owns_every_child = false;
        assert_eq!(registry.is_quiescent_with(true), None);
        registry.started = 0;
        assert_eq!(
            registry.is_quiescent_with(true),
            Some(Quiescence { started: 0 })
        );
    }

    #[test]
    fn every_start_ends_the_calm_of_before() {
        let before = lock().started;
        let failed: Result<((), Origin), &str> = start(|| Err("not started"));
        assert_eq!(failed.err(), Some("not started"));
        assert!(lock().started > before);
    }
}
