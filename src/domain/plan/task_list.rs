//! Task lists as spec-kit writes them: checkboxes with ids, under headings that are phases.
//!
//! A phase depends on the phases before it; the phases of user stories depend only on those before the first
//! user story, and not on each other. Within a phase, a task depends on the tasks before it, but a task
//! marked `[P]` depends on none of its phase. A task that says `(depends on T012, T013)` depends on these
//! instead.

use super::Plan;
use super::foreign::{ignored, plan_from};
use super::markdown::label::{dependencies, label};
use super::markdown::outline::Heading;
use super::markdown::{drafts, without};
use super::native::Draft;
use super::source::Source;
use crate::text::add_paragraph;
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
    let headline = source.outline.headline();
    if let Some(headline) = headline.filter(|_| plan.title.is_empty()) {
        plan.title.clone_from(&headline.text);
    }
    let (mut drafts, spans) = drafts(source, warnings)?;
    if let Some(first) = drafts.get(MAX_TASKS) {
        let message = format!("a task list has at most {MAX_TASKS} tasks: split it");
        return Err(Fault::new(first.at.unwrap_or(Position::START), message));
    }
    let headings = &source.outline.headings;
    let is_phase =
        |heading: &&Heading| heading.level > 1 && heading.text.to_lowercase().starts_with("phase");
    let levels = 2..=headings
        .iter()
        .find(is_phase)
        .map_or(2, |phase| phase.level);
    let phase_of = |span: &Range<usize>| {
        let mut above = headings.iter().rev();
        above.find(|phase| levels.contains(&phase.level) && phase.span.start < span.start)
    };
    let headings: Vec<Option<&Heading>> = spans.iter().map(phase_of).collect();
    let labels: Vec<TaskLabel> = drafts.iter_mut().map(take_label).collect();
    let mut phases: Vec<Phase> = Vec::new();
    for phase in headings.chunk_by(|one, next| one.map(place_of) == next.map(place_of)) {
        let start = phases.last().map_or(0, |last| last.tasks.end);
        let tasks = start..start + phase.len();
        let name = phase[0].map_or_else(String::new, |heading| heading.text.to_lowercase());
        let mut labels = labels[tasks.clone()].iter();
        let is_story = name.contains("user story") || labels.all(|label| label.is_of_story);
        phases.push(Phase { is_story, tasks });
    }
    for (draft, phase) in drafts.iter_mut().zip(&headings) {
        if let Some(phase) = phase {
            let description = std::mem::take(&mut draft.description);
            draft.description = format!("Part of: {}", phase.text);
            add_paragraph(&mut draft.description, &description);
        }
    }
    // Lists without spec-kit ids have an order but no dependencies.
    if labels.iter().any(|label| label.has_dependencies) {
        depend(&mut drafts, &phases, &labels);
    }
    plan.details = without(source, spans, headline);
    Ok((plan, drafts))
}

fn place_of(heading: &Heading) -> usize {
    heading.span.start
}

/// What the label of a task says besides its id.
#[derive(Default)]
struct TaskLabel {
    is_parallel: bool,
    is_of_story: bool,
    has_dependencies: bool,
}

/// Removes the label from the title.
fn take_label(draft: &mut Draft) -> TaskLabel {
    let title = draft.title.clone();
    let Some(label) = label(&title) else {
        return TaskLabel::default();
    };
    if draft.id.is_none() {
        draft.id = draft.at.map(|at| (label.id.to_owned(), at));
    }
    label.title.clone_into(&mut draft.title);
    TaskLabel {
        is_parallel: label.is_parallel,
        is_of_story: label.is_of_story,
        has_dependencies: !label.is_number,
    }
}

/// Tasks under one heading.
struct Phase {
    is_story: bool,
    tasks: Range<usize>,
}

fn depend(drafts: &mut [Draft], phases: &[Phase], labels: &[TaskLabel]) {
    let mut shared: BTreeSet<usize> = BTreeSet::new();
    let mut stories: BTreeSet<usize> = BTreeSet::new();
    for phase in phases {
        // The stories themselves depend on the shared phases before them.
        let needed = if phase.is_story || stories.is_empty() {
            &shared
        } else {
            &stories
        };
        let ends = within_phase(drafts, phase, needed, labels);
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
    phase: &Phase,
    needed: &BTreeSet<usize>,
    labels: &[TaskLabel],
) -> BTreeSet<usize> {
    let mut ends: BTreeSet<usize> = BTreeSet::new();
    let mut before: BTreeSet<usize> = BTreeSet::new();
    for place in phase.tasks.clone() {
        let is_parallel = labels[place].is_parallel;
        let named = dependencies(&drafts[place].title);
        let has_id = |draft: &Draft, id: &str| draft.id.as_ref().is_some_and(|(own, _)| own == id);
        let place_of = |id: &String| drafts.iter().position(|draft| has_id(draft, id));
        let mut on: BTreeSet<usize> = match (named.is_empty(), is_parallel) {
            (false, _) => named.iter().filter_map(place_of).collect(),
            (true, true) => BTreeSet::new(),
            (true, false) => before.clone(),
        };
        if !on.iter().any(|on| phase.tasks.contains(on)) {
            on.extend(needed);
        }
        ends.retain(|end| !on.contains(end));
        ends.insert(place);
        if !is_parallel {
            before.clear();
        }
        before.insert(place);
        let unknown = named.iter().filter(|id| place_of(id).is_none()).cloned();
        let known = on
            .into_iter()
            .filter_map(|on| Some(drafts[on].id.as_ref()?.0.clone()));
        let needed: Vec<String> = known.chain(unknown).collect();
        let at = drafts[place].at.unwrap_or(Position::START);
        drafts[place].depends_on = needed.into_iter().map(|id| (id, at)).collect();
    }
    ends
}
