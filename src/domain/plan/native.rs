//! Sprag's own keys: those of a plan, and those of the tasks in its list.

use super::schema::{PLAN_KEYS, TASK_KEYS};
use super::source::Source;
use super::{Plan, PlanFormat, Priority, TaskKind, TaskStatus};
use crate::settings::check::read_directory;
use crate::settings::kind::{Choice, Kind};
use crate::settings::{self, Scope, Settings};
use crate::suggest;
use crate::text_error::{Fault, Position};
use crate::yaml::{Entry, Node, Style, Value, read};

/// A task as it was read, before ids are assigned and dependencies are resolved.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub at: Option<Position>,
    pub id: Option<(String, Position)>,
    pub title: String,
    pub description: String,
    pub acceptance: Vec<String>,
    pub depends_on: Vec<(String, Position)>,
    pub settings: Settings,
    pub status: TaskStatus,
    pub attempts: Option<u32>,
    pub completed_at: Option<String>,
    /// The directory of its work, if it is not that of the run.
    pub directory: Option<String>,
    /// Its kind, if it is not left to its words.
    pub kind: Option<TaskKind>,
    /// The number of its steps that were left out because they only commit.
    pub commits: usize,
}

/// The keys of a task that only Sprag writes.
pub(super) const OWNED_KEYS: &[&str] = &["status", "attempts", "completed_at"];

pub(super) fn read(source: &Source<'_>) -> Result<(Plan, Vec<Draft>), Fault> {
    let mut plan = Plan::without_tasks(PlanFormat::Sprag);
    let empty = || Fault::new(Position::START, "the plan is empty: it needs `tasks`");
    let root = source.root.as_ref().ok_or_else(empty)?;
    // Other keys do not hide that there are no tasks, unless one of them is a misspelt `tasks`.
    let known = PLAN_KEYS.iter().copied().chain(settings::names());
    let is_misspelt = |entry: &Entry| suggest::nearest(&entry.key, known.clone()) == Some("tasks");
    if !root.entries().iter().any(is_misspelt) {
        task_nodes(root, "tasks")?;
    }
    read_plan_keys(&mut plan, root, &[])?;
    if plan.details.is_empty() {
        plan.details = super::markdown::outline::tidy(source.body());
    }
    let drafts = task_nodes(root, "tasks")?.iter().map(read_task);
    Ok((plan, drafts.collect::<Result<_, _>>()?))
}

/// Reads the keys of a plan. `others` are keys that are known but have no meaning here.
pub(super) fn read_plan_keys(plan: &mut Plan, root: &Node, others: &[&str]) -> Result<(), Fault> {
    for entry in root.entries() {
        let (key, value) = (entry.key.as_str(), &entry.value);
        let is_own = PLAN_KEYS.contains(&key) || others.contains(&key);
        if is_own && value.is_null() {
            continue;
        }
        match key {
            "id" => plan.id = Some(read::words(key, value)?),
            "title" => plan.title = read::words(key, value)?,
            "goal" => plan.goal = read::text(key, value)?.trim().to_owned(),
            "details" => plan.details = read::text(key, value)?.trim().to_owned(),
            "setup" => plan.setup = settings::read_setup(value)?,
            "priority" => plan.priority = Some(Choice::<Priority>::kind().read(key, value)?),
            "depends_on" => plan.depends_on = read::texts(key, value)?,
            _ if is_own => {}
            _ => {
                if plan.settings.read_entry(entry)?.is_none() {
                    let named = unread(root).map(|format| format!("this is {format}"));
                    let named = named.map(|message| Fault::new(root.at, message));
                    return Err(named.unwrap_or_else(|| unknown_key(entry, "a plan", PLAN_KEYS)));
                }
            }
        }
    }
    Ok(())
}

/// The items of the tree's task list.
pub(super) fn task_nodes<'a>(root: &'a Node, list: &str) -> Result<&'a [Node], Fault> {
    let Some(entry) = root.entry(list) else {
        let message = unread(root).map_or_else(
            || format!("the plan has no `{list}`: add a list of at least one task"),
            |format| format!("this is {format}"),
        );
        return Err(Fault::new(root.at, message));
    };
    match &entry.value.value {
        Value::List { items } if !items.is_empty() => Ok(items),
        _ if entry.value.is_null() || matches!(entry.value.value, Value::List { .. }) => {
            let message = format!("`{list}` is empty: a plan needs at least one task");
            Err(Fault::new(entry.key_at, message))
        }
        _ => Err(read::unexpected(list, "a list of tasks", &entry.value)),
    }
}

