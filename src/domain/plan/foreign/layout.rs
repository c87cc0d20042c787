//! Where the formats of other tools keep their tasks, the texts and the states of these.

use crate::plan::{PlanFormat, TaskStatus};
use crate::yaml::{Node, Value, read};

/// How a format keeps its tasks. An empty key is none.
pub(in crate::plan) struct Layout {
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
    pub plan_status: Option<(&'static str, &'static str)>,
    /// The keys of the plan.
    pub plan: &'static [&'static str],
    /// Those that may have its title.
    pub titles: &'static [&'static str],
    pub goal: &'static str,
    /// The keys of a task's text, and the words before each.
    pub text: &'static [(&'static str, &'static str)],
    pub acceptance: &'static str,
    pub depends_on: &'static str,
    /// Other keys of a task.
    pub others: &'static [&'static str],
}

/// The parts of a task.
pub(in crate::plan) struct Steps {
    pub list: &'static str,
    pub key: &'static str,
    pub open: &'static str,
    pub done: &'static str,
}

impl Steps {
    /// The parts of a task that have a place for their state.
    pub fn of<'a>(&self, task: &'a Node) -> impl Iterator<Item = &'a Node> {
        let steps = task.get(self.list).map(Node::items).unwrap_or_default();
        let mut steps = steps.iter();
        std::iter::from_fn(move || steps.find(|step| matches!(step.value, Value::Map { .. })))
    }

    /// Whether a part is done.
    pub fn is_done(&self, step: &Node) -> bool {
        step.get(self.key).and_then(Node::text) == Some(self.done)
    }
}

/// The key of the time of the last change of a state in a plan of rmplan.
pub(in crate::plan) const UPDATED: &str = "updatedAt";
/// The key of the files that a plan of rmplan has changed.
pub(in crate::plan) const CHANGED: &str = "changedFiles";

const NONE: Layout = Layout {
    list: "tasks",
    key: "status",
    words: &[],
    has_attempts: false,
    steps: None,
    plan_status: None,
    plan: &[],
    titles: &["title"],
    goal: "",
    text: &[("description", "")],
    acceptance: "",
    depends_on: "",
    others: &[],
};

const TRUTH: &[(&str, TaskStatus)] = &[("false", TaskStatus::Pending), ("true", TaskStatus::Done)];

/// rmplan and tim.
#[rustfmt::skip]
static RMPLAN: Layout = Layout {
    key: "done",
    words: TRUTH,
    steps: Some(Steps { list: "steps", key: "done", open: "false", done: "true" }),
    plan_status: Some(("pending", "done")),
    plan: &["id", "title", "goal", "details", "priority", "dependencies", "status", "tasks", UPDATED, CHANGED],
    goal: "goal",
    text: &[("description", ""), ("details", ""), ("files", "Files:\n- ")],
    ..NONE
};

/// The `plan.json` of rafa.
static RAFA: Layout = Layout {
    words: &[
        ("pending", TaskStatus::Pending),
        ("in_progress", TaskStatus::InProgress),
        ("completed", TaskStatus::Done),
        ("failed", TaskStatus::Failed),
    ],
    has_attempts: true,
    plan_status: Some(("not_started", "completed")),
    plan: &["title", "name", "id", "description", "status", "tasks"],
    titles: &["title", "name"],
    goal: "description",
    acceptance: "acceptanceCriteria",
    others: &["attempts"],
    ..NONE
};

/// The `prd.json` of Ralph loops.
static RALPH: Layout = Layout {
    list: "userStories",
    key: "passes",
    words: TRUTH,
    plan: &["title", "project", "description", "userStories"],
    titles: &["title", "project"],
    goal: "description",
    text: &[("description", ""), ("notes", "")],
    acceptance: "acceptanceCriteria",
    depends_on: "dependsOn",
    others: &["priority"],
    ..NONE
};

