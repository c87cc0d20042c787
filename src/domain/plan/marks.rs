//! The completion marks beside the states of tasks that only Sprag sets: completed steps of rmplan, the boxes
//! below a task, and the status of a whole plan.

use super::canonical::{if_same, step_words};
use super::edit::{Splice, applied, key_splice};
use super::foreign::layout::Layout;
use super::markdown::boxes::mark;
use super::patch::plan_status_splice;
use super::read::Opened;
use super::source::Container;
use super::{TaskId, text_of};
use crate::yaml::Node;
use std::collections::{HashMap, HashSet};

impl Opened<'_> {
    /// The text with the status of the whole plan and the marks on parts of tasks reset to those in `before`,
    /// except for the parts of the tasks in `except`. A part is identified by its task and its text; a new part is
    /// not marked. `None` if nothing has to be reset, or a text cannot be read or edited with certainty.
    pub fn with_marks_of(&self, before: &str, except: &HashSet<&TaskId>) -> Option<String> {
        let marked = parts(self);
        let layout = Layout::of(self.plan.format);
        let status = layout.and_then(|layout| layout.plan_status);
        if marked.is_empty() && status.is_none() {
            return None;
        }
        let before = Opened::read(self.name, text_of(self.name, before.as_bytes()).ok()?).ok()?;
        let known = parts(&before)
            .into_iter()
            .map(|part| (part.key, part.is_marked));
        let known: HashMap<Key<'_>, bool> = known.collect();
        let json = self.source.container == Container::Json;
        let mut splices = Vec::new();
        for part in marked {
            let wanted = known.get(&part.key).copied().unwrap_or_default();
            if part.is_marked == wanted || except.contains(part.key.0) {
                continue;
            }
            splices.push(match part.place {
                Place::Box(start, end) => Splice::new(start, end, mark(wanted)),
                Place::Step(step) => {
                    let steps = layout?.steps.as_ref()?;
                    let word = if wanted { steps.done } else { steps.open };
                    key_splice(self.source.text, step, steps.key, word, json)?
                }
            });
        }
        if let Some((open, _)) = status {
            let (is, was) = (self.source.plan_status(), before.source.plan_status());
            let was = was.unwrap_or(open);
            let reset =
                (is != before.source.plan_status()).then(|| plan_status_splice(&self.source, was));
            splices.extend(reset.flatten());
        }
        if splices.is_empty() {
            return None;
        }
        let edited = applied(self.source.text, splices)?;
        let edited = if_same(self.name, &self.source, edited)?;
        Some(format!("{}{edited}", self.mark))
    }
}

/// The task, the part's text, and the number of earlier parts with the same text.
type Key<'a> = (&'a TaskId, String, usize);

/// A step or a box below a task.
struct Part<'a> {
    key: Key<'a>,
    is_marked: bool,
    place: Place<'a>,
}

enum Place<'a> {
    /// The start and end offsets of the box.
    Box(usize, usize),
    Step(&'a Node),
}

fn parts<'a>(of: &'a Opened<'_>) -> Vec<Part<'a>> {
    let (source, tasks) = (&of.source, &of.plan.tasks);
    let part = |task: &'a TaskId, words: String, is_marked, place| Part {
        key: (task, words, 0),
        is_marked,
        place,
    };
    let mut parts = Vec::new();
    if let Some(steps) = Layout::of(source.format).and_then(|layout| layout.steps.as_ref()) {
        for (task, node) in tasks.iter().zip(source.task_nodes()) {
            parts.extend(steps.of(node).map(|step| {
                let words = step_words(step, steps.key);
                part(&task.id, words, steps.is_done(step), Place::Step(step))
            }));
        }
    }
    for (place, below) in source.task_boxes() {
        if source.own_box(place) != Some(below) {
            let rest = &source.text[below.span.end..];
            let words = rest.lines().next().unwrap_or_default().trim().to_owned();
            let at = Place::Box(below.span.start, below.span.end);
            parts.push(part(&tasks[place].id, words, below.checked, at));
        }
    }
    let mut times: HashMap<(&TaskId, String), usize> = HashMap::new();
    for Part { key, .. } in &mut parts {
        let times = times.entry((key.0, key.1.clone())).or_default();
        key.2 = *times;
        *times += 1;
    }
    parts
}
