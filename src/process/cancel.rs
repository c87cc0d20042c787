//! A cancellation flag for everything that is running, and the signals that set it.

use super::exit::CancelReason;
use super::service::kill_descendants;
use futures_util::future::select_all;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{io, process, thread};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// How often to check whether the parent process still exists.
const PARENT_POLL: Duration = Duration::from_millis(250);

/// A flag shared by everything that can be cancelled. Clones share the flag. It is never cleared.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    state: Arc<watch::Sender<State>>,
    /// Whether this clone ignores a deadline.
    passes_deadline: bool,
}

/// How urgent a cancellation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// End within the grace period.
    Asked,
    /// End now.
    Forced,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct State {
    reason: Option<CancelReason>,
    urgency: Option<Urgency>,
}

impl Cancel {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same flag for work after the deadline: only signals set it.
    #[must_use]
    pub fn beyond_deadline(&self) -> Self {
        Self {
            passes_deadline: true,
            ..self.clone()
        }
    }

    /// Sets the flag. The first reason stays, except that a signal replaces a deadline. Can be called
    /// from any thread.
    pub fn trigger(&self, reason: CancelReason) {
        self.state.send_if_modified(|state| {
            let before = *state;
            state.urgency = state.urgency.max(Some(Urgency::Asked));
            if matches!(state.reason, None | Some(CancelReason::Deadline)) {
                state.reason = Some(reason);
            }
            *state != before
        });
    }

    /// Sets the flag and removes the grace period: children are killed at once.
    pub fn force(&self, reason: CancelReason) {
        self.trigger(reason);
        self.state.send_if_modified(|state| {
            state.urgency.replace(Urgency::Forced) != Some(Urgency::Forced)
        });
    }

    /// Why the flag was set, if it is.
    pub fn reason(&self) -> Option<CancelReason> {
        self.counting(&self.state.borrow())
    }

    fn counting(&self, state: &State) -> Option<CancelReason> {
        let passes = |reason: &CancelReason| *reason == CancelReason::Deadline;
        state
            .reason
            .filter(|reason| !(self.passes_deadline && passes(reason)))
    }

    /// Waits until the flag is set.
    pub async fn cancelled(&self) -> CancelReason {
        self.reached(Urgency::Asked).await
    }

    /// Waits until the cancellation is at least this urgent.
    pub(super) async fn reached(&self, urgency: Urgency) -> CancelReason {
        let mut watched = self.state.subscribe();
        let reached = watched
            .wait_for(|state| state.urgency >= Some(urgency) && self.counting(state).is_some())
            .await
            .ok()
            .and_then(|state| self.counting(&state));
        match reached {
            Some(reason) => reason,
            // Cannot happen: the sender outlives this borrow, and a set flag has a reason.
            None => std::future::pending().await,
        }
    }
}

/// Makes SIGINT, SIGTERM, SIGHUP and SIGQUIT set the flag, even in a process with id 1. A second signal
/// kills all descendants at once and exits with 130 or 143, depending on the first signal. A SIGHUP that
/// was ignored at the start (`nohup`) stays ignored.
///
/// A separate thread handles the signals, so that a second signal works while the run is busy.
///
/// # Errors
/// If the thread cannot be started or a handler cannot be installed.
pub fn listen(cancel: &Cancel) -> io::Result<()> {
    let cancel = cancel.clone();
    let (installed, result) = mpsc::channel();
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
            {
                Ok(runtime) => runtime,
                Err(error) => return drop(installed.send(Err(error))),
            };
            runtime.block_on(async {
                match Handlers::install() {
                    Ok(handlers) => {
                        drop(installed.send(Ok(())));
                        handlers.serve(&cancel).await;
                    }
                    Err(error) => drop(installed.send(Err(error))),
                }
            });
        })?;
    result.recv().map_err(io::Error::other)?
}

/// Turns the file size limit (`ulimit -f`) into a write error instead of a fatal signal. Children get
/// the default behaviour. Call this inside of a runtime.
///
/// # Errors
/// If the handler cannot be installed.
pub fn survive_file_size_limit() -> io::Result<()> {
    let number = rustix::process::Signal::XFSZ.as_raw();
    // The handler stays installed after the stream of its signals is dropped.
    signal(SignalKind::from_raw(number)).map(drop)
}

