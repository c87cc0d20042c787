//! Plans in the file formats of other tools.

pub(super) mod listed;
pub(super) mod rmplan;
pub(super) mod state;
pub(super) mod story;

use super::native::{Draft, one_line, owned};
use super::source::Source;
use super::{Plan, TaskStatus};
use crate::settings;
use crate::text::has_word;
use crate::text_error::{Fault, Position};
use crate::yaml::{Entry, Node, Value, read};
use state::State;

/// The state of a task, unless its key is missing.
fn task_status(state: &State, node: &Node) -> Result<Option<TaskStatus>, Fault> {
    let Some(value) = direct(node, state.key) else {
        return Ok(None);
    };
    let value = owned(state.key, value)?;
    let given = value.text().unwrap_or_default();
    let is_truth = state.words.iter().any(|(word, _)| *word == "true");
    if is_truth {
        let is_done = read::truth(state.key, value)?;
        return Ok(Some(if is_done {
            TaskStatus::Done
        } else {
            TaskStatus::Pending
        }));
    }
    if let Some((_, status)) = state
        .words
        .iter()
        .find(|(word, _)| word.eq_ignore_ascii_case(given))
    {
        return Ok(Some(*status));
    }
    let known: Vec<_> = state.words.iter().map(|(word, _)| *word).collect();
    let expected = format!("one of {}", known.join(", "));
    Err(read::unexpected(state.key, &expected, value))
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
    titles: &[&str],
    of_format: &[&str],
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
        } else if !of_format.contains(&entry.key.as_str()) && !is_of_others(&entry.key) {
            plan.settings.read_entry(entry)?;
        }
    }
    Ok(plan)
}

/// Whether the files of other tools have this key in a sense of their own, though it is also that of a setting.
fn is_of_others(key: &str) -> bool {
    has_word("assignees base branch draft labels reviewers", key)
}

/// One warning, at the first occurrence, about all keys of a plan and its tasks that have no meaning here.
pub(super) fn ignored(
    root: &Node,
    of_plan: &[&str],
    list: &str,
    of_tasks: &[&str],
) -> Option<Fault> {
    let is_setting = |key: &str| {
        let is_named = settings::NAMES.iter().any(|(name, _)| *name == key);
        key == "setup" || is_named && !is_of_others(key)
    };
    let in_plan = root.entries().iter().filter(|entry| {
        let key = settings::canonical_name(&entry.key);
        !of_plan.contains(&key) && !is_setting(key)
    });
    let tasks = match root.get(list).map(|tasks| &tasks.value) {
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
