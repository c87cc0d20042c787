//! Writes a task's state into the plan's text.

use super::canonical::{if_same, render};
use super::edit::{Splice, applied, key_splice, line_break, list_splice};
use super::foreign::layout::{CHANGED, Layout, UPDATED};
use super::markdown::boxes::mark;
use super::read::{Opened, open};
use super::source::{Container, STATUS_KEY, Source};
use super::{Plan, PlanError, PlanFormat, Task, TaskId, TaskStatus};
use crate::pattern::Pattern;
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

/// Sets the states of tasks, each named once, in the text of a plan and changes nothing else: comments,
/// indentation, quotes, line breaks and all other keys stay. A value that the file already has is not written
/// again.
///
/// Not every format can represent every state. Checklists, task lists and rmplan know only done and not done.
/// rafa has no blocked status (failed is written instead) and no time. ai-sdlc has no failed status (blocked
/// is written instead), no attempts and no time. When a task is done, its rmplan steps are marked done, and
/// the boxes of a story's tasks and of a task's parts are checked; those of acceptance criteria never are. When all
/// tasks are done, the status of the whole plan says so in rmplan and rafa.
///
/// # Errors
/// When the text is not a valid plan, has no such task, or is written in a way that cannot be edited with
/// certainty. The result is parsed again, and is returned only if the states are there and everything else is
/// unchanged.
pub fn set_statuses(
    name: &str,
    text: &str,
    updates: &[(&TaskId, &StatusUpdate)],
) -> Result<String, PlanError> {
    open(name, text.as_bytes())?.value.with_statuses(updates)
}

impl Opened<'_> {
    /// The text with the states of tasks set, as by [`set_statuses`].
    ///
    /// # Errors
    /// As for [`set_statuses`].
    pub fn with_statuses(&self, updates: &[(&TaskId, &StatusUpdate)]) -> Result<String, PlanError> {
        let tasks = self.plan.tasks.iter().enumerate();
        let places = tasks.map(|(place, task)| (&task.id, place));
        let places: HashMap<&TaskId, usize> = places.collect();
        let mut expected = self.plan.clone();
        let mut changed = HashSet::new();
        for (id, update) in updates {
            let Some(&place) = places.get(id) else {
                let known = self.plan.tasks.iter().map(|task| task.id.as_str());
                let suggestion = did_you_mean(id.as_str(), known);
                let message = format!("the plan has no task `{id}`{suggestion}");
                return Err(Fault::new(Position::START, message).in_file(self.name));
            };
            let has_boxes = self.source.has_boxes(place, id.as_str());
            set(
                &mut expected.tasks[place],
                self.plan.format,
                has_boxes,
                update,
            );
            changed.insert(place);
        }
        let edited = splices(self, &changed, &expected)
            .and_then(|splices| applied(self.source.text, splices))
            .filter(|edited| holds(self, edited, &changed, &expected));
        match edited {
            Some(edited) => Ok(format!("{}{edited}", self.mark)),
            None => Err(unsure(&self.plan, &changed).in_file(self.name)),
        }
    }
}

/// The text of a plan of rmplan with the time of its last change, and with these changed files beside those that it has,
/// where it has the keys for them. `None` if nothing is to be written.
pub fn with_facts(name: &str, text: &str, files: &BTreeSet<String>, time: &str) -> Option<String> {
    let before = Opened::read(name, text).ok()?;
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
    if_same(name, source, applied(text, splices)?)
}

fn unsure(plan: &Plan, changed: &HashSet<usize>) -> Fault {
    let first = changed.iter().min().map(|place| &plan.tasks[*place]);
    let at = first.map_or(Position::START, |task| Position::of_line(task.line));
    let id = first.map_or("", |task| task.id.as_str());
    let message = format!(
        "the state of the task `{id}` cannot be written here without touching other parts: \
         write the task with one key a line"
    );
    Fault::new(at, message)
}

/// Sets the state that the task should have afterwards, as far as its format can represent the update.
fn set(task: &mut Task, format: PlanFormat, has_boxes: bool, update: &StatusUpdate) {
    let layout = Layout::of(format);
    task.status = match layout {
        _ if has_boxes && update.status != TaskStatus::Done => TaskStatus::Pending,
        Some(layout) => layout.nearest(update.status),
        None => update.status,
    };
    let is_full = matches!(format, PlanFormat::Sprag | PlanFormat::Headings) && !has_boxes;
    if is_full || layout.is_some_and(|layout| layout.has_attempts) {
        task.attempts = update.attempts.or(task.attempts);
    }
    if is_full && update.completed_at.is_some() {
        task.completed_at.clone_from(&update.completed_at);
    }
}

/// The changes of the text; `None` if it cannot be edited.
fn splices(before: &Opened<'_>, changed: &HashSet<usize>, expected: &Plan) -> Option<Vec<Splice>> {
    let source = &before.source;
    let json = source.container == Container::Json;
    let layout = Layout::of(source.format);
    let mut places: Vec<usize> = changed.iter().copied().collect();
    places.sort_unstable();
    let mut splices = Vec::new();
    let mut headings = Vec::new();
    for place in places {
        let (old, new) = (&before.plan.tasks[place], &expected.tasks[place]);
        let pairs = pairs(old, new, layout);
        if source.has_boxes(place, new.id.as_str()) {
            continue;
        }
        if source.format == PlanFormat::Headings {
            headings.extend((!pairs.is_empty()).then_some((new, pairs)));
            continue;
        }
        let map = *source.task_nodes().get(place)?;
        for (key, value) in pairs {
            splices.push(key_splice(source.text, map, key, &value, json)?);
        }
        if let Some(steps) = layout.and_then(|layout| layout.steps.as_ref())
            && new.status == TaskStatus::Done
        {
            for step in steps.of(map).filter(|step| !steps.is_done(step)) {
                splices.push(key_splice(source.text, step, steps.key, steps.done, json)?);
            }
        }
    }
    splices.extend(heading_splices(source, &headings)?);
    splices.extend(box_splices(before, changed, expected));
    splices.extend(plan_done(source, expected));
    Some(splices)
}

