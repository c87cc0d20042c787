//! The checkboxes of a Markdown text that are its tasks.

use super::label::label;
use super::outline::Outline;
use super::rule::TextTasks;
use super::title_and_id;
use crate::plan::PlanFormat;
use crate::plan::edit::{Splice, applied};
use std::ops::Range;

/// A checkbox that represents a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkbox<'a> {
    /// The line after the box, without an id at its start or end.
    pub title: &'a str,
    /// Whether it is checked.
    pub checked: bool,
    /// The box and the lines below it.
    pub text: &'a str,
    /// The headings above it, the nearest first.
    pub headings: Vec<String>,
    place: Range<usize>,
}

/// The checkboxes of a Markdown text that are tasks, in order.
pub fn checkboxes(text: &str) -> Vec<Checkbox<'_>> {
    let outline = Outline::of(text, 0);
    let found = TextTasks::of("", text, &outline);
    let boxes = found.tasks.iter().filter_map(|task| {
        let mark = task.mark.as_ref()?;
        let line = text[mark.span.end..].lines().next().unwrap_or_default();
        let (title, _) = title_and_id(line.trim());
        let label = label(title).filter(|_| found.format == PlanFormat::TaskList);
        let above = outline
            .headings
            .partition_point(|heading| heading.span.end <= mark.span.start);
        let headings = outline.sections(above.checked_sub(1));
        Some(Checkbox {
            title: label.map_or(title, |label| label.title),
            checked: mark.checked,
            text: &text[task.span.clone()],
            headings: headings.map(|heading| heading.text.clone()).collect(),
            place: mark.span.clone(),
        })
    });
    boxes.collect()
}

/// Whether headings such as `Task 1` name the tasks of a Markdown text.
pub fn has_task_headings(text: &str) -> bool {
    let outline = Outline::of(text, 0);
    let mut headings = outline.headings.iter();
    headings.any(|heading| heading.text.to_lowercase().starts_with("task "))
        && TextTasks::of("", text, &outline).are_named
}

/// The text with some of its checkboxes checked; every other byte is unchanged.
pub fn with_checked<'a>(
    text: &'a str,
    wanted: impl IntoIterator<Item = &'a Checkbox<'a>>,
) -> String {
    let check = |checkbox: &Checkbox<'_>| {
        let place = &checkbox.place;
        Splice::new(place.start, place.end, mark(true))
    };
    let open = wanted.into_iter().filter(|checkbox| !checkbox.checked);
    applied(text, open.map(check).collect()).unwrap_or_else(|| text.to_owned())
}

/// The text of a checkbox.
pub(in crate::plan) fn mark(checked: bool) -> &'static str {
    if checked { "[x]" } else { "[ ]" }
}
