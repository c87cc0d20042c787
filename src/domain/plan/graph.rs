//! Assigns ids, and resolves and checks dependencies.

use super::kind::kind_of;
use super::native::Draft;
use super::{Task, TaskId};
use crate::suggest::did_you_mean;
use crate::text::{first_line, one_line};
use crate::text_error::{Fault, Position};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

/// The maximum length of a title derived from a description, in characters.
const MAX_DERIVED_TITLE: usize = 72;

/// The ids of the drafts: given ids are checked; the others become `t1`, `t2` … by position, skipping ids
/// that are taken.
pub(super) fn ids(drafts: &[Draft]) -> Result<Vec<TaskId>, Fault> {
    let mut first_line: HashMap<TaskId, usize> = HashMap::new();
    for (text, at) in drafts.iter().filter_map(|draft| draft.id.as_ref()) {
        let id = TaskId::new(text)
            .map_err(|expected| Fault::new(*at, format!("id must be {expected}, got `{text}`")))?;
        if let Some(line) = first_line.insert(id.clone(), at.line) {
            let message = format!(
                "the task id `{id}` is given twice, first on line {line}; give one of them another id"
            );
            return Err(Fault::new(*at, message));
        }
    }
    let mut next = 0;
    let id = |(index, draft): (usize, &Draft)| {
        if let Some((text, _)) = &draft.id {
            return TaskId(text.clone());
        }
        next = next.max(index) + 1;
        while first_line.contains_key(&TaskId(format!("t{next}"))) {
            next += 1;
        }
        TaskId(format!("t{next}"))
    };
    Ok(drafts.iter().enumerate().map(id).collect())
}

/// Completes the tasks: they have ids, and known dependencies without a cycle.
pub(super) fn finish(drafts: Vec<Draft>) -> Result<Vec<Task>, Fault> {
    let ids = ids(&drafts)?;
    let index: HashMap<&str, usize> = ids.iter().map(TaskId::as_str).zip(0..).collect();
    let edges = drafts
        .iter()
        .map(|draft| known_dependencies(draft, &index, &ids));
    let edges: Vec<Vec<usize>> = edges.collect::<Result<_, _>>()?;
    refuse_cycles(&edges, &drafts, &ids)?;
    let tasks = drafts.into_iter().zip(&ids).zip(edges);
    tasks
        .map(|((draft, id), dependencies)| {
            let dependencies = dependencies.into_iter().map(|index| ids[index].clone());
            task(draft, id.clone(), dependencies.collect())
        })
        .collect()
}

fn known_dependencies(
    draft: &Draft,
    index: &HashMap<&str, usize>,
    ids: &[TaskId],
) -> Result<Vec<usize>, Fault> {
    let mut known = Vec::with_capacity(draft.depends_on.len());
    let mut seen = HashSet::new();
    for (id, at) in &draft.depends_on {
        let Some(&dependency) = index.get(id.as_str()) else {
            let remedy = match did_you_mean(id, ids.iter().map(TaskId::as_str)) {
                none if none.is_empty() => "; add that task or remove the dependency".to_owned(),
                suggestion => suggestion,
            };
            let message = format!("depends_on names the task `{id}`, which does not exist{remedy}");
            return Err(Fault::new(*at, message));
        };
        if seen.insert(dependency) {
            known.push(dependency);
        }
    }
    Ok(known)
}

fn task(draft: Draft, id: TaskId, depends_on: Vec<TaskId>) -> Result<Task, Fault> {
    let at = draft.at.unwrap_or(Position::START);
    let mut title = draft.title;
    if title.is_empty() {
        title = derived_title(&draft.description);
    }
    if title.is_empty() {
        let message = format!("the task `{id}` has neither a `title` nor a `description`");
        return Err(Fault::new(at, message));
    }
    let kind = draft.kind;
    let kind = kind.unwrap_or_else(|| kind_of(&title, &draft.description));
    Ok(Task {
        id,
        kind,
        title,
        description: draft.description,
        acceptance: draft.acceptance,
        depends_on,
        directory: draft.directory,
        settings: draft.settings,
        status: draft.status,
        attempts: draft.attempts,
        completed_at: draft.completed_at,
        line: at.line,
    })
}

/// Derives a title from the first line of a longer text that is not empty.
pub(super) fn derived_title(text: &str) -> String {
    one_line(first_line(text), MAX_DERIVED_TITLE)
}

/// Tasks that wait for each other are those that no order reaches. Their first one leads to a cycle.
fn refuse_cycles(edges: &[Vec<usize>], drafts: &[Draft], ids: &[TaskId]) -> Result<(), Fault> {
    let ordered: HashSet<usize> = in_order(edges).into_iter().collect();
    let is_left = |task: &usize| !ordered.contains(task);
    let Some(first) = (0..edges.len()).find(is_left) else {
        return Ok(());
    };
    let mut path = vec![first];
    loop {
        let last = path[path.len() - 1];
        // A task that is left waits for another one that is left.
        let Some(next) = edges[last].iter().copied().find(is_left) else {
            return Ok(());
        };
        if let Some(from) = path.iter().position(|task| *task == next) {
            return Err(cycle_fault(&path[from..], drafts, ids));
        }
        path.push(next);
    }
}

/// The indexes of tasks in the order in which they are done: dependencies first, and of the tasks that could come next
/// the first one. Those of a cycle, and those that wait for one, are missing.
pub(super) fn in_order(edges: &[Vec<usize>]) -> Vec<usize> {
    let mut waiting: Vec<usize> = edges.iter().map(Vec::len).collect();
    let mut dependents = vec![Vec::new(); edges.len()];
    for (task, dependencies) in edges.iter().enumerate() {
        for dependency in dependencies {
            dependents[*dependency].push(task);
        }
    }
    let free = (0..edges.len()).filter(|task| waiting[*task] == 0);
    let mut ready: BinaryHeap<Reverse<usize>> = free.map(Reverse).collect();
    let mut ordered = Vec::with_capacity(edges.len());
    while let Some(Reverse(next)) = ready.pop() {
        ordered.push(next);
        for &dependent in &dependents[next] {
            waiting[dependent] -= 1;
            if waiting[dependent] == 0 {
                ready.push(Reverse(dependent));
            }
        }
    }
    ordered
}

/// Reports the cycle, starting with its first task in the file, at that task's dependency.
fn cycle_fault(cycle: &[usize], drafts: &[Draft], ids: &[TaskId]) -> Fault {
    let first = (0..cycle.len()).min_by_key(|&place| cycle[place]);
    let mut around = cycle.to_vec();
    around.rotate_left(first.unwrap_or_default());
    around.push(around[0]);
    let mut names: Vec<&str> = around.iter().map(|&task| ids[task].as_str()).collect();
    if names.len() > 12 {
        names.splice(6..names.len() - 5, ["…"]);
    }
    let wanted = ids[around[1]].as_str();
    let mut needed = drafts[around[0]].depends_on.iter();
    let dependency = needed.find(|(id, _)| id == wanted);
    let at = dependency.map_or(Position::START, |(_, at)| *at);
    let names = names.join(" -> ");
    let message = format!("depends_on has a cycle: {names}; remove one of these dependencies");
    Fault::new(at, message)
}
