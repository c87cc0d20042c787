//! A child for as long as somebody has to do with it.

use super::host::Proc;
use super::registry::{self, Origin};
use super::tree::Tree;

/// Keeps a child registered. Dropped before [`Registration::release`], it kills the child with all
/// its descendants: a run that is abandoned half-way leaves nothing behind.
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

    /// Lets these descendants of a child that has ended live on beside other children.
    pub(super) fn keep(&self, members: &[Proc]) {
        registry::keep(&self.origin, members);
    }

    /// Forgets the child without killing anything.
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

/// Kills every child of an unfinished run with all its descendants, and every service, at once. Blocks for the
/// fraction of a second that it takes.
pub fn kill_descendants() {
    for origin in registry::origins() {
        Tree::new(origin).kill_now();
    }
}
