//! A launcher that was started elsewhere than by [`super::run`].

use super::host::{self, Proc};
use super::registry::Origin;
use super::tree::Tree;
use crate::domain::settings::variables::PROCESS_ID;
use std::ffi::OsString;
use uuid::Uuid;

/// Identifies a launcher, so that what it should have ended can be ended if it was killed itself.
#[derive(Debug)]
pub struct LauncherMark {
    id: String,
    launcher: Option<Proc>,
}

impl LauncherMark {
    /// A mark for a launcher that is about to be started.
    #[expect(clippy::new_without_default, reason = "every mark is another one")]
    pub fn new() -> Self {
        Self {
            id: Uuid::new_v4().to_string(),
            launcher: None,
        }
    }

    /// The variable that marks the launcher and its descendants.
    pub fn variable(&self) -> (OsString, OsString) {
        (PROCESS_ID.into(), self.id.clone().into())
    }

    /// Notes the launcher right after its start.
    pub fn note(&mut self, pid: u32) {
        self.launcher = i32::try_from(pid).ok().and_then(host::find);
    }

    /// Kills what is left of the descendants of a launcher that was reaped, and blocks until they are gone.
    pub fn kill_remains(&self) {
        let Some(launcher) = self.launcher else {
            return;
        };
        let origin = Origin::new(launcher, format!("{PROCESS_ID}={}", self.id), false);
        origin.set_reaped();
        Tree::new(origin).kill_now();
    }
}
