//! What git processes may use: memory, output, and time once the run is to stop.

use crate::process::Cancel;
use std::process::Child;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How much memory a git process may allocate, in bytes. Packs that it maps do not count.
pub(crate) const MEMORY: u64 = 4 << 30;

/// How many bytes of a command's output are kept in memory.
pub(super) const OUTPUT: usize = 512 << 20;

/// How long all git processes of a run together may work after a signal. GitHub sends the second one after 7.5 seconds.
const AFTER_SIGNAL: Duration = Duration::from_secs(5);

/// Ends git processes soon after a signal has asked the run to stop. Clones share everything.
#[derive(Debug, Clone)]
pub(crate) struct Stop(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// How long git processes may work after a signal.
    limit: Duration,
    /// The signal, and what multiplies the limit.
    signal: OnceLock<(Cancel, u32)>,
    /// How long git processes have worked since the signal, in microseconds.
    worked: AtomicU64,
    /// How many [`Unbroken`] there are.
    unbroken: AtomicU32,
}

/// While it exists, no git process is ended by [`Stop`].
#[derive(Debug)]
pub(crate) struct Unbroken(Stop);

impl Default for Stop {
    fn default() -> Self {
        Self::after(AFTER_SIGNAL)
    }
}

impl Stop {
    /// Ends git processes when they have worked so long together after a signal.
    pub(super) fn after(limit: Duration) -> Self {
        Self(Arc::new(Shared {
            limit,
            ..Shared::default()
        }))
    }

    /// From now on, signals that set this flag count. `times` multiplies the limit. Only the first flag counts.
    pub(crate) fn follow(&self, cancel: &Cancel, times: u32) {
        // The deadline of a run leaves time for its end.
        let _ = self.0.signal.set((cancel.beyond_deadline(), times));
    }

    /// Whether git processes are ended at once.
    pub(crate) fn is_over(&self) -> bool {
        self.passed(Duration::ZERO)
    }

    /// Counts the time that a git process has worked. Returns whether it must end.
    pub(super) fn passed(&self, time: Duration) -> bool {
        let shared = &self.0;
        let signal = shared
            .signal
            .get()
            .filter(|(cancel, _)| cancel.reason().is_some());
        let is_unbroken = || shared.unbroken.load(Ordering::Relaxed) > 0;
        let Some((_, times)) = signal.filter(|_| !is_unbroken()) else {
            return false;
        };
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let before = shared.worked.fetch_add(time, Ordering::Relaxed);
        Duration::from_micros(before.saturating_add(time)) >= shared.limit.saturating_mul(*times)
    }

    /// Lets the git processes of what must not end halfway work to their ends.
    pub(crate) fn unbroken(&self) -> Unbroken {
        self.0.unbroken.fetch_add(1, Ordering::Relaxed);
        Unbroken(self.clone())
    }
}

impl Drop for Unbroken {
    fn drop(&mut self) {
        self.0.0.unbroken.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Limits the memory of a git process that was just started, and of those that it starts from now on.
#[cfg(target_os = "linux")]
pub(super) fn limit_memory(child: &Child) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let limit = Rlimit {
        current: Some(MEMORY),
        maximum: Some(MEMORY),
    };
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // It fails if the process has ended, or has a lower limit.
    let _ = pid.map(|pid| prlimit(Some(pid), Resource::Data, limit));
}

/// Only Linux can limit the memory of another process.
#[cfg(not(target_os = "linux"))]
pub(super) fn limit_memory(_: &Child) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::CancelReason;

    #[test]
    fn time_counts_from_the_signal_on_and_not_while_something_is_unbroken() {
        let stop = Stop::default();
        let cancel = Cancel::new();
        let other = stop.clone();
        assert!(!stop.passed(AFTER_SIGNAL));
        other.follow(&cancel, 1);
        cancel.trigger(CancelReason::Deadline);
        assert!(!stop.passed(AFTER_SIGNAL));
        cancel.trigger(CancelReason::Interrupt);
        let unbroken = stop.unbroken();
        assert!(!stop.passed(AFTER_SIGNAL) && !stop.is_over());
        drop(unbroken);
        let most = AFTER_SIGNAL - Duration::from_millis(1);
        assert!(!stop.passed(most) && !other.is_over());
        assert!(other.passed(Duration::from_millis(1)) && stop.is_over());
    }

    #[test]
    fn the_limit_after_a_signal_can_be_multiplied() {
        let stop = Stop::default();
        let cancel = Cancel::new();
        stop.follow(&cancel, 3);
        cancel.trigger(CancelReason::Interrupt);
        assert!(!stop.passed(AFTER_SIGNAL * 2) && stop.passed(AFTER_SIGNAL));
    }
}
