//! The `tasks.json` of task-master, with or without tags.

use super::state::{TASKMASTER, holder};
use super::{draft_from, ignored, optional_text, plan_from, root_of, task_status};
use crate::plan::native::{Draft, task_entries};
use crate::plan::source::Source;
use crate::plan::{Plan, TaskStatus};
use crate::text_error::Fault;
use crate::yaml::{Node, read};

const KEYS: &[&str] = &["tasks", "metadata", "master"];
const TASK_KEYS: &[&str] = &[
    "id",
    "title",
    "description",
    "details",
    "testStrategy",
    "status",
    "dependencies",
    "priority",
    "subtasks",
];

pub(in crate::plan) fn read(
    source: &Source<'_>,
    warnings: &mut Vec<Fault>,
) -> Result<(Plan, Vec<Draft>), Fault> {
    let root = root_of(source)?;
    let mut plan = plan_from(source, root, &["title"], KEYS)?;
    let tags = root
        .entries()
        .iter()
        .filter(|entry| entry.value.entry("tasks").is_some());
    let (holder, tags) = (holder(root), tags.count());
    if tags > 1 {
        let name = root
            .entries()
            .iter()
            .find(|entry| Some(&entry.value) == holder);
        let name = name.map_or("", |entry| entry.key.as_str());
        plan.notes
            .push(format!("of {tags} tags only `{name}` is read"));
    }
    let drafts = source
        .task_nodes()
        .into_iter()
        .map(task)
        .collect::<Result<_, _>>()?;
    warnings.extend(holder.and_then(|holder| ignored(holder, KEYS, TASKMASTER.list, TASK_KEYS)));
    let given_up = |node: &&Node| {
        matches!(
            node.get("status").and_then(Node::text),
            Some("cancelled" | "deferred")
        )
    };
    match source.task_nodes().into_iter().filter(given_up).count() {
        0 => {}
        tasks => plan.notes.push(format!(
            "cancelled or deferred, so not run: {}",
            crate::text::count(tasks as u64, "task")
        )),
    }
    Ok((plan, drafts))
}

fn task(node: &Node) -> Result<Draft, Fault> {
    task_entries(node)?;
    let mut draft = draft_from(node, "title")?;
    let mut parts: Vec<String> = Vec::new();
    parts.extend(optional_text(node, "description")?);
    parts.extend(optional_text(node, "details")?);
    let strategy = optional_text(node, "testStrategy")?;
    parts.extend(strategy.map(|text| format!("How to test it: {text}")));
    let mut steps = Vec::new();
    for step in node.get("subtasks").map(Node::items).unwrap_or_default() {
        let is_done = task_status(&TASKMASTER, step)? == Some(TaskStatus::Done);
        let texts = ["title", "description", "details"].map(|key| optional_text(step, key));
        let texts: Vec<String> = texts
            .into_iter()
            .filter_map(Result::transpose)
            .collect::<Result<_, _>>()?;
        let mark = if is_done { "[x]" } else { "[ ]" };
        steps.push(format!(
            "- {mark} {}",
            texts.join("\n").replace('\n', "\n  ")
        ));
    }
    if !steps.is_empty() {
        parts.push(format!("Steps:\n\n{}", steps.join("\n")));
    }
    draft.description = parts.join("\n\n");
    if let Some(id) = node.get("id") {
        draft.id = Some((read::text("id", id)?, id.at));
    }
    if let Some(needed) = node.get("dependencies") {
        let ids = read::texts("dependencies", needed)?.into_iter();
        draft.depends_on = ids.map(|id| (id, needed.at)).collect();
    }
    draft.status = task_status(&TASKMASTER, node)?.unwrap_or_default();
    Ok(draft)
}
