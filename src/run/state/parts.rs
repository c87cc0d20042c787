//! The parts of a run in progress.

use crate::run::deliver::work_keeper::WorkKeeper;
use crate::run::state::accounts::Accounts;
use crate::run::state::emitter::Emitter;
use crate::run::state::notes::Notes;
use crate::run::state::setup::Setup;
use crate::run::state::work_tree::{SnapshotPair, WorkTree};

/// The parts of a run. A step takes all of them.
pub struct Parts<'e> {
    /// What is fixed.
    pub setup: Setup,
    /// The repository, the files that checks left behind, and the plan.
    pub tree: WorkTree,
    /// Spend, counters and results of checks.
    pub accounts: Accounts,
    /// Notes that tasks leave for later ones.
    pub notes: Notes,
    /// Sends events.
    pub emit: Emitter<'e>,
    /// Saves unfinished work on GitHub, if the run may push.
    pub(crate) keeper: Option<WorkKeeper>,
}

impl Parts<'_> {
    /// Takes a new snapshot of the repository. Its warnings are emitted.
    pub fn snapshot(&mut self) -> SnapshotPair {
        self.tree.snapshot(&mut self.emit)
    }

    /// The last snapshot, as [`WorkTree::last_snapshot`] says.
    pub fn last_snapshot(&mut self) -> SnapshotPair {
        self.tree.last_snapshot(&mut self.emit)
    }

    /// Sends a warning.
    pub fn warn(&mut self, message: impl Into<String>) {
        self.emit.warn(message);
    }

    /// Sends a warning unless the same one was sent before.
    pub fn warn_once(&mut self, message: &str) {
        self.emit.warn_once(message);
    }
}
