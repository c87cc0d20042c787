//! What a run is to do, in order.

use crate::domain::outcome::Outcome;
use crate::domain::plan::Task;
use crate::domain::schedule::Rules;
use crate::run::task::TaskStart;
use std::collections::{BTreeMap, BTreeSet};

/// What is to be done, in order.
#[derive(Debug, Clone, Default)]
pub struct RunPlan {
    /// The selected tasks, in the order in which they are worked on.
    pub tasks: Vec<(Task, TaskStart)>,
    /// Ids of tasks that were done before the run.
    pub done_before: BTreeSet<String>,
    /// What an earlier process of this run has brought.
    pub outcomes: BTreeMap<String, Outcome>,
    /// When to stop.
    pub rules: Rules,
    /// What other jobs have made of the tasks, where that is brought together instead.
    pub shards: Vec<String>,
}
