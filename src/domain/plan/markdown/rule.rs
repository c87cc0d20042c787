//! Which list of a Markdown text is the list of tasks.
//!
//! 1. Boxes with ids of a task list (`T012`, and in a `tasks.md` also `1.2`) are tasks.
//! 2. Otherwise headings that name a task, have a box, or have a number below `Tasks` are tasks, and the boxes below
//!    them are their steps.
//! 3. Otherwise boxes are tasks, except those of a closing list and those below another box.
//! 4. Otherwise `##` headings are tasks, except those that only inform.

use super::headings::{informs, is_one_of, label, token};
use super::label::is_task_list;
use super::outline::{Heading, Item, Mark, Outline, is_struck};
use crate::text::{count, has_word, one_line};
use std::collections::BTreeMap;
use std::ops::Range;

/// Headings of sections that may hold tasks by their state.
const STATES: &str = "completed|done|progress|status";

/// Headings of lists that are for checking the result if they close a plan.
const CLOSING: &str = "\
    checklist|final check|final checklist|final checks|final verification|manual verification|validation|\
    verification|verification checklist";

/// Headings whose numbered headings are tasks.
const TASK_LISTS: &str =
    "implementation steps|implementation tasks|steps|task breakdown|task list|tasks|todo";

/// Words that make a heading with a number a group of tasks.
const GROUP_WORDS: &str = "epic milestone part phase sprint stage";

/// The tasks of a Markdown text.
#[derive(Debug, Default)]
pub(in crate::plan) struct TextTasks {
    pub tasks: Vec<TextTask>,
    /// Whether they are headings.
    pub are_headings: bool,
    /// Whether they are headings that name tasks.
    pub are_named: bool,
    /// Whether they have the ids of a task list.
    pub are_labelled: bool,
    /// Which parts of the text were taken for something else, for people.
    pub notes: Vec<String>,
}

/// A task of a Markdown text, with offsets from the start of the file.
#[derive(Debug)]
pub(in crate::plan) struct TextTask {
    pub span: Range<usize>,
    /// The end of its box or of its heading.
    pub text_start: usize,
    /// Its title, if it is a heading.
    pub title: String,
    /// Its id, if the heading has a number.
    pub id: Option<String>,
    /// The box that is its state.
    pub mark: Option<Mark>,
    /// The boxes of its steps.
    pub steps: Vec<Mark>,
    /// Whether it says in words or signs that nothing is to be done, and no box says otherwise.
    pub says_done: bool,
}

impl TextTask {
    /// Whether its boxes or its words say that it is done.
    pub fn is_done(&self) -> bool {
        let mut steps = self.steps.iter();
        let by_boxes = match &self.mark {
            Some(mark) => mark.checked,
            None => !self.steps.is_empty() && steps.all(|step| step.checked),
        };
        by_boxes || self.says_done
    }

    /// Whether boxes are its state.
    pub fn has_boxes(&self) -> bool {
        self.mark.is_some() || !self.steps.is_empty()
    }
}

impl TextTasks {
    /// Finds the tasks of a file.
    pub fn of(name: &str, text: &str, outline: &Outline) -> Self {
        let rule = Rule { text, outline };
        let mut found = rule.tasks(name);
        if found.are_headings {
            // Numbers that repeat, as in each phase of a plan, are not ids.
            let mut ids: Vec<&String> = found
                .tasks
                .iter()
                .filter_map(|task| task.id.as_ref())
                .collect();
            let all = ids.len();
            ids.sort();
            ids.dedup();
            if ids.len() < all {
                found.tasks.iter_mut().for_each(|task| task.id = None);
            }
        }
        found.notes = rule.notes(&found);
        found
    }
}

struct Rule<'a> {
    text: &'a str,
    outline: &'a Outline,
}

