//! Formats of other tools with a list of tasks, each of which is a row of keys: the `plan.json` of rafa, the `prd.json`
//! of Ralph loops, and the `tasks.json` of task-master.

use super::state::{RAFA, RALPH, State, Steps, TASKMASTER};
use super::{direct, draft_from, ignored, optional_text, plan_from, root_of, task_status};
use crate::plan::native::{Draft, owned, read_attempts, task_entries, task_nodes};
use crate::plan::source::Source;
use crate::plan::{Plan, PlanFormat, TaskStatus};
use crate::text_error::Fault;
use crate::yaml::{Node, read};
use std::collections::HashSet;

/// The keys of a format. An empty key is none.
struct Keys {
    state: &'static State,
    /// The keys of the plan, the first of which have its title.
    plan: &'static [&'static str],
    titles: usize,
    goal: &'static str,
    /// The keys of a task's text, and the words before each.
    text: &'static [(&'static str, &'static str)],
    acceptance: &'static str,
    depends_on: &'static str,
    /// Other keys of a task.
    others: &'static [&'static str],
}

const OF_RAFA: Keys = Keys {
    state: &RAFA,
    plan: &["title", "name", "id", "description", "status", "tasks"],
    titles: 2,
    goal: "description",
    text: &[("description", "")],
    acceptance: "acceptanceCriteria",
    depends_on: "",
    others: &["attempts"],
};

const OF_RALPH: Keys = Keys {
    state: &RALPH,
    plan: &["title", "project", "description", "userStories"],
    titles: 2,
    goal: "description",
    text: &[("description", ""), ("notes", "")],
    acceptance: "acceptanceCriteria",
    depends_on: "dependsOn",
    others: &["priority"],
};

const OF_TASKMASTER: Keys = Keys {
    state: &TASKMASTER,
    plan: &["title", "tasks", "metadata", "master"],
    titles: 1,
    goal: "",
    text: &[
        ("description", ""),
        ("details", ""),
        ("testStrategy", "How to test it: "),
    ],
    acceptance: "",
    depends_on: "dependencies",
    others: &["priority", "subtasks"],
};

/// Reads a plan in one of these formats.
pub(in crate::plan) fn read(
    source: &Source<'_>,
    warnings: &mut Vec<Fault>,
) -> Result<(Plan, Vec<Draft>), Fault> {
    let of = match source.format {
        PlanFormat::Rafa => &OF_RAFA,
        PlanFormat::Ralph => &OF_RALPH,
        _ => &OF_TASKMASTER,
    };
    let root = root_of(source)?;
    let holder = source.holder().unwrap_or(root);
    let (titles, _) = of.plan.split_at(of.titles);
    let mut plan = plan_from(source, root, titles, of.plan)?;
    if source.format == PlanFormat::Rafa {
        plan.id = optional_text(root, "id")?;
    }
    plan.goal = optional_text(root, of.goal)?.unwrap_or_default();
    task_nodes(holder, of.state.list)?;
    let drafts = source.task_nodes().into_iter().map(|node| task(of, node));
    let mut drafts: Vec<Draft> = drafts.collect::<Result<_, _>>()?;
    let ids = drafts.iter().filter_map(|draft| Some(draft.id.clone()?.0));
    let ids: HashSet<String> = ids.collect();
    // A subtask is done with its task.
    for (id, _) in drafts.iter_mut().flat_map(|draft| &mut draft.depends_on) {
        let (task, _) = id.split_once('.').unwrap_or_default();
        if ids.contains(task) && !ids.contains(id) {
            *id = task.to_owned();
        }
    }
    let known = ["id", "title", of.acceptance, of.depends_on, of.state.key].into_iter();
    let known = known.chain(of.text.iter().map(|(key, _)| *key));
    let known: Vec<&str> = known.chain(of.others.iter().copied()).collect();
    warnings.extend(ignored(holder, of.plan, of.state.list, &known));
    if source.format == PlanFormat::TaskMaster {
        plan.notes.extend(of_tags(root, holder));
        plan.notes.extend(given_up(source));
    }
    Ok((plan, drafts))
}

/// Which of the tags of a file is read.
fn of_tags(root: &Node, holder: &Node) -> Option<String> {
    let entries = root.entries().iter();
    let tags = entries.filter(|entry| entry.value.entry("tasks").is_some());
    let all: Vec<_> = tags.collect();
    let read = all
        .iter()
        .find(|entry| std::ptr::eq(&entry.value, holder))?;
    let (number, name) = (all.len(), &read.key);
    (number > 1).then(|| format!("of {number} tags only `{name}` is read"))
}

/// How many tasks are left out because the file gives them up.
fn given_up(source: &Source<'_>) -> Option<String> {
    let words = [Some("cancelled"), Some("deferred")];
    let status = |node: &&Node| words.contains(&node.get("status").and_then(Node::text));
    let tasks = source.task_nodes().into_iter().filter(status).count();
    let number = crate::text::count(tasks as u64, "task");
    (tasks > 0).then(|| format!("cancelled or deferred, so not run: {number}"))
}

fn task(of: &Keys, node: &Node) -> Result<Draft, Fault> {
    task_entries(node)?;
    let mut draft = draft_from(node, "title")?;
    let mut parts: Vec<String> = Vec::new();
    for (key, before) in of.text {
        let text = optional_text(node, key)?;
        parts.extend(text.map(|text| format!("{before}{text}")));
    }
    if let Some(steps) = &of.state.steps {
        parts.extend(steps_of(of, node, steps)?);
    }
    draft.description = parts.join("\n\n");
    if let Some(id) = node.get("id") {
        draft.id = Some((read::text("id", id)?, id.at));
    }
    if let Some(criteria) = node.get(of.acceptance) {
        draft.acceptance = read::items(of.acceptance, "a list of criteria", criteria)?
            .into_iter()
            .map(|criterion_of| criterion(of.acceptance, criterion_of))
            .collect::<Result<_, _>>()?;
    }
    if let Some(needed) = node.get(of.depends_on) {
        let ids = read::texts(of.depends_on, needed)?.into_iter();
        draft.depends_on = ids.map(|id| (id, needed.at)).collect();
    }
    draft.status = task_status(of.state, node)?.unwrap_or_default();
    let attempts = direct(node, "attempts").filter(|_| of.state.has_attempts);
    if let Some(attempts) = attempts {
        draft.attempts = Some(read_attempts("attempts", owned("attempts", attempts)?)?);
    }
    Ok(draft)
}

/// The parts of a task as a checklist.
fn steps_of(of: &Keys, node: &Node, steps: &Steps) -> Result<Option<String>, Fault> {
    let mut lines = Vec::new();
    for step in node.get(steps.list).map(Node::items).unwrap_or_default() {
        let is_done = task_status(of.state, step)? == Some(TaskStatus::Done);
        let mark = if is_done { "[x]" } else { "[ ]" };
        let texts = ["title", "description", "details"].map(|key| optional_text(step, key));
        let texts = texts.into_iter().filter_map(Result::transpose);
        let text = texts.collect::<Result<Vec<String>, _>>()?.join("\n");
        lines.push(format!("- {mark} {}", text.replace('\n', "\n  ")));
    }
    Ok((!lines.is_empty()).then(|| format!("Steps:\n\n{}", lines.join("\n"))))
}

/// A criterion: a text, or a mapping that has one beside its own state.
fn criterion(key: &str, node: &Node) -> Result<String, Fault> {
    const KEYS: [&str; 3] = ["text", "description", "criterion"];
    let told = KEYS.iter().find_map(|key| node.get(key));
    read::words(&format!("each item of {key}"), told.unwrap_or(node))
}
