//! Plans in the file formats of other tools.

use super::graph::derived_title;
use super::markdown::outline::{split_acceptance, tidy};
use super::native::{Draft, one_line, owned, read_attempts, task_entries, task_nodes};
use super::source::Source;
use super::{Plan, PlanFormat, Priority, TaskStatus};
use crate::settings;
use crate::text_error::{Fault, Position};
use crate::yaml::{Entry, Node, Value, read};

/// The keys that are read in each format, besides `setup` and the settings.
const RMPLAN_KEYS: &[&str] = &[
    "id",
    "title",
    "goal",
    "details",
    "priority",
    "dependencies",
    "status",
    "tasks",
];
const RMPLAN_TASK_KEYS: &[&str] = &["title", "description", "details", "files", "steps", "done"];
const RAFA_KEYS: &[&str] = &["id", "title", "name", "description", "status", "tasks"];
const RAFA_TASK_KEYS: &[&str] = &[
    "id",
    "title",
    "description",
    "acceptanceCriteria",
    "status",
    "attempts",
];
const STORY_KEYS: &[&str] = &["id", "title", "dependencies", "status"];

/// rmplan and tim: `tasks[]` with `title`, `description`, `steps`, `done`.
pub(super) fn read_rmplan(
    source: &Source<'_>,
    warnings: &mut Vec<Fault>,
) -> Result<(Plan, Vec<Draft>), Fault> {
    let root = root_of(source)?;
    let mut plan = plan_from(source, root, (&["title"], RMPLAN_KEYS))?;
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
    let drafts = task_nodes(root)?
        .iter()
        .map(rmplan_task)
        .collect::<Result<_, _>>()?;
    warnings.extend(ignored(root, RMPLAN_KEYS, RMPLAN_TASK_KEYS));
    Ok((plan, drafts))
}

fn rmplan_task(node: &Node) -> Result<Draft, Fault> {
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
    let done = match direct(node, "done") {
        Some(done) => read::truth("done", owned("done", done)?)?,
        None => all_done,
    };
    if done {
        draft.status = TaskStatus::Done;
    }
    if draft.title.is_empty() && draft.description.is_empty() && done {
        draft.title = "Done".to_owned();
    }
    Ok(draft)
}

/// rafa: `tasks[]` with `id`, `title`, `description`, `acceptanceCriteria`, `status`, `attempts`.
pub(super) fn read_rafa(
    source: &Source<'_>,
    warnings: &mut Vec<Fault>,
) -> Result<(Plan, Vec<Draft>), Fault> {
    let root = root_of(source)?;
    let mut plan = plan_from(source, root, (&["title", "name"], RAFA_KEYS))?;
    plan.id = optional_text(root, "id")?;
    plan.goal = optional_text(root, "description")?.unwrap_or_default();
    let drafts = task_nodes(root)?
        .iter()
        .map(rafa_task)
        .collect::<Result<_, _>>()?;
    warnings.extend(ignored(root, RAFA_KEYS, RAFA_TASK_KEYS));
    Ok((plan, drafts))
}

fn rafa_task(node: &Node) -> Result<Draft, Fault> {
    task_entries(node)?;
    let mut draft = draft_from(node, "title")?;
    if let Some(id) = node.get("id") {
        draft.id = Some((read::text("id", id)?, id.at));
    }
    draft.description = optional_text(node, "description")?.unwrap_or_default();
    if let Some(criteria) = node.get("acceptanceCriteria") {
        draft.acceptance = read::texts("acceptanceCriteria", criteria)?;
    }
    if let Some(status) = direct(node, "status") {
        draft.status = foreign_status(owned("status", status)?, RAFA_WORDS)?;
    }
    if let Some(attempts) = direct(node, "attempts") {
        draft.attempts = Some(read_attempts("attempts", owned("attempts", attempts)?)?);
    }
    Ok(draft)
}

/// ai-sdlc: the whole `story.md` is one task.
pub(super) fn read_story(
    source: &Source<'_>,
    warnings: &mut Vec<Fault>,
) -> Result<(Plan, Vec<Draft>), Fault> {
    let root = root_of(source)?;
    let mut plan = plan_from(source, root, (&["title"], STORY_KEYS))?;
    let headline = source
        .outline
        .headings
        .iter()
        .find(|heading| heading.level == 1);
    let mut body = source.body().to_owned();
    if let Some(headline) = headline {
        if plan.title.is_empty() {
            plan.title.clone_from(&headline.text);
        }
        let start = headline.span.start - source.body_start;
        body.replace_range(start..headline.span.end - source.body_start, "");
    }
    plan.id = optional_text(root, "id")?;
    if let Some(dependencies) = root.get("dependencies") {
        plan.depends_on = read::texts("dependencies", dependencies)?;
    }
    let (description, acceptance) = split_acceptance(&body);
    let mut draft = Draft {
        at: Some(Position::START),
        title: plan.title.clone(),
        description,
        acceptance,
        ..Draft::default()
    };
    if let Some(id) = root.get("id") {
        draft.id = Some((read::text("id", id)?, id.at));
    }
    if let Some(status) = direct(root, "status") {
        draft.status = foreign_status(owned("status", status)?, STORY_WORDS)?;
    }
    warnings.extend(ignored(root, STORY_KEYS, &[]));
    Ok((plan, vec![draft]))
}