impl Rule<'_> {
    fn tasks(&self, name: &str) -> TextTasks {
        let boxes = self.boxes();
        let line = |item: &Item| self.text[item.mark.span.end..].lines().next();
        let first = boxes.first().and_then(|item| line(item));
        let are_labelled = first.is_some_and(|line| is_task_list(name, line));
        if are_labelled {
            return TextTasks {
                are_labelled,
                ..self.of_boxes(&boxes)
            };
        }
        let named = self.task_headings();
        if !named.is_empty() {
            return TextTasks {
                are_named: true,
                ..self.of_headings(&named)
            };
        }
        let open: Vec<&Item> = boxes
            .iter()
            .copied()
            .filter(|item| !self.is_closing(item))
            .collect();
        if !open.is_empty() {
            return self.of_boxes(&open);
        }
        let mut work = self.headings_where(|heading| {
            heading.level == 2 && !informs(&heading.text) && !is_one_of(TASK_LISTS, &heading.text)
        });
        work.retain(|place| {
            let text = &self.outline.headings[*place].text;
            !(is_one_of(CLOSING, text) && self.is_last(*place))
        });
        if work.is_empty() {
            self.of_boxes(&boxes)
        } else {
            self.of_headings(&work)
        }
    }

    /// The boxes that may be tasks. Those in other list items count only if there are no others.
    fn boxes(&self) -> Vec<&Item> {
        let items = &self.outline.items;
        let has_text = |item: &Item| {
            let line = self.text[item.mark.span.end..].lines().next();
            line.is_some_and(|line| !line.trim().is_empty())
        };
        let is_group = |place: usize, item: &Item| {
            let next = items.get(place + 1);
            !has_text(item) && next.is_some_and(|next| next.span.start < item.span.end)
        };
        let mut boxes: Vec<&Item> = Vec::new();
        for (place, item) in items.iter().enumerate() {
            if !(item.is_step || item.is_criterion || item.is_apart || is_group(place, item)) {
                boxes.push(item);
            }
        }
        if boxes.iter().any(|item| !item.is_nested) {
            boxes.retain(|item| !item.is_nested);
        }
        boxes
    }

    fn headings_where(&self, is_meant: impl Fn(&Heading) -> bool) -> Vec<usize> {
        let headings = self.outline.headings.iter().enumerate();
        headings
            .filter(|(_, heading)| is_meant(heading))
            .map(|(place, _)| place)
            .collect()
    }

    /// The headings that name tasks, and the groups of a plan with groups that have none. A single one at the top
    /// is the title. One in the section of a task is its step, unless its number follows that of the task.
    fn task_headings(&self) -> Vec<usize> {
        let headings = &self.outline.headings;
        let level = |place: &usize| headings[*place].level;
        let is_task = |place: &usize| {
            let heading = &headings[*place];
            heading.mark.is_some() || label(&heading.text).is_some() || self.is_listed(*place)
        };
        let mut named: Vec<usize> = (0..headings.len()).filter(is_task).collect();
        if named.iter().filter(|place| level(place) == 1).count() == 1 {
            named.retain(|place| level(place) > 1);
        }
        let is_apart = |above: &Heading| informs(&above.text) && !is_one_of(STATES, &above.text);
        let is_aside = |place: &usize| self.above(*place).any(is_apart);
        if !named.iter().all(is_aside) {
            named.retain(|place| !is_aside(place));
        }
        let mut found: Vec<usize> = Vec::new();
        let mut end = 0;
        for place in named {
            let last = found.last().and_then(|last| counted(&headings[*last]));
            let next = last.map(|(word, number)| (word, number + 1));
            if headings[place].span.start >= end
                || next.is_some() && next == counted(&headings[place])
            {
                found.push(place);
                end = end.max(self.section(place).end);
            }
        }
        let has_task = |place: &usize| {
            let next = found.get(found.partition_point(|task| task < place));
            next.is_some_and(|task| headings[*task].span.start < self.section(*place).end)
        };
        let groups = self.headings_where(|heading| heading.level > 1 && is_group(&heading.text));
        let (full, bare): (Vec<usize>, Vec<usize>) = groups.into_iter().partition(has_task);
        let of_full = full.first().map(level);
        found.extend(bare.iter().filter(|place| Some(level(place)) == of_full));
        found.sort_unstable();
        found
    }

    /// The headings of the sections that a heading is in.
    fn above(&self, place: usize) -> impl Iterator<Item = &Heading> {
        let headings = &self.outline.headings;
        let parents =
            std::iter::successors(headings[place].parent, |above| headings[*above].parent);
        parents.map(|above| &headings[above])
    }

    /// The range of a heading and of all that is below it.
    fn section(&self, place: usize) -> Range<usize> {
        let heading = &self.outline.headings[place];
        let mut after = self.outline.headings[place + 1..].iter();
        let next = after.find(|next| next.level <= heading.level);
        heading.span.start..next.map_or(self.text.len(), |next| next.span.start)
    }

    /// Whether a heading has a number and is below one that says that tasks follow.
    fn is_listed(&self, place: usize) -> bool {
        let headings = &self.outline.headings;
        let heading = &headings[place];
        let title = heading
            .text
            .trim_start_matches(|c: char| c.is_ascii_digit());
        let is_numbered = title.len() < heading.text.len() && title.starts_with(['.', ')']);
        let parent = self.above(place).next();
        is_numbered
            && parent.is_some_and(|parent| parent.level > 1 && is_one_of(TASK_LISTS, &parent.text))
    }

    /// Whether a box is for checking the result. A box with a number such as `6.1` is a task among others.
    fn is_closing(&self, item: &Item) -> bool {
        let line = self.text[item.mark.span.end..].trim_start_matches([' ', '*']);
        let (number, _) = token(line);
        if number.contains('.') && number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            return false;
        }
        let heading = item
            .heading
            .map(|place| (place, &self.outline.headings[place].text));
        heading.is_some_and(|(place, text)| is_one_of(CLOSING, text) && self.is_last(place))
    }

    /// Whether only lists for checking the result follow a heading.
    fn is_last(&self, place: usize) -> bool {
        let mut after = self.outline.headings[place + 1..].iter();
        after.all(|next| is_one_of(CLOSING, &next.text) || informs(&next.text))
    }

    fn of_boxes(&self, boxes: &[&Item]) -> TextTasks {
        let task = |item: &&Item| {
            let below = item.mark.span.end..item.span.end;
            TextTask {
                span: item.span.clone(),
                text_start: item.mark.span.end,
                title: String::new(),
                id: None,
                mark: Some(item.mark.clone()),
                steps: self.steps(&below),
                says_done: is_struck(self.text[below].lines().next().unwrap_or_default()),
            }
        };
        TextTasks {
            tasks: boxes.iter().map(task).collect(),
            ..TextTasks::default()
        }
    }

    fn of_headings(&self, places: &[usize]) -> TextTasks {
        let headings = &self.outline.headings;
        let nexts = places.iter().skip(1).map(Some).chain([None]);
        let task = |(place, next): (&usize, Option<&usize>)| {
            let heading = &headings[*place];
            let mut span = self.section(*place);
            if let Some(next) = next {
                span.end = span.end.min(headings[*next].span.start);
            }
            let steps = self.steps(&span);
            let (id, title) = label(&heading.text)
                .filter(|(_, title)| !title.is_empty())
                .map_or((None, heading.text.as_str()), |(id, title)| {
                    (Some(id), title)
                });
            TextTask {
                text_start: heading.span.end,
                title: title.to_owned(),
                id,
                says_done: heading.says_done && heading.mark.is_none() && steps.is_empty(),
                mark: heading.mark.clone(),
                steps,
                span,
            }
        };
        TextTasks {
            tasks: places.iter().zip(nexts).map(task).collect(),
            are_headings: true,
            ..TextTasks::default()
        }
    }

    /// The boxes in a range that are not acceptance criteria.
    fn steps(&self, range: &Range<usize>) -> Vec<Mark> {
        let items = &self.outline.items;
        let from = items.partition_point(|item| item.span.start < range.start);
        items[from..]
            .iter()
            .take_while(|item| item.span.start < range.end)
            .filter(|item| !item.is_criterion)
            .map(|item| item.mark.clone())
            .collect()
    }

    fn notes(&self, found: &TextTasks) -> Vec<String> {
        let mut notes = self.of_steps(found);
        notes.extend(self.of_other_boxes(found));
        let marks = self.outline.items.iter().map(|item| &item.mark);
        let headings = self.outline.headings.iter();
        let marks = marks.chain(headings.filter_map(|heading| heading.mark.as_ref()));
        let mut others: BTreeMap<&str, u64> = BTreeMap::new();
        for mark in marks.filter(|mark| mark.is_other) {
            *others.entry(&self.text[mark.span.clone()]).or_default() += 1;
        }
        notes.extend(others.into_iter().map(|(mark, number)| {
            let times = count(number, "time");
            format!("`- {mark}` ({times}) is not done: counted as pending")
        }));
        let has_open_step = |task: &TextTask| task.steps.iter().any(|step| !step.checked);
        let tasks = found.tasks.iter().filter(|task| task.is_done());
        let by_words = tasks.clone().filter(|task| task.says_done).count();
        let by_box = tasks.filter(|task| has_open_step(task)).count();
        for (number, why) in [
            (by_words, "done or dropped by its words, so not run"),
            (by_box, "done by its box, though a step is open"),
        ] {
            let tasks = count(number as u64, "task");
            notes.extend((number > 0).then(|| format!("{why}: {tasks}")));
        }
        let (about, others): (Vec<&Heading>, Vec<&Heading>) = self
            .left_out(found)
            .into_iter()
            .partition(|heading| informs(&heading.text));
        for (sections, what) in [(about, "information"), (others, "text that names no task")] {
            let name = |heading: &&Heading| {
                let signs = "#".repeat(heading.level.into());
                format!("`{signs} {}`", heading.text)
            };
            let names: Vec<String> = sections.iter().map(name).collect();
            notes.extend((!names.is_empty()).then(|| format!("{what}: {}", names.join(", "))));
        }
        notes
    }

    fn of_steps(&self, found: &TextTasks) -> Vec<String> {
        let tasks = found.tasks.iter().filter(|task| !task.steps.is_empty());
        let of_task = |task: &TextTask| {
            let line = self.text[task.span.start..].lines().next();
            let shown = one_line(line.unwrap_or_default(), 80).replace('`', "'");
            let place = format!("under `{shown}`");
            says(task.steps.len(), &place, "is its step", "are its steps")
        };
        match tasks.clone().count() {
            0..=3 => tasks.map(of_task).collect(),
            number => {
                let steps = tasks.map(|task| task.steps.len()).sum();
                let place = format!("under {number} tasks");
                vec![says(steps, &place, "is a step", "are their steps")]
            }
        }
    }

    /// The boxes outside of the tasks.
    fn of_other_boxes(&self, found: &TextTasks) -> Vec<String> {
        let is_inside = |at: usize| {
            let begun = found.tasks.partition_point(|task| task.span.start <= at);
            found.tasks[..begun]
                .last()
                .is_some_and(|task| at < task.span.end)
        };
        let mut counts: BTreeMap<(bool, usize), usize> = BTreeMap::new();
        let items = self.outline.items.iter();
        for item in items.filter(|item| !is_inside(item.span.start)) {
            let is_text = !(item.is_criterion || self.is_closing(item));
            let place = (is_text, item.heading.unwrap_or(usize::MAX));
            *counts.entry(place).or_default() += 1;
        }
        let counts = counts.into_iter();
        let note = |((is_text, place), number): ((bool, usize), usize)| {
            let heading = self.outline.headings.get(place);
            let place = heading.map_or_else(
                || "outside of the tasks".to_owned(),
                |heading| format!("under `{}`", heading.text),
            );
            let (one, many) = if is_text {
                ("is text", "are text")
            } else {
                ("is an acceptance criterion", "are acceptance criteria")
            };
            says(number, &place, one, many)
        };
        counts.map(note).collect()
    }

    /// The sections outside of the tasks that have neither tasks nor boxes.
    fn left_out(&self, found: &TextTasks) -> Vec<&Heading> {
        let tasks = found.tasks.iter().map(|task| task.span.clone());
        let items = self.outline.items.iter().map(|item| item.span.clone());
        let mut taken: Vec<Range<usize>> = tasks.chain(items).collect();
        taken.sort_unstable_by_key(|span| span.start);
        let mut taken = taken.into_iter().peekable();
        let mut end = 0;
        let mut left_out = Vec::new();
        for (place, heading) in self.outline.headings.iter().enumerate() {
            let section = self.section(place);
            while let Some(span) = taken.next_if(|span| span.start < section.start) {
                end = end.max(span.end);
            }
            let is_free = taken.peek().is_none_or(|span| span.start >= section.end);
            if section.start >= end && is_free && (place > 0 || heading.level > 1) {
                end = section.end;
                left_out.push(heading);
            }
        }
        left_out
    }
}

fn says(number: usize, place: &str, one: &str, many: &str) -> String {
    let verb = if number == 1 { one } else { many };
    format!("{} {place} {verb}", count(number as u64, "box"))
}

/// Whether a heading is `Phase 2` or the like.
fn is_group(heading: &str) -> bool {
    let mut words = heading.split([' ', ':']);
    let is_group = words
        .next()
        .is_some_and(|word| has_word(GROUP_WORDS, &word.to_lowercase()));
    is_group
        && words
            .next()
            .is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

/// The word and the number of a heading that names a task.
fn counted(heading: &Heading) -> Option<(String, u32)> {
    let number = label(&heading.text)?.0.strip_prefix('t')?.parse().ok()?;
    let word = heading.text.split([' ', '-']).next()?;
    Some((word.to_lowercase(), number))
}