/// The words of task-master for what is not to be run.
pub(super) const GIVEN_UP: [&str; 2] = ["cancelled", "deferred"];

/// The `tasks.json` of task-master.
#[rustfmt::skip]
static TASKMASTER: Layout = Layout {
    words: &[
        ("pending", TaskStatus::Pending),
        ("review", TaskStatus::Pending),
        ("in-progress", TaskStatus::InProgress),
        ("done", TaskStatus::Done),
        ("completed", TaskStatus::Done),
        (GIVEN_UP[0], TaskStatus::Done),
        (GIVEN_UP[1], TaskStatus::Done),
        ("blocked", TaskStatus::Blocked),
    ],
    steps: Some(Steps { list: "subtasks", key: "status", open: "pending", done: "done" }),
    plan: &["title", "tasks", "metadata", "master"],
    text: &[("description", ""), ("details", ""), ("testStrategy", "How to test it: ")],
    depends_on: "dependencies",
    others: &["priority"],
    ..NONE
};

/// The `story.md` of ai-sdlc.
static STORY: Layout = Layout {
    list: "",
    words: &[
        ("ready", TaskStatus::Pending),
        ("backlog", TaskStatus::Pending),
        ("in-progress", TaskStatus::InProgress),
        ("done", TaskStatus::Done),
        ("blocked", TaskStatus::Blocked),
    ],
    plan: &["id", "title", "dependencies", "status", RETRIES],
    ..NONE
};

/// The key of the limit of retries in a story.
pub(super) const RETRIES: &str = "max_implementation_retries";

/// The tasks of Backlog.md.
#[rustfmt::skip]
static BACKLOG: Layout = Layout {
    list: "",
    words: &[
        ("To Do", TaskStatus::Pending),
        ("In Progress", TaskStatus::InProgress),
        ("Done", TaskStatus::Done),
        ("Blocked", TaskStatus::Blocked),
    ],
    plan: &[
        "id", "title", "dependencies", "status", "priority", "assignee", "created_date", "updated_date", "labels", "ordinal",
    ],
    ..NONE
};

impl Layout {
    /// The layout of a format of another tool that has its states in keys.
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
        let found = words.find(|(_, known)| *known == status);
        found.map(|(word, _)| *word)
    }

    /// The nearest status that the format has.
    pub fn nearest(&self, status: TaskStatus) -> TaskStatus {
        let instead = match status {
            TaskStatus::Blocked => TaskStatus::Failed,
            TaskStatus::Failed => TaskStatus::Blocked,
            _ => TaskStatus::Pending,
        };
        let mut known = [status, instead].into_iter();
        let known = known.find(|status| self.word(*status).is_some());
        known.unwrap_or_default()
    }
}

/// The stories by their priority, the lowest number first.
pub(in crate::plan) fn by_priority(stories: &[Node]) -> Vec<&Node> {
    let priority = |story: &&Node| {
        let number = story.get("priority").and_then(read::plain);
        number.map_or(Ok(i64::MAX), str::parse).unwrap_or(i64::MAX)
    };
    let mut stories: Vec<&Node> = stories.iter().collect();
    stories.sort_by_key(priority);
    stories
}

/// The mapping that holds the list of tasks of task-master: the file, or its first tag.
pub(in crate::plan) fn holder(root: &Node) -> Option<&Node> {
    let has = |task: &Node, key: &str| task.entry(key).is_some();
    let is_task = |task: &Node| {
        let signs = ["testStrategy", "subtasks", "dependencies"];
        has(task, "id") && signs.iter().any(|sign| has(task, sign))
    };
    let has_tasks = |node: &&Node| {
        let tasks = node.get("tasks").map(Node::items).unwrap_or_default();
        tasks.iter().any(is_task)
    };
    let tags = root.entries().iter().map(|entry| &entry.value);
    let tags = root.get("master").into_iter().chain(tags);
    std::iter::once(root).chain(tags).find(has_tasks)
}