/// The status words of rafa; the first word for a status is the one that is written.
pub(super) const RAFA_WORDS: &[(&str, TaskStatus)] = &[
    ("pending", TaskStatus::Pending),
    ("in_progress", TaskStatus::InProgress),
    ("completed", TaskStatus::Done),
    ("failed", TaskStatus::Failed),
];

/// The status words of ai-sdlc; the first word for a status is the one that is written.
pub(super) const STORY_WORDS: &[(&str, TaskStatus)] = &[
    ("ready", TaskStatus::Pending),
    ("backlog", TaskStatus::Pending),
    ("in-progress", TaskStatus::InProgress),
    ("done", TaskStatus::Done),
    ("blocked", TaskStatus::Blocked),
];

/// The status of a whole plan whose format has one beside those of its tasks.
pub(super) struct PlanStatus {
    /// What a plan without a status has.
    pub open: &'static str,
    /// What it has once all of its tasks are done.
    pub done: &'static str,
}

/// The status of a whole plan in a format, under the key `status`.
pub(super) const fn plan_status(format: PlanFormat) -> Option<PlanStatus> {
    match format {
        PlanFormat::Rmplan => Some(PlanStatus {
            open: "pending",
            done: "done",
        }),
        PlanFormat::Rafa => Some(PlanStatus {
            open: "not_started",
            done: "completed",
        }),
        _ => None,
    }
}

fn foreign_status(node: &Node, words: &[(&str, TaskStatus)]) -> Result<TaskStatus, Fault> {
    let given = node.text().unwrap_or_default();
    if let Some((_, status)) = words.iter().find(|(word, _)| *word == given) {
        return Ok(*status);
    }
    let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    Err(read::unexpected(
        "status",
        &format!("one of {}", known.join(", ")),
        node,
    ))
}

fn root_of<'a>(source: &'a Source<'_>) -> Result<&'a Node, Fault> {
    let empty = || Fault::new(Position::START, "the plan is empty");
    source.root.as_ref().ok_or_else(empty)
}

/// A plan with its title, its `setup`, and the settings that the tree sets under Sprag's names. A key that
/// has a meaning in the format itself is not a setting.
pub(super) fn plan_from(
    source: &Source<'_>,
    root: &Node,
    (titles, of_format): (&[&str], &[&str]),
) -> Result<Plan, Fault> {
    let mut plan = Plan::without_tasks(source.format);
    for key in titles {
        if plan.title.is_empty() {
            plan.title = one_line(&optional_text(root, key)?.unwrap_or_default());
        }
    }
    for entry in root.entries().iter().filter(|entry| !entry.value.is_null()) {
        if entry.key == "setup" {
            plan.setup = settings::read_setup(&entry.value)?;
        } else if !of_format.contains(&entry.key.as_str()) {
            plan.settings.read_entry(entry)?;
        }
    }
    Ok(plan)
}

/// One warning, at the first occurrence, about all keys of a plan and its tasks that have no meaning here.
pub(super) fn ignored(root: &Node, of_plan: &[&str], of_tasks: &[&str]) -> Option<Fault> {
    let is_setting =
        |key: &str| key == "setup" || settings::NAMES.iter().any(|(name, _)| *name == key);
    let in_plan = root.entries().iter().filter(|entry| {
        let key = settings::canonical_name(&entry.key);
        !of_plan.contains(&key) && !is_setting(key)
    });
    let tasks = match root.get("tasks").map(|tasks| &tasks.value) {
        Some(Value::List { items }) => items.as_slice(),
        _ => &[],
    };
    let in_tasks = tasks
        .iter()
        .flat_map(Node::entries)
        .filter(|entry| !of_tasks.contains(&entry.key.as_str()));
    let mut entries: Vec<&Entry> = in_plan.chain(in_tasks).collect();
    entries.sort_by_key(|entry| entry.key_at);
    let first = entries.first()?.key_at;
    let mut names: Vec<String> = Vec::new();
    for entry in entries {
        let name = format!("`{}`", entry.key);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let message = format!("Sprag ignores these keys: {}", names.join(", "));
    Some(Fault::new(first, message))
}

fn draft_from(node: &Node, title: &str) -> Result<Draft, Fault> {
    Ok(Draft {
        at: Some(node.at),
        title: one_line(&optional_text(node, title)?.unwrap_or_default()),
        ..Draft::default()
    })
}

fn optional_text(node: &Node, key: &str) -> Result<Option<String>, Fault> {
    let text = node
        .get(key)
        .map(|value| read::text(key, value))
        .transpose()?;
    Ok(text
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty()))
}

/// The value of a key that is not a merged one.
fn direct<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    let entry = node.entry(key).filter(|entry| !entry.merged)?;
    (!entry.value.is_null()).then_some(&entry.value)
}

fn is_true(node: &Node, key: &str) -> Result<bool, Fault> {
    node.get(key)
        .map_or(Ok(false), |value| read::truth(key, value))
}
