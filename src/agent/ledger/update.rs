//! Applies a plan or an update to the ledger.

use super::{Item, Ledger, MAX_ITEMS, Target, path};
use crate::plan_text::{ItemState, PlanBlock, PlanLine};
use crate::words::{likeness, words};
use std::cmp::Reverse;
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

/// The lines of a block that had no effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
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
    applied: Applied,
}

impl Change<'_> {
    /// Registers a plan, or replaces it: items that the new plan restates and finished items stay, the others
    /// are superseded.
    fn plan(&mut self, lines: &[PlanLine]) {
        if lines.is_empty() {
            return;
        }
        if self.first_new > 0 {
            self.ledger.updates += 1;
            let kept = lines.iter();
            let kept = kept.filter_map(|line| self.exact(line, &path::files_in(&line.text)));
            let kept: Vec<usize> = kept.collect();
            for (index, item) in self.ledger.items.iter_mut().enumerate() {
                if !item.state().is_finished() && !kept.contains(&index) {
                    item.said = ItemState::Superseded;
                }
            }
        }
        for line in lines {
            let files = path::files_in(&line.text);
            match self.exact(line, &files) {
                Some(index) => self.say(index, line.state),
                None => self.append(line, files),
            }
        }
    }

    /// Closes the checked items first, then adds new ones.
    fn update(&mut self, lines: &[PlanLine]) {
        self.ledger.updates += 1;
        let is_new = |line: &&PlanLine| line.state == ItemState::Pending;
        lines
            .iter()
            .filter(|line| !is_new(line))
            .for_each(|line| self.speak(line));
        lines.iter().filter(is_new).for_each(|line| self.add(line));
    }

    /// Applies a line with a mark in its box: to the item that it names, otherwise to the items with some of its files.
    fn speak(&mut self, line: &PlanLine) {
        let files = path::files_in(&line.text);
        let named = self.by_id(line).or_else(|| self.exact(line, &files));
        let named = named.or_else(|| self.open_with(&files, line));
        if let Some(index) = named.or_else(|| self.alike(line, &files)) {
            return self.say(index, line.state);
        }
        let overlapping = |wanted: fn(ItemState) -> bool| -> Vec<usize> {
            let items = self.ledger.items.iter().enumerate();
            let items = items.filter(|(_, item)| wanted(item.state()));
            let items = items.filter(|(_, item)| files.iter().any(|file| item.names(file)));
            items.map(|(index, _)| index).collect()
        };
        let open = overlapping(ItemState::is_open);
        if open.is_empty() && overlapping(ItemState::is_finished).is_empty() {
            return match line.state {
                ItemState::InProgress => self.add(line),
                ItemState::Superseded => self.applied.ignored += 1,
                _ if self.first_new == 0 || !files.is_empty() => self.append(line, files),
                _ => self.applied.ignored += 1,
            };
        }
        for index in open {
            self.say_of_files(index, &files, line.state);
        }
    }

    /// Applies a line with an empty box.
    fn add(&mut self, line: &PlanLine) {
        let files = path::files_in(&line.text);
        if let Some(index) = self.by_id(line).or_else(|| self.exact(line, &files)) {
            return self.say(index, line.state);
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
        // The item that replaces another one takes over its changed files.
        if let (Some(old), [items @ .., new]) = (replaced, &mut *self.ledger.items)
            && items.len() == before
        {
            items[old].said = ItemState::Superseded;
            for file in &mut new.files {
                let mut files = items[old].files.iter();
                file.changed = files.any(|was| was.changed && was.path == file.path);
            }
        }
    }

    fn append(&mut self, line: &PlanLine, files: Vec<String>) {
        if line.text.is_empty() || self.ledger.items.len() >= MAX_ITEMS {
            self.applied.ignored += 1;
            return;
        }
        let files = files.into_iter().map(|path| Target {
            path,
            changed: false,
            checked: false,
        });
        self.ledger.items.push(Item {
            text: line.text.clone(),
            files: files.collect(),
            said: ItemState::Pending,
        });
        if line.state != ItemState::Pending {
            self.say(self.ledger.items.len() - 1, line.state);
        }
    }

    /// Records the model's report about an item. An empty box does not reopen a finished item, because models
    /// repeat old lists.
    fn say(&mut self, index: usize, state: ItemState) {
        let item = &mut self.ledger.items[index];
        let now = item.state();
        if now == ItemState::Blocked && state.is_open() && self.mode == Mode::Repair {
            self.applied.refused += 1;
            return;
        }
        match state {
            ItemState::Blocked => {
                for file in &mut item.files {
                    (file.changed, file.checked) = (false, false);
                }
            }
            _ if now.is_finished() => return,
            ItemState::Pending if now != ItemState::Blocked => return,
            ItemState::Done | ItemState::AlreadySatisfied => {
                item.files
                    .iter_mut()
                    .for_each(|file| file.compare(self.changed));
            }
            ItemState::Pending | ItemState::InProgress | ItemState::Superseded => {}
        }
        item.said = state;
    }

    /// Records the model's report about some of an item's files. Only a check applies to single files.
    fn say_of_files(&mut self, index: usize, files: &[String], state: ItemState) {
        let item = &mut self.ledger.items[index];
        if state == ItemState::InProgress {
            item.said = state;
        }
        if state.is_finished() {
            let named =
                |target: &&mut Target| files.iter().any(|file| path::is_at(&target.path, file));
            for target in item.files.iter_mut().filter(named) {
                target.checked = true;
                target.compare(self.changed);
            }
        }
    }

    /// The item with this number, from 1.
    fn by_id(&self, line: &PlanLine) -> Option<usize> {
        let index = usize::try_from(line.id?).ok()?.checked_sub(1)?;
        let item = self.ledger.items.get(index)?;
        (item.said != ItemState::Superseded).then_some(index)
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
        let open = items
            .iter()
            .position(|item| same(item) && item.state().is_open());
        open.or_else(|| items.iter().position(same))
    }

    /// The open or blocked item that names exactly these files; of several, the most similar one.
    fn open_with(&self, files: &[String], line: &PlanLine) -> Option<usize> {
        let spoken = words(&line.text);
        let items = self.ledger.items.iter().take(self.first_new).enumerate();
        let items = items.filter(|(_, item)| !files.is_empty() && same_files(item, files));
        let items =
            items.filter(|(_, item)| item.state().is_open() || item.state() == ItemState::Blocked);
        let best = items.max_by_key(|(index, item)| {
            let in_progress = item.state() == ItemState::InProgress;
            let alike = likeness(&words(&item.text), &spoken);
            (alike, in_progress, Reverse(*index))
        });
        best.map(|(index, _)| index)
    }

    /// The open item that is most similar to a line without files.
    fn alike(&self, line: &PlanLine, files: &[String]) -> Option<usize> {
        let spoken = words(&line.text);
        let items = self.ledger.items.iter().enumerate();
        let items = items.filter(|(_, item)| files.is_empty() && item.state().is_open());
        let alike =
            items.map(|(index, item)| (likeness(&words(&item.text), &spoken), Reverse(index)));
        let best = alike.filter(|(alike, _)| *alike >= SAME_ITEM).max();
        best.map(|(_, Reverse(index))| index)
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
