//! The signals of this process as the program that started it left them.

use std::io;
use tokio::signal::unix::{SignalKind, signal};

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
    let mask = std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let ignored = status
                .lines()
                .find_map(|line| line.strip_prefix("SigIgn:"))?;
            u64::from_str_radix(ignored.trim(), 16).ok()
        });
    mask.is_some_and(|mask| mask & (1 << (kind.as_raw_value() - 1)) != 0)
}
