//! The parts of a run in progress.

use crate::run::deliver::work_keeper::WorkKeeper;
use crate::run::state::accounts::{Accounts, CheckMemory};
use crate::run::state::emitter::Emitter;
use crate::run::state::notes::Notes;
use crate::run::state::setup::Setup;
use crate::run::state::work_tree::WorkTree;

/// The parts of a run. A function takes only the parts that it uses.
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

impl<'e> Parts<'e> {
    /// The parts that running checks uses.
    pub fn for_checks(&mut self) -> CheckParts<'_, 'e> {
        CheckParts {
            setup: &self.setup,
            tree: &mut self.tree,
            memory: &mut self.accounts.checks,
            emit: &mut self.emit,
        }
    }
}

/// The parts of a run that running checks uses.
pub struct CheckParts<'p, 'e> {
    /// What is fixed.
    pub setup: &'p Setup,
    /// The repository and the files that checks left behind.
    pub tree: &'p mut WorkTree,
    /// Results of checks.
    pub memory: &'p mut CheckMemory,
    /// Sends events.
    pub emit: &'p mut Emitter<'e>,
}
