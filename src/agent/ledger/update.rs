//! Applies a plan or an update to the ledger.

use super::{Item, Ledger, MAX_ITEMS, Target, path};
use crate::plan_text::{ItemState, PlanBlock, PlanLine};
use crate::words::{likeness, words};
use std::collections::BTreeSet;

/// The similarity in percent from which a line without files refers to an item.
const SAME_ITEM: usize = 60;

/// The similarity in percent from which a new item without files restates the last one.
const RESTATED: usize = 70;

/// Whether items may be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Items may be added.
    Normal,
    /// The response to a repair message: open items may be closed, but no new ones added.
    Repair,
}

/// The effect of a block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Items that the block checked off.
    pub checked: Vec<u32>,
    /// Items that the block added.
    pub added: Vec<u32>,
    /// Items that a new item replaced, or that a new plan left out.
    pub superseded: Vec<u32>,
    /// Lines that were refused: new work in repair mode, or a restatement of the last item.
    pub refused: usize,
    /// Lines that refer to nothing known, or for which there was no room.
    pub ignored: usize,
}

pub(super) fn apply(
    ledger: &mut Ledger,
    block: &PlanBlock,
    changed: &BTreeSet<String>,
    mode: Mode,
) -> Applied {
    let mut change = Change {
        first_new: ledger.items.len(),
        registers: ledger.items.is_empty(),
        ledger,
        changed,
        mode,
        applied: Applied::default(),
    };
    match block {
        PlanBlock::Final { .. } => {}
        PlanBlock::Plan { lines } if mode == Mode::Normal => change.plan(lines),
        PlanBlock::Plan { lines } | PlanBlock::Update { lines } => change.update(lines),
    }
    change.applied
}

struct Change<'a> {
    ledger: &'a mut Ledger,
    changed: &'a BTreeSet<String>,
    mode: Mode,
    /// Items from this index on were added by this block, so nothing in it can supersede them.
    first_new: usize,
    registers: bool,
    applied: Applied,
}

/// What a line refers to.
enum Subject {
    /// A single item.
    Item(usize),
    /// Some files of one or more items.
    Files(Vec<usize>),
    /// An item that has already ended.
    Finished,
    /// Nothing known.
    Unknown,
}

