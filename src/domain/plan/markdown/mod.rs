//! Plans in Markdown: checklists, or headings.

pub(super) mod boxes;
mod headings;
mod keys;
pub(super) mod label;
pub(super) mod outline;
pub(super) mod rule;

use super::native::{Draft, OWNED_KEYS, owned, read_plan_keys, read_task_entry};
use super::source::{STATUS_KEY, Source};
use super::{Plan, PlanFormat, TaskId, TaskStatus};
use crate::settings::kind::{Choice, Kind};
use crate::suggest::did_you_mean;
use crate::text::without_ranges;
use crate::text_error::{Fault, Position};
use crate::yaml::{Node, Value, read};
use keys::take_keys;
use outline::{Heading, tidy};
use std::collections::HashMap;
use std::ops::Range;

pub(super) fn read(
    source: &Source<'_>,
    warnings: &mut Vec<Fault>,
) -> Result<(Plan, Vec<Draft>), Fault> {
    let mut plan = Plan::without_tasks(source.format);
    if let Some(root) = &source.root {
        let others: &[&str] = match source.format {
            PlanFormat::Headings => &[STATUS_KEY],
            _ => &[],
        };
        read_plan_keys(&mut plan, root, others)?;
    }
    let headline = source.outline.headline();
    if let Some(headline) = headline.filter(|_| plan.title.is_empty()) {
        plan.title.clone_from(&headline.text);
    }
    let (drafts, tasks) = drafts(source, warnings)?;
    if drafts.is_empty() {
        return Err(Fault::new(
            Position::START,
            "the plan has no tasks: write each as a list item `- [ ] …` or under a heading `## …`",
        ));
    }
    if plan.details.is_empty() {
        plan.details = without(source, tasks, headline);
    }
    Ok((plan, drafts))
}

/// Reads the states of heading tasks: `status: { t1: done, t2: { status: failed, attempts: 2 } }`.
pub(super) fn take_status(
    source: &Source<'_>,
    ids: &[TaskId],
    drafts: &mut [Draft],
    warnings: &mut Vec<Fault>,
) -> Result<(), Fault> {
    let Some(states) = source.root.as_ref().and_then(|root| root.get(STATUS_KEY)) else {
        return Ok(());
    };
    let expected = "a mapping from task ids to states, such as { t1: done }";
    let index: HashMap<&str, usize> = ids.iter().map(TaskId::as_str).zip(0..).collect();
    for entry in read::entries(STATUS_KEY, expected, owned(STATUS_KEY, states)?)? {
        let Some(&task) = index.get(entry.key.as_str()) else {
            let suggestion = did_you_mean(&entry.key, ids.iter().map(TaskId::as_str));
            let message = format!(
                "`status` names the task `{}`, which does not exist{suggestion}",
                entry.key
            );
            warnings.push(Fault::new(entry.key_at, message));
            continue;
        };
        read_state(&mut drafts[task], &entry.key, &entry.value)?;
    }
    Ok(())
}

fn read_state(draft: &mut Draft, id: &str, node: &Node) -> Result<(), Fault> {
    let key = format!("{STATUS_KEY}.{id}");
    let node = owned(&key, node)?;
    if matches!(node.value, Value::Scalar { .. } | Value::List { .. }) && !node.is_null() {
        draft.status = Choice::<TaskStatus>::kind().read(&key, node)?;
    }
    for entry in node.entries().iter().filter(|entry| !entry.value.is_null()) {
        if !OWNED_KEYS.contains(&entry.key.as_str()) {
            return Err(read::unknown_part(&key, entry, OWNED_KEYS));
        }
        read_task_entry(draft, entry)?;
    }
    Ok(())
}

/// The tasks of the text, each with its range.
pub(super) fn drafts(
    source: &Source<'_>,
    warnings: &mut Vec<Fault>,
) -> Result<(Vec<Draft>, Vec<Range<usize>>), Fault> {
    let (text, format) = (source.text, source.listed.format);
    let lines = Lines::new(text);
    for at in &source.outline.unread {
        let line = text[*at..].lines().next().unwrap_or_default();
        let shown = crate::text::one_line(line.trim(), 60).replace('`', "'");
        let message = format!("`{shown}` is read as text: a box is written `- [ ] …`");
        warnings.push(Fault::new(lines.position(*at), message));
    }
    let mut drafts = Vec::with_capacity(source.listed.tasks.len());
    for task in &source.listed.tasks {
        let is_heading = format == PlanFormat::Headings;
        let mark = task.mark.as_ref().filter(|_| !is_heading);
        let at = lines.position(mark.map_or(task.span.start, |mark| mark.span.start));
        let after = &text[task.text_start..task.span.end.max(task.text_start)];
        let line = after.split_inclusive('\n').next().unwrap_or_default();
        let (title, start) = if is_heading {
            (task.title.as_str(), task.text_start)
        } else {
            (line, task.text_start + line.len())
        };
        let (title, id) = title_and_id(title.trim());
        let id = id.map(str::to_owned).or_else(|| task.id.clone());
        let mut draft = Draft {
            at: Some(at),
            id: id.map(|id| (id, at)),
            title: title.to_owned(),
            ..Draft::default()
        };
        let range = start..task.span.end.max(start);
        let with_states = is_heading && !task.has_boxes();
        let keys = take_keys(&mut draft, &lines, range.clone(), with_states, warnings)?;
        let told = source.outline.describe(text, range, keys);
        draft.description = told.description;
        draft.acceptance.extend(told.acceptance);
        draft.commits = told.commits;
        if task.is_done() {
            draft.status = TaskStatus::Done;
        }
        for (id, _) in &mut draft.depends_on {
            if let Some((named, _)) = label::of_heading(id) {
                *id = named;
            } else if id.bytes().all(|byte| byte.is_ascii_digit()) && format != PlanFormat::TaskList
            {
                *id = format!("t{id}");
            }
        }
        drafts.push(draft);
    }
    let spans = source.listed.tasks.iter().map(|task| task.span.clone());
    Ok((drafts, spans.collect()))
}

/// Splits off a task id at the end of a title: `Serve the report {#endpoint}`.
pub(super) fn title_and_id(title: &str) -> (&str, Option<&str>) {
    let marked = title
        .strip_suffix('}')
        .and_then(|rest| rest.rsplit_once("{#"));
    match marked {
        Some((before, id)) if !id.is_empty() => (before.trim_end(), Some(id)),
        _ => (title, None),
    }
}

/// The body without the tasks and the headline.
pub(super) fn without(
    source: &Source<'_>,
    tasks: Vec<Range<usize>>,
    headline: Option<&Heading>,
) -> String {
    let mut removed = tasks;
    removed.extend(headline.map(|heading| heading.span.clone()));
    removed.sort_by_key(|range| range.start);
    tidy(&without_ranges(source.text, source.body_start, &removed))
}

/// Converts offsets to positions.
struct Lines<'a> {
    text: &'a str,
    /// The offset of each line.
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(ends).collect(),
        }
    }

    fn position(&self, offset: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).map_or(0, |line| self.starts[line]);
        let before = self.text.get(start..offset).unwrap_or_default();
        Position {
            line,
            column: before.chars().count() + 1,
        }
    }
}
