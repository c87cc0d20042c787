//! The tasks of a run, in order.

use crate::domain::outcome::Outcome;
use crate::domain::plan::Task;
use crate::domain::schedule::Rules;
use crate::run::state::task::TaskStart;
use std::collections::{BTreeMap, BTreeSet};

/// The tasks of a run, in order.
#[derive(Debug, Clone, Default)]
pub struct RunPlan {
    /// The selected tasks, in order of execution.
    pub tasks: Vec<(Task, TaskStart)>,
    /// Ids of tasks that were done before the run.
    pub done_before: BTreeSet<String>,
    /// Outcomes from an earlier process of this run.
    pub outcomes: BTreeMap<String, Outcome>,
    /// When the run stops.
    pub rules: Rules,
}
