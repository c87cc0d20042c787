//! The parts of a run in progress.

use crate::run::accounts::Accounts;
use crate::run::emitter::Emitter;
use crate::run::notes::Notes;
use crate::run::recorder::Recorder;
use crate::run::setup::Setup;
use crate::run::work_keeper::WorkKeeper;
use crate::run::work_tree::WorkTree;

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
    /// Records the sessions of the built-in agent, if requested.
    pub recorder: Option<Recorder>,
    /// Saves unfinished work on GitHub, if the run may push.
    pub(crate) keeper: Option<WorkKeeper>,
}
