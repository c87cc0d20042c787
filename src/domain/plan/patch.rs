//! Writes a task's state into the plan's text.

use super::edit::{Splice, applied, key_splice, line_break, list_splice, set_key};
use super::foreign::rmplan::{CHANGED, UPDATED};
use super::foreign::state::{State, Steps, plan_status};
use super::markdown::boxes::mark;
use super::read::Read;
use super::source::{Container, STATUS_KEY, Source};
use super::{Plan, PlanFormat, Task, TaskId, TaskStatus, canonical};
use crate::suggest::did_you_mean;
use crate::text_error::{Fault, Position};
use crate::yaml::{Node, Value};
use std::collections::{BTreeSet, HashMap, HashSet};

/// A task's new state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusUpdate {
    /// The new status.
    pub status: TaskStatus,
    /// The number of attempts; `None` keeps the file's value.
    pub attempts: Option<u32>,
    /// When it was done; `None` keeps the file's value.
    pub completed_at: Option<String>,
}

/// The text with the states set, as by [`super::set_statuses`].
pub(super) fn with_statuses(
    name: &str,
    before: &Read<'_>,
    updates: &[(&TaskId, &StatusUpdate)],
) -> Result<String, Fault> {
    let places: HashMap<&TaskId, usize> = before
        .plan
        .tasks
        .iter()
        .enumerate()
        .map(|(place, task)| (&task.id, place))
        .collect();
    let mut expected = before.plan.clone();
    let mut changed = HashSet::new();
    for (id, update) in updates {
        let Some(&place) = places.get(id) else {
            let known = before.plan.tasks.iter().map(|task| task.id.as_str());
            let suggestion = did_you_mean(id.as_str(), known);
            let message = format!("the plan has no task `{id}`{suggestion}");
            return Err(Fault::new(Position::START, message));
        };
        let has_boxes = before.source.has_boxes(place, id.as_str());
        set(
            &mut expected.tasks[place],
            before.plan.format,
            has_boxes,
            update,
        );
        changed.insert(place);
    }
    let edited = edited(name, before, &changed, &expected)
        .filter(|edited| holds(name, before, edited, &changed, &expected));
    edited.ok_or_else(|| unsure(&before.plan, &changed))
}

/// The text of a plan of rmplan with the time of its last change, and with these changed files beside those that it has,
/// where it has the keys for them. `None` if nothing is to be written.
pub fn with_facts(name: &str, text: &str, files: &BTreeSet<String>, time: &str) -> Option<String> {
    let before = Read::new(name, text).ok()?;
    let source = &before.source;
    let root = source.root.as_ref()?;
    if before.plan.format != PlanFormat::Rmplan {
        return None;
    }
    let json = source.container == Container::Json;
    let mut splices = Vec::new();
    if root.entry(UPDATED).is_some() {
        splices.extend(key_splice(text, root, UPDATED, &as_scalar(time), json));
    }
    if let Some(list) = root.get(CHANGED) {
        let known: HashSet<&str> = list.items().iter().filter_map(Node::text).collect();
        let files = files.iter().map(String::as_str);
        let new: Vec<&str> = files.filter(|file| !known.contains(file)).collect();
        if !new.is_empty() {
            splices.extend(list_splice(text, root, CHANGED, &new, json));
        }
    }
    let edited = applied(text, splices)?;
    let after = Read::new(name, &edited).ok()?;
    let is_same = canonical::render(source, None) == canonical::render(&after.source, None);
    is_same.then_some(edited)
}

fn unsure(plan: &Plan, changed: &HashSet<usize>) -> Fault {
    let first = changed
        .iter()
        .min()
        .and_then(|place| plan.tasks.get(*place));
    let at = first.map_or(Position::START, |task| Position {
        line: task.line,
        column: 1,
    });
    let id = first.map_or("", |task| task.id.as_str());
    let message = format!(
        "the state of the task `{id}` cannot be written here without touching other parts: \
         write the task with one key a line"
    );
    Fault::new(at, message)
}

/// Sets the state that the task should have afterwards, as far as its format can represent the update.
fn set(task: &mut Task, format: PlanFormat, has_boxes: bool, update: &StatusUpdate) {
    task.status = match State::of(format) {
        _ if has_boxes && update.status != TaskStatus::Done => TaskStatus::Pending,
        Some(state) => state.nearest(update.status),
        None => update.status,
    };
    let full = matches!(format, PlanFormat::Sprag | PlanFormat::Headings) && !has_boxes;
    if let Some(attempts) = update.attempts
        && (full || State::of(format).is_some_and(|state| state.has_attempts))
    {
        task.attempts = Some(attempts);
    }
    if let Some(time) = &update.completed_at
        && full
    {
        task.completed_at = Some(time.clone());
    }
}

