//! A plan's content apart from the states that only Sprag writes.

use super::foreign::rmplan;
use super::foreign::state::{State, plan_status};
use super::native::OWNED_KEYS;
use super::read::Read;
use super::source::{Container, STATUS_KEY, Source};
use super::{PlanFormat, text_of};
use crate::yaml::{Entry, Node, Style, Value};
use std::collections::HashSet;
use std::fmt::Write;

/// A rendering of a plan file without what only Sprag writes: states, attempts and times of tasks, the
/// checkboxes of a checklist, and the status, time and changed files of a whole plan. Two files that differ only in these give equal
/// bytes; any other difference in values, keys, their order or the Markdown text gives different bytes. In YAML
/// and JSON, comments, whitespace and equivalent quotes do not count.
///
/// Returns `None` when the file is not a valid plan: then the raw bytes must be compared.
pub fn without_owned_keys(name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let read = Read::new(name, text_of(name, bytes).ok()?).ok()?;
    Some(render(&read.source, None).into_bytes())
}

/// Like [`without_owned_keys`], but omits only the states of the tasks with the given indexes.
pub(super) fn render(source: &Source<'_>, only: Option<&HashSet<usize>>) -> String {
    let mut out = format!("{:?}\n", source.format);
    let state = State::of(source.format);
    let list = state.map_or("tasks", |state| state.list);
    let holder = source.holder();
    for entry in source.root.iter().flat_map(Node::entries) {
        match entry.key.as_str() {
            key if list.is_empty() && state.is_some_and(|state| state.key == key) => {}
            "status" if plan_status(source.format).is_some() => {}
            rmplan::UPDATED | rmplan::CHANGED if source.format == PlanFormat::Rmplan => {}
            STATUS_KEY if source.format == PlanFormat::Headings => {
                if only.is_some() {
                    push_entry(&mut out, entry);
                }
            }
            // The tag of a list of tasks.
            _ if holder == Some(&entry.value) => {
                for entry in entry
                    .value
                    .entries()
                    .iter()
                    .filter(|entry| entry.key != list)
                {
                    push_entry(&mut out, entry);
                }
                push_tasks(&mut out, source, only);
            }
            key if key == list && holder == source.root.as_ref() && has_tasks(source.format) => {
                push_tasks(&mut out, source, only);
            }
            _ => push_entry(&mut out, entry),
        }
    }
    if source.container == Container::Markdown {
        push_body(&mut out, source, only);
    }
    out
}

/// Whether the tasks of a format are a list of its tree.
fn has_tasks(format: PlanFormat) -> bool {
    format == PlanFormat::Sprag || State::of(format).is_some()
}

fn push_tasks(out: &mut String, source: &Source<'_>, only: Option<&HashSet<usize>>) {
    let state = State::of(source.format);
    let is_owned = |key: &str| {
        state.map_or(OWNED_KEYS.contains(&key), |state| {
            key == state.key || (state.has_attempts && key == "attempts")
        })
    };
    let steps = state.and_then(|state| state.steps.as_ref());
    out.push_str("tasks[");
    for (index, task) in source.task_nodes().into_iter().enumerate() {
        out.push('{');
        let left_out = only.is_none_or(|only| only.contains(&index));
        for entry in task.entries() {
            let key = entry.key.as_str();
            let steps = steps.filter(|steps| steps.list == key && left_out);
            if let Some(steps) = steps {
                push_steps(out, &entry.value, steps.key);
            } else if !(is_owned(key) && (left_out || entry.merged)) {
                push_entry(out, entry);
            }
        }
        out.push('}');
    }
    out.push_str("]\n");
}

/// Renders the steps of a task without their states, which only Sprag sets.
fn push_steps(out: &mut String, steps: &Node, state: &str) {
    out.push_str("steps[");
    for step in steps.items() {
        out.push('{');
        out.push_str(&step_words(step, state));
        out.push('}');
    }
    out.push(']');
}

/// The text of a step, without its state.
pub(super) fn step_words(step: &Node, state: &str) -> String {
    let mut out = String::new();
    match &step.value {
        Value::Map { entries, .. } => entries
            .iter()
            .filter(|entry| entry.key != state)
            .for_each(|entry| push_entry(&mut out, entry)),
        _ => push_node(&mut out, step),
    }
    out
}

fn push_body(out: &mut String, source: &Source<'_>, only: Option<&HashSet<usize>>) {
    out.push('\n');
    let mut from = source.body_start;
    for (place, mark) in source.task_boxes() {
        if only.is_none_or(|only| only.contains(&place)) {
            out.push_str(&source.text[from..mark.span.start]);
            out.push_str("[ ]");
            from = mark.span.end;
        }
    }
    out.push_str(&source.text[from..]);
}

fn push_entry(out: &mut String, entry: &Entry) {
    let _ = write!(out, "{:?}:", entry.key);
    push_node(out, &entry.value);
    out.push(',');
}

fn push_node(out: &mut String, node: &Node) {
    match &node.value {
        _ if node.is_null() => out.push('~'),
        // `3` and `"3"` are different values, but a quoted text and a block may be equal.
        Value::Scalar { text, style } => {
            let sign = if *style == Style::Plain { 'p' } else { 't' };
            let _ = write!(out, "{sign}{text:?}");
        }
        Value::List { items } => {
            out.push('[');
            for item in items {
                push_node(out, item);
                out.push(',');
            }
            out.push(']');
        }
        Value::Map { entries, .. } => {
            out.push('{');
            entries.iter().for_each(|entry| push_entry(out, entry));
            out.push('}');
        }
    }
}