/// Sets the flag once the parent process has ended, so that a run does not outlive a wrapper that was
/// killed. Meant for CI: at a prompt a job may outlive its shell.
///
/// The parent's id is polled, because the kernel's parent-death signal also fires when only the *thread*
/// that started this process ends, which is common in thread pools.
///
/// # Errors
/// If no thread can be started.
pub fn watch_parent(cancel: &Cancel) -> io::Result<()> {
    let cancel = cancel.clone();
    let parent = rustix::process::getppid();
    thread::Builder::new()
        .name("parent".into())
        .spawn(move || {
            while rustix::process::getppid() == parent {
                thread::sleep(PARENT_POLL);
            }
            cancel.trigger(CancelReason::Terminate);
        })?;
    Ok(())
}

/// The handlers of signals, each with what the signal means.
struct Handlers(Vec<(Signal, CancelReason)>);

impl Handlers {
    fn install() -> io::Result<Self> {
        let mut kinds = vec![
            (SignalKind::interrupt(), CancelReason::Interrupt),
            (SignalKind::terminate(), CancelReason::Terminate),
            (SignalKind::quit(), CancelReason::Terminate),
        ];
        if !is_ignored(SignalKind::hangup()) {
            kinds.push((SignalKind::hangup(), CancelReason::Terminate));
        }
        let installed = kinds.into_iter();
        let installed = installed.map(|(kind, reason)| Ok((signal(kind)?, reason)));
        installed.collect::<io::Result<_>>().map(Self)
    }

    async fn serve(mut self, cancel: &Cancel) {
        let first = self.next().await;
        cancel.trigger(first);
        self.next().await;
        cancel.force(first);
        kill_descendants();
        process::exit(first.exit_code().into());
    }

    async fn next(&mut self) -> CancelReason {
        let each = self.0.iter_mut().map(|(signal, reason)| {
            Box::pin(async {
                signal.recv().await;
                *reason
            })
        });
        select_all(each).await.0
    }
}

/// Undoes what would keep Sprag from working. A blocked signal cannot cancel a run, and while SIGCHLD is ignored
/// the kernel discards how children ended. Other signals that are ignored stay so: the child of a shell that
/// ignores one is meant to ignore it. Call this before any thread is started.
///
/// # Errors
/// If a handler cannot be installed.
pub fn restore_signals() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    nix::sys::signal::SigSet::empty().thread_set_mask()?;
    if !is_ignored(SignalKind::child()) {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    // The handler stays installed after the stream of its signals is dropped. A program that is executed gets the
    // default behaviour instead of it.
    runtime.block_on(async { signal(SignalKind::child()).map(drop) })
}

/// Whether this process ignores a signal, as far as the system reports it.
pub(super) fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (kind.as_raw_value() - 1)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stays_but_a_deadline_gives_way_to_a_signal() {
        let cases = [
            (vec![], None),
            (vec![CancelReason::Deadline], Some(CancelReason::Deadline)),
            (
                vec![CancelReason::Interrupt, CancelReason::Terminate],
                Some(CancelReason::Interrupt),
            ),
            (
                vec![CancelReason::Deadline, CancelReason::Terminate],
                Some(CancelReason::Terminate),
            ),
            (
                vec![CancelReason::Terminate, CancelReason::Deadline],
                Some(CancelReason::Terminate),
            ),
        ];
        for (triggers, expected) in cases {
            let cancel = Cancel::new();
            triggers
                .iter()
                .for_each(|reason| cancel.clone().trigger(*reason));
            assert_eq!(cancel.reason(), expected, "{triggers:?}");
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_is_beyond_the_deadline_ends_by_a_signal_alone() {
        let cancel = Cancel::new();
        let beyond = cancel.beyond_deadline();
        cancel.trigger(CancelReason::Deadline);
        assert_eq!(beyond.reason(), None);
        cancel.trigger(CancelReason::Terminate);
        assert_eq!(beyond.reason(), Some(CancelReason::Terminate));
        assert_eq!(beyond.cancelled().await, CancelReason::Terminate);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_waiter_is_woken_from_another_thread() {
        let cancel = Cancel::new();
        let other = cancel.clone();
        let thread = thread::spawn(move || other.trigger(CancelReason::Deadline));
        assert_eq!(cancel.cancelled().await, CancelReason::Deadline);
        thread.join().unwrap();
    }

    #[tokio::test(flavor = "current_thread")]
    async fn only_force_takes_the_grace_away() {
        let cancel = Cancel::new();
        cancel.trigger(CancelReason::Interrupt);
        cancel.trigger(CancelReason::Terminate);
        tokio::select! {
            biased;
            _ = cancel.reached(Urgency::Forced) => panic!("two reasons are not force"),
            () = std::future::ready(()) => {}
        }
        cancel.force(CancelReason::Terminate);
        assert_eq!(
            cancel.reached(Urgency::Forced).await,
            CancelReason::Interrupt
        );
    }
}
