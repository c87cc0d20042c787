//! The agent's own to-do list: complete in `TodoWrite` and `todo_write`, or item by item in `TaskCreate` and
//! `TaskUpdate`, depending on the program and its version.

use crate::agents::{json, output};
use crate::domain::agent::{TodoItem, TodoStatus};
use serde_json::Value;

/// Maximum number of items in a list that only grows.
const MAX_ITEMS: usize = 1_000;

/// The current list.
#[derive(Debug, Default)]
pub(super) struct List {
    items: Vec<(Option<String>, TodoItem)>,
    created: usize,
}

/// A change of the list that takes effect when its call succeeds.
#[derive(Debug)]
pub(super) enum Change {
    Replace(Vec<TodoItem>),
    Create(TodoItem),
    Update {
        id: String,
        text: Option<String>,
        status: Option<TodoStatus>,
        deleted: bool,
    },
}

impl Change {
    /// The change that a tool call makes, if the tool changes the list.
    pub(super) fn of(tool: &str, input: &Value) -> Option<Self> {
        match tool {
            "TodoWrite" | "todo_write" => {
                let todos = json::list(input, "/todos").iter();
                Some(Self::Replace(todos.map(output::todo_item).collect()))
            }
            "TaskCreate" => Some(Self::Create(TodoItem {
                text: json::string(input, "/subject"),
                status: TodoStatus::Pending,
            })),
            "TaskUpdate" => Some(Self::Update {
                id: id_at(input, "/taskId")?,
                text: json::text(input, "/subject").map(str::to_owned),
                status: json::text(input, "/status").and_then(status),
                deleted: json::text(input, "/status") == Some("deleted"),
            }),
            _ => None,
        }
    }
}

impl List {
    /// Applies a change whose call succeeded with this structured result and this text.
    pub(super) fn apply(&mut self, change: Change, result: Option<&Value>, output: &str) {
        match change {
            Change::Replace(items) => {
                self.items = items.into_iter().map(|item| (None, item)).collect();
            }
            Change::Create(item) if self.items.len() < MAX_ITEMS => {
                self.created += 1;
                let told = result.and_then(|result| id_at(result, "/task/id"));
                let id = told
                    .or_else(|| id_in(output))
                    .unwrap_or(self.created.to_string());
                self.items.push((Some(id), item));
            }
            Change::Create(_) => {}
            Change::Update {
                id, deleted: true, ..
            } => {
                self.items.retain(|(known, _)| known.as_ref() != Some(&id));
            }
            Change::Update {
                id,
                text,
                status,
                deleted: false,
            } => {
                let known = self
                    .items
                    .iter_mut()
                    .find(|(known, _)| known.as_ref() == Some(&id));
                if let Some((_, item)) = known {
                    item.text = text.unwrap_or_else(|| std::mem::take(&mut item.text));
                    item.status = status.unwrap_or(item.status);
                }
            }
        }
    }

    /// Every item, in claude's order.
    pub(super) fn items(&self) -> Vec<TodoItem> {
        self.items.iter().map(|(_, item)| item.clone()).collect()
    }
}

fn status(text: &str) -> Option<TodoStatus> {
    match text {
        "pending" => Some(TodoStatus::Pending),
        "in_progress" => Some(TodoStatus::InProgress),
        "completed" => Some(TodoStatus::Completed),
        _ => None,
    }
}

fn id_at(value: &Value, pointer: &str) -> Option<String> {
    match value.pointer(pointer)? {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

/// The id in `Task #3 created successfully: …`.
fn id_in(output: &str) -> Option<String> {
    let rest = output.strip_prefix("Task #")?;
    rest.split_whitespace().next().map(str::to_owned)
}
