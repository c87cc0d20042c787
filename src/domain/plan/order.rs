//! The order in which tasks are done.

use super::{Plan, Task, TaskId};
use crate::suggest::did_you_mean;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

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
    let index: HashMap<&TaskId, usize> = plan
        .tasks
        .iter()
        .enumerate()
        .map(|(index, task)| (&task.id, index))
        .collect();
    if let Some(id) = only.iter().find(|id| !index.contains_key(id)) {
        let suggestion = did_you_mean(id.as_str(), plan.tasks.iter().map(|t| t.id.as_str()));
        return Err(UnknownTask {
            id: id.clone(),
            suggestion,
        });
    }
    let wanted: HashSet<&TaskId> = only.iter().collect();
    let ordered = ordered(plan, &index).into_iter();
    let selected = ordered.filter(|task| wanted.is_empty() || wanted.contains(&task.id));
    Ok(selected.collect())
}

fn ordered<'a>(plan: &'a Plan, index: &HashMap<&TaskId, usize>) -> Vec<&'a Task> {
    let mut waiting_for = vec![0_usize; plan.tasks.len()];
    let mut dependents = vec![Vec::new(); plan.tasks.len()];
    for (task, waiting) in plan.tasks.iter().zip(&mut waiting_for) {
        for dependency in task.depends_on.iter().filter_map(|id| index.get(id)) {
            *waiting += 1;
            dependents[*dependency].push(index[&task.id]);
        }
    }
    let free = waiting_for
        .iter()
        .enumerate()
        .filter(|(_, count)| **count == 0);
    let mut ready: BinaryHeap<Reverse<usize>> = free.map(|(task, _)| Reverse(task)).collect();
    let mut ordered = Vec::with_capacity(plan.tasks.len());
    while let Some(Reverse(next)) = ready.pop() {
        ordered.push(&plan.tasks[next]);
        for &dependent in &dependents[next] {
            waiting_for[dependent] -= 1;
            if waiting_for[dependent] == 0 {
                ready.push(Reverse(dependent));
            }
        }
    }
    ordered
}
