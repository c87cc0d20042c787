//! The agent's own plan: its items, what the model reports about them, and the changes to their files.
//!
//! An item's state is never stored: it follows from the changed files and from the model's last report about
//! it. The order of a check and an edit in the same response therefore makes no difference.

mod path;
mod update;

#[cfg(test)]
pub(super) mod tests;

pub use update::{Applied, Mode};

use super::plan_text::{ItemState, PlanBlock};
use sprag_domain::agent::{TodoItem, TodoStatus};
use std::collections::BTreeSet;

/// The maximum number of items, including superseded ones; further items are dropped.
pub const MAX_ITEMS: usize = 200;

/// Whether two paths name the same file, in whatever notation the model used.
pub(super) fn same_file(a: &str, b: &str) -> bool {
    match (path::normal(a), path::normal(b)) {
        (Some(a), Some(b)) => path::is_at(&a, &b),
        _ => a == b,
    }
}

/// A file that an item names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// The path as the item names it, relative to the work tree; a trailing slash marks a directory.
    pub path: String,
    /// Whether it was changed for this item.
    pub changed: bool,
    /// Whether the model checked it off.
    pub checked: bool,
}

impl Target {
    /// Looks for it among the files that the session has changed.
    fn compare(&mut self, changed: &BTreeSet<String>) {
        let mut changed = changed.iter();
        self.changed |= changed.any(|changed| path::is_at(&self.path, changed));
    }
}

/// One item of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Item {
    /// The work to do, on one line.
    pub text: String,
    /// The files that it names.
    pub files: Vec<Target>,
    /// The model's last report.
    said: ItemState,
}

impl Item {
    /// The item's state.
    ///
    /// An item with files is done when all of them were changed, or when it is checked off and at least one
    /// was changed; checked off without a change, it is already satisfied. An item without files has the
    /// state that the model reports.
    pub fn state(&self) -> ItemState {
        if self.files.is_empty() || self.said == ItemState::Superseded {
            return self.said;
        }
        let changed = self.files.iter().any(|file| file.changed);
        let all_changed = self.files.iter().all(|file| file.changed);
        let each_checked = self.files.iter().all(|file| file.changed || file.checked);
        match self.said {
            _ if all_changed => ItemState::Done,
            said if said.is_finished() || each_checked => {
                if changed {
                    ItemState::Done
                } else {
                    ItemState::AlreadySatisfied
                }
            }
            ItemState::Pending if changed => ItemState::InProgress,
            said => said,
        }
    }

    fn names(&self, changed: &str) -> bool {
        self.files
            .iter()
            .any(|file| path::is_at(&file.path, changed))
    }
}

/// The plan of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Ledger {
    items: Vec<Item>,
    updates: u32,
}

impl Ledger {
    /// All items in order, including superseded ones.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The number of items that are not superseded.
    pub fn planned(&self) -> usize {
        self.count(|state| state != ItemState::Superseded)
    }

    /// The number of items that are done or already satisfied.
    pub fn finished(&self) -> usize {
        self.count(ItemState::is_finished)
    }

    /// The number of items that are pending or in progress.
    pub fn remaining(&self) -> usize {
        self.count(ItemState::is_open)
    }

    /// The number of items that cannot be done.
    pub fn blocked(&self) -> usize {
        self.count(|state| state == ItemState::Blocked)
    }

    /// Whether the plan has finished items and no open ones.
    pub fn is_complete(&self) -> bool {
        self.remaining() == 0 && self.finished() > 0
    }

    /// The number of blocks that changed the plan: every update, and every plan except the first.
    pub fn updates(&self) -> u32 {
        self.updates
    }

    /// The open items, in order.
    pub fn open(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.state().is_open())
    }

    /// The item to work on: the first one in progress, otherwise the first open one.
    pub fn next(&self) -> Option<&Item> {
        self.open()
            .find(|item| item.state() == ItemState::InProgress)
            .or_else(|| self.open().next())
    }

    /// Applies what a response says about the plan. `changed` contains all files that the session has changed
    /// so far: an item that is checked off is compared with them.
    pub fn apply(&mut self, block: &PlanBlock, changed: &BTreeSet<String>, mode: Mode) -> Applied {
        update::apply(self, block, changed, mode)
    }

    /// Records a changed file for every item that names it.
    pub fn file_changed(&mut self, changed: &str) {
        let items = self.items.iter_mut();
        for item in items.filter(|item| item.said != ItemState::Superseded) {
            for file in &mut item.files {
                file.changed |= path::is_at(&file.path, changed);
            }
        }
    }

    /// Records that a file cannot be edited: the open items that name it become blocked.
    pub fn file_blocked(&mut self, file: &str) {
        let items = self.items.iter_mut();
        for item in items.filter(|item| item.state().is_open() && item.names(file)) {
            item.said = ItemState::Blocked;
        }
    }

    /// The plan as the to-do list in the events of all agents. Superseded items are left out.
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