/// The edited text; `None` if it cannot be edited.
fn edited(
    name: &str,
    before: &Read<'_>,
    changed: &HashSet<usize>,
    expected: &Plan,
) -> Option<String> {
    let source = &before.source;
    let mut places: Vec<usize> = changed.iter().copied().collect();
    places.sort_unstable();
    let mut splices = Vec::new();
    let mut states = Vec::new();
    for place in places {
        let new = &expected.tasks[place];
        let pairs = pairs(&before.plan.tasks[place], new, expected.format);
        match expected.format {
            _ if source.has_boxes(place, new.id.as_str()) => {
                let task = source.listed.tasks.get(place)?;
                let is_done = new.status == TaskStatus::Done;
                // Open steps are the state of a task without a box of its own.
                let was_done = before.plan.tasks[place].status == TaskStatus::Done;
                let steps = task
                    .steps
                    .iter()
                    .filter(|_| task.mark.is_none() && was_done);
                let boxes = task.mark.iter().chain(steps);
                let wrong = boxes.filter(|own| own.checked != is_done);
                splices.extend(
                    wrong.map(|own| Splice::new(own.span.start, own.span.end, mark(is_done))),
                );
            }
            PlanFormat::Headings => states.extend(pairs.into_iter().map(|pair| (&new.id, pair))),
            format => {
                let map = *source.task_nodes().get(place)?;
                let json = source.container == Container::Json;
                for (key, value) in pairs {
                    splices.push(key_splice(source.text, map, key, &value, json)?);
                }
                let steps = State::of(format).and_then(|state| state.steps.as_ref());
                if let Some(steps) = steps.filter(|_| new.status == TaskStatus::Done) {
                    splices.extend(steps_done(source, map, steps)?);
                }
            }
        }
    }
    splices.extend(parts_done(source, changed, expected));
    splices.extend(plan_done(source, expected));
    // A state in the front matter may need its place to be created first, so these are set one at a time.
    let text = applied(source.text, splices)?;
    states.iter().try_fold(text, |text, (id, (key, value))| {
        set_heading_state(name, &text, id.as_str(), key, value)
    })
}

/// Marks the steps of a task as done. A step that is only a text has no place for the mark.
fn steps_done(source: &Source<'_>, task: &Node, of: &Steps) -> Option<Vec<Splice>> {
    let steps = task.get(of.list).map(Node::items).unwrap_or_default();
    let json = source.container == Container::Json;
    let is_open = |step: &&Node| {
        let state = step.get(of.key).and_then(Node::text);
        matches!(step.value, Value::Map { .. }) && state != Some(of.done)
    };
    let done = |step: &Node| key_splice(source.text, step, of.key, of.done, json);
    steps.iter().filter(is_open).map(done).collect()
}

/// Sets the status of the whole plan once all of its tasks are done. A text without a place for it stays without it.
fn plan_done(source: &Source<'_>, expected: &Plan) -> Option<Splice> {
    let word = done_word(expected)?;
    let is_open = source.plan_status() != Some(word);
    is_open.then(|| plan_status_splice(source, word))?
}

/// Sets the status of the whole plan, unless its key holds something else.
pub(super) fn plan_status_splice(source: &Source<'_>, word: &str) -> Option<Splice> {
    let root = source.root.as_ref()?;
    let is_status = |node: &Node| node.is_null() || node.text().is_some();
    let is_free = root.get("status").is_none_or(is_status);
    let json = source.container == Container::Json;
    is_free.then(|| key_splice(source.text, root, "status", word, json))?
}

/// The status of a whole plan in its format, if all of its tasks are done.
fn done_word(plan: &Plan) -> Option<&'static str> {
    let is_done = |task: &Task| task.status == TaskStatus::Done;
    let (_, word) = plan_status(plan.format)?;
    plan.tasks.iter().all(is_done).then_some(word)
}

/// Checks the boxes of the parts of completed tasks.
fn parts_done(source: &Source<'_>, changed: &HashSet<usize>, expected: &Plan) -> Vec<Splice> {
    let is_done = |place: &usize| expected.tasks[*place].status == TaskStatus::Done;
    let boxes = source.task_boxes().into_iter();
    boxes
        .filter(|(place, _)| changed.contains(place) && is_done(place))
        .filter(|(place, part)| !part.checked && !source.is_own_box(*place, part))
        .map(|(_, part)| Splice::new(part.span.start, part.span.end, mark(true)))
        .collect()
}

