//! The registration of a child in use.

use super::host::Proc;
use super::registry::{self, Origin};
use super::tree::Tree;
use std::time::Duration;
use tokio::process::Child;
use tokio::time::timeout;

/// How long to wait for a launcher whose descendants have all ended.
const REAPING: Duration = Duration::from_secs(1);

/// Keeps a child registered. If it is dropped before [`Registration::release`], it kills the child and
/// all of its descendants, so that an abandoned run leaves nothing behind.
#[derive(Debug)]
pub(super) struct Registration {
    origin: Origin,
    released: bool,
}

impl Registration {
    /// Starts a child and registers it in one step.
    pub(super) fn start<T, E>(
        launch: impl FnOnce() -> Result<(T, Origin), E>,
    ) -> Result<(T, Self), E> {
        let (child, origin) = registry::start(launch)?;
        let registration = Self {
            origin,
            released: false,
        };
        Ok((child, registration))
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Lets these descendants of an ended child continue while other children run.
    pub(super) fn keep(&self, members: &[Proc]) {
        registry::keep(&self.origin, members);
    }

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
