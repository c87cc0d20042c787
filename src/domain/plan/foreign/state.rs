//! Where the formats of other tools keep their tasks and the states of these.

use crate::plan::{PlanFormat, TaskStatus};
use crate::yaml::{Node, Value, read};

/// Where a format keeps the states of its tasks.
pub(in crate::plan) struct State {
    /// The key of the list of tasks; empty if the file is one task.
    pub list: &'static str,
    /// The key of a task's state.
    pub key: &'static str,
    /// Its words; the first word for a status is the one that is written.
    pub words: &'static [(&'static str, TaskStatus)],
    /// Whether a task has `attempts`.
    pub has_attempts: bool,
    /// The parts of a task, which are done with it.
    pub steps: Option<Steps>,
    /// The words under `status` of a plan that is not done, and of one that is.
    pub plan: Option<(&'static str, &'static str)>,
}

/// The parts of a task.
pub(in crate::plan) struct Steps {
    pub list: &'static str,
    pub key: &'static str,
    pub open: &'static str,
    pub done: &'static str,
}

impl State {
    /// The state in a format of another tool that has one in its keys.
    pub fn of(format: PlanFormat) -> Option<&'static Self> {
        match format {
            PlanFormat::Rmplan => Some(&RMPLAN),
            PlanFormat::Rafa => Some(&RAFA),
            PlanFormat::Story => Some(&STORY),
            PlanFormat::Backlog => Some(&BACKLOG),
            PlanFormat::Ralph => Some(&RALPH),
            PlanFormat::TaskMaster => Some(&TASKMASTER),
            PlanFormat::Sprag
            | PlanFormat::Checklist
            | PlanFormat::TaskList
            | PlanFormat::Headings => None,
        }
    }

    /// The word for a status.
    pub fn word(&self, status: TaskStatus) -> Option<&'static str> {
        let mut words = self.words.iter();
        words
            .find(|(_, known)| *known == status)
            .map(|(word, _)| *word)
    }

    /// The nearest status that the format has.
    pub fn nearest(&self, status: TaskStatus) -> TaskStatus {
        let instead = match status {
            TaskStatus::Blocked => TaskStatus::Failed,
            TaskStatus::Failed => TaskStatus::Blocked,
            _ => TaskStatus::Pending,
        };
        let mut known = [status, instead].into_iter();
        known
            .find(|status| self.word(*status).is_some())
            .unwrap_or_default()
    }
}

/// The words for the status of a whole plan: not done, and done.
pub(in crate::plan) fn plan_status(format: PlanFormat) -> Option<(&'static str, &'static str)> {
    State::of(format)?.plan
}

pub(super) const RMPLAN: State = State {
    list: "tasks",
    key: "done",
    words: &[("false", TaskStatus::Pending), ("true", TaskStatus::Done)],
    has_attempts: false,
    steps: Some(Steps {
        list: "steps",
        key: "done",
        open: "false",
        done: "true",
    }),
    plan: Some(("pending", "done")),
};

pub(super) const RAFA: State = State {
    list: "tasks",
    key: "status",
    words: &[
        ("pending", TaskStatus::Pending),
        ("in_progress", TaskStatus::InProgress),
        ("completed", TaskStatus::Done),
        ("failed", TaskStatus::Failed),
    ],
    has_attempts: true,
    steps: None,
    plan: Some(("not_started", "completed")),
};

pub(super) const STORY: State = State {
    list: "",
    key: "status",
    words: &[
        ("ready", TaskStatus::Pending),
        ("backlog", TaskStatus::Pending),
        ("in-progress", TaskStatus::InProgress),
        ("done", TaskStatus::Done),
        ("blocked", TaskStatus::Blocked),
    ],
    has_attempts: false,
    steps: None,
    plan: None,
};

pub(super) const BACKLOG: State = State {
    words: &[
        ("To Do", TaskStatus::Pending),
        ("In Progress", TaskStatus::InProgress),
        ("Done", TaskStatus::Done),
        ("Blocked", TaskStatus::Blocked),
    ],
    ..STORY
};

pub(super) const RALPH: State = State {
    list: "userStories",
    key: "passes",
    words: &[("false", TaskStatus::Pending), ("true", TaskStatus::Done)],
    has_attempts: false,
    steps: None,
    plan: None,
};

pub(super) const TASKMASTER: State = State {
    list: "tasks",
    key: "status",
    words: &[
        ("pending", TaskStatus::Pending),
        ("review", TaskStatus::Pending),
        ("in-progress", TaskStatus::InProgress),
        ("done", TaskStatus::Done),
        ("completed", TaskStatus::Done),
        // These are not to be run either.
        ("cancelled", TaskStatus::Done),
        ("deferred", TaskStatus::Done),
        ("blocked", TaskStatus::Blocked),
    ],
    has_attempts: false,
    steps: Some(Steps {
        list: "subtasks",
        key: "status",
        open: "pending",
        done: "done",
    }),
    plan: None,
};

/// The stories by their priority, the lowest number first.
pub(in crate::plan) fn by_priority(stories: &[Node]) -> Vec<&Node> {
    let priority = |story: &&Node| {
        let number = story.get("priority").and_then(read::plain);
        number
            .and_then(|number| number.parse::<i64>().ok())
            .unwrap_or(i64::MAX)
    };
    let mut stories: Vec<&Node> = stories.iter().collect();
    stories.sort_by_key(priority);
    stories
}

/// The mapping that holds the list of tasks: the file, or its first tag.
pub(in crate::plan) fn holder(root: &Node) -> Option<&Node> {
    let has_tasks = |node: &&Node| {
        let tasks = node.get("tasks").map(Node::items).unwrap_or_default();
        tasks.iter().any(is_task)
    };
    let tags = root
        .get("master")
        .into_iter()
        .chain(root.entries().iter().map(|entry| &entry.value));
    std::iter::once(root).chain(tags).find(has_tasks)
}

fn is_task(node: &Node) -> bool {
    let signs = ["testStrategy", "subtasks", "dependencies"];
    let is_map = matches!(node.value, Value::Map { .. });
    is_map && node.entry("id").is_some() && signs.iter().any(|sign| node.entry(sign).is_some())
}
