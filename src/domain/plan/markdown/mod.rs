//! Plans in Markdown: checklists, or headings.

pub(super) mod boxes;
mod headings;
mod keys;
pub(super) mod label;
pub(super) mod outline;
pub(super) mod rule;

use super::native::{Draft, OWNED_KEYS, owned, read_attempts, read_plan_keys};
use super::source::{STATUS_KEY, Source};
use super::{Plan, PlanFormat, TaskId, TaskStatus};
use crate::settings::kind::{Choice, Kind};
use crate::suggest::did_you_mean;
use crate::text_error::{Fault, Position};
use crate::yaml::{Node, Value, read};
use keys::{take_keys, without_commits};
use outline::{Heading, dedent, split_acceptance, tidy, without_ranges};
use std::collections::HashMap;
use std::ops::Range;

pub(super) fn read(
    source: &Source<'_>,
    warnings: &mut Vec<Fault>,
) -> Result<(Plan, Vec<Draft>), Fault> {
    let mut plan = Plan::without_tasks(source.format);
    if let Some(root) = &source.root {
        let others: &[&str] = match source.format {
            PlanFormat::Headings => &[STATUS_KEY, "$schema"],
            _ => &["$schema"],
        };
        read_plan_keys(&mut plan, root, others)?;
    }
    let headline = source
        .outline
        .headings
        .iter()
        .find(|heading| heading.level == 1);
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
    let index: HashMap<&str, usize> = ids
        .iter()
        .enumerate()
        .map(|(i, id)| (id.as_str(), i))
        .collect();
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
    let status = Choice::<TaskStatus>::kind();
    if !matches!(node.value, Value::Map { .. }) {
        if !node.is_null() {
            draft.status = status.read(&key, node)?;
        }
        return Ok(());
    }
    for entry in node.entries().iter().filter(|entry| !entry.value.is_null()) {
        let part = format!("{key}.{}", entry.key);
        let value = owned(&part, &entry.value)?;
        match entry.key.as_str() {
            "status" => draft.status = status.read(&part, value)?,
            "attempts" => draft.attempts = Some(read_attempts(&part, value)?),
            "completed_at" => draft.completed_at = Some(read::words(&part, value)?),
            _ => return Err(read::unknown_part(&key, entry, OWNED_KEYS)),
        }
    }
    Ok(())
}

/// The tasks of the text, each with its range.
pub(super) fn drafts(
    source: &Source<'_>,
    warnings: &mut Vec<Fault>,
) -> Result<(Vec<Draft>, Vec<Range<usize>>), Fault> {
    let lines = Lines::new(source.text);
    for at in &source.outline.unread {
        let line = source.text[*at..].lines().next().unwrap_or_default();
        let shown = crate::text::one_line(line.trim(), 60).replace('`', "'");
        let message = format!("`{shown}` is read as text: a box is written `- [ ] …`");
        warnings.push(Fault::new(lines.position(*at), message));
    }
    let mut drafts = Vec::with_capacity(source.listed.tasks.len());
    let mut spans = Vec::with_capacity(source.listed.tasks.len());
    for task in &source.listed.tasks {
        let mark = task.mark.as_ref().filter(|_| !source.listed.are_headings);
        let at = lines.position(mark.map_or(task.span.start, |mark| mark.span.start));
        let after = &source.text[task.text_start..task.span.end.max(task.text_start)];
        let (title, text) = if source.listed.are_headings {
            (task.title.as_str(), after.to_owned())
        } else {
            let (title, rest) = after.split_once('\n').unwrap_or((after, ""));
            (title, dedent(rest))
        };
        let (title, id) = title_and_id(title.trim().trim_start_matches("* "));
        let mut draft = Draft {
            at: Some(at),
            id: id
                .map(str::to_owned)
                .or_else(|| task.id.clone())
                .map(|id| (id, at)),
            title: title.to_owned(),
            ..Draft::default()
        };
        // Headings that are underlined take two lines.
        let first = at.line
            + source.text[task.span.start..task.text_start]
                .matches('\n')
                .count()
                .max(1);
        let with_states = source.listed.are_headings && !task.has_boxes();
        let text = take_keys(&mut draft, &text, first, with_states, warnings)?;
        let (text, commits) = without_commits(&text);
        let (description, acceptance) = split_acceptance(&text);
        draft.description = description;
        draft.acceptance.extend(acceptance);
        draft.commits = commits;
        if task.is_done() {
            draft.status = TaskStatus::Done;
        }
        for (id, _) in &mut draft.depends_on {
            if let Some((named, _)) = headings::label(id) {
                *id = named;
            } else if id.bytes().all(|byte| byte.is_ascii_digit()) && !source.listed.are_labelled {
                *id = format!("t{id}");
            }
        }
        drafts.push(draft);
        spans.push(task.span.clone());
    }
    Ok((drafts, spans))
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
    tidy(&without_ranges(source.text, source.body_start, removed))
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