/// The name of a format that is recognised and not read.
fn unread(root: &Node) -> Option<&'static str> {
    let has = |key: &str| root.entry(key).is_some();
    if has("todos") {
        Some("a plan of Cursor: its `todos` are not read; write them as a list `tasks`")
    } else if has("epics") || has("stories") {
        Some("a file of BMAD: its stories are not read; write them as a list `tasks`")
    } else if has("features") {
        Some("a list of features: write them as a list `tasks`")
    } else {
        None
    }
}

/// The entries of a task's mapping, which must be written at its own place so that its state can be updated.
pub(super) fn task_entries(node: &Node) -> Result<&[Entry], Fault> {
    let expected = "a mapping with a `title` or a `description`";
    let Value::Map { entries, .. } = &node.value else {
        return Err(read::unexpected("a task", expected, node));
    };
    let elsewhere = |entry: &Entry| !node.span.contains(&entry.key_span.start);
    if entries.iter().all(|entry| entry.merged) || entries.first().is_some_and(elsewhere) {
        let message = "a task must be written out with a key of its own, not only as an alias";
        return Err(Fault::new(node.at, message));
    }
    Ok(entries)
}

fn read_task(node: &Node) -> Result<Draft, Fault> {
    let mut draft = Draft {
        at: Some(node.at),
        ..Draft::default()
    };
    for entry in task_entries(node)? {
        let key = entry.key.as_str();
        let is_merged = OWNED_KEYS.contains(&key) && entry.merged;
        if !(is_merged || TASK_KEYS.contains(&key) && entry.value.is_null()) {
            read_task_entry(&mut draft, entry)?;
        }
    }
    Ok(draft)
}

/// Reads a key of a task that has a value.
pub(super) fn read_task_entry(draft: &mut Draft, entry: &Entry) -> Result<(), Fault> {
    let (key, value) = (entry.key.as_str(), &entry.value);
    match key {
        "id" => draft.id = Some((read::text(key, value)?, value.at)),
        "title" => draft.title = one_line(&read::words(key, value)?),
        "description" => draft.description = read::text(key, value)?.trim().to_owned(),
        "acceptance" => draft.acceptance = read::texts(key, value)?,
        "depends_on" => draft.depends_on = references(value)?,
        "directory" => draft.directory = Some(read_directory(key, value)?),
        "kind" => draft.kind = Some(Choice::<TaskKind>::kind().read(key, value)?),
        "status" => draft.status = Choice::<TaskStatus>::kind().read(key, owned(key, value)?)?,
        "attempts" => draft.attempts = Some(read_attempts(key, owned(key, value)?)?),
        "completed_at" => draft.completed_at = Some(read::words(key, owned(key, value)?)?),
        _ => read_task_setting(draft, entry)?,
    }
    Ok(())
}

fn read_task_setting(draft: &mut Draft, entry: &Entry) -> Result<(), Fault> {
    let mut given = Settings::default();
    match given.read_entry(entry)? {
        Some(Scope::Task) => {
            draft.settings = std::mem::take(&mut draft.settings).or(given);
            Ok(())
        }
        Some(Scope::Run | Scope::Trigger | Scope::Process) => {
            let message = format!(
                "`{}` concerns the whole run, not one task: move it to the top of the plan",
                entry.key
            );
            Err(Fault::new(entry.key_at, message))
        }
        None => Err(unknown_key(entry, "a task", TASK_KEYS)),
    }
}

pub(super) fn read_attempts(key: &str, node: &Node) -> Result<u32, Fault> {
    let number = read::whole(key, node, 0, u64::from(u32::MAX))?;
    u32::try_from(number).map_err(|_| read::unexpected(key, "a whole number", node))
}

/// Checks that a value that Sprag writes stands in one piece at its own place.
pub(super) fn owned<'a>(key: &str, node: &'a Node) -> Result<&'a Node, Fault> {
    let style = match &node.value {
        Value::Scalar { style, .. } => *style,
        _ => Style::Plain,
    };
    if node.own && style != Style::Block {
        return Ok(node);
    }
    let message =
        format!("{key} must be written out on its own line, because Sprag keeps it up to date");
    Err(Fault::new(node.at, message))
}

fn references(node: &Node) -> Result<Vec<(String, Position)>, Fault> {
    let expected = "a list of task ids";
    let mut references = Vec::new();
    for item in read::items("depends_on", expected, node)? {
        let text = item.text();
        let text = text.ok_or_else(|| read::unexpected("depends_on", expected, item))?;
        let ids = text.split(',').map(|id| (id.trim().to_owned(), item.at));
        references.extend(ids);
    }
    Ok(references)
}

fn unknown_key(entry: &Entry, whole: &str, keys: &[&'static str]) -> Fault {
    let known = keys.iter().copied().chain(settings::names());
    let message = suggest::unknown_key(&entry.key, whole, known, "plan");
    Fault::new(entry.key_at, message)
}

/// A title on one line, however its text was wrapped.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
