//! The order in which tasks are done.

use super::graph::in_order;
use super::{Plan, Task, TaskId};
use crate::suggest::did_you_mean;
use std::collections::{HashMap, HashSet};

/// The selection names a task that the plan does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the plan has no task `{id}`{suggestion}")]
pub struct UnknownTask {
    /// The requested id.
    pub id: TaskId,
    /// ` (did you mean …?)`, or empty.
    pub suggestion: String,
}

/// The tasks to do: dependencies first, otherwise in the file's order. Of the tasks that could come next, the
/// first one in the file does. With `only`, just those tasks; their dependencies are not added.
///
/// # Errors
/// When `only` names a task that does not exist.
pub fn selection<'a>(plan: &'a Plan, only: &[TaskId]) -> Result<Vec<&'a Task>, UnknownTask> {
    let ids = plan.tasks.iter().map(|task| &task.id);
    let index: HashMap<&TaskId, usize> = ids.clone().zip(0..).collect();
    if let Some(id) = only.iter().find(|id| !index.contains_key(id)) {
        let suggestion = did_you_mean(id.as_str(), ids.map(TaskId::as_str));
        return Err(UnknownTask {
            id: id.clone(),
            suggestion,
        });
    }
    let needed = |task: &Task| {
        let known = task.depends_on.iter().filter_map(|id| index.get(id));
        known.copied().collect()
    };
    let edges: Vec<Vec<usize>> = plan.tasks.iter().map(needed).collect();
    let wanted: HashSet<&TaskId> = only.iter().collect();
    let ordered = in_order(&edges).into_iter().map(|task| &plan.tasks[task]);
    let selected = ordered.filter(|task| wanted.is_empty() || wanted.contains(&task.id));
    Ok(selected.collect())
}
