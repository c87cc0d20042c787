//! Processes that a command leaves running on purpose, such as a database for tests or a development
//! server.

use super::launcher::Launcher;
use super::registry::{self, Origin};
use super::tree::Tree;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Child;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// How often to check whether members of the tree are still alive.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// How many bytes of output are read and discarded at once.
const CHUNK: usize = 16 << 10;

/// Processes that outlive the child that started them. Their output is read and discarded, so that they
/// can continue writing. They do not count as leaked by children that run meanwhile. Dropping the
/// service kills them, and so does [`super::kill_descendants`].
#[derive(Debug)]
pub struct Service {
    // Declared first to be dropped first: it kills what is still alive.
    pub(super) registration: Registration,
    pub(super) tree: Tree,
    /// The process that was started. If it is a launcher, it is still running.
    pub(super) child: Child,
    /// Dropping it ends the processes.
    pub(super) _launcher: Option<Launcher>,
    pub(super) readers: [Option<JoinHandle<()>>; 2],
}

impl Service {
    /// Ends all processes: SIGTERM, and SIGKILL for those left after `grace`.
    pub async fn end(mut self, grace: Duration) {
        // A grace period that the clock cannot represent lasts until everything has ended.
        let deadline = Instant::now().checked_add(grace);
        while self.tree.terminate() > 0 {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.tree.kill_now();
                break;
            }
            sleep(CHECK_INTERVAL).await;
        }
        for reader in self.readers.iter().flatten() {
            reader.abort();
        }
        self.registration.reap(&mut self.child).await;
        registry::reap_orphans();
        self.registration.release();
    }
}

/// Reads and discards what comes of an output.
pub(super) fn discard(mut pipe: impl AsyncRead + Unpin + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut buffer = vec![0; CHUNK];
        while pipe.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
    })
}

/// How long to wait for a launcher whose descendants have all ended.
const REAPING: Duration = Duration::from_secs(1);

/// Keeps a child registered. If it is dropped before [`Registration::release`], it kills the child and
/// all of its descendants, so that an abandoned run leaves nothing behind.
#[derive(Debug)]
pub(super) struct Registration {
    pub(super) origin: Origin,
    pub(super) released: bool,
}

impl Registration {
    /// Waits for the end of the child after all of its descendants have ended.
    pub(super) async fn reap(&self, child: &mut Child) {
        if timeout(REAPING, child.wait()).await.is_ok() {
            self.origin.set_reaped();
        }
    }

    /// Removes the child from the registry without killing anything.
    pub(super) fn release(mut self) {
        self.released = true;
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if !self.released {
            Tree::new(self.origin.clone()).kill_now();
        }
        registry::forget(&self.origin);
    }
}

/// Kills every child of an unfinished run with all of its descendants, and every service, at once.
/// Blocks for a fraction of a second.
pub fn kill_descendants() {
    for origin in registry::origins() {
        Tree::new(origin).kill_now();
    }
}