impl Change<'_> {
    /// Registers a plan, or replaces it: items that the new plan restates and finished items stay, the others
    /// are superseded.
    fn plan(&mut self, lines: &[PlanLine]) {
        if lines.is_empty() {
            return;
        }
        if !self.registers {
            self.ledger.updates += 1;
            self.leave_out(lines);
        }
        for line in lines {
            let files = path::files_in(&line.text);
            match self.exact(line, &files) {
                Some(index) => self.say(index, line.state),
                None => self.append(line, files),
            }
        }
    }

    /// Supersedes the items that are neither finished nor restated.
    fn leave_out(&mut self, lines: &[PlanLine]) {
        let kept: Vec<usize> = lines
            .iter()
            .filter_map(|line| self.exact(line, &path::files_in(&line.text)))
            .collect();
        for index in 0..self.first_new {
            let state = self.ledger.items[index].state();
            let over = state.is_finished() || state == ItemState::Superseded;
            if !over && !kept.contains(&index) {
                self.supersede(index);
            }
        }
    }

    /// Closes the checked items first, then adds new ones.
    fn update(&mut self, lines: &[PlanLine]) {
        self.ledger.updates += 1;
        let (new, known): (Vec<&PlanLine>, Vec<&PlanLine>) = lines
            .iter()
            .partition(|line| line.state == ItemState::Pending);
        for line in known {
            self.speak(line);
        }
        for line in new {
            self.add(line);
        }
    }

    /// Applies a line with a mark in its box.
    fn speak(&mut self, line: &PlanLine) {
        let files = path::files_in(&line.text);
        match self.subject(line, &files) {
            Subject::Item(index) => self.say(index, line.state),
            Subject::Files(items) => {
                for index in items {
                    self.say_of_files(index, &files, line.state);
                }
            }
            Subject::Finished => {}
            Subject::Unknown => match line.state {
                ItemState::InProgress => self.add(line),
                ItemState::Superseded => self.applied.ignored += 1,
                _ if self.registers || !files.is_empty() => self.append(line, files),
                _ => self.applied.ignored += 1,
            },
        }
    }

    /// Applies a line with an empty box.
    fn add(&mut self, line: &PlanLine) {
        let files = path::files_in(&line.text);
        if let Some(index) = self.by_id(line).or_else(|| self.exact(line, &files)) {
            self.say(index, line.state);
            return;
        }
        if line.text.is_empty() {
            self.applied.ignored += 1;
            return;
        }
        if self.mode == Mode::Repair || self.restates_the_last(line, &files) {
            self.applied.refused += 1;
            return;
        }
        let replaced = self.open_with(&files, line);
        let before = self.ledger.items.len();
        self.append(line, files);
        if let Some(old) = replaced
            && self.ledger.items.len() > before
        {
            self.supersede(old);
            self.hand_over(old, before);
        }
    }

    /// Transfers an item's changed files to the item that replaces it.
    fn hand_over(&mut self, old: usize, new: usize) {
        let old = self.ledger.items[old].files.clone();
        for file in &mut self.ledger.items[new].files {
            file.changed = old.iter().any(|was| was.changed && was.path == file.path);
        }
    }

    fn append(&mut self, line: &PlanLine, files: Vec<String>) {
        if line.text.is_empty() || self.ledger.items.len() >= MAX_ITEMS {
            self.applied.ignored += 1;
            return;
        }
        let index = self.ledger.items.len();
        let id = u32::try_from(index + 1).unwrap_or(u32::MAX);
        self.ledger.items.push(Item {
            id,
            text: line.text.clone(),
            files: files
                .into_iter()
                .map(|path| Target {
                    path,
                    changed: false,
                    checked: false,
                })
                .collect(),
            said: ItemState::Pending,
        });
        self.applied.added.push(id);
        if line.state != ItemState::Pending {
            self.say(index, line.state);
        }
    }

    /// Records the model's report about an item. An empty box does not reopen a finished item, because models
    /// repeat old lists.
    fn say(&mut self, index: usize, state: ItemState) {
        let item = &mut self.ledger.items[index];
        let now = item.state();
        let reopens = now == ItemState::Blocked && state.is_open();
        if reopens && self.mode == Mode::Repair {
            self.applied.refused += 1;
            return;
        }
        match state {
            ItemState::Done | ItemState::AlreadySatisfied => {
                if now.is_finished() {
                    return;
                }
                item.said = state;
                for file in &mut item.files {
                    let mut changed = self.changed.iter();
                    file.changed |= changed.any(|changed| path::is_at(&file.path, changed));
                }
                self.applied.checked.push(item.id);
            }
            ItemState::Blocked => {
                item.said = ItemState::Blocked;
                for file in &mut item.files {
                    file.changed = false;
                    file.checked = false;
                }
            }
            ItemState::Superseded if !now.is_finished() => self.supersede(index),
            ItemState::Pending if now != ItemState::Blocked => {}
            ItemState::Pending | ItemState::InProgress if !now.is_finished() => item.said = state,
            ItemState::Pending | ItemState::InProgress | ItemState::Superseded => {}
        }
    }

    /// Records the model's report about some of an item's files. Only a check applies to single files.
    fn say_of_files(&mut self, index: usize, files: &[String], state: ItemState) {
        let item = &mut self.ledger.items[index];
        if !state.is_finished() {
            if state == ItemState::InProgress {
                item.said = state;
            }
            return;
        }
        for target in &mut item.files {
            if files.iter().any(|file| path::is_at(&target.path, file)) {
                let mut changed = self.changed.iter();
                target.checked = true;
                target.changed |= changed.any(|changed| path::is_at(&target.path, changed));
            }
        }
        if item.state().is_finished() {
            self.applied.checked.push(item.id);
        }
    }

    fn supersede(&mut self, index: usize) {
        let item = &mut self.ledger.items[index];
        item.said = ItemState::Superseded;
        self.applied.superseded.push(item.id);
    }

    fn subject(&self, line: &PlanLine, files: &[String]) -> Subject {
        let one = self.by_id(line).or_else(|| self.exact(line, files));
        if let Some(index) = one.or_else(|| self.open_with(files, line)) {
            return Subject::Item(index);
        }
        if files.is_empty() {
            let alike = self.most_alike(line, SAME_ITEM, |item| item.state().is_open());
            return alike.map_or(Subject::Unknown, Subject::Item);
        }
        let overlapping = |wanted: fn(ItemState) -> bool| -> Vec<usize> {
            let items = self.ledger.items.iter().enumerate();
            items
                .filter(|(_, item)| wanted(item.state()))
                .filter(|(_, item)| files.iter().any(|file| item.names(file)))
                .map(|(index, _)| index)
                .collect()
        };
        let open = overlapping(ItemState::is_open);
        if !open.is_empty() {
            Subject::Files(open)
        } else if overlapping(ItemState::is_finished).is_empty() {
            Subject::Unknown
        } else {
            Subject::Finished
        }
    }

    fn by_id(&self, line: &PlanLine) -> Option<usize> {
        let id = line.id?;
        let known = |item: &Item| item.id == id && item.said != ItemState::Superseded;
        self.ledger.items.iter().position(known)
    }

    /// The item with the same files and the same words, preferring an open one.
    fn exact(&self, line: &PlanLine, files: &[String]) -> Option<usize> {
        let spoken = words(&line.text);
        let same = |item: &Item| {
            item.said != ItemState::Superseded
                && same_files(item, files)
                && words(&item.text) == spoken
        };
        let items = &self.ledger.items;
        items
            .iter()
            .position(|item| same(item) && item.state().is_open())
            .or_else(|| items.iter().position(same))
    }

    /// The open or blocked item that names exactly these files; of several, the most similar one.
    fn open_with(&self, files: &[String], line: &PlanLine) -> Option<usize> {
        if files.is_empty() {
            return None;
        }
        let items = self.ledger.items.iter().take(self.first_new).enumerate();
        let spoken = words(&line.text);
        items
            .filter(|(_, item)| same_files(item, files))
            .filter(|(_, item)| item.state().is_open() || item.state() == ItemState::Blocked)
            .max_by_key(|(index, item)| {
                let in_progress = item.state() == ItemState::InProgress;
                let alike = likeness(&words(&item.text), &spoken);
                (alike, in_progress, std::cmp::Reverse(*index))
            })
            .map(|(index, _)| index)
    }

    fn most_alike(
        &self,
        line: &PlanLine,
        percent: usize,
        wanted: impl Fn(&Item) -> bool,
    ) -> Option<usize> {
        let spoken = words(&line.text);
        let items = self.ledger.items.iter().enumerate();
        items
            .filter(|(_, item)| wanted(item))
            .map(|(index, item)| (likeness(&words(&item.text), &spoken), index))
            .filter(|(alike, _)| *alike >= percent)
            .max_by_key(|(alike, index)| (*alike, std::cmp::Reverse(*index)))
            .map(|(_, index)| index)
    }

    /// Whether exactly one item is open and the line only restates it.
    fn restates_the_last(&self, line: &PlanLine, files: &[String]) -> bool {
        let mut open = self.ledger.open();
        let (Some(last), None) = (open.next(), open.next()) else {
            return false;
        };
        match (files.is_empty(), last.files.is_empty()) {
            (true, true) => likeness(&words(&last.text), &words(&line.text)) >= RESTATED,
            (false, false) => files.iter().all(|file| last.names(file)),
            _ => false,
        }
    }
}

fn same_files(item: &Item, files: &[String]) -> bool {
    let named: BTreeSet<&str> = item.files.iter().map(|file| file.path.as_str()).collect();
    named == files.iter().map(String::as_str).collect()
}
