//! Plans in the file formats of other tools.

pub(super) mod layout;

use super::graph::derived_title;
use super::markdown::outline::tidy;
use super::native::{Draft, one_line, owned, read_attempts, task_entries, task_nodes};
use super::source::Source;
use super::{Plan, PlanFormat, Priority, TaskStatus};
use crate::settings;
use crate::text::{count, has_word};
use crate::text_error::{Fault, Position};
use crate::yaml::{Entry, Node, Value, read};
use layout::{GIVEN_UP, Layout, RETRIES};
use std::collections::HashSet;

/// Reads a plan in the format of another tool.
pub(super) fn read(
    source: &Source<'_>,
    layout: &Layout,
    warnings: &mut Vec<Fault>,
) -> Result<(Plan, Vec<Draft>), Fault> {
    let empty = || Fault::new(Position::START, "the plan is empty");
    let root = source.root.as_ref().ok_or_else(empty)?;
    let has = |key: &str| layout.plan.contains(&key);
    let mut plan = plan_from(source, root, layout.titles, layout.plan)?;
    plan.goal = optional_text(root, layout.goal)?.unwrap_or_default();
    if plan.title.is_empty() {
        plan.title = derived_title(&plan.goal);
    }
    if has("id") {
        plan.id = optional_text(root, "id")?;
    }
    if has("details") {
        plan.details = optional_text(root, "details")?.unwrap_or_default();
    }
    let dependencies = root.get("dependencies").filter(|_| has("dependencies"));
    if let Some(dependencies) = dependencies {
        plan.depends_on = read::texts("dependencies", dependencies)?;
    }
    if has("priority") {
        let word = optional_text(root, "priority")?;
        plan.priority = word.and_then(|word| match word.as_str() {
            "urgent" | "high" => Some(Priority::High),
            "medium" => Some(Priority::Medium),
            "low" | "maybe" => Some(Priority::Low),
            _ => None,
        });
    }
    if layout.list.is_empty() {
        let draft = whole_file(source, root, layout, &mut plan, warnings)?;
        return Ok((plan, vec![draft]));
    }
    if plan.details.is_empty() {
        plan.details = tidy(source.body());
    }
    let holder = source.holder().unwrap_or(root);
    task_nodes(holder, layout.list)?;
    let nodes = source.task_nodes();
    let drafts = nodes.iter().map(|node| task(layout, node));
    let mut drafts: Vec<Draft> = drafts.collect::<Result<_, _>>()?;
    let text = layout.text.iter().map(|(key, _)| *key);
    let known = [
        "id",
        "title",
        layout.acceptance,
        layout.depends_on,
        layout.key,
    ]
    .into_iter();
    let known = known.chain(text).chain(layout.others.iter().copied());
    let known: Vec<&str> = known.chain(layout.steps.iter().map(|of| of.list)).collect();
    warnings.extend(ignored(holder, layout.plan, layout.list, &known));
    if source.format == PlanFormat::TaskMaster {
        depend_on_tasks(&mut drafts);
        plan.notes.extend(of_tags(root, holder));
        plan.notes.extend(give_up(&mut drafts, &nodes));
    }
    Ok((plan, drafts))
}

/// The whole file as one task, with the status of its front matter.
fn whole_file(
    source: &Source<'_>,
    root: &Node,
    layout: &Layout,
    plan: &mut Plan,
    warnings: &mut Vec<Fault>,
) -> Result<Draft, Fault> {
    if let Some(retries) = root.get(RETRIES).filter(|_| layout.plan.contains(&RETRIES)) {
        let most = read::whole(RETRIES, retries, 0, u64::from(u32::MAX))?;
        plan.settings.max_retries = u32::try_from(most.min(10)).ok();
    }
    let headline = source.outline.headline();
    if let Some(headline) = headline.filter(|_| plan.title.is_empty()) {
        plan.title.clone_from(&headline.text);
    }
    let headline = headline.map(|headline| headline.span.clone());
    let (body, removed) = (
        source.body_start..source.text.len(),
        Vec::from_iter(headline),
    );
    let told = source.outline.describe(source.text, body, removed);
    let status = match task_status(layout, root) {
        // Each project has its own words there.
        Err(fault) if source.format == PlanFormat::Backlog => {
            let message = format!("counted as not done: {}", fault.message);
            warnings.push(Fault { message, ..fault });
            None
        }
        status => status?,
    };
    warnings.extend(ignored(root, layout.plan, "", &[]));
    Ok(Draft {
        at: Some(Position::START),
        id: id_of(root)?,
        title: plan.title.clone(),
        description: told.description,
        acceptance: told.acceptance,
        status: status.unwrap_or_default(),
        ..Draft::default()
    })
}

