//! Which list of a Markdown text is the list of tasks.
//!
//! 1. Boxes with ids of a task list (`T012`, and in a `tasks.md` also `1.2`) are tasks.
//! 2. Otherwise headings that name a task, have a box, or have a number below `Tasks` are tasks, and the boxes below
//!    them are their steps.
//! 3. Otherwise boxes are tasks, except those of a closing list and those below another box.
//! 4. Otherwise `##` headings are tasks, except those that only inform.

use super::headings::Section;
use super::label::{is_task_list, label, of_heading};
use super::outline::{Heading, Item, Mark, Outline, is_struck};
use crate::plan::PlanFormat;
use crate::text::{count, has_word, one_line};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// Words that make a heading with a number a group of tasks.
const GROUP_WORDS: &str = "epic milestone part phase sprint stage";

/// The tasks of a Markdown text.
#[derive(Debug, Default)]
pub(in crate::plan) struct TextTasks {
    pub tasks: Vec<TextTask>,
    /// A checklist, a task list or headings.
    pub format: PlanFormat,
    /// Whether they are headings that name tasks.
    pub are_named: bool,
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
        // Numbers that repeat, as in each phase of a plan, are not ids.
        let ids = found.tasks.iter().filter_map(|task| task.id.as_ref());
        let mut seen = HashSet::new();
        if !ids.into_iter().all(|id| seen.insert(id)) {
            found.tasks.iter_mut().for_each(|task| task.id = None);
        }
        found.notes = rule.notes(&found);
        found
    }

    /// The task at an offset.
    fn at(&self, offset: usize) -> Option<&TextTask> {
        let tasks = &self.tasks;
        let begun = tasks.partition_point(|task| task.span.start <= offset);
        tasks[..begun].last().filter(|task| offset < task.span.end)
    }
}

struct Rule<'a> {
    text: &'a str,
    outline: &'a Outline,
}

