//! The checkboxes at every depth of a Markdown text, and their meaning.

use super::outline::{Item, Outline, is_acceptance, level_of, options};
use super::title_and_id;
use crate::plan::edit::{Splice, applied};
use crate::plan::task_list;
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use std::ops::Range;

/// A checkbox of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::plan) struct Mark {
    /// The `[ ]`.
    pub span: Range<usize>,
    pub checked: bool,
    /// Whether it is an acceptance criterion.
    pub is_criterion: bool,
    /// Whether it is under a heading that announces tasks.
    pub is_under_tasks: bool,
}

/// The subject of a section.
#[derive(Clone, Copy, PartialEq)]
enum Section {
    Tasks,
    Criteria,
    Other,
}

impl Section {
    fn of(heading: &str) -> Self {
        let words = heading.to_lowercase();
        let is_criteria = ["acceptance", "definition of done", "success criteria"];
        let mut parts = words.split(|c: char| !c.is_alphanumeric());
        if is_criteria.iter().any(|name| words.contains(name)) {
            Self::Criteria
        } else if parts.any(|part| matches!(part, "task" | "tasks"))
            || words.contains("implementation plan")
        {
            Self::Tasks
        } else {
            Self::Other
        }
    }
}

/// All checkboxes of `body`, which starts at offset `base` of the file, in order.
pub(in crate::plan) fn marks(body: &str, base: usize) -> Vec<Mark> {
    let mut found = Vec::new();
    let mut sections: Vec<(u8, Section)> = Vec::new();
    let mut lists: Vec<bool> = Vec::new();
    let mut block = String::new();
    for (event, range) in Parser::new_ext(body, options()).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { .. } | Tag::Paragraph | Tag::Item) => block.clear(),
            Event::End(TagEnd::Heading(level)) if lists.is_empty() => {
                let level = level_of(level);
                sections.retain(|(above, _)| *above < level);
                sections.push((level, Section::of(&block)));
            }
            Event::Text(text) | Event::Code(text) => block.push_str(&text),
            Event::Start(Tag::List(_)) => {
                let within = lists.last().copied().unwrap_or(false);
                lists.push(within || is_acceptance(&block));
                block.clear();
            }
            Event::End(TagEnd::List(_)) => {
                lists.pop();
            }
            Event::TaskListMarker(checked) => {
                let within = |kind| sections.iter().any(|(_, section)| *section == kind);
                let is_criterion = within(Section::Criteria) || lists.last() == Some(&true);
                found.push(Mark {
                    span: range.start + base..range.end + base,
                    checked,
                    is_criterion,
                    is_under_tasks: within(Section::Tasks),
                });
            }
            _ => {}
        }
    }
    found
}

/// A top-level checkbox that represents a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkbox<'a> {
    /// The line after the box, without an id at its start or end.
    pub title: &'a str,
    /// Whether it is checked.
    pub checked: bool,
    place: Range<usize>,
}

/// The top-level checkboxes of a Markdown text, in order. Acceptance criteria, and boxes in code or quotes,
/// are excluded.
pub fn checkboxes(text: &str) -> Vec<Checkbox<'_>> {
    let outline = Outline::of(text, 0);
    let line = |item: &Item| text[item.mark.end..].lines().next().unwrap_or_default();
    let first = outline.items.first().map(line);
    let has_labels = first.is_some_and(|line| task_list::label(line).is_some());
    let items = outline.items.iter();
    let checkbox = |item: &Item| {
        let (title, _) = title_and_id(line(item).trim());
        let label = task_list::label(title).filter(|_| has_labels);
        Checkbox {
            title: label.map_or(title, |label| label.title),
            checked: item.checked,
            place: item.mark.clone(),
        }
    };
    items.map(checkbox).collect()
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
