//! The parts of a run that is under way.

use crate::run::accounts::Accounts;
use crate::run::emitter::Emitter;
use crate::run::notes::Notes;
use crate::run::recorder::Recorder;
use crate::run::setup::Setup;
use crate::run::work_keeper::WorkKeeper;
use crate::run::work_tree::WorkTree;

/// The parts of a run. Who performs something takes those that it uses.
pub struct Parts<'e> {
    /// What is fixed.
    pub setup: Setup,
    /// The repository, the files that checks left behind, and the plan.
    pub tree: WorkTree,
    /// What is kept count of.
    pub accounts: Accounts,
    /// What tasks leave for later ones.
    pub notes: Notes,
    /// Where events go.
    pub emit: Emitter<'e>,
    /// Takes the sessions of the built-in agent, where that is asked for.
    pub recorder: Option<Recorder>,
    /// Keeps unfinished work on GitHub, where the run may push.
    pub(crate) keeper: Option<WorkKeeper>,
}