fn task(layout: &Layout, node: &Node) -> Result<Draft, Fault> {
    task_entries(node)?;
    let mut parts: Vec<String> = Vec::new();
    for (key, before) in layout.text {
        let text = match node.get(key).filter(|value| !value.items().is_empty()) {
            Some(list) => Some(read::texts(key, list)?.join("\n- ")),
            None => optional_text(node, key)?,
        };
        parts.extend(text.map(|text| format!("{before}{text}")));
    }
    let mut draft = Draft {
        at: Some(node.at),
        id: id_of(node)?,
        title: one_line(&optional_text(node, "title")?.unwrap_or_default()),
        ..Draft::default()
    };
    let steps = steps(layout, node)?;
    if let Some((first, _)) = steps
        .first()
        .filter(|_| draft.title.is_empty() && parts.is_empty())
    {
        draft.title = derived_title(first);
    }
    if !steps.is_empty() {
        let line = |(text, is_done): &(String, bool)| {
            let mark = if *is_done { "[x]" } else { "[ ]" };
            format!("- {mark} {}", text.replace('\n', "\n  "))
        };
        let lines: Vec<String> = steps.iter().map(line).collect();
        parts.push(format!("Steps:\n\n{}", lines.join("\n")));
    }
    draft.description = parts.join("\n\n");
    if let Some(criteria) = node.get(layout.acceptance) {
        let criteria = read::items(layout.acceptance, "a list of criteria", criteria)?;
        let texts = criteria
            .into_iter()
            .map(|of| criterion(layout.acceptance, of));
        draft.acceptance = texts.collect::<Result<_, _>>()?;
    }
    if let Some(needed) = node.get(layout.depends_on) {
        let ids = read::texts(layout.depends_on, needed)?.into_iter();
        draft.depends_on = ids.map(|id| (id, needed.at)).collect();
    }
    let are_done = !steps.is_empty() && steps.iter().all(|(_, is_done)| *is_done);
    draft.status = task_status(layout, node)?.unwrap_or(if are_done {
        TaskStatus::Done
    } else {
        TaskStatus::Pending
    });
    if let Some(attempts) = direct(node, "attempts").filter(|_| layout.has_attempts) {
        draft.attempts = Some(read_attempts("attempts", owned("attempts", attempts)?)?);
    }
    Ok(draft)
}

/// The texts of the parts of a task, and whether each is done.
fn steps(layout: &Layout, node: &Node) -> Result<Vec<(String, bool)>, Fault> {
    let mut found = Vec::new();
    let Some((of, steps)) = layout
        .steps
        .as_ref()
        .and_then(|of| Some((of, node.get(of.list)?)))
    else {
        return Ok(found);
    };
    for step in read::items(of.list, "a list of steps", steps)? {
        let texts = ["title", "prompt", "description", "details"];
        let texts = texts.map(|key| optional_text(step, key));
        let texts = texts.into_iter().filter_map(Result::transpose);
        let text = match step.text() {
            Some(text) => text.trim().to_owned(),
            None => texts.collect::<Result<Vec<String>, _>>()?.join("\n"),
        };
        found.push((text, of.is_done(step)));
    }
    Ok(found)
}

/// A criterion: a text, or a mapping that has one beside its own state.
fn criterion(key: &str, node: &Node) -> Result<String, Fault> {
    const KEYS: [&str; 3] = ["text", "description", "criterion"];
    let told = KEYS.iter().find_map(|key| node.get(key));
    read::words(&format!("each item of {key}"), told.unwrap_or(node))
}

