//! The agent's own plan: its items, what the model says of them, and what became of their files.
//!
//! An item's state is never stored: it follows from the files that were changed and from the last
//! thing that the model said of it. So the order in which a check and an edit of the same response
//! arrive makes no difference.

mod path;
mod update;

#[cfg(test)]
mod tests;

pub use update::{Applied, Mode};

use super::plan_text::{PlanBlock, PlanLine};
use crate::agent::{TodoItem, TodoStatus};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Items that a ledger holds, the superseded ones included; what a model adds beyond is dropped.
pub const MAX_ITEMS: usize = 200;

/// Whether two paths are of the same file, however the model wrote them.
pub(super) fn same_file(a: &str, b: &str) -> bool {
    match (path::normal(a), path::normal(b)) {
        (Some(a), Some(b)) => path::is_at(&a, &b),
        _ => a == b,
    }
}

/// How far an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemState {
    /// `[ ]`: not begun.
    Pending,
    /// `[>]`: being worked on.
    InProgress,
    /// `[x]`: done.
    Done,
    /// `[!]`: cannot be done.
    Blocked,
    /// `[~]`: another item took its place.
    Superseded,
    /// `[=]`: there was nothing to do.
    AlreadySatisfied,
}

impl ItemState {
    /// The character in its box.
    pub fn mark(self) -> char {
        match self {
            Self::Pending => ' ',
            Self::InProgress => '>',
            Self::Done => 'x',
            Self::Blocked => '!',
            Self::Superseded => '~',
            Self::AlreadySatisfied => '=',
        }
    }

    /// Whether the item is still to be worked on.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }

    /// Whether the item has come to a good end.
    pub fn is_finished(self) -> bool {
        matches!(self, Self::Done | Self::AlreadySatisfied)
    }
}

/// A file that an item names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Target {
    /// As the item names it, relative to the work tree; with a slash at its end it is a directory.
    pub path: String,
    /// Whether it was changed for this item.
    pub changed: bool,
    /// Whether the model checked it off.
    pub checked: bool,
}

/// One item of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Item {
    /// Its number, from 1, never given twice.
    pub id: u32,
    /// What is to be done, on one line.
    pub text: String,
    /// The files that it names.
    pub files: Vec<Target>,
    /// What the model last said of it.
    said: ItemState,
}

impl Item {
    /// How far it is.
    ///
    /// With files it is done when all of them were changed, and when it is checked off and one of
    /// them was; checked off with no change it is already satisfied. Without files it is what the
    /// model says.
    pub fn state(&self) -> ItemState {
        let changed = self.files.iter().any(|file| file.changed);
        let all_changed = !self.files.is_empty() && self.files.iter().all(|file| file.changed);
        let each_checked =
            !self.files.is_empty() && self.files.iter().all(|file| file.changed || file.checked);
        match self.said {
            ItemState::Superseded => ItemState::Superseded,
            _ if all_changed => ItemState::Done,
            ItemState::Done if self.files.is_empty() => ItemState::Done,
            said if said.is_finished() || each_checked => match changed {
                true => ItemState::Done,
                false => ItemState::AlreadySatisfied,
            },
            ItemState::Pending if changed => ItemState::InProgress,
            said => said,
        }
    }

    /// The item as a line of a checklist.
    pub fn line(&self) -> String {
        format!("- [{}] {}", self.state().mark(), self.text)
    }

    fn names(&self, changed: &str) -> bool {
        self.files
            .iter()
            .any(|file| path::is_at(&file.path, changed))
    }
}

/// The plan of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ledger {
    items: Vec<Item>,
    updates: u32,
}

impl Ledger {
    /// Every item, the superseded ones included, in order.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Items that count: all but the superseded.
    pub fn planned(&self) -> usize {
        self.count(|state| state != ItemState::Superseded)
    }

    /// Items that are done or already satisfied.
    pub fn finished(&self) -> usize {
        self.count(ItemState::is_finished)
    }

    /// Items left to work on: pending or in progress.
    pub fn remaining(&self) -> usize {
        self.count(ItemState::is_open)
    }

    /// Items that cannot be done.
    pub fn blocked(&self) -> usize {
        self.count(|state| state == ItemState::Blocked)
    }

    /// Whether there is a plan, none of it is left and some of it is finished.
    pub fn is_complete(&self) -> bool {
        self.remaining() == 0 && self.finished() > 0
    }

    /// Blocks that changed the plan: every update, and every plan but the first.
    pub fn updates(&self) -> u32 {
        self.updates
    }

    /// The items left to work on, in order.
    pub fn open(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.state().is_open())
    }

    /// The item to work on: the first in progress, else the first left.
    pub fn next(&self) -> Option<&Item> {
        self.open()
            .find(|item| item.state() == ItemState::InProgress)
            .or_else(|| self.open().next())
    }

    /// Takes in what a response says of the plan. `changed` are the files that the session has
    /// changed so far: an item checked off is settled against all of them.
    pub fn apply(&mut self, block: &PlanBlock, changed: &BTreeSet<String>, mode: Mode) -> Applied {
        update::apply(self, block, changed, mode)
    }

    /// Takes in that a file was changed: it counts for every item that names it.
    pub fn file_changed(&mut self, changed: &str) {
        let items = self.items.iter_mut();
        for item in items.filter(|item| item.said != ItemState::Superseded) {
            for file in &mut item.files {
                file.changed |= path::is_at(&file.path, changed);
            }
        }
    }

    /// Takes in that a file cannot be edited: the items left that name it are blocked.
    pub fn file_blocked(&mut self, file: &str) {
        let items = self.items.iter_mut();
        for item in items.filter(|item| item.state().is_open() && item.names(file)) {
            item.said = ItemState::Blocked;
        }
    }

    /// The plan as a checklist, one line for each item.
    pub fn checklist(&self) -> String {
        let lines: Vec<String> = self.items.iter().map(Item::line).collect();
        lines.join("\n")
    }

    /// The plan as the list that every agent's events carry. Superseded items are left out.
    pub fn todo(&self) -> Vec<TodoItem> {
        let counted = self.items.iter().filter_map(|item| {
            let (status, why) = match item.state() {
                ItemState::Superseded => return None,
                ItemState::Pending => (TodoStatus::Pending, ""),
                ItemState::Blocked => (TodoStatus::Pending, " (blocked)"),
                ItemState::InProgress => (TodoStatus::InProgress, ""),
                ItemState::Done => (TodoStatus::Completed, ""),
                ItemState::AlreadySatisfied => (TodoStatus::Completed, " (already satisfied)"),
            };
            let text = format!("{}{why}", item.text);
            Some(TodoItem { text, status })
        });
        counted.collect()
    }

    fn count(&self, wanted: impl Fn(ItemState) -> bool) -> usize {
        self.items
            .iter()
            .filter(|item| wanted(item.state()))
            .count()
    }
}
