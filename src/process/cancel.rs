//! One flag that ends whatever is running, and the signals that raise it.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;
use std::{io, process, thread};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::exit::CancelReason;
use super::registration::kill_descendants;

/// How often a process without a parent to wait for looks whether its parent is still there.
const PARENT_POLL: Duration = Duration::from_millis(250);

/// A flag shared by everything that can be cancelled. Clones are the same flag. It is never
/// lowered again.
#[derive(Debug, Clone)]
pub struct Cancel {
    state: Arc<watch::Sender<State>>,
    /// Whether this clone lets a deadline pass.
    passes_deadline: bool,
}

/// How far a cancellation has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// End, and take the grace period to do it.
    Asked,
    /// End now.
    Forced,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct State {
    reason: Option<CancelReason>,
    urgency: Option<Urgency>,
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

impl Cancel {
    /// A flag that is not raised.
    pub fn new() -> Self {
        Self {
            state: Arc::new(watch::Sender::new(State::default())),
            passes_deadline: false,
        }
    }

    /// The same flag for what is still to be done after the deadline: only signals raise it.
    #[must_use]
    pub fn beyond_deadline(&self) -> Self {
        Self {
            passes_deadline: true,
            ..self.clone()
        }
    }

    /// Raises the flag. The first reason stays, but for a deadline, which gives way to a signal.
    /// Can be called from any thread.
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

    /// Raises the flag and takes away the grace period: children are killed at once.
    pub fn force(&self, reason: CancelReason) {
        self.trigger(reason);
        self.state.send_if_modified(|state| {
            state.urgency.replace(Urgency::Forced) != Some(Urgency::Forced)
        });
    }

    /// Why the flag was raised, if it was.
    pub fn reason(&self) -> Option<CancelReason> {
        self.counting(&self.state.borrow())
    }

    fn counting(&self, state: &State) -> Option<CancelReason> {
        let passes = |reason: &CancelReason| *reason == CancelReason::Deadline;
        state
            .reason
            .filter(|reason| !(self.passes_deadline && passes(reason)))
    }

    /// Waits until the flag is raised.
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
            // The sender lives as long as this borrow and a raised flag has a reason.
            None => std::future::pending().await,
        }
    }
}

/// Makes SIGINT, SIGTERM, SIGHUP and SIGQUIT raise the flag, also in a process with the id 1. A second
/// signal kills all descendants at once and ends the process with 130 or 143, by the first signal.
/// A SIGHUP that was ignored at the start (`nohup`) stays ignored.
///
/// The signals are handled on a thread of their own, so that a second signal works while the run
/// is busy.
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

/// Makes a file that may not grow any further (`ulimit -f`) an error of the write, not the end of the
/// process. Children have the system's default again. To be called in a runtime.
///
/// # Errors
/// If the handler cannot be installed.
pub fn survive_file_size_limit() -> io::Result<()> {
    let number = rustix::process::Signal::XFSZ.as_raw();
    // The handler stays when the stream of its signals is dropped.
    signal(SignalKind::from_raw(number)).map(drop)
}

/// Raises the flag once the process that started this one is gone, so that a run does not outlive
/// a wrapper that was killed. Meant for CI; at a prompt a job may well outlive its shell.
///
/// The parent's id is polled: the kernel's parent-death signal also fires when only the *thread*
/// that started this process ends, which thread pools do all the time.
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

struct Handlers {
    interrupt: Signal,
    terminate: Signal,
    quit: Signal,
    hangup: Option<Signal>,
}

impl Handlers {
    fn install() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            hangup: if hangup_is_ignored() {
                None
            } else {
                Some(signal(SignalKind::hangup())?)
            },
        })
    }

    async fn serve(mut self, cancel: &Cancel) {
        let first = self.next().await;
        cancel.trigger(first);
        self.next().await;
        cancel.force(first);
        kill_descendants();
        process::exit(first.exit_code());
    }

    async fn next(&mut self) -> CancelReason {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => CancelReason::Interrupt,
            _ = self.terminate.recv() => CancelReason::Terminate,
            _ = self.quit.recv() => CancelReason::Terminate,
            _ = hangup => CancelReason::Terminate,
        }
    }
}

/// Whether SIGHUP is ignored, as far as the system tells.
pub(super) fn hangup_is_ignored() -> bool {
    let mask = std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let ignored = status
                .lines()
                .find_map(|line| line.strip_prefix("SigIgn:"))?;
            u64::from_str_radix(ignored.trim(), 16).ok()
        });
    mask.is_some_and(|mask| mask & (1 << (SignalKind::hangup().as_raw_value() - 1)) != 0)
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
