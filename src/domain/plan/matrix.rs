//! Groups a plan's tasks so that parallel jobs can work on groups that do not depend on each other.

use super::{Plan, Task, TaskId, TaskStatus, selection};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;

/// The maximum number of rows, which is GitHub's limit on the jobs of one matrix.
pub const MAX_ROWS: usize = 256;

/// The `strategy.matrix` of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Matrix {
    /// One row for each job.
    pub include: Vec<Row>,
}

/// The tasks of one job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The id of its first task, which is unique among the rows.
    pub name: String,
    /// The ids of its tasks in the order of their execution, separated by spaces.
    pub tasks: String,
}

/// Groups the open tasks so that no group depends on another: one group per connected component of their
/// dependencies, packed into at most `shards` rows.
pub fn matrix(plan: &Plan, shards: Option<usize>) -> Matrix {
    let order: Vec<&TaskId> = undone(plan);
    let place: HashMap<&TaskId, usize> = order.iter().copied().zip(0..).collect();
    let mut groups = components(plan, &order, &place);
    let most = shards.unwrap_or(MAX_ROWS).clamp(1, MAX_ROWS);
    // Largest first, each into the row with the fewest tasks, so that the rows have similar sizes.
    groups.sort_by_key(|group| Reverse(group.len()));
    let mut rows: Vec<Vec<usize>> = Vec::new();
    for group in groups {
        let is_full = rows.len() == most;
        match rows.iter_mut().min_by_key(|row| row.len()) {
            Some(row) if is_full => row.extend(group),
            _ => rows.push(group),
        }
    }
    rows.iter_mut().for_each(|row| row.sort_unstable());
    rows.sort_by_key(|row| row.first().copied());
    let row = |row: Vec<usize>| {
        let ids: Vec<&str> = row.iter().map(|&at| order[at].as_str()).collect();
        Row {
            name: ids[0].to_owned(),
            tasks: ids.join(" "),
        }
    };
    Matrix {
        include: rows.into_iter().map(row).collect(),
    }
}

/// The tasks that are not done, dependencies first.
fn undone(plan: &Plan) -> Vec<&TaskId> {
    let order = selection(plan, &[]).unwrap_or_default();
    let is_left = |task: &&Task| task.status != TaskStatus::Done;
    let left = order.into_iter().filter(is_left);
    left.map(|task| &task.id).collect()
}

/// The indexes of connected tasks, each component in order.
fn components(plan: &Plan, order: &[&TaskId], place: &HashMap<&TaskId, usize>) -> Vec<Vec<usize>> {
    let mut group: Vec<usize> = (0..order.len()).collect();
    for task in &plan.tasks {
        let Some(&from) = place.get(&task.id) else {
            continue;
        };
        for &to in task.depends_on.iter().filter_map(|id| place.get(id)) {
            let (one, other) = (group[from].min(group[to]), group[from].max(group[to]));
            if one != other {
                let joined = group.iter_mut().filter(|of| **of == other);
                joined.for_each(|of| *of = one);
            }
        }
    }
    let mut groups: Vec<Vec<usize>> = vec![Vec::new(); order.len()];
    for (at, of) in group.into_iter().enumerate() {
        groups[of].push(at);
    }
    groups.retain(|group| !group.is_empty());
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::parse;

    fn rows(tasks: &[(&str, &[&str], &str)], shards: Option<usize>) -> Vec<String> {
        let tasks: Vec<serde_json::Value> = tasks
            .iter()
            .map(|(id, on, status)| {
                serde_json::json!({"id": id, "title": id, "depends_on": on, "status": status})
            })
            .collect();
        let text = serde_json::json!({"title": "T", "tasks": tasks}).to_string();
        let plan = parse("plan.json", text.as_bytes()).unwrap().value;
        let rows = matrix(&plan, shards).include.into_iter();
        rows.map(|row| format!("{}: {}", row.name, row.tasks))
            .collect()
    }

    const PLAN: &[(&str, &[&str], &str)] = &[
        ("a", &[], "done"),
        ("b", &["a"], "pending"),
        ("c", &["e"], "pending"),
        ("d", &["a"], "failed"),
        ("e", &[], "pending"),
        ("f", &["b"], "pending"),
        ("g", &[], "pending"),
    ];

    #[test]
    fn a_row_is_a_component_of_what_is_left() {
        assert_eq!(rows(PLAN, None), ["b: b f", "d: d", "e: e c", "g: g"]);
    }

    #[test]
    fn rows_are_packed_evenly() {
        assert_eq!(rows(PLAN, Some(2)), ["b: b d f", "e: e c g"]);
        assert_eq!(rows(PLAN, Some(1)), ["b: b d e c f g"]);
        assert_eq!(rows(PLAN, Some(9)).len(), 4);
    }

    #[test]
    fn a_plan_that_is_done_has_no_row() {
        assert!(rows(&[("a", &[], "done")], None).is_empty());
    }
}