/// Puts the task in the place of a subtask on which another depends: a subtask is done with its task.
fn depend_on_tasks(drafts: &mut [Draft]) {
    let ids = drafts.iter().filter_map(|draft| Some(draft.id.clone()?.0));
    let ids: HashSet<String> = ids.collect();
    for (id, _) in drafts.iter_mut().flat_map(|draft| &mut draft.depends_on) {
        let (task, _) = id.split_once('.').unwrap_or_default();
        if ids.contains(task) && !ids.contains(id) {
            *id = task.to_owned();
        }
    }
}

/// Which of the tags of a file is read.
fn of_tags(root: &Node, holder: &Node) -> Option<String> {
    let tags = root
        .entries()
        .iter()
        .filter(|entry| entry.value.entry("tasks").is_some());
    let read = tags
        .clone()
        .find(|entry| std::ptr::eq(&entry.value, holder))?;
    let (number, name) = (tags.count(), &read.key);
    (number > 1).then(|| format!("of {number} tags only `{name}` is read"))
}

/// Leaves out the tasks that the file gives up, and those that need one of them. Says how many.
fn give_up(drafts: &mut [Draft], nodes: &[&Node]) -> Vec<String> {
    let is_given_up = |node: &Node| {
        let word = node.get("status").and_then(Node::text);
        word.is_some_and(|word| GIVEN_UP.contains(&word))
    };
    let id_of = |draft: &Draft| draft.id.as_ref().map(|(id, _)| id.clone());
    let given_up = nodes
        .iter()
        .zip(&*drafts)
        .filter(|(node, _)| is_given_up(node));
    let given_up: Vec<Option<String>> = given_up.map(|(_, draft)| id_of(draft)).collect();
    let number = given_up.len() as u64;
    let mut left_out: HashSet<String> = given_up.into_iter().flatten().collect();
    let mut waiting = 0;
    while let Some(draft) = drafts.iter_mut().find(|draft| {
        let needs = draft.depends_on.iter().any(|(id, _)| left_out.contains(id));
        needs && draft.status != TaskStatus::Done
    }) {
        draft.status = TaskStatus::Done;
        left_out.extend(id_of(draft));
        waiting += 1;
    }
    let notes = [
        (number, "cancelled or deferred, so not run"),
        (
            waiting,
            "waiting for what is cancelled or deferred, so not run",
        ),
    ];
    let notes = notes.into_iter().filter(|(number, _)| *number > 0);
    notes
        .map(|(number, why)| format!("{why}: {}", count(number, "task")))
        .collect()
}

/// The state of a task, unless its key is missing.
fn task_status(layout: &Layout, node: &Node) -> Result<Option<TaskStatus>, Fault> {
    let Some(value) = direct(node, layout.key) else {
        return Ok(None);
    };
    let value = owned(layout.key, value)?;
    let given = value.text().unwrap_or_default();
    let mut words = layout.words.iter();
    if let Some((_, status)) = words.find(|(word, _)| word.eq_ignore_ascii_case(given)) {
        return Ok(Some(*status));
    }
    let known: Vec<_> = layout.words.iter().map(|(word, _)| *word).collect();
    let expected = format!("one of {}", known.join(", "));
    Err(read::unexpected(layout.key, &expected, value))
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
    let is_setting = |key: &str| key == "setup" || settings::is_name(key) && !is_of_others(key);
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

fn id_of(node: &Node) -> Result<Option<(String, Position)>, Fault> {
    let Some(id) = node.get("id") else {
        return Ok(None);
    };
    Ok(Some((read::text("id", id)?, id.at)))
}

/// The trimmed text under a key; `None` if it is missing or blank.
fn optional_text(node: &Node, key: &str) -> Result<Option<String>, Fault> {
    let text = node.get(key).map(|value| read::text(key, value));
    let text = text.transpose()?.map(|text| text.trim().to_owned());
    Ok(text.filter(|text| !text.is_empty()))
}

/// The value of a key that is not a merged one.
fn direct<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    let entry = node.entry(key).filter(|entry| !entry.merged)?;
    (!entry.value.is_null()).then_some(&entry.value)
}
