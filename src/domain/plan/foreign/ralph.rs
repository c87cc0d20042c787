//! The `prd.json` of Ralph loops: user stories with `passes`.

use super::state::RALPH;
use super::{draft_from, ignored, optional_text, plan_from, root_of, task_status};
use crate::plan::Plan;
use crate::plan::native::{Draft, task_entries, task_nodes};
use crate::plan::source::Source;
use crate::text_error::Fault;
use crate::yaml::{Node, read};

const KEYS: &[&str] = &["project", "description", "userStories"];
const TASK_KEYS: &[&str] = &[
    "id",
    "title",
    "description",
    "acceptanceCriteria",
    "priority",
    "passes",
    "notes",
    "dependsOn",
];

pub(in crate::plan) fn read(
    source: &Source<'_>,
    warnings: &mut Vec<Fault>,
) -> Result<(Plan, Vec<Draft>), Fault> {
    let root = root_of(source)?;
    let mut plan = plan_from(source, root, &["title", "project"], KEYS)?;
    plan.goal = optional_text(root, "description")?.unwrap_or_default();
    task_nodes(root, RALPH.list)?;
    let drafts = source
        .task_nodes()
        .into_iter()
        .map(task)
        .collect::<Result<_, _>>()?;
    warnings.extend(ignored(root, KEYS, RALPH.list, TASK_KEYS));
    Ok((plan, drafts))
}

fn task(node: &Node) -> Result<Draft, Fault> {
    task_entries(node)?;
    let mut draft = draft_from(node, "title")?;
    let parts = [
        optional_text(node, "description")?,
        optional_text(node, "notes")?,
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    draft.description = parts.join("\n\n");
    if let Some(id) = node.get("id") {
        draft.id = Some((read::text("id", id)?, id.at));
    }
    if let Some(criteria) = node.get("acceptanceCriteria") {
        draft.acceptance = read::items("acceptanceCriteria", "a list of criteria", criteria)?
            .into_iter()
            .map(criterion)
            .collect::<Result<_, _>>()?;
    }
    if let Some(needed) = node.get("dependsOn") {
        let ids = read::texts("dependsOn", needed)?.into_iter();
        draft.depends_on = ids.map(|id| (id, needed.at)).collect();
    }
    draft.status = task_status(&RALPH, node)?.unwrap_or_default();
    Ok(draft)
}

/// A criterion: a text, or a mapping that has one beside its own state.
fn criterion(node: &Node) -> Result<String, Fault> {
    const KEYS: [&str; 3] = ["text", "description", "criterion"];
    let told = KEYS.iter().find_map(|key| node.get(key));
    read::words("each item of acceptanceCriteria", told.unwrap_or(node))
}
