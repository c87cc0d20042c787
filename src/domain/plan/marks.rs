//! The completion marks beside the states of tasks that only Sprag sets: completed steps of rmplan, the boxes
//! below a task, and the status of a whole plan.

use super::edit::{Splice, applied, key_splice};
use super::foreign::state::{State, plan_status};
use super::markdown::boxes::mark;
use super::patch::plan_status_splice;
use super::read::Read;
use super::source::Container;
use super::{TaskId, canonical, text_of};
use crate::yaml::{Node, Value};
use std::collections::{HashMap, HashSet};

/// The text of `now` with the marks of `before`, as by [`super::Opened::with_marks_of`].
pub(super) fn with_marks_of(
    name: &str,
    now: &Read<'_>,
    before: &str,
    except: &HashSet<&TaskId>,
) -> Option<String> {
    let marked = parts(now);
    if marked.is_empty() && plan_status(now.plan.format).is_none() {
        return None;
    }
    let before = Read::new(name, text_of(name, before.as_bytes()).ok()?).ok()?;
    let known: HashMap<Key<'_>, bool> = parts(&before)
        .into_iter()
        .map(|part| (part.key, part.is_marked))
        .collect();
    let wrong = marked.into_iter().filter_map(|part| {
        let wanted = known.get(&part.key).copied().unwrap_or_default();
        (part.is_marked != wanted && !except.contains(part.key.0)).then_some((part.place, wanted))
    });
    let json = now.source.container == Container::Json;
    let splices: Option<Vec<Splice>> = wrong
        .map(|(place, wanted)| match place {
            Place::Box(start, end) => Some(Splice::new(start, end, mark(wanted))),
            Place::Step(step) => {
                let steps = State::of(now.plan.format)?.steps.as_ref()?;
                let word = if wanted { steps.done } else { steps.open };
                key_splice(now.source.text, step, steps.key, word, json)
            }
        })
        .collect();
    let mut splices = splices?;
    splices.extend(status_splice(now, &before));
    if splices.is_empty() {
        return None;
    }
    let edited = applied(now.source.text, splices)?;
    let after = Read::new(name, &edited).ok()?;
    let is_same = canonical::render(&now.source, None) == canonical::render(&after.source, None);
    is_same.then_some(edited)
}

/// Resets the status of the whole plan.
fn status_splice(now: &Read<'_>, before: &Read<'_>) -> Option<Splice> {
    let (is, was) = (now.source.plan_status(), before.source.plan_status());
    let (open, _) = plan_status(now.plan.format)?;
    (is != was).then(|| plan_status_splice(&now.source, was.unwrap_or(open)))?
}

/// The task, the part's text, and the number of earlier parts with the same text.
type Key<'a> = (&'a TaskId, String, usize);

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

fn parts<'a>(read: &'a Read<'_>) -> Vec<Part<'a>> {
    let mut times: HashMap<(&TaskId, String), usize> = HashMap::new();
    let found = steps(read).into_iter().chain(boxes(read));
    found
        .map(|(task, words, is_marked, place)| {
            let times = times.entry((task, words.clone())).or_default();
            let key = (task, words, *times);
            *times += 1;
            Part {
                key,
                is_marked,
                place,
            }
        })
        .collect()
}

type Found<'a> = (&'a TaskId, String, bool, Place<'a>);

fn steps<'a>(read: &'a Read<'_>) -> Vec<Found<'a>> {
    let Some(of) = State::of(read.plan.format).and_then(|state| state.steps.as_ref()) else {
        return Vec::new();
    };
    let of_task = |(task, node): (&'a super::Task, &'a Node)| {
        let steps = node
            .get(of.list)
            .map(Node::items)
            .unwrap_or_default()
            .iter();
        let steps = steps.filter(|step| matches!(step.value, Value::Map { .. }));
        steps.map(|step| {
            let is_done = step.get(of.key).and_then(Node::text) == Some(of.done);
            let words = canonical::step_words(step, of.key);
            (&task.id, words, is_done, Place::Step(step))
        })
    };
    let tasks = read.plan.tasks.iter().zip(read.source.task_nodes());
    tasks.flat_map(of_task).collect()
}

fn boxes<'a>(read: &'a Read<'_>) -> Vec<Found<'a>> {
    let source = &read.source;
    let boxes = source.task_boxes().into_iter();
    boxes
        .filter(|(place, part)| !source.is_own_box(*place, part))
        .filter_map(|(place, part)| {
            let rest = source.text.get(part.span.end..)?;
            let words = rest.lines().next().unwrap_or_default().trim().to_owned();
            let place_of = Place::Box(part.span.start, part.span.end);
            Some((
                &read.plan.tasks.get(place)?.id,
                words,
                part.checked,
                place_of,
            ))
        })
        .collect()
}