impl Rule<'_> {
    fn tasks(&self, name: &str) -> TextTasks {
        let boxes = self.boxes();
        let is_labelled = |first: &&Item| is_task_list(name, self.line(first));
        if boxes.first().is_some_and(is_labelled) {
            return self.of_boxes(&boxes, PlanFormat::TaskList);
        }
        let named = self.task_headings();
        if !named.is_empty() {
            return TextTasks {
                are_named: true,
                ..self.of_headings(&named)
            };
        }
        let mut open = boxes.clone();
        open.retain(|item| !self.is_closing(item));
        let work = self.headings_where(|place, heading| {
            let is_closing = heading.section == Section::Closing && self.is_last(place);
            let is_apart = heading.section.informs() || heading.section == Section::Tasks;
            heading.level == 2 && !is_apart && !is_closing
        });
        match (open.is_empty(), work.is_empty()) {
            (false, _) => self.of_boxes(&open, PlanFormat::Checklist),
            (true, false) => self.of_headings(&work),
            (true, true) => self.of_boxes(&boxes, PlanFormat::Checklist),
        }
    }

    /// The line of a box, after it.
    fn line(&self, item: &Item) -> &str {
        let after = &self.text[item.mark.span.end..];
        after.lines().next().unwrap_or_default()
    }

    /// The boxes that may be tasks. Those in other list items count only if there are no others.
    fn boxes(&self) -> Vec<&Item> {
        let items = &self.outline.items;
        let is_group = |place: usize, item: &Item| {
            let next = items.get(place + 1);
            let has_boxes = next.is_some_and(|next| next.span.start < item.span.end);
            self.line(item).trim().is_empty() && has_boxes
        };
        let is_apart = |item: &Item| {
            item.mark.is_optional || self.outline.is_within(item.heading, Section::Apart)
        };
        let mut boxes: Vec<&Item> = Vec::new();
        for (place, item) in items.iter().enumerate() {
            if !(item.is_step || item.is_criterion || is_apart(item) || is_group(place, item)) {
                boxes.push(item);
            }
        }
        if boxes.iter().any(|item| !item.is_nested) {
            boxes.retain(|item| !item.is_nested);
        }
        boxes
    }

    fn headings_where(&self, is_meant: impl Fn(usize, &Heading) -> bool) -> Vec<usize> {
        let headings = self.outline.headings.iter().enumerate();
        let meant = headings.filter(|(place, heading)| is_meant(*place, heading));
        meant.map(|(place, _)| place).collect()
    }

    /// The headings that name tasks, and the groups of a plan with groups that have none. A single one at the top
    /// is the title. One in the section of a task is its step, unless its number follows that of the task.
    fn task_headings(&self) -> Vec<usize> {
        let headings = &self.outline.headings;
        let level = |place: &usize| headings[*place].level;
        let mut named = self.headings_where(|place, heading| {
            let is_named = heading.mark.is_some() || of_heading(&heading.text).is_some();
            is_named || self.is_listed(place)
        });
        if named.iter().filter(|place| level(place) == 1).count() == 1 {
            named.retain(|place| level(place) > 1);
        }
        let is_aside = |place: &usize| {
            let mut above = self.outline.sections(headings[*place].parent);
            above.any(|above| above.section.informs() && above.section != Section::State)
        };
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
        let groups = self.headings_where(|_, group| group.level > 1 && is_group(&group.text));
        let (full, bare): (Vec<usize>, Vec<usize>) = groups.into_iter().partition(has_task);
        let of_full = full.first().map(level);
        found.extend(bare.iter().filter(|place| Some(level(place)) == of_full));
        found.sort_unstable();
        found
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
        let parent = heading.parent.map(|parent| headings[parent].section);
        is_numbered && parent == Some(Section::Tasks)
    }

    /// Whether a box is for checking the result. A box with a number such as `6.1` is a task among others.
    fn is_closing(&self, item: &Item) -> bool {
        let is_numbered = label(self.line(item)).is_some_and(|label| label.id.contains('.'));
        let is_below = |place: usize| {
            let heading = &self.outline.headings[place];
            heading.section == Section::Closing && self.is_last(place)
        };
        !is_numbered && item.heading.is_some_and(is_below)
    }

    /// Whether only lists for checking the result follow a heading.
    fn is_last(&self, place: usize) -> bool {
        let mut after = self.outline.headings[place + 1..].iter();
        after.all(|next| next.section == Section::Closing || next.section.informs())
    }

    fn of_boxes(&self, boxes: &[&Item], format: PlanFormat) -> TextTasks {
        let task = |item: &&Item| TextTask {
            span: item.span.clone(),
            text_start: item.mark.span.end,
            title: String::new(),
            id: None,
            mark: Some(item.mark.clone()),
            steps: self.steps(&(item.mark.span.end..item.span.end)),
            says_done: is_struck(self.line(item)),
        };
        TextTasks {
            tasks: boxes.iter().map(task).collect(),
            format,
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
            let named = of_heading(&heading.text).filter(|(_, title)| !title.is_empty());
            let title = named.as_ref().map_or(&*heading.text, |(_, title)| title);
            TextTask {
                text_start: heading.span.end,
                title: title.to_owned(),
                id: named.map(|(id, _)| id),
                says_done: heading.says_done && heading.mark.is_none() && steps.is_empty(),
                mark: heading.mark.clone(),
                steps,
                span,
            }
        };
        TextTasks {
            tasks: places.iter().zip(nexts).map(task).collect(),
            format: PlanFormat::Headings,
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
        let done: Vec<&TextTask> = found.tasks.iter().filter(|task| task.is_done()).collect();
        let has_open_step = |task: &&&TextTask| task.steps.iter().any(|step| !step.checked);
        let by_words = done.iter().filter(|task| task.says_done).count();
        let by_box = done.iter().filter(has_open_step).count();
        for (number, why) in [
            (by_words, "done or dropped by its words, so not run"),
            (by_box, "done by its box, though a step is open"),
        ] {
            let tasks = count(number as u64, "task");
            notes.extend((number > 0).then(|| format!("{why}: {tasks}")));
        }
        let left_out = self.left_out(found);
        for (informs, what) in [(true, "information"), (false, "text that names no task")] {
            let sections = left_out
                .iter()
                .filter(|left| left.section.informs() == informs);
            let name = |left: &&Heading| {
                let signs = "#".repeat(left.level.into());
                format!("`{signs} {}`", left.text)
            };
            let names: Vec<String> = sections.map(name).collect();
            notes.extend((!names.is_empty()).then(|| format!("{what}: {}", names.join(", "))));
        }
        notes
    }

    fn of_steps(&self, found: &TextTasks) -> Vec<String> {
        let tasks = found.tasks.iter().filter(|task| !task.steps.is_empty());
        let tasks: Vec<&TextTask> = tasks.collect();
        if tasks.len() > 3 {
            let steps = tasks.iter().map(|task| task.steps.len()).sum();
            let place = format!("under {} tasks", tasks.len());
            return vec![says(steps, &place, "is a step", "are their steps")];
        }
        let of_task = |task: &TextTask| {
            let line = self.text[task.span.start..].lines().next();
            let shown = one_line(line.unwrap_or_default(), 80).replace('`', "'");
            let place = format!("under `{shown}`");
            says(task.steps.len(), &place, "is its step", "are its steps")
        };
        tasks.into_iter().map(of_task).collect()
    }

    /// The boxes outside of the tasks.
    fn of_other_boxes(&self, found: &TextTasks) -> Vec<String> {
        const OTHERS: [(&str, &str); 3] = [
            ("is an acceptance criterion", "are acceptance criteria"),
            ("is optional, so not run", "are optional, so not run"),
            ("is text", "are text"),
        ];
        let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let outside = |item: &&Item| found.at(item.span.start).is_none();
        for item in self.outline.items.iter().filter(outside) {
            let kind = match item {
                _ if item.is_criterion || self.is_closing(item) => 0,
                _ if item.mark.is_optional => 1,
                _ => 2,
            };
            let place = (kind, item.heading.unwrap_or(usize::MAX));
            *counts.entry(place).or_default() += 1;
        }
        let note = |((kind, place), number): ((usize, usize), usize)| {
            let place = match self.outline.headings.get(place) {
                Some(heading) => format!("under `{}`", heading.text),
                None => "outside of the tasks".to_owned(),
            };
            let (one, many) = OTHERS[kind];
            says(number, &place, one, many)
        };
        counts.into_iter().map(note).collect()
    }

    /// The sections outside of the tasks that have neither tasks nor boxes.
    fn left_out(&self, found: &TextTasks) -> Vec<&Heading> {
        let (tasks, items) = (&found.tasks, &self.outline.items);
        let is_empty = |section: &Range<usize>| {
            let task = tasks.partition_point(|task| task.span.start < section.start);
            let item = items.partition_point(|item| item.span.start < section.start);
            let starts = tasks.get(task).map(|task| task.span.start).into_iter();
            let mut starts = starts.chain(items.get(item).map(|item| item.span.start));
            starts.all(|start| start >= section.end)
        };
        let mut end = 0;
        let mut left_out = Vec::new();
        for (place, heading) in self.outline.headings.iter().enumerate() {
            let section = self.section(place);
            let is_outside = section.start >= end && found.at(section.start).is_none();
            if is_outside && is_empty(&section) && (place > 0 || heading.level > 1) {
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
    let word = words.next().unwrap_or_default().to_lowercase();
    let number = words.next().unwrap_or_default();
    has_word(GROUP_WORDS, &word) && number.starts_with(|c: char| c.is_ascii_digit())
}

/// The word and the number of a heading that names a task.
fn counted(heading: &Heading) -> Option<(String, u32)> {
    let (id, _) = of_heading(&heading.text)?;
    let word = heading.text.split([' ', '-']).next()?;
    Some((word.to_lowercase(), id.strip_prefix('t')?.parse().ok()?))
}
