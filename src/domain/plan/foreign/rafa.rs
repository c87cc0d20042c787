//! The `plan.json` of rafa.

use super::state::RAFA;
use super::{draft_from, ignored, optional_text, plan_from, root_of, task_status};
use crate::plan::Plan;
use crate::plan::native::{Draft, owned, read_attempts, task_entries, task_nodes};
use crate::plan::source::Source;
use crate::text_error::Fault;
use crate::yaml::{Node, read};

const KEYS: &[&str] = &["id", "title", "name", "description", "status", "tasks"];
const TASK_KEYS: &[&str] = &[
    "id",
    "title",
    "description",
    "acceptanceCriteria",
    "status",
    "attempts",
];

/// rafa: `tasks[]` with `id`, `title`, `description`, `acceptanceCriteria`, `status`, `attempts`.
pub(in crate::plan) fn read(
    source: &Source<'_>,
    warnings: &mut Vec<Fault>,
) -> Result<(Plan, Vec<Draft>), Fault> {
    let root = root_of(source)?;
    let mut plan = plan_from(source, root, &["title", "name"], KEYS)?;
    plan.id = optional_text(root, "id")?;
    plan.goal = optional_text(root, "description")?.unwrap_or_default();
    let drafts = task_nodes(root, RAFA.list)?
        .iter()
        .map(task)
        .collect::<Result<_, _>>()?;
    warnings.extend(ignored(root, KEYS, RAFA.list, TASK_KEYS));
    Ok((plan, drafts))
}

fn task(node: &Node) -> Result<Draft, Fault> {
    task_entries(node)?;
    let mut draft = draft_from(node, "title")?;
    if let Some(id) = node.get("id") {
        draft.id = Some((read::text("id", id)?, id.at));
    }
    draft.description = optional_text(node, "description")?.unwrap_or_default();
    if let Some(criteria) = node.get("acceptanceCriteria") {
        draft.acceptance = read::texts("acceptanceCriteria", criteria)?;
    }
    draft.status = task_status(&RAFA, node)?.unwrap_or_default();
    if let Some(attempts) = super::direct(node, "attempts") {
        draft.attempts = Some(read_attempts("attempts", owned("attempts", attempts)?)?);
    }
    Ok(draft)
}
