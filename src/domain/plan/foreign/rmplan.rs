//! Plans of rmplan and tim.

use super::state::RMPLAN;
use super::{draft_from, ignored, is_true, optional_text, plan_from, root_of, task_status};
use crate::plan::graph::derived_title;
use crate::plan::markdown::outline::tidy;
use crate::plan::native::{Draft, task_entries, task_nodes};
use crate::plan::source::Source;
use crate::plan::{Plan, Priority, TaskStatus};
use crate::text_error::Fault;
use crate::yaml::{Node, read};

const KEYS: &[&str] = &[
    "id",
    "title",
    "goal",
    "details",
    "priority",
    "dependencies",
    "status",
    "tasks",
    UPDATED,
    CHANGED,
];
/// The key of the time of the last change of a state.
pub(in crate::plan) const UPDATED: &str = "updatedAt";
/// The key of the files that the plan has changed.
pub(in crate::plan) const CHANGED: &str = "changedFiles";
const TASK_KEYS: &[&str] = &["title", "description", "details", "files", "steps", "done"];

/// rmplan and tim: `tasks[]` with `title`, `description`, `steps`, `done`.
pub(in crate::plan) fn read(
    source: &Source<'_>,
    warnings: &mut Vec<Fault>,
) -> Result<(Plan, Vec<Draft>), Fault> {
    let root = root_of(source)?;
    let mut plan = plan_from(source, root, &["title"], KEYS)?;
    plan.id = optional_text(root, "id")?;
    plan.goal = optional_text(root, "goal")?.unwrap_or_default();
    plan.details = optional_text(root, "details")?.unwrap_or_default();
    if plan.details.is_empty() {
        plan.details = tidy(source.body());
    }
    if plan.title.is_empty() {
        plan.title = derived_title(&plan.goal);
    }
    plan.priority = optional_text(root, "priority")?.and_then(|word| match word.as_str() {
        "urgent" | "high" => Some(Priority::High),
        "medium" => Some(Priority::Medium),
        "low" | "maybe" => Some(Priority::Low),
        _ => None,
    });
    if let Some(dependencies) = root.get("dependencies") {
        plan.depends_on = read::texts("dependencies", dependencies)?;
    }
    let drafts = task_nodes(root, RMPLAN.list)?
        .iter()
        .map(task)
        .collect::<Result<_, _>>()?;
    warnings.extend(ignored(root, KEYS, RMPLAN.list, TASK_KEYS));
    Ok((plan, drafts))
}

fn task(node: &Node) -> Result<Draft, Fault> {
    task_entries(node)?;
    let mut draft = draft_from(node, "title")?;
    let mut parts = Vec::new();
    parts.extend(optional_text(node, "description")?);
    parts.extend(optional_text(node, "details")?);
    if let Some(files) = node.get("files") {
        let files = read::texts("files", files)?;
        if !files.is_empty() {
            parts.push(format!("Files:\n- {}", files.join("\n- ")));
        }
    }
    let steps = match node.get("steps") {
        Some(steps) => read::items("steps", "a list of steps", steps)?,
        None => Vec::new(),
    };
    let mut all_done = !steps.is_empty();
    let mut first_done = None;
    for step in steps {
        let done = is_true(step, "done")?;
        all_done &= done;
        let prompt = match step.text() {
            Some(prompt) => Some(prompt.trim().to_owned()),
            None => optional_text(step, "prompt")?,
        };
        match done {
            true if parts.is_empty() => first_done = first_done.or(prompt),
            true => {}
            false => parts.extend(prompt),
        }
    }
    // The title stays the same when steps are marked as done.
    if let Some(text) = first_done.filter(|_| draft.title.is_empty()) {
        draft.title = derived_title(&text);
    }
    draft.description = parts.join("\n\n");
    let status = task_status(&RMPLAN, node)?;
    let done = status.map_or(all_done, |status| status == TaskStatus::Done);
    if done {
        draft.status = TaskStatus::Done;
    }
    if draft.title.is_empty() && draft.description.is_empty() && done {
        draft.title = "Done".to_owned();
    }
    Ok(draft)
}
