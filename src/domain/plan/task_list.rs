//! Task lists as spec-kit writes them: checkboxes with ids, under headings that are phases.
//!
//! A phase depends on the phases before it; the phases of user stories depend only on those before the first
//! user story, and not on each other. Within a phase, a task depends on the tasks before it, but a task
//! marked `[P]` depends on none of its phase. A task that says `(depends on T012, T013)` depends on these
//! instead.

use super::Plan;
use super::foreign::{ignored, plan_from};
use super::markdown::label::{label, numbered};
use super::markdown::outline::Heading;
use super::markdown::{drafts, without};
use super::native::Draft;
use super::source::Source;
use crate::text_error::{Fault, Position};
use std::collections::BTreeSet;
use std::ops::Range;

/// The maximum number of tasks in a list, because each may depend on the whole phase before it.
const MAX_TASKS: usize = 1000;

/// The known keys of the front matter, besides `setup` and the settings.
const KEYS: &[&str] = &["title", "description"];

pub(super) fn read(
    source: &Source<'_>,
    warnings: &mut Vec<Fault>,
) -> Result<(Plan, Vec<Draft>), Fault> {
    let mut plan = match &source.root {
        Some(root) => {
            warnings.extend(ignored(root, KEYS, "", &[]));
            plan_from(source, root, &["title"], KEYS)?
        }
        None => Plan::without_tasks(source.format),
    };
    let headings = &source.outline.headings;
    let headline = headings.iter().find(|heading| heading.level == 1);
    if let Some(headline) = headline.filter(|_| plan.title.is_empty()) {
        plan.title.clone_from(&headline.text);
    }
    let (mut drafts, spans) = drafts(source, warnings)?;
    if let Some(first) = drafts.get(MAX_TASKS) {
        let message = format!("a task list has at most {MAX_TASKS} tasks: split it");
        return Err(Fault::new(first.at.unwrap_or(Position::START), message));
    }
    let mut phases: Vec<Phase> = Vec::new();
    let mut is_parallel = Vec::with_capacity(drafts.len());
    let mut of_story = Vec::with_capacity(drafts.len());
    let is_phase =
        |heading: &&Heading| heading.level > 1 && heading.text.to_lowercase().starts_with("phase");
    let phase = headings.iter().find(is_phase);
    let levels = 2..=phase.map_or(2, |heading| heading.level);
    for (place, (draft, span)) in drafts.iter_mut().zip(&spans).enumerate() {
        let before = |start: usize| start < span.start;
        let heading = headings
            .iter()
            .rposition(|heading| levels.contains(&heading.level) && before(heading.span.start));
        if phases.last().is_none_or(|phase| phase.heading != heading) {
            let text = heading.map_or("", |place| headings[place].text.as_str());
            phases.push(Phase {
                heading,
                is_story: text.to_lowercase().contains("user story"),
                tasks: place..place,
            });
        }
        of_story.push(take_label(draft, &mut is_parallel));
        if let Some(phase) = phases.last_mut() {
            phase.tasks.end = place + 1;
            if let Some(heading) = phase.heading {
                let part = format!("Part of: {}", headings[heading].text);
                draft.description = if draft.description.is_empty() {
                    part
                } else {
                    format!("{part}\n\n{}", draft.description)
                };
            }
        }
    }
    for phase in &mut phases {
        phase.is_story |= of_story[phase.tasks.clone()]
            .iter()
            .all(|of_story| *of_story);
    }
    depend(&mut drafts, &phases, &is_parallel);
    plan.details = without(source, spans, headline);
    Ok((plan, drafts))
}

/// Removes the label from the title. Returns whether the task belongs to a user story.
fn take_label(draft: &mut Draft, is_parallel: &mut Vec<bool>) -> bool {
    let title = draft.title.clone();
    let known = label(&title).or_else(|| numbered(&title));
    is_parallel.push(known.is_some_and(|label| label.is_parallel));
    let Some(label) = known else {
        return false;
    };
    if draft.id.is_none() {
        draft.id = draft.at.map(|at| (label.id.to_owned(), at));
    }
    label.title.clone_into(&mut draft.title);
    label.is_of_story
}

/// Tasks under one heading.
struct Phase {
    heading: Option<usize>,
    is_story: bool,
    tasks: Range<usize>,
}

/// Adds the dependencies. Lists without spec-kit ids have an order but no dependencies.
fn depend(drafts: &mut [Draft], phases: &[Phase], is_parallel: &[bool]) {
    let has_ids = |draft: &Draft| {
        let id = draft.id.as_ref().map_or("", |(id, _)| id.as_str());
        id.starts_with('T')
    };
    if !drafts.iter().any(has_ids) {
        return;
    }
    let ids: Vec<Option<String>> = drafts
        .iter()
        .map(|draft| draft.id.as_ref().map(|(id, _)| id.clone()))
        .collect();
    let mut shared: BTreeSet<usize> = BTreeSet::new();
    let mut stories: BTreeSet<usize> = BTreeSet::new();
    for phase in phases {
        // The stories themselves depend on the shared phases before them.
        let needed = if phase.is_story || stories.is_empty() {
            shared.clone()
        } else {
            stories.clone()
        };
        let ends = within_phase(drafts, &ids, phase, &needed, is_parallel);
        if phase.is_story {
            stories.extend(ends);
        } else {
            shared = ends;
            stories.clear();
        }
    }
}

/// Returns the tasks of a phase on which no other task of the phase depends.
fn within_phase(
    drafts: &mut [Draft],
    ids: &[Option<String>],
    phase: &Phase,
    needed: &BTreeSet<usize>,
    is_parallel: &[bool],
) -> BTreeSet<usize> {
    let mut ends: BTreeSet<usize> = BTreeSet::new();
    let mut before: BTreeSet<usize> = BTreeSet::new();
    for place in phase.tasks.clone() {
        let named = named_dependencies(&drafts[place].title);
        let places = |id: &String| ids.iter().position(|known| known.as_ref() == Some(id));
        let explicit: BTreeSet<usize> = named.iter().filter_map(places).collect();
        let mut on = match (named.is_empty(), is_parallel[place]) {
            (false, _) => explicit,
            (true, true) => BTreeSet::new(),
            (true, false) => before.clone(),
        };
        if !on.iter().any(|on| phase.tasks.contains(on)) {
            on.extend(needed);
        }
        ends.retain(|end| !on.contains(end));
        ends.insert(place);
        if is_parallel[place] {
            before.insert(place);
        } else {
            before = BTreeSet::from([place]);
        }
        let Some(at) = drafts[place].at else {
            continue;
        };
        let unknown = named.into_iter().filter(|id| places(id).is_none());
        let known = on.into_iter().filter_map(|on| ids[on].clone());
        drafts[place].depends_on = known.chain(unknown).map(|id| (id, at)).collect();
    }
    ends
}

/// The ids after `depends on` in a task's line.
fn named_dependencies(title: &str) -> Vec<String> {
    const WORDS: &str = "depends on";
    let at = title.to_ascii_lowercase().find(WORDS);
    let after = at
        .and_then(|at| title.get(at + WORDS.len()..))
        .unwrap_or_default()
        .split(')')
        .next()
        .unwrap_or_default();
    let parts = after.split(|c: char| !c.is_ascii_alphanumeric());
    let line = |part: &str| format!("{part} -");
    let ids = parts.filter(|part| label(&line(part)).is_some());
    ids.map(str::to_owned).collect()
}