/// The keys to set, in order.
fn pairs(old: &Task, new: &Task, format: PlanFormat) -> Vec<(&'static str, String)> {
    let mut pairs = Vec::new();
    if old.status != new.status {
        pairs.push(status_pair(format, new.status));
    }
    if old.attempts != new.attempts {
        pairs.extend(
            new.attempts
                .map(|attempts| ("attempts", attempts.to_string())),
        );
    }
    if old.completed_at != new.completed_at {
        let time = new.completed_at.as_deref();
        pairs.extend(time.map(|time| ("completed_at", as_scalar(time))));
    }
    pairs
}

fn status_pair(format: PlanFormat, status: TaskStatus) -> (&'static str, String) {
    let state = State::of(format);
    let word = state
        .and_then(|state| state.word(status))
        .unwrap_or(status.word());
    (state.map_or("status", |state| state.key), word.to_owned())
}

/// Sets a part of a heading's state in the front matter, which is created if it does not exist.
fn set_heading_state(name: &str, text: &str, id: &str, key: &str, value: &str) -> Option<String> {
    let source = Source::open(name, text).ok()?;
    let state = if key == "status" {
        value.to_owned()
    } else {
        format!("{{ {key}: {value} }}")
    };
    let Some(front_end) = source.front_end else {
        let n = line_break(text, 0);
        return Some(format!(
            "---{n}{STATUS_KEY}:{n}  {id}: {state}{n}---{n}{text}"
        ));
    };
    let in_flow = source
        .root
        .as_ref()
        .is_some_and(|root| matches!(root.value, Value::Map { flow: true, .. }));
    let states = source.root.as_ref().and_then(|root| root.entry(STATUS_KEY));
    match (states, &source.root) {
        (None, Some(root)) if in_flow => set_key(
            text,
            root,
            STATUS_KEY,
            &format!("{{ {id}: {state} }}"),
            false,
        ),
        (None, root) => {
            let n = line_break(text, front_end);
            let column = root.as_ref().map_or(1, |root| root.at.column);
            let indent = " ".repeat(column - 1);
            let lines = format!("{indent}{STATUS_KEY}:{n}{indent}  {id}: {state}{n}");
            applied(text, vec![Splice::new(front_end, front_end, &lines)])
        }
        (Some(states), Some(root)) if states.value.is_null() => set_key(
            text,
            root,
            STATUS_KEY,
            &format!("{{ {id}: {state} }}"),
            false,
        ),
        (Some(states), _) => set_listed_state(text, &states.value, id, key, value, &state),
    }
}

fn set_listed_state(
    text: &str,
    states: &Node,
    id: &str,
    key: &str,
    value: &str,
    state: &str,
) -> Option<String> {
    match states.get(id) {
        Some(known) if matches!(known.value, Value::Map { .. }) => {
            set_key(text, known, key, value, false)
        }
        Some(known) if key != "status" => {
            let word = known.text()?;
            set_key(
                text,
                states,
                id,
                &format!("{{ status: {word}, {key}: {value} }}"),
                false,
            )
        }
        _ => set_key(text, states, id, state, false),
    }
}

/// A time as a scalar, quoted if necessary.
fn as_scalar(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_digit())
        && text.contains('-')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-+.:".contains(&byte))
        && !text.ends_with(':');
    if is_plain {
        text.to_owned()
    } else {
        serde_json::Value::from(text).to_string()
    }
}

/// Whether the edited text parses to the expected plan and is otherwise unchanged.
fn holds(
    name: &str,
    before: &Read<'_>,
    edited: &str,
    changed: &HashSet<usize>,
    expected: &Plan,
) -> bool {
    let Ok(mut after) = Read::new(name, edited) else {
        return false;
    };
    for (place, (task, known)) in after.plan.tasks.iter_mut().zip(&expected.tasks).enumerate() {
        task.line = known.line;
        // Their parsed text depends on what is done. The renderings show that the source text is unchanged.
        if changed.contains(&place) {
            task.title.clone_from(&known.title);
            task.kind = known.kind;
            task.description.clone_from(&known.description);
        }
    }
    let only = match expected.format {
        // The states of headings are compared through the plan's tasks.
        PlanFormat::Headings => None,
        _ => Some(changed),
    };
    let (was, is) = (before.source.plan_status(), after.source.plan_status());
    after.plan.notes.clone_from(&expected.notes);
    after.plan == *expected
        && (was == is || is == done_word(expected))
        && canonical::render(&before.source, only) == canonical::render(&after.source, only)
}