/// Sets the boxes of tasks. Those below a task are done with it, and open ones are the state of a task without a box
/// of its own.
fn box_splices(before: &Opened<'_>, changed: &HashSet<usize>, expected: &Plan) -> Vec<Splice> {
    let source = &before.source;
    let mut splices = Vec::new();
    for (place, part) in source.task_boxes() {
        let task = &expected.tasks[place];
        let is_done = task.status == TaskStatus::Done;
        let was_done = before.plan.tasks[place].status == TaskStatus::Done;
        let has_boxes = source.has_boxes(place, task.id.as_str());
        let is_state = match source.own_box(place) {
            Some(own) if own.span == part.span => has_boxes,
            own => is_done || (has_boxes && was_done && own.is_none()),
        };
        if changed.contains(&place) && is_state && part.checked != is_done {
            splices.push(Splice::new(part.span.start, part.span.end, mark(is_done)));
        }
    }
    splices
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
    let (_, word) = Layout::of(plan.format)?.plan_status?;
    plan.tasks.iter().all(is_done).then_some(word)
}

/// The keys to set, in order.
fn pairs(old: &Task, new: &Task, layout: Option<&Layout>) -> Vec<(&'static str, String)> {
    let mut pairs = Vec::new();
    if old.status != new.status {
        let word = layout.and_then(|layout| layout.word(new.status));
        let key = layout.map_or("status", |layout| layout.key);
        pairs.push((key, word.unwrap_or(new.status.word()).to_owned()));
    }
    let attempts = new.attempts.filter(|_| old.attempts != new.attempts);
    pairs.extend(attempts.map(|attempts| ("attempts", attempts.to_string())));
    let time = new.completed_at.as_deref();
    let time = time.filter(|_| old.completed_at != new.completed_at);
    pairs.extend(time.map(|time| ("completed_at", as_scalar(time))));
    pairs
}

/// Sets the states of headings in the front matter, which is created if it does not exist.
fn heading_splices(
    source: &Source<'_>,
    tasks: &[(&Task, Vec<(&'static str, String)>)],
) -> Option<Vec<Splice>> {
    if tasks.is_empty() {
        return Some(Vec::new());
    }
    let text = source.text;
    let listed = tasks
        .iter()
        .map(|(task, _)| format!("{}: {}", task.id, heading_state(task)));
    let listed: Vec<String> = listed.collect();
    let root = source.root.as_ref();
    let states = root.and_then(|root| root.get(STATUS_KEY));
    if let Some(states) = states.filter(|states| !states.entries().is_empty()) {
        let mut splices = Vec::new();
        for (task, pairs) in tasks {
            let id = task.id.as_str();
            let known = states.get(id);
            match known.filter(|known| matches!(known.value, Value::Map { flow: false, .. })) {
                Some(known) => {
                    for (key, value) in pairs {
                        splices.push(key_splice(text, known, key, value, false)?);
                    }
                }
                None => splices.push(key_splice(text, states, id, &heading_state(task), false)?),
            }
        }
        return Some(splices);
    }
    let is_flow = root.is_some_and(|root| matches!(root.value, Value::Map { flow: true, .. }));
    if let Some(root) = root.filter(|root| is_flow || root.entry(STATUS_KEY).is_some()) {
        let all = format!("{{ {} }}", listed.join(", "));
        return Some(vec![key_splice(text, root, STATUS_KEY, &all, false)?]);
    }
    let n = line_break(text, source.front_end.unwrap_or_default());
    let indent = " ".repeat(root.map_or(0, |root| root.at.column - 1));
    let states = listed.iter().map(|state| format!("{indent}  {state}{n}"));
    let lines = format!("{indent}{STATUS_KEY}:{n}{}", states.collect::<String>());
    Some(vec![match source.front_end {
        Some(end) => Splice::new(end, end, &lines),
        None => Splice::new(0, 0, &format!("---{n}{lines}---{n}")),
    }])
}

/// The state of a heading as it stands in the front matter: its word, or all that is known.
fn heading_state(task: &Task) -> String {
    let word = task.status.word();
    let time = task.completed_at.as_deref().map(as_scalar);
    let mut parts = vec![format!("status: {word}")];
    parts.extend(
        task.attempts
            .map(|attempts| format!("attempts: {attempts}")),
    );
    parts.extend(time.map(|time| format!("completed_at: {time}")));
    if parts.len() == 1 {
        return word.to_owned();
    }
    format!("{{ {} }}", parts.join(", "))
}

/// A time as a scalar, quoted if necessary.
fn as_scalar(text: &str) -> String {
    static PLAIN: Pattern =
        Pattern::new("^[0-9][0-9A-Za-z+.:]*-(?:[0-9A-Za-z+.:-]*[0-9A-Za-z+.-])?$");
    if PLAIN.is_match(text) {
        return text.to_owned();
    }
    serde_json::Value::from(text).to_string()
}

/// Whether the edited text parses to the expected plan and is otherwise unchanged.
fn holds(before: &Opened<'_>, edited: &str, changed: &HashSet<usize>, expected: &Plan) -> bool {
    let Ok(mut after) = Opened::read(before.name, edited) else {
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
    let (was, is) = (before.source.plan_status(), after.source.plan_status());
    after.plan.notes.clone_from(&expected.notes);
    after.plan == *expected
        && (was == is || is == done_word(expected))
        && render(&before.source, Some(changed)) == render(&after.source, Some(changed))
}
