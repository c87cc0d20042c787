//! A plan's content apart from the states that only Sprag writes.

use super::PlanFormat;
use super::foreign::layout::{CHANGED, Layout, UPDATED};
use super::native::OWNED_KEYS;
use super::read::Opened;
use super::source::{Container, STATUS_KEY, Source};
use crate::yaml::{Entry, Node, Style, Value};
use std::collections::HashSet;
use std::fmt::Write;

/// A rendering of a plan file without what only Sprag writes: states, attempts and times of tasks, the
/// checkboxes of a checklist, and the status, time and changed files of a whole plan. Two files that differ only in
/// these give equal bytes; any other difference in values, keys, their order or the Markdown text gives different
/// bytes. In YAML and JSON, comments, whitespace and equivalent quotes do not count.
///
/// Returns `None` when the file is not a valid plan: then the raw bytes must be compared.
pub fn without_owned_keys(name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let text = super::text_of(name, bytes).ok()?;
    let plan = Opened::read(name, text).ok()?;
    Some(render(&plan.source, None).into_bytes())
}

/// Like [`without_owned_keys`], but omits only the states of the tasks with the given indexes.
pub(super) fn render(source: &Source<'_>, only: Option<&HashSet<usize>>) -> String {
    let mut out = format!("{:?}\n", source.format);
    if let Some(root) = &source.root {
        push_entries(&mut out, root, &owned_entries(source, root, only));
    }
    if source.container == Container::Markdown {
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
    out
}

/// The edited text of a plan, if it differs from the plan only in what Sprag writes.
pub(super) fn if_same(name: &str, before: &Source<'_>, edited: String) -> Option<String> {
    let after = Opened::read(name, &edited).ok()?;
    let is_same = render(before, None) == render(&after.source, None);
    is_same.then_some(edited)
}

/// The entries that hold what only Sprag writes.
fn owned_entries(
    source: &Source<'_>,
    root: &Node,
    only: Option<&HashSet<usize>>,
) -> HashSet<*const Entry> {
    let layout = Layout::of(source.format);
    let is_of_plan = |key: &str| match key {
        STATUS_KEY => {
            source.format == PlanFormat::Headings
                || layout.is_some_and(|layout| layout.plan_status.is_some())
        }
        UPDATED | CHANGED => source.format == PlanFormat::Rmplan,
        _ => false,
    };
    let is_of_task = |key: &str| match layout {
        Some(layout) => key == layout.key || (layout.has_attempts && key == "attempts"),
        None => OWNED_KEYS.contains(&key),
    };
    let entries = root.entries().iter().filter(|entry| is_of_plan(&entry.key));
    let mut owned: HashSet<*const Entry> = entries.map(std::ptr::from_ref).collect();
    for (place, task) in source.task_nodes().into_iter().enumerate() {
        let is_meant = only.is_none_or(|only| only.contains(&place));
        // A state that is merged from another task is not read.
        let entries = task
            .entries()
            .iter()
            .filter(|entry| is_meant || entry.merged);
        owned.extend(
            entries
                .filter(|entry| is_of_task(&entry.key))
                .map(std::ptr::from_ref),
        );
        if let Some(steps) = layout
            .and_then(|layout| layout.steps.as_ref())
            .filter(|_| is_meant)
        {
            let states = steps.of(task).filter_map(|step| step.entry(steps.key));
            owned.extend(states.map(std::ptr::from_ref));
        }
    }
    owned
}

/// The text of a step, without its state.
pub(super) fn step_words(step: &Node, state: &str) -> String {
    let mut out = String::new();
    let state = step.entry(state).map(std::ptr::from_ref);
    push_node(&mut out, step, &HashSet::from_iter(state));
    out
}

fn push_node(out: &mut String, node: &Node, omitted: &HashSet<*const Entry>) {
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
                push_node(out, item, omitted);
                out.push(',');
            }
            out.push(']');
        }
        Value::Map { .. } => {
            out.push('{');
            push_entries(out, node, omitted);
            out.push('}');
        }
    }
}

fn push_entries(out: &mut String, map: &Node, omitted: &HashSet<*const Entry>) {
    for entry in map.entries() {
        if !omitted.contains(&std::ptr::from_ref(entry)) {
            let _ = write!(out, "{:?}:", entry.key);
            push_node(out, &entry.value, omitted);
            out.push(',');
        }
    }
}
